"""A process killed between two steps of a capture, on every backend: whatever reached the ledger is read once."""

import json
import select
import signal
from collections.abc import Iterator
from subprocess import Popen

import pytest

from engram import Engram
from engram.sessions.jobs import LEASE
from engram.store.defaults import utc_now
from tests.backends import Backend, OnFiles, OnPostgres
from tests.clock import Clock
from tests.faults.processes import PATIENCE, ending, start
from tests.faults.workers.capture_killed import POINTS, TURNS


def place_of(backend: Backend) -> list[str]:
    if isinstance(backend, OnPostgres):
        return [backend.url, backend.tenant]
    assert isinstance(backend, OnFiles)
    return [str(backend._folder / name) for name in ("home", "cache", "")]


@pytest.fixture(scope="module")
def forks() -> Iterator["Popen[str]"]:
    process = start("capture_killed")
    with ending(process):
        yield process


def killed_at(forks: "Popen[str]", backend: Backend, point: str) -> None:
    assert forks.stdin is not None and forks.stdout is not None
    forks.stdin.write(json.dumps([point, *place_of(backend)]) + "\n")
    forks.stdin.flush()
    assert select.select([forks.stdout], [], [], PATIENCE)[0], "the child never ended"
    assert int(forks.stdout.readline()) == signal.SIGKILL


def facts_by_turn(mem: Engram) -> dict[str, int]:
    memories = mem.list(status="any", limit=None)
    cited = [one.event for memory in memories for one in memory.evidence]
    return {event.content: cited.count(event.id) for event in mem.store.events("chat")}


@pytest.mark.parametrize("point", POINTS)
def test_every_turn_of_the_ledger_is_read_once_after_a_kill(
    forks: "Popen[str]", backend: Backend, clock: Clock, point: str
) -> None:
    backend.client()
    killed_at(forks, backend, point)
    clock.now = utc_now() + 2 * LEASE
    mem = backend.client()
    mem.flush_captures()
    stored = TURNS[:1] if point == "before the ledger" else TURNS
    assert facts_by_turn(mem) == dict.fromkeys(stored, 1)
    assert mem.upkeep.status()["waiting_turns"] == 0
    again = mem.capture("chat", "user", TURNS[1], key="second")
    assert (again.waiting, facts_by_turn(mem)) == (0, dict.fromkeys(TURNS, 1))
