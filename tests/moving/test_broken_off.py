"""A move that is killed at any moment: the same command goes on, and nothing arrives twice."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from engram.store.ends import End
from tests.clock import Clock
from tests.faults.processes import ROOT
from tests.faults.processes import environment as quiet
from tests.moving.conftest import Stand, Stands, environment_of, fill, seen

MOST_RUNS = 40


def _fields(end: End) -> dict[str, str]:
    if end.server is not None:
        return {"url": end.server.url, "tenant": end.server.tenant}
    return {"directory": str(end.directory)}


def run(here: Stand, there: Stand, folder: Path, fatal: int, *, after_commit: bool = False) -> dict[str, Any] | None:
    """Move in a process that is killed at a step; None where that came first."""
    request = {"here": _fields(here.end), "there": _fields(there.end), "fatal": fatal, "after_commit": after_commit}
    command = [sys.executable, "-m", "tests.moving.worker", json.dumps(request)]
    ended = subprocess.run(
        command, cwd=ROOT, env={**environment_of(folder), **{k: v for k, v in quiet().items() if k.startswith(("PY", "OMP"))}},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    if ended.returncode == -signal.SIGKILL:
        return None
    assert ended.returncode == 0, ended.stderr
    answer: dict[str, Any] = json.loads(ended.stdout)
    return answer


@pytest.mark.parametrize("after_commit", [False, True], ids=["before a commit", "after a commit"])
@pytest.mark.parametrize("kinds", ["files to postgres", "postgres to files"])
def test_killed_again_and_again_it_arrives_once(
    kinds: str, after_commit: bool, stands: Stands, clock: Clock, tmp_path: Path
) -> None:
    here, there = (stands(kind) for kind in kinds.split(" to "))
    fill(here, clock)
    expected, before = seen(here.backend.client()), here.bytes()
    kills, fatal = 0, 4
    while (answer := run(here, there, tmp_path, fatal, after_commit=after_commit)) is None:
        kills, fatal = kills + 1, fatal + 4 + kills * (6 if "to files" in kinds else 1)
        assert kills < MOST_RUNS
    assert kills >= 3
    assert answer == {"differences": []}
    assert seen(there.backend.client()) == expected
    assert here.bytes() == before


@pytest.mark.parametrize("fatal", [3, 8, 13, 18])
def test_killed_once_at_a_point_it_is_whole_after_the_next_run(
    fatal: int, stands: Stands, clock: Clock, tmp_path: Path
) -> None:
    here, there = stands("postgres"), stands("postgres")
    fill(here, clock)
    expected, before = seen(here.backend.client()), here.bytes()
    assert run(here, there, tmp_path, fatal) is None
    assert run(here, there, tmp_path, 0) == {"differences": []}
    assert seen(there.backend.client()) == expected
    assert here.bytes() == before


def test_half_a_store_of_files_is_no_store_yet(stands: Stands, clock: Clock, tmp_path: Path) -> None:
    here, there = stands("postgres"), stands("files")
    fill(here, clock)
    assert run(here, there, tmp_path, 120) is None
    assert there.end.directory is not None
    assert not there.end.directory.exists()
    assert (there.end.directory.parent / ".home.moving" / "state" / "moving.json").exists()
