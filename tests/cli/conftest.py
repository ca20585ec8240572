"""A command line to talk to, in this process, with a store and a directory of its own."""

import io
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from engram.cli.main import main
from engram.cli.surface import Surface


@dataclass(frozen=True, slots=True)
class Result:
    """How a run ended and what it printed."""

    exit_code: int
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class Console:
    """Runs verbs as the program would, each on the same store."""

    folder: Path

    def __call__(self, *words: str, stdin: str | bytes = "") -> Result:
        """Run a verb; an error that is not Engram's own is the test's failure."""
        data = stdin.encode() if isinstance(stdin, str) else stdin
        streams = [io.TextIOWrapper(io.BytesIO(given), "utf-8", "backslashreplace") for given in (data, b"", b"")]
        before = sys.stdin, sys.stdout, sys.stderr
        sys.stdin, sys.stdout, sys.stderr = streams
        code: Any = 0
        try:
            main(list(words))
        except SystemExit as end:
            code = end.code
        finally:
            sys.stdin, sys.stdout, sys.stderr = before
        return Result(int(code or 0), *(_printed(stream) for stream in streams[1:]))

    def json(self, *words: str, stdin: str | bytes = "") -> Any:
        """Run a verb that must succeed, and read its JSON."""
        result = self(*words, "--json", stdin=stdin)
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    def learned(self, text: str, *options: str) -> str:
        """Learn something; its id."""
        decision = self.json("learn", text, *options)
        assert decision["memory"] is not None, decision
        return str(decision["memory"]["id"])


def _printed(stream: io.TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Console]:
    """The command line, on an empty store, in an empty directory that lies in no repository."""
    for name in [name for name in os.environ if name.startswith("ENGRAM_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("ENGRAM_DEBUG", "1")
    monkeypatch.setenv("ENGRAM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ENGRAM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "100")
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    yield Console(tmp_path)


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody sits at the terminal."""
    monkeypatch.setattr(Surface, "person", property(lambda _: True))
