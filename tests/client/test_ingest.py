"""Folders and odd files: everything that is not read is named with its reason, and nothing hangs."""

import os
import socket
from pathlib import Path

import pytest

from engram import Engram
from engram.capture.documents import source
from engram.model.errors import InvalidInput
from engram.model.records import TASK_STATES

WORDS = "The tenant must pay within 5 days.\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "docs"
    path.mkdir()
    return path


def test_every_file_of_a_folder_that_is_not_read_is_named_with_its_reason(
    mem: Engram, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "MAX_FILE_BYTES", 1024 * 1024)
    (folder / "a.md").write_text(WORDS)
    (folder / "empty.md").write_bytes(b"")
    (folder / "blank.md").write_bytes(b" \n\t")
    (folder / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    (folder / ".env").write_text("hidden")
    (folder / ".gitignore").write_text("*.log\n")
    (folder / "x.log").write_text("ignored")
    (folder / "node_modules").mkdir()
    (folder / "loop").symlink_to(folder)
    os.mkfifo(folder / "pipe")
    (folder / "latin.txt").write_bytes("Grüße".encode("latin-1"))
    (folder / "big.txt").write_bytes(b"a" * (1024 * 1024 + 1))
    (folder / "data.zzz").write_text("An unknown ending, and a text all the same.\n")
    taken = mem.ingest(folder)
    assert [report.title for report in taken] == ["a.md", "data.zzz"]
    left_out = {Path(path).name: reason for path, reason in taken.left_out}
    assert left_out == {
        ".env": "hidden",
        ".gitignore": "hidden",
        "blank.md": "blank",
        "empty.md": "empty",
        "logo.png": "binary",
        "loop": "a link; its target is read where it is",
        "node_modules": "installed or generated files",
        "pipe": "not a regular file: a pipe, a socket or a device",
        "x.log": "ignored by a .gitignore",
    }
    refused = {Path(path).name: reason for path, reason in taken.refused}
    assert set(refused) == {"big.txt", "latin.txt"}
    assert "larger than 1 MB" in refused["big.txt"]
    assert "iconv" in refused["latin.txt"]


def test_a_folder_that_may_not_be_read_is_named(files: Engram, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "a.md").write_text(WORDS)
    (folder / "locked").mkdir()
    scandir = os.scandir

    def forbidden(path: Path) -> object:
        if Path(path).name == "locked":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", forbidden)
    ((path, reason),) = files.ingest(folder).refused
    assert path == str(folder / "locked")
    assert "Permission denied" in reason


def test_a_folder_without_anything_to_read_says_why_and_leaves_no_task(files: Engram, folder: Path) -> None:
    with pytest.raises(InvalidInput, match="it is empty"):
        files.ingest(folder)
    (folder / "empty.md").write_bytes(b"")
    for number in range(6):
        (folder / f"{number}.png").write_bytes(b"\x89PNG\0\0")
    with pytest.raises(InvalidInput, match=r"0\.png: binary.*and 2 more"):
        files.ingest(folder)
    assert files.list_tasks(TASK_STATES) == []


def test_pipes_sockets_devices_and_links_that_lead_nowhere_are_refused_at_once(files: Engram, folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "round").symlink_to(folder / "round")
    (folder / "nowhere").symlink_to(folder / "nothing")
    here = os.getcwd()
    os.chdir(folder)  # the name of a socket is short, a test's folder is not
    try:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind("socket")
    finally:
        os.chdir(here)
    advice = {
        "pipe": "Copy its content into a file",
        "socket": "Copy its content into a file",
        "round": "points to itself",
        "nowhere": "does not exist",
    }
    for name, told in advice.items():
        with pytest.raises(InvalidInput, match=told):
            files.ingest(folder / name)
    with pytest.raises(InvalidInput, match="Copy its content"):
        files.ingest("/dev/zero")
    assert files.list_tasks(TASK_STATES) == []


def test_a_gitignore_that_is_a_pipe_is_not_waited_for(files: Engram, folder: Path) -> None:
    os.mkfifo(folder / ".gitignore")
    (folder / "a.md").write_text(WORDS)
    assert len(files.ingest(folder)) == 1
