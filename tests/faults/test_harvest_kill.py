"""kill -9 in the middle of a harvest: the next one proposes what is missing, and nothing twice."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from engram import Engram
from engram.text.content_hash import content_hash
from tests.agents.transcripts.written import claude_file
from tests.faults.consistency import assert_consistent, scratch
from tests.faults.processes import Zygote, ending, start

RULES = (
    "In this repo all commits are rebased, we never squash merge, because the history must stay readable.",
    "All our services must log with slog, never with zap.",
    "Database migrations in this repo are forward only, never write down files.",
    "Every visual change in this project needs Priyanka's approval, so always request her as reviewer.",
)
STEPS = (1, 3, 6, 10, 14, 19, 25, 32, 40, 50)
"""The steps that reach the disk at which the process is killed, one run after the other."""


@pytest.fixture
def folder() -> Iterator[Path]:
    with scratch() as made:
        yield made


def written(root: Path) -> None:
    for number, rule in enumerate(RULES):
        claude_file(root, rule, session=f"0c9e2a43-0000-4000-8000-00000000000{number}")


@pytest.fixture
def forks() -> Iterator[Zygote]:
    process = start("transcript_harvest")
    with ending(process):
        yield Zygote(process)


def test_a_killed_harvest_loses_and_doubles_nothing(folder: Path, forks: Zygote) -> None:
    written(folder / "projects")
    home, cache = folder / "home", folder / "cache"
    killed = [forks.run(home, cache, "harvest", 1, step)["killed"] for step in STEPS]
    assert killed.count(True) >= len(STEPS) // 2
    assert not forks.run(home, cache, "harvest", 1)["killed"]
    with Engram.open(home, cache=cache) as mem:
        found = [memory.statement for memory in mem.list(limit=None, status="any", scope="everywhere")]
        assert sorted(found) == sorted(RULES)
        assert len({content_hash(statement) for statement in found}) == len(RULES)
        events = [event.content for name in mem.store.ledgers() for event in mem.store.events(name)]
        assert sorted(events) == sorted(RULES)
        assert mem.harvest(folder / "projects").unchanged == len(RULES)
    assert_consistent(home, cache)
