"""What a killed run leaves next to a file of the user is removed by the next run, and nothing else is."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engram import disk
from engram.disk import remove_leftovers, temporary_path
from tests.cli.conftest import Console, cli
from tests.repositories import make_repository

__all__ = ["cli"]

WRITE = """
import os, signal, sys
from pathlib import Path
import engram.disk
from engram.agents.wiring.user_file import read_user_file, replace_user_file

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

{patch}
replace_user_file(read_user_file(Path(sys.argv[1])), sys.argv[2])
"""
BEFORE_RENAME = "os.fsync = die"
AFTER_LINK = "Path.unlink = die"
PAUSED = "os.fsync = lambda _: (print('here', flush=True), signal.pause())"


def killed(path: Path, text: str, patch: str = BEFORE_RENAME) -> None:
    ended = subprocess.run([sys.executable, "-c", WRITE.format(patch=patch), str(path), text], check=False)
    assert ended.returncode == -signal.SIGKILL


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*.tmp"))


@pytest.fixture
def paused(tmp_path: Path) -> Iterator[Path]:
    """A file that a running process is about to replace."""
    path = tmp_path / "AGENTS.md"
    path.write_text("# Mine\n")
    command = [sys.executable, "-c", WRITE.format(patch=PAUSED), str(path), "# Yours\n"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"here\n"
        yield path
        process.kill()


def test_a_killed_block_leaves_nothing_after_the_next_one(cli: Console) -> None:
    cli.learned("Use tabs, not spaces", "--type", "preference")
    path = Path.cwd() / "AGENTS.md"
    path.write_text("# Mine\n")
    killed(path, "# Never written, but quotes a memory\n")
    assert len(leftovers(path.parent)) == 1 and path.read_text() == "# Mine\n"
    assert cli("gen-context", str(path)).exit_code == 0
    assert leftovers(path.parent) == []
    killed(path, "again")
    assert cli("gen-context", str(path)).exit_code == 0, "also where the file is up to date"
    assert leftovers(path.parent) == []


def test_a_file_with_a_second_name_from_a_killed_run_is_written_again(cli: Console) -> None:
    path = Path.cwd() / "AGENTS.md"
    killed(path, "# New\n", AFTER_LINK)
    assert path.stat().st_nlink == 2
    assert cli("gen-context", str(path)).exit_code == 0
    assert path.stat().st_nlink == 1 and leftovers(path.parent) == []


def test_a_killed_wiring_leaves_nothing_after_the_next_one(cli: Console) -> None:
    top = Path.cwd()
    make_repository(top)
    (top / ".mcp.json").write_text("{}\n")
    for name in (".mcp.json", ".mcp.json.engram-backup"):
        killed(top / name, "{}")
        assert len(leftovers(top)) == 1
        assert cli("init", "claude-code", "--project").exit_code == 0
        assert leftovers(top) == []


def test_a_purge_removes_what_a_killed_run_left(cli: Console) -> None:
    known = cli.learned("The gate code of the attic is on the fridge", "--type", "preference")
    path = Path.cwd() / "AGENTS.md"
    path.write_text("# Mine\n")
    assert cli("gen-context", str(path)).exit_code == 0
    killed(path, "The gate code of the attic is on the fridge\n")
    assert cli("forget", known, "--purge", "--yes").exit_code == 0
    assert leftovers(path.parent) == [] and "attic" not in path.read_text()


def test_a_killed_backup_leaves_nothing_after_the_next_one(cli: Console) -> None:
    cli.learned("Use tabs, not spaces", "--type", "preference")
    target = Path.cwd() / "store.tar.gz"
    killed(target, "half an archive")
    assert cli("backup", str(target)).exit_code == 0
    assert leftovers(target.parent) == []


def test_what_a_running_process_writes_stays(paused: Path) -> None:
    (name,) = leftovers(paused.parent)
    remove_leftovers(paused.parent)
    assert leftovers(paused.parent) == [name]


def test_of_another_machine_only_what_is_old_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(disk, "_MACHINE", "0" * 8)
        fresh, old = Path(temporary_path(tmp_path / "AGENTS.md")), Path(temporary_path(tmp_path / "AGENTS.md"))
    fresh.touch()
    old.touch()
    os.utime(old, (time.time() - 7200,) * 2)
    remove_leftovers(tmp_path)
    assert leftovers(tmp_path) == [fresh.name]


def test_files_of_others_stay(tmp_path: Path) -> None:
    own = Path(temporary_path(tmp_path / "AGENTS.md")).name
    dead = own.replace(f"-{os.getpid()}-", "-4194305-")
    kept = [
        ".AGENTS.md.4711.tmp",
        ".AGENTS.md.swp",
        "AGENTS.md~",
        dead.lstrip("."),
        f"{dead}.bak",
        dead.replace("engram-", "vim-"),
    ]
    for name in kept:
        (tmp_path / name).touch()
    (tmp_path / dead.replace("AGENTS", "A")).symlink_to(tmp_path / kept[0])
    (tmp_path / dead.replace("AGENTS", "B")).mkdir()
    (tmp_path / dead).touch()
    remove_leftovers(tmp_path)
    links = [dead.replace("AGENTS", "A"), dead.replace("AGENTS", "B")]
    assert sorted(os.listdir(tmp_path)) == sorted([*kept, *links])


def test_a_folder_that_cannot_be_listed_is_left_alone(tmp_path: Path) -> None:
    remove_leftovers(tmp_path / "missing")
    assert not (tmp_path / "missing").exists()
