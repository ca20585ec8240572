"""A store, and hooks run on it as the program runs them, in this process."""

import io
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from engram import Engram
from engram.hooks import runner


@dataclass
class Hooked:
    """A home, and the hooks of a session in a project."""

    home: Path
    cache: Path
    project: Path

    def open(self) -> Engram:
        """The store."""
        return Engram.open(self.home, cache=self.cache, directory=self.project)

    def learned(self, text: str, situation: str = "", **fields: Any) -> str:
        """Store a memory; its id."""
        with self.open() as mem:
            return mem.add(text, situation=situation, scope="global", **fields).id

    def raw(self, event: str, data: bytes) -> str:
        """Run a hook on some bytes; what it prints."""
        given, printed = io.TextIOWrapper(io.BytesIO(data)), io.TextIOWrapper(io.BytesIO(), "ascii")
        before = sys.stdin, sys.stdout
        sys.stdin, sys.stdout = given, printed
        try:
            runner.run(event, str(self.home))
        finally:
            sys.stdin, sys.stdout = before
        printed.seek(0)
        return printed.buffer.read().decode("utf-8")

    def __call__(self, event: str, **fields: Any) -> str:
        """Run a hook; the text that it adds to the session."""
        payload = {
            "session_id": "s1",
            "cwd": str(self.project),
            "transcript_path": str(self.project / "s1.jsonl"),
            **fields,
        }
        printed = self.raw(event, json.dumps(payload).encode())
        if not printed:
            return ""
        answer = json.loads(printed)
        assert list(answer) == ["hookSpecificOutput"]
        return str(answer["hookSpecificOutput"]["additionalContext"])

    def finding(self) -> Any:
        """What the doctor says about hooks."""
        with self.open() as mem:
            return next((one for one in mem.doctor(seconds=0).findings if one.code == "hooks"), None)


@pytest.fixture
def hooked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hooked]:
    for name in ("ENGRAM_URL", "ENGRAM_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ENGRAM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
    project = tmp_path / "project"
    project.mkdir()
    yield Hooked(tmp_path / "home", tmp_path / "cache", project)
