"""Many processes with many threads on one store: forked from a warm one, let go at once, each tells what it was answered.

stdin: `go` lets them begin, `stop` or its end asks them to finish. stdout: `ready` when all have opened the store.
"""

import json
import multiprocessing
import os
import sys
import threading
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engram import Engram
from tests.faults.consistency import warm_embedder
from tests.postgres.workers import parts
from tests.postgres.workers.enduring import enduring
from tests.postgres.workers.parts import Turn

if TYPE_CHECKING:
    from multiprocessing.synchronize import Barrier, Event

PARTS = {**parts.PARTS, "enduring": enduring}
FORKING = multiprocessing.get_context("fork")
PATIENCE = 120.0


@dataclass(frozen=True, slots=True)
class Signals:
    """What the processes of a crowd wait for."""

    opened: "Barrier"
    go: "Event"
    stop: "Event"
    meet: "Barrier"


def _tell(descriptor: int, said: dict[str, Any]) -> None:
    """One write to a file opened for appending: lines of different processes never mix."""
    os.write(descriptor, json.dumps(said).encode() + b"\n")


def _process(number: int, request: dict[str, Any], signals: Signals) -> None:
    descriptor = os.open(request["told"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        mem = Engram.open(url=request["url"], tenant=request["tenant"])
    except BaseException:
        signals.opened.abort()
        raise
    with mem:
        _tell(descriptor, {"pid": os.getpid()})
        signals.opened.wait(PATIENCE)
        signals.go.wait(PATIENCE)
        threads = [
            threading.Thread(target=_thread, args=(mem, number * request["threads"] + i, request, signals, descriptor))
            for i in range(request["threads"])
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def _thread(mem: Engram, who: int, request: dict[str, Any], signals: Signals, descriptor: int) -> None:
    turn = Turn(mem, who, request, lambda said: _tell(descriptor, said), signals.stop.is_set, signals.meet)
    try:
        PARTS[request["part"]](turn)
    except BaseException as error:
        _tell(descriptor, {"error": "".join(traceback.format_exception(error))})
        signals.meet.abort()


def main(request: dict[str, Any]) -> None:
    """Fork the processes, pass on what stdin says, and wait for the last of them."""
    sys.setswitchinterval(0.0005)
    warm_embedder()
    number = request["processes"]
    signals = Signals(
        FORKING.Barrier(number + 1), FORKING.Event(), FORKING.Event(), FORKING.Barrier(number * request["threads"])
    )
    processes = [FORKING.Process(target=_process, args=(i, request, signals)) for i in range(number)]
    for process in processes:
        process.start()
    signals.opened.wait(PATIENCE)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        (signals.go if line == "go\n" else signals.stop).set()
    signals.stop.set()
    for process in processes:
        process.join(PATIENCE)
        if process.is_alive():
            process.kill()
            raise TimeoutError(f"process {process.pid} did not finish")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
