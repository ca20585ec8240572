"""A warm process that forks one child per request: hundreds of real processes, really killed, in seconds.

One JSON request per line on stdin, one JSON answer per line on stdout. A child acknowledges what has returned.
"""

import gc
import json
import os
import random
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any

from engram import Engram
from tests.faults.consistency import warm_embedder
from tests.faults.workers.operations import OPERATIONS
from tests.faults.workers.purges import PURGES
from tests.faults.workers.steps import Steps, really_write

LOOPED = ("learn", "add", "add_batch", "update", "forget", "rate", "derive", "session", "observe", "edit", "purge")


def _run_once(request: dict[str, Any], acknowledge: Any) -> None:
    steps = Steps(request["fatal"], torn=request["torn"])
    steps.install()
    home, cache = Path(request["home"]), request["cache"]
    if request["operation"] == "open":
        steps.begin()
        with Engram.open(home, cache=cache, directory=home) as mem:
            mem.upkeep.sync()
        acknowledge({"steps": steps.count})
        return
    if request["operation"] in PURGES:
        with Engram.open(home, cache=cache, directory=home) as mem:
            steps.begin()
            PURGES[request["operation"]](mem)
        acknowledge({"steps": steps.count})
        return
    with Engram.open(home, cache=cache, directory=home) as mem:
        steps.begin()
        done = OPERATIONS[request["operation"]](mem, request["n"])
    steps.counting = False
    acknowledge({**done, "steps": steps.count, "kinds": steps.kinds})


def _run_on(request: dict[str, Any], acknowledge: Any) -> None:
    chosen = random.Random(request["n"])
    home, cache = Path(request["home"]), request["cache"]
    with Engram.open(home, cache=cache, directory=home) as mem:
        acknowledge({"open": True})
        for i in range(10_000):
            operation = chosen.choice(LOOPED) if i else "add_batch"
            acknowledge(OPERATIONS[operation](mem, request["n"] * 10_000 + i))


def _child(request: dict[str, Any], descriptor: int) -> None:
    def acknowledge(what: dict[str, Any]) -> None:
        really_write(descriptor, json.dumps(what).encode() + b"\n")

    try:
        (_run_on if request["operation"] == "loop" else _run_once)(request, acknowledge)
    except BaseException as error:
        import traceback

        acknowledge({"error": "".join(traceback.format_exception(error))})
        os._exit(1)
    os._exit(0)


def _collect(process: int, descriptor: int, kill_after: float | None) -> list[dict[str, Any]]:
    """Read acknowledgements; with `kill_after`, kill the child so long after its first one."""
    data = b""
    deadline: float | None = None
    while True:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        ready = select.select([descriptor], [], [], left)[0]
        if not ready:
            os.kill(process, signal.SIGKILL)
            deadline = None
            continue
        chunk = os.read(descriptor, 1 << 16)
        if not chunk:
            break
        if not data and kill_after is not None:
            deadline = time.monotonic() + kill_after
        data += chunk
    return [json.loads(line) for line in data.splitlines()]


def serve(request: dict[str, Any]) -> dict[str, Any]:
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reading)
        _child(request, writing)
    os.close(writing)
    acks = _collect(process, reading, request.get("kill_after"))
    os.close(reading)
    _, status = os.waitpid(process, 0)
    return {"acks": acks, "killed": os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL}


def _rehearse() -> None:
    """What an operation loads on first use is loaded here, once, and not in every child."""
    with Engram.open(ephemeral=True) as mem:
        for n, operation in enumerate(OPERATIONS.values()):
            operation(mem, n)


def main() -> None:
    warm_embedder()
    _rehearse()
    # A collection in a child would write to, and so copy, every page it shares with this process.
    gc.collect()
    gc.freeze()
    gc.disable()
    for line in sys.stdin:
        sys.stdout.write(json.dumps(serve(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
