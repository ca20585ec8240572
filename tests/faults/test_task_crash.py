"""kill -9 at every step of a task's writes: a turn is stored with its job or not at all, and only once when repeated."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engram import Engram
from engram.model.records import Checkpoint, Event, Job
from tests.faults.consistency import assert_consistent, scratch
from tests.faults.processes import Zygote, ending, start

MOST_STEPS = 200
TURN = 4
"""Events of a turn: the question, a call, its result, the answer."""
Homes = Callable[[], Path]


@pytest.fixture(scope="module")
def forks() -> Iterator[Zygote]:
    process = start("task_zygote")
    with ending(process):
        yield Zygote(process)


@pytest.fixture(scope="module")
def seeded(forks: Zygote) -> Iterator[Path]:
    """A store with a task and a first turn."""
    with scratch() as folder:
        for operation in ("task", "turn"):
            forks.run(folder / "home", folder / "cache", operation, 0)
        yield folder / "home"


@pytest.fixture
def homes(seeded: Path) -> Iterator[Homes]:
    with scratch() as folder:

        def home() -> Path:
            made = folder / str(len(list(folder.iterdir()))) / "home"
            shutil.copytree(seeded, made)
            return made

        yield home


def opened(home: Path) -> Engram:
    return Engram.open(home, cache=home.parent / "cache", directory=home, embedder="none")


def turn_of(mem: Engram, n: int) -> list[Event]:
    """A turn's events in the ledger."""
    (task,) = mem.tasks.list()
    return [event for event in mem.store.events(task.id) if event.key.startswith(f"turn-{n}/")]


def jobs_of(mem: Engram, events: list[Event]) -> list[set[str]]:
    """What each job covers that is about one of these events."""
    ids = {event.id for event in events}
    return [covered for job in mem.store.list_records(Job) if (covered := set(job.payload["events"])) & ids]


def attempt(forks: Zygote, home: Path, operation: str, n: int, fatal: int, **how: Any) -> bool:
    """Whether the kill came before the end."""
    return bool(forks.run(home, home.parent / "cache", operation, n, fatal, **how)["killed"])


def again(forks: Zygote, home: Path, operation: str, n: int) -> dict[str, Any]:
    """Repeat the operation to its end."""
    ack: dict[str, Any] = forks.run(home, home.parent / "cache", operation, n)["acks"][-1]
    return ack


def test_a_turn_killed_at_any_step_is_complete_with_its_job_or_absent(homes: Homes, forks: Zygote, stride: int) -> None:
    seen = set()
    for fatal in range(1, MOST_STEPS, stride):
        home = homes()
        killed = attempt(forks, home, "turn", 7, fatal)
        with opened(home) as mem:
            held = turn_of(mem, 7)
            seen.add(len(held))
            assert len(held) in (0, TURN) and mem.store.verify_ledgers() == []
            assert jobs_of(mem, held) == ([{event.id for event in held}] if held else [])
        if not killed:
            assert seen == {0, TURN} and fatal > 4, "every step was tried"
            return
    raise AssertionError(f"a turn takes more than {MOST_STEPS} steps")


def test_a_turn_repeated_after_a_kill_is_stored_once(homes: Homes, forks: Zygote, stride: int) -> None:
    for fatal in range(1, MOST_STEPS, stride):
        home = homes()
        killed = attempt(forks, home, "turn", 7, fatal)
        told = again(forks, home, "turn", 7)["events"]
        with opened(home) as mem:
            (task,) = mem.tasks.list()
            assert [event.id for event in turn_of(mem, 7)] == told and len(told) == TURN
            assert len(mem.store.events(task.id)) == 2 * TURN
            assert jobs_of(mem, turn_of(mem, 7)) == [set(told)]
            assert mem.store.verify_ledgers() == []
        if not killed:
            return
    raise AssertionError(f"a turn takes more than {MOST_STEPS} steps")


def test_a_torn_turn_is_complete_or_absent_and_stored_once_when_repeated(homes: Homes, forks: Zygote) -> None:
    fatal = 1
    while True:
        home = homes()
        killed = attempt(forks, home, "turn", 7, fatal, torn=True)
        with opened(home) as mem:
            known = turn_of(mem, 7)
            assert len(known) in (0, TURN) and all(jobs_of(mem, [event]) for event in known), (
                "no event waits for nobody"
            )
            assert mem.store.verify_ledgers() == []
        told = again(forks, home, "turn", 7)["events"]
        with opened(home) as mem:
            held = turn_of(mem, 7)
            assert [event.id for event in held] == told and len(held) == TURN
            assert held[: len(known)] == known and all(jobs_of(mem, [event]) for event in held)
            assert mem.store.verify_ledgers() == []
        if not killed:
            return
        fatal += 1


@pytest.mark.parametrize("torn", [False, True], ids=["killed", "torn"])
def test_a_checkpoint_killed_at_any_step_is_absent_or_complete_and_the_next_one_follows(
    homes: Homes, forks: Zygote, torn: bool, stride: int
) -> None:
    for fatal in range(1, MOST_STEPS, 1 if torn else stride):
        home = homes()
        killed = attempt(forks, home, "checkpoint", 1, fatal, torn=torn)
        with opened(home) as mem:
            (task,) = mem.tasks.list()
            before = [point.number for point in mem.store.list_records(Checkpoint, of=task.id)]
            assert before in ([], [1])
        number = again(forks, home, "checkpoint", 2)["number"]
        with opened(home) as mem:
            points = mem.store.list_records(Checkpoint, of=task.id)
            assert [point.number for point in points] == [number, *before] and number == len(points)
            assert points[0].summary == "Part 2 is done"
        if not killed:
            return
    raise AssertionError(f"a checkpoint takes more than {MOST_STEPS} steps")


def test_a_task_whose_end_was_killed_runs_or_has_ended(homes: Homes, forks: Zygote, stride: int) -> None:
    for fatal in range(1, MOST_STEPS, stride):
        home = homes()
        killed = attempt(forks, home, "end", 1, fatal)
        with opened(home) as mem:
            (task,) = mem.tasks.list()
            assert (task.status, task.outcome) in {("running", ""), ("failed", "reason 1")}
            assert (task.ended is None) == (task.status == "running")
        if not killed:
            assert task.status == "failed"
            return
    raise AssertionError(f"ending a task takes more than {MOST_STEPS} steps")


def test_a_store_with_a_task_is_consistent_after_every_kill(homes: Homes, forks: Zygote) -> None:
    home, fatal = homes(), 1
    while attempt(forks, home, "turn", 100 + fatal, fatal):
        fatal += 1
        if fatal % 4 == 0:
            assert_consistent(home, home.parent / "cache", rebuilt=fatal % 8 == 0)
