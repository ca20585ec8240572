"""kill -9 in the middle of every write: an acknowledged write is stored once, any other is absent or complete."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engram import Engram
from tests.faults.consistency import assert_consistent, journal_lines, last_images, scratch
from tests.faults.processes import Zygote, zygote
from tests.faults.workers.operations import OPERATIONS, sentence

SEEDED = 4
MOST_STEPS = 400
GROWS = 16
"""Kills per store; each check reads the whole store, so a new one is used after that."""
BATCH = 4
CONSUMING = ("forget", "purge")
EDITING = ("edit", "split")
AT_EVERY_STEP = ("learn", "add_batch", "purge")
"""A write of one memory, of several, and a purge; the others consist of steps of the same kinds."""


@pytest.fixture(scope="module")
def forks() -> Iterator[Zygote]:
    with zygote() as warm:
        yield warm


@pytest.fixture(scope="module")
def seeded(forks: Zygote) -> Iterator[Path]:
    with scratch() as folder:
        for n in range(SEEDED):
            forks.run(folder / "home", folder / "cache", "learn", n)
        yield folder / "home"


Homes = Callable[[], Path]


@pytest.fixture
def homes(seeded: Path) -> Iterator[Homes]:
    """Creates a new store with some content."""
    with scratch() as folder:

        def home() -> Path:
            made = folder / str(len(list(folder.iterdir()))) / "home"
            shutil.copytree(seeded, made)
            return made

        yield home


@pytest.fixture
def home(homes: Homes) -> Path:
    return homes()


class Ledger:
    """What was acknowledged so far, and whether the store still contains it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.made: dict[str, str] = {}
        self.purged: set[str] = set()
        self.observed: dict[str, str] = {}
        self.ratings = 0

    def take(self, ack: dict[str, Any]) -> None:
        for memory_id, text in ack.get("made", {}).items():
            assert memory_id not in self.made, f"{memory_id} was given out twice"
            self.made[memory_id] = text
        self.made |= ack.get("changed", {})
        self.observed |= ack.get("observed", {})
        self.ratings += "rated" in ack
        self.purged |= set(ack.get("purged", {}))

    def check(self) -> None:
        last = {memory_id: after for memory_id, (after, _) in last_images(self.home).items()}
        for memory_id in self.made:
            assert memory_id in last, f"acknowledged and lost: {memory_id}"
        for memory_id in self.purged:
            assert last[memory_id] is None, f"purged and back: {memory_id}"
        said = [after["statement"] for after in last.values() if after is not None]
        assert len(said) == len(set(said)), "written twice"
        assert _sizes_of_batches(self.home) <= {BATCH}, "a batch came apart"

    def check_exactly(self, ack: dict[str, Any]) -> None:
        """The last acknowledged state is stored unchanged."""
        last = last_images(self.home)
        for memory_id, text in {**ack.get("made", {}), **ack.get("changed", {})}.items():
            after = last[memory_id][0]
            assert after is not None and after["statement"] == text
        for memory_id in ack.get("retired", []):
            after = last[memory_id][0]
            assert after is not None and after["status"] == "retired"


def _sizes_of_batches(home: Path) -> set[int]:
    """How many memories were created together with each part of a batch, including later changed or purged ones."""
    known: set[str] = set()
    sizes = set()
    for line in journal_lines(home):
        new = [change for change in line["changes"] if change["id"] not in known]
        known |= {change["id"] for change in new}
        if any(change["after"] and " part " in change["after"]["statement"] for change in new):
            sizes.add(len(new))
    return sizes


def _attempt(forks: Zygote, home: Path, operation: str, n: int, fatal: int, ledger: Ledger, *, torn: bool) -> bool:
    """Run an operation up to the fatal step and check the store; returns whether the step was reached."""
    cache = home.parent / "cache"
    if operation in CONSUMING:
        ledger.take(forks.run(home, cache, "add", n + 5000)["acks"][-1])
    before = len(journal_lines(home))
    answer = forks.run(home, cache, operation, n, fatal, torn=torn)
    for ack in answer["acks"]:
        ledger.take(ack)
        ledger.check_exactly(ack)
    assert_consistent(home, cache, edited=operation in EDITING, rebuilt=fatal % 4 == 0 or not answer["killed"])
    ledger.check()
    assert len(journal_lines(home)) >= before or operation == "prune"
    return bool(answer["killed"])


@pytest.mark.parametrize("operation", [name for name in OPERATIONS if name not in AT_EVERY_STEP])
def test_a_write_killed_at_each_kind_of_step_is_absent_or_complete(operation: str, homes: Homes, forks: Zygote) -> None:
    rehearsal = homes()
    kinds = forks.run(rehearsal, rehearsal.parent / "cache", operation, 1000)["acks"][-1]["kinds"]
    assert kinds, "the operation took no step at all"
    home = homes()
    ledger = Ledger(home)
    for fatal in sorted({kinds.index(kind) + 1 for kind in kinds}):
        if not _attempt(forks, home, operation, 1000 + fatal, fatal, ledger, torn=False):
            # Earlier kills may have done some steps already; on a new store all are needed.
            home = homes()
            ledger = Ledger(home)
            assert _attempt(forks, home, operation, 1000 + fatal, fatal, ledger, torn=False), kinds[fatal - 1]


@pytest.mark.parametrize("operation", AT_EVERY_STEP)
def test_a_write_killed_at_any_step_is_absent_or_complete(
    operation: str, homes: Homes, forks: Zygote, stride: int
) -> None:
    for kills, fatal in enumerate(range(1, MOST_STEPS, stride)):
        if kills % GROWS == 0:
            home = homes()
            ledger = Ledger(home)
        if not _attempt(forks, home, operation, 1000 + fatal, fatal, ledger, torn=False):
            assert fatal > 1, "the operation took no step at all"
            return
    raise AssertionError(f"{operation} takes more than {MOST_STEPS} steps")


@pytest.mark.parametrize("operation", ["learn", "add_batch", "observe"])
def test_a_write_torn_half_way_through_leaves_no_torn_line(operation: str, home: Path, forks: Zygote) -> None:
    ledger = Ledger(home)
    fatal = 1
    while _attempt(forks, home, operation, 2000 + fatal, fatal, ledger, torn=True):
        fatal += 1
    assert fatal > 1


@pytest.mark.parametrize("operation", ["learn", "add_batch", "purge", "split"])
def test_a_killed_recovery_is_repeated(operation: str, home: Path, forks: Zygote, stride: int) -> None:
    cache = home.parent / "cache"
    steps = forks.run(home, cache, operation, 3000)["acks"][-1]["steps"]
    for fatal in {steps // 3, steps // 2, 2 * steps // 3} - {0}:
        assert forks.run(home, cache, operation, 3000 + fatal, fatal)["killed"]
        at = 1
        while forks.run(home, cache, "open", 0, at)["killed"]:
            at += stride
        assert_consistent(home, cache, edited=True)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.heavy) for seed in range(1, 4))])
def test_a_busy_process_killed_at_random_loses_nothing_it_acknowledged(seed: int, home: Path, forks: Zygote) -> None:
    ledger = Ledger(home)
    cache = home.parent / "cache"
    for n in range(12):
        wait = 0.003 * (1 + (n * 7 + seed * 3) % 17)
        answer = forks.run(home, cache, "loop", seed * 100 + n + 1, kill_after=wait)
        assert answer["killed"]
        for ack in answer["acks"]:
            ledger.take(ack)
        assert_consistent(home, cache, edited=True, rebuilt=n % 3 == 0)
        ledger.check()
    _assert_uses_counted_once(home, cache)


def _assert_uses_counted_once(home: Path, cache: Path) -> None:
    lines = [json.loads(line) for path in (home / "usage").glob("*.jsonl") for line in path.read_bytes().splitlines()]
    with Engram.open(home, cache=cache, directory=home) as mem:
        mem.upkeep.fold()
        assert mem.upkeep.fold() == []
        for memory in mem.list(limit=None, status="any", scope="everywhere"):
            rated = sum(line["kind"] == "rated" and memory.id in line["ids"] for line in lines)
            assert memory.feedback.positive == rated
            sittings = {line.get("session") or line["at"][:10] for line in lines
                        if line["kind"] in ("injected", "recalled") and memory.id in line["ids"]}  # fmt: skip
            derived = sum(line["kind"] == "derived" and memory.id in line["ids"] for line in lines)
            assert len(sittings) <= memory.activation.frequency <= len(sittings) + derived
            assert 1 <= memory.derivation_count <= 1 + derived


def test_sentences_are_far_apart(forks: Zygote) -> None:
    assert len({sentence(n) for n in range(5000)}) == 5000
