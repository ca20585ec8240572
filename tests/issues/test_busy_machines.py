"""What a minute of mixed traffic showed: an ordinary wait is no alarm, and a removed working directory stops nobody."""

import subprocess
import sys
from pathlib import Path

import pytest

from engram import Engram
from engram.model.errors import StoreBusy
from engram.store.files.lock import WriterLock
from engram.store.files.store import health
from engram.store.files.store.purge_plan import MARKER_FILE
from tests.faults.consistency import store_of
from tests.mcp.talking import environment


def test_a_writer_that_was_waited_for_briefly_is_not_called_stuck(tmp_path: Path) -> None:
    with WriterLock(tmp_path / "lock").hold():
        with pytest.raises(StoreBusy) as briefly, WriterLock(tmp_path / "lock").hold(0.05):
            pass
        with pytest.raises(StoreBusy) as long, WriterLock(tmp_path / "lock").hold(1.0):
            pass
    assert "stuck" not in str(briefly.value)
    assert "stuck" in str(long.value)


def test_a_purge_that_is_under_way_is_not_reported_as_interrupted(tmp_path: Path) -> None:
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache") as mem:
        mem.add("Deploys go through staging first")
        home = store_of(mem).context.home
        (home.state / MARKER_FILE).write_text("{}")
        assert "purge" in [check.name for check in health.check_interrupted_purge(store_of(mem).context)]
        with WriterLock(home.lock).hold():
            assert health.check_interrupted_purge(store_of(mem).context) == []


def test_a_store_opens_where_the_working_directory_was_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "worktree"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache") as mem:
        mem.add("Deploys go through staging first")
        assert mem.recall("How do deploys go?").hits


@pytest.mark.parametrize("verb", ["status", "doctor", "list"])
def test_a_verb_runs_where_the_working_directory_was_removed(tmp_path: Path, verb: str) -> None:
    gone = tmp_path / "worktree"
    gone.mkdir()
    program = f"import os, sys; os.rmdir({str(gone)!r}); from engram.cli.main import main; main(sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", program, verb], cwd=gone, env=environment(tmp_path), capture_output=True, text=True
    )
    assert (done.returncode, "No such file" in done.stderr) == (0, False), done.stderr
