"""kill -9 at every step of a captured turn: it is in the ledger or not, and what is there is read, once."""

import shutil
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest

from engram import Engram
from engram.sessions.jobs import LEASE
from engram.store.defaults import utc_now
from tests.faults.consistency import assert_consistent, scratch
from tests.faults.processes import Zygote, ending, start
from tests.faults.workers.capture_zygote import SESSION

MOST_STEPS = 250
SEEDED = "My sister Ulla lives in house 0 in Oslo."
Homes = Callable[[], Path]


@pytest.fixture(scope="module")
def forks() -> Iterator[Zygote]:
    process = start("capture_zygote")
    with ending(process):
        yield Zygote(process)


@pytest.fixture(scope="module")
def seeded(forks: Zygote) -> Iterator[Path]:
    """A store with one turn that waits."""
    with scratch() as folder:
        forks.run(folder / "home", folder / "cache", "waiting", 0)
        yield folder / "home"


@pytest.fixture
def homes(seeded: Path) -> Iterator[Homes]:
    with scratch() as folder:

        def home() -> Path:
            made = folder / str(len(list(folder.iterdir()))) / "home"
            shutil.copytree(seeded, made)
            return made

        yield home


def later() -> datetime:
    """When a reader that was killed counts as gone."""
    return utc_now() + 2 * LEASE


def kill(forks: Zygote, home: Path, operation: str, fatal: int, *, torn: bool = False) -> bool:
    """Run an operation that dies at a step; whether it did."""
    return bool(forks.run(home, home.parent / "cache", operation, 7, fatal, torn=torn)["killed"])


def facts_by_turn(home: Path) -> dict[str, list[str]]:
    """Read all that waits; then each turn of the ledger, with the memories that came of it. Nothing waits any more."""
    with Engram.open(home, cache=home.parent / "cache", directory=home, clock=later) as mem:
        mem.flush_captures()
        assert [name for name in mem.store.states("buffer/") if mem.store.state(name).get("turns")] == []
        assert mem.store.verify_ledgers() == []
        memories = mem.list(status="any", limit=None, scope="everywhere")
        return {
            event.content: [m.statement for m in memories if event.id in {one.event for one in m.evidence}]
            for event in mem.store.events(SESSION)
        }


@pytest.mark.parametrize("operation", ["waiting", "high"])
def test_a_turn_killed_at_any_step_is_absent_or_is_read_once_and_so_are_the_others(
    homes: Homes, forks: Zygote, operation: str, stride: int
) -> None:
    ledgers = set()
    for fatal in range(1, MOST_STEPS, stride):
        home = homes()
        killed = kill(forks, home, operation, fatal)
        found = facts_by_turn(home)
        ledgers.add(len(found))
        assert SEEDED in found and all(len(statements) == 1 for statements in found.values()), (fatal, found)
        if not killed:
            assert ledgers == {1, 2} and fatal > 6, "every step was tried"
            return
    raise AssertionError(f"a turn takes more than {MOST_STEPS} steps")


def test_the_first_turn_of_all_killed_at_any_step_is_absent_or_is_read_once(forks: Zygote, stride: int) -> None:
    turns = set()
    for fatal in range(1, MOST_STEPS, stride):
        with scratch() as folder:
            home = folder / "home"
            killed = kill(forks, home, "waiting", fatal)
            found = facts_by_turn(home)
        turns.add(tuple(map(len, found.values())))
        if not killed:
            assert turns == {(), (1,)}
            return
    raise AssertionError(f"a turn takes more than {MOST_STEPS} steps")


def test_a_turn_said_again_after_a_kill_is_one_turn_and_one_fact(homes: Homes, forks: Zygote, stride: int) -> None:
    for fatal in range(1, MOST_STEPS, 2 * stride):
        home = homes()
        killed = kill(forks, home, "high", fatal)
        forks.run(home, home.parent / "cache", "high", 7)
        found = facts_by_turn(home)
        assert sorted(map(len, found.values())) == [1, 1], (fatal, found)
        if not killed:
            return
    raise AssertionError(f"a turn takes more than {MOST_STEPS} steps")


def test_a_torn_write_loses_no_turn(homes: Homes, forks: Zygote) -> None:
    for fatal in range(1, MOST_STEPS):
        home = homes()
        killed = kill(forks, home, "waiting", fatal, torn=True)
        found = facts_by_turn(home)
        assert SEEDED in found and all(len(statements) == 1 for statements in found.values()), (fatal, found)
        if not killed:
            return
    raise AssertionError(f"a turn takes more than {MOST_STEPS} writes")


def test_a_flush_killed_at_any_step_is_completed_by_the_next(homes: Homes, forks: Zygote, stride: int) -> None:
    for fatal in range(1, MOST_STEPS, stride):
        home = homes()
        killed = kill(forks, home, "flush", fatal)
        found = facts_by_turn(home)
        assert {content: len(statements) for content, statements in found.items()} == {SEEDED: 1}, fatal
        if not killed:
            assert_consistent(home, home.parent / "cache")
            return
    raise AssertionError(f"a flush takes more than {MOST_STEPS} steps")
