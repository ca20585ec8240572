"""What a killed process left in a store is removed by the next one that writes, and never survives a purge unreported."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from engram import Engram, Purged, StoreCorrupt
from engram.disk import temporary_path

TEXT = "Negotiate the lease of the lighthouse quietly"
OWNER = {"agent_id": "bot", "user_id": "ana"}
PROGRAM = """
import os, signal, sys
from pathlib import Path
from engram import Engram
from engram.store.files import memories

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

home, cache, text = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
with Engram.open(home, cache=cache, embedder="none") as mem:
    {write}
"""
WRITES = {
    "session": 'Path.replace = die; mem.session(text, agent_id="bot", user_id="ana")',
    "state": 'Path.replace = die; mem.store.change_state("buffer/x", lambda _: {"text": text})',
    "task": 'Path.replace = die; mem.start_task(text, agent_id="bot", user_id="ana")',
    "memory": 'memories._place_new = die; mem.add(text, agent_id="bot", user_id="ana")',
}
VERBS: dict[str, Callable[[Engram], object]] = {
    "add": lambda mem: mem.add("We like rivers"),
    "sync": lambda mem: mem.store.sync(),
    "doctor": lambda mem: mem.doctor(),
    "purge by owner": lambda mem: mem.purge(**OWNER, actor="human"),
    "purge by id": lambda mem: mem.forget(mem.add("We like rivers").id, purge=True, actor="human"),
}


def kill_while_writing(folder: Path, what: str) -> Path:
    """The temporary file that a process killed at its rename leaves."""
    program = PROGRAM.replace("{write}", WRITES[what])
    words = [sys.executable, "-c", program, str(folder / "store"), str(folder / "cache"), TEXT]
    assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
    (path,) = leftovers(folder)
    assert TEXT in path.read_text()
    return path


def leftovers(folder: Path) -> list[Path]:
    return sorted((folder / "store").rglob("*.tmp"))


def opened(folder: Path) -> Engram:
    return Engram.open(folder / "store", cache=folder / "cache", embedder="none")


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("what", WRITES)
def test_the_next_writer_removes_it(tmp_path: Path, what: str, verb: str) -> None:
    kill_while_writing(tmp_path, what)
    with opened(tmp_path) as mem:
        VERBS[verb](mem)
        assert leftovers(tmp_path) == []


@pytest.mark.parametrize("place", ["", "state", "state/sessions", "state/named", "state/spend", "usage", "quarantine"])
def test_a_purge_reports_one_that_it_may_not_remove(tmp_path: Path, place: str) -> None:
    with opened(tmp_path) as mem:
        folder = tmp_path / "store" / place
        folder.mkdir(exist_ok=True)
        fresh = Path(temporary_path(folder / "S-1.json"))
        other = fresh.with_name(re.sub(r"engram-[0-9a-f]{8}", "engram-00000000", fresh.name))
        other.write_text(TEXT)
        if place not in ("state", "state/named"):  # only holders of the writer lock write there, so that it is stray
            assert str(other) in "\n".join(_purged(mem).remaining)
        os.utime(other, (time.time() - 7200,) * 2)
        assert _purged(mem).remaining == ()
        assert leftovers(tmp_path) == []


def test_a_purge_leaves_the_file_of_a_running_writer_alone(tmp_path: Path) -> None:
    with opened(tmp_path) as mem:
        folder = tmp_path / "store" / "state" / "sessions"
        folder.mkdir(exist_ok=True)
        fresh = Path(temporary_path(folder / "S-1.json"))
        fresh.write_text("{}")
        assert _purged(mem).remaining == ()
        assert leftovers(tmp_path) == [fresh]


def test_files_of_others_stay(tmp_path: Path) -> None:
    with opened(tmp_path) as mem:
        kept = [tmp_path / "store" / "state" / "sessions" / name for name in (".S-1.json.swp", "S-1.json~", "a.tmp")]
        kept[0].parent.mkdir(exist_ok=True)
        for path in kept:
            path.touch()
        mem.add("We like rivers")
        assert all(path.exists() for path in kept)


def test_a_folder_of_states_that_is_a_link_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as mem:
        mem.add("We like rivers")
    stray = tmp_path / "elsewhere" / ".notes.tmp"
    stray.parent.mkdir()
    stray.touch()
    (tmp_path / "store" / "state" / "named").symlink_to(stray.parent)
    with pytest.raises(StoreCorrupt, match="symbolic link"):
        opened(tmp_path)
    assert stray.exists()


def _purged(mem: Engram) -> Purged:
    return mem.purge(**OWNER, actor="human")
