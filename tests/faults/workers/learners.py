"""Processes that learn as fast as they can, rating a shared memory now and then: forked from a warm one, let go at once.

stdout: `ready` when all have been forked, and at the end a JSON line of what each was answered. stdin: a line lets them begin.
"""

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from engram import Engram
from engram.model.decision import Decision
from engram.model.errors import StoreError
from tests.faults.consistency import warm_embedder
from tests.faults.workers.operations import sentence


def _learn(mem: Engram, text: str, scope: str) -> tuple[Decision, int]:
    """Once more where the store says so: somebody may be deleting its index. Says how often that was."""
    for refusals in range(5):
        try:
            return mem.learn(text, scope=scope), refusals
        except StoreError as error:
            if "try again" not in str(error):
                raise
    return mem.learn(text, scope=scope), 5


def _work(home: Path, cache: Path, number: int, count: int, shared: list[str]) -> dict[str, Any]:
    made: dict[str, str] = {}
    refused = 0
    with Engram.open(home, cache=cache, directory=home) as mem:
        for i in range(count):
            text = sentence(number * 1000 + i)
            decision, refusals = _learn(mem, text, f"project:learner-{number}")
            refused += refusals
            assert decision.memory is not None, decision
            made[decision.memory.id] = text
            if shared and i % 5 == number % 5:
                mem.feedback(shared[(i + number) % len(shared)], "positive")
    return {"made": made, "refused": refused}


def _forked(begin: int, go: int, number: int, arguments: tuple[Path, Path, int, list[str]]) -> int:
    """A learner that begins when `go` is closed; where its answer can be read."""
    home, cache, count, shared = arguments
    reading, writing = os.pipe()
    if os.fork():
        os.close(writing)
        return reading
    status = 1
    try:
        os.close(go)
        os.read(begin, 1)
        answer = json.dumps(_work(home, cache, number, count, shared)).encode()
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(answer)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def main(home: Path, cache: Path, how_many: int, count: int, shared: list[str]) -> None:
    """Fork the learners, let them go, and hand on what each says."""
    warm_embedder()
    with Engram.open(ephemeral=True) as rehearsal:
        # What a first learn loads is loaded once, before there are many.
        rehearsal.feedback(rehearsal.add(sentence(0)).id, "positive")
        rehearsal.learn(sentence(1))
    begin, go = os.pipe()
    answers = [_forked(begin, go, number, (home, cache, count, shared)) for number in range(how_many)]
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    os.close(go)
    for reading in answers:
        with os.fdopen(reading) as pipe:
            sys.stdout.write(pipe.read() + "\n")
    statuses = [os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(how_many)]
    sys.exit(max(map(abs, statuses)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:])
