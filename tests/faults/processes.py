"""Starting the tests' own programs as processes, and talking to them."""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PATIENCE = 120.0
"""Seconds after which a process counts as hung; on a busy machine everything takes a few."""


def environment() -> dict[str, str]:
    """One thread for arithmetic: the tests share the machine."""
    return {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1"}


def start(module: str, *arguments: str, **options: Any) -> "subprocess.Popen[str]":
    """Start a module of the tests with pipes, by default one of `tests.faults.workers`."""
    place = module if module.startswith("tests.") else f"tests.faults.workers.{module}"
    command = [sys.executable, "-m", place, *arguments]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "start_new_session": True}
    return subprocess.Popen(command, cwd=ROOT, env=environment(), **{**pipes, **options})


@contextmanager
def ending(*processes: "subprocess.Popen[str]") -> Iterator[None]:
    """None of these runs after the block, nor what it forked, however the block is left."""
    try:
        yield
    finally:
        for process in processes:
            with process:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)


def finish(process: "subprocess.Popen[str]", seconds: float = PATIENCE) -> list[dict[str, Any]]:
    """Wait for a program and read the JSON lines it wrote; anything but success is an error."""
    with ending(process):
        output, _ = process.communicate(timeout=seconds)
    assert process.returncode == 0, output
    return [json.loads(line) for line in output.splitlines()]


class Zygote:
    """The forking program: runs operations in processes that are killed on the way."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def run(self, home: Path, cache: Path, operation: str, n: int, fatal: int = 0, **more: Any) -> dict[str, Any]:
        """One operation in a child of its own; `fatal` is the step it is killed at, 0 for none."""
        assert self._process.stdin is not None and self._process.stdout is not None
        request = {
            "home": str(home),
            "cache": str(cache),
            "operation": operation,
            "n": n,
            "fatal": fatal,
            "torn": False,
        }
        self._process.stdin.write(json.dumps({**request, **more}) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        errors = [ack["error"] for ack in answer["acks"] if "error" in ack]
        assert not errors, errors[0]
        return answer


@contextmanager
def zygote() -> Iterator[Zygote]:
    """A zygote for the length of a block."""
    process = start("zygote")
    with ending(process):
        yield Zygote(process)


def let_go(*processes: "subprocess.Popen[str]") -> None:
    """Let programs that wait for a line on stdin begin, once all of them have said that they are ready."""
    for process in processes:
        assert process.stdout is not None
        assert select.select([process.stdout], [], [], PATIENCE)[0], "a process never got ready"
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()


def learners(home: Path, cache: Path, how_many: int, each: int, shared: Sequence[str] = ()) -> "subprocess.Popen[str]":
    """So many processes that learn `each` things at once, numbered from 0; `finish` gives one answer of each."""
    return start("learners", str(home), str(cache), str(how_many), str(each), *shared)
