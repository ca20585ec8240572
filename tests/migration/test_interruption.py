"""A move that is killed at any moment: the same command goes on, and nothing arrives twice."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engram.store.migration.transfer import Endpoint
from tests.faults.processes import ending, start
from tests.migration.conftest import Filled, Stand, Stands, environment_of, seen

MOST_RUNS = 40
Run = Callable[..., dict[str, Any] | None]


def _fields(end: Endpoint) -> dict[str, str]:
    if end.server is not None:
        return {"url": end.server.url, "tenant": end.server.tenant}
    return {"directory": str(end.directory)}


@pytest.fixture(scope="module")
def mover() -> Iterator[Callable[[dict[str, Any]], dict[str, Any]]]:
    """Carries out a request in a process of its own, forked from one that is warm."""
    process = start("tests.migration.worker")
    assert process.stdin is not None and process.stdout is not None
    asked, told = process.stdin, process.stdout

    def carry_out(request: dict[str, Any]) -> dict[str, Any]:
        asked.write(json.dumps(request) + "\n")
        asked.flush()
        answer: dict[str, Any] = json.loads(told.readline())
        return answer

    with ending(process):
        yield carry_out


@pytest.fixture
def run(mover: Callable[[dict[str, Any]], dict[str, Any]], tmp_path: Path) -> Run:
    """Moves in a process that is killed at a step; None where that came first."""

    def moved(here: Stand, there: Stand, fatal: int, *, after_commit: bool = False) -> dict[str, Any] | None:
        answered = mover(
            {
                "here": _fields(here.end),
                "there": _fields(there.end),
                "fatal": fatal,
                "after_commit": after_commit,
                "environment": environment_of(tmp_path),
            }
        )
        answer: dict[str, Any] | None = answered["answer"]
        assert answer is None or "error" not in answer, answer
        return answer

    return moved


@pytest.mark.parametrize("after_commit", [False, True], ids=["before a commit", "after a commit"])
@pytest.mark.parametrize("kinds", ["files to postgres", "postgres to files"])
def test_killed_again_and_again_it_arrives_once(
    kinds: str, after_commit: bool, stands: Stands, filled: Filled, run: Run
) -> None:
    source, target = kinds.split(" to ")
    (here, _), there = filled(source), stands(target)
    expected, before = seen(here.backend.client()), here.bytes()
    kills, fatal = 0, 4
    while (answer := run(here, there, fatal, after_commit=after_commit)) is None:
        kills, fatal = kills + 1, fatal + 4 + kills * (6 if "to files" in kinds else 1)
        assert kills < MOST_RUNS
    assert kills >= 3
    assert answer == {"differences": []}
    assert seen(there.backend.client()) == expected
    assert here.bytes() == before


@pytest.mark.parametrize("fatal", [3, 8, 13, 18])
def test_killed_once_at_a_point_it_is_whole_after_the_next_run(
    fatal: int, stands: Stands, filled: Filled, run: Run
) -> None:
    (here, _), there = filled("postgres"), stands("postgres")
    expected, before = seen(here.backend.client()), here.bytes()
    assert run(here, there, fatal) is None
    assert run(here, there, 0) == {"differences": []}
    assert seen(there.backend.client()) == expected
    assert here.bytes() == before


def test_half_a_store_of_files_is_no_store_yet(stands: Stands, filled: Filled, run: Run) -> None:
    (here, _), there = filled("postgres"), stands("files")
    assert run(here, there, 120) is None
    assert there.end.directory is not None
    assert not there.end.directory.exists()
    assert (there.end.directory.parent / ".home.moving" / "state" / "moving.json").exists()
