"""A cache that cannot be written is named as such, with the variable that moves it; nothing is called damaged."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engram import Engram
from engram.model.errors import StoreReadOnly
from engram.store import hook_files
from tests.tables import table

PROMPT = "why does the gate of the garden stick in winter"


@contextmanager
def mounted(folder: Path) -> Iterator[None]:
    """A file system of its own, which can be mounted again without the right to write; permissions where nothing may be mounted."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)]
    is_mounted = os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0
    if not is_mounted and os.geteuid() == 0:
        pytest.skip("root can write everywhere, and this system allows no mount")
    try:
        yield
    finally:
        if is_mounted:
            subprocess.run(["umount", str(folder)], check=True)
        else:
            for path in (folder, *folder.rglob("*")):
                path.chmod(0o700)


def protect(folder: Path) -> None:
    if folder.is_mount():
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        return
    for path in (*folder.rglob("*"), folder):
        path.chmod(0o555 if path.is_dir() else 0o444)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The home of a store whose cache cannot be written any more."""
    with mounted(tmp_path / "disk"):
        cache = tmp_path / "disk" / "cache"
        with Engram.open(tmp_path / "home", cache=cache, directory=tmp_path) as mem:
            mem.add("The gate of the garden sticks in winter", scope="global")
        protect(tmp_path / "disk")
        monkeypatch.setenv("ENGRAM_CACHE", str(cache))
        monkeypatch.setenv("ENGRAM_HOME", str(tmp_path / "home"))
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
        monkeypatch.delenv("ENGRAM_URL", raising=False)
        monkeypatch.chdir(tmp_path)
        yield tmp_path / "home"


def run(*words: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-m", "engram", *words], input=stdin, capture_output=True, text=True, check=False)  # fmt: skip


def assert_named(text: str) -> None:
    assert "the cache" in text and "cannot be written" in text and "set ENGRAM_CACHE" in text, text
    assert "Corrupt" not in text and "doctor` " not in text, text


@table(
    "words",
    [["list"], ["status"], ["recall", "gate"], ["learn", "Use tabs"], ["doctor"], ["sync"], ["index", "--rebuild"]],
)
def test_a_verb_names_the_cache(words: list[str], store: Path) -> None:
    ended = run(*words)
    assert ended.returncode == 1
    assert_named(ended.stderr)


def test_a_hook_names_the_cache(store: Path) -> None:
    payload = json.dumps(
        {"session_id": "s1", "cwd": str(store.parent), "prompt": PROMPT, "hook_event_name": "UserPromptSubmit"}
    )
    assert run("hook", "prompt", stdin=payload).stdout == ""
    (failure,) = hook_files.read_failures(hook_files.failure_log(store))
    assert_named(failure.message)


def test_the_keyword_hook_names_the_cache(store: Path) -> None:
    answer = json.loads(run("hook", "recall", "gate").stdout)
    assert_named(answer["warnings"][0])


def test_the_library_names_the_cache(store: Path) -> None:
    with pytest.raises(StoreReadOnly, match=r"the cache .* cannot be written .*ENGRAM_CACHE"):
        Engram.open(store)


def test_another_cache_is_enough(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGRAM_CACHE", str(tmp_path / "other"))
    assert "The gate of the garden" in run("list").stdout
