"""Starting the tests' own programs as processes, and talking to them."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def environment() -> dict[str, str]:
    """One thread for arithmetic: the tests share the machine."""
    return {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1"}


def start(module: str, *arguments: str, **options: Any) -> "subprocess.Popen[str]":
    """Start `tests.faults.workers.<module>` with pipes."""
    command = [sys.executable, "-m", f"tests.faults.workers.{module}", *arguments]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=ROOT, env=environment(), **{**pipes, **options})


def finish(process: "subprocess.Popen[str]", seconds: float = 60) -> list[dict[str, Any]]:
    """Wait for a program and read the JSON lines it wrote; anything but success is an error."""
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
    try:
        yield Zygote(process)
    finally:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.close()
        process.stdout.close()
        process.wait(timeout=30)


def together(
    processes: Sequence["subprocess.Popen[str]"], seconds: float = 60, *, also: "subprocess.Popen[str] | None" = None
) -> list[list[dict[str, Any]]]:
    """Let programs that wait for a line on stdin begin at once; return what each wrote. `also` is left running."""
    everyone = [*processes, *([also] if also else [])]
    for process in everyone:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in everyone:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    try:
        return [finish(process, seconds) for process in processes]
    except BaseException:
        for process in everyone:
            process.kill()
            process.communicate()
        raise
