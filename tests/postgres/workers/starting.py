"""Starting a crowd of processes on one store, letting them begin at once, and hearing what each did."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from tests.faults.processes import ROOT, environment

PATIENCE = 150.0
"""Longer than the crowd itself waits for anything: it says what was amiss."""


class Crowd:
    """Processes that write to one store; what they tell lies in a file, one JSON object a line."""

    def __init__(self, process: "subprocess.Popen[str]", told: Path) -> None:
        self._process, self._told = process, told
        self._heard: list[dict[str, Any]] = []
        self._place = 0

    @property
    def told(self) -> list[dict[str, Any]]:
        """Everything said so far; a killed process may leave half a line."""
        if self._told.exists():
            with self._told.open("rb") as file:
                file.seek(self._place)
                new, ended, _ = file.read().rpartition(b"\n")
            self._place += len(new) + len(ended)
            self._heard += map(json.loads, new.splitlines())
        return self._heard

    def begin(self) -> None:
        """Wait until everyone has opened the store, then let all begin."""
        assert self._output.readline() == "ready\n", "the crowd did not come together"
        self._say("go")

    def kill(self, pid: int) -> None:
        """One of them ends as by a power cut."""
        os.kill(pid, signal.SIGKILL)

    def end(self) -> list[dict[str, Any]]:
        """Ask everyone to stop, and wait; returns all that was told. An error nobody expected fails here."""
        self._say("stop")
        self._process.communicate(timeout=PATIENCE)
        assert self._process.returncode == 0
        told = self.told
        errors = [line["error"] for line in told if "error" in line]
        assert not errors, errors[0]
        return told

    def _say(self, word: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n")
        self._process.stdin.flush()

    @property
    def _output(self) -> IO[str]:
        assert self._process.stdout is not None
        return self._process.stdout


@contextmanager
def crowd(part: str, folder: Path, processes: int, threads: int, **request: Any) -> Iterator[Crowd]:
    """`processes` times `threads` workers that all play `part`; nobody is left behind."""
    told = folder / f"{part}.jsonl"
    asked = {"part": part, "told": str(told), "processes": processes, "threads": threads, **request}
    with start("crowd", json.dumps(asked)) as process:
        yield Crowd(process, told)


@contextmanager
def start(module: str, *arguments: str) -> "Iterator[subprocess.Popen[str]]":
    """`tests.postgres.workers.<module>` in a process group of its own, which is gone afterwards."""
    command = [sys.executable, "-m", f"tests.postgres.workers.{module}", *arguments]
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
