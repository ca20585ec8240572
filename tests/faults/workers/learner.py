"""Learns fifty things as fast as it can, rating a shared memory now and then, and says how long each learn took."""

import json
import sys
import time
from pathlib import Path

from engram import Engram
from engram.model.decision import Decision
from engram.model.errors import StoreError
from tests.faults.consistency import warm_embedder
from tests.faults.workers.operations import sentence


def _learn(mem: Engram, text: str, scope: str) -> Decision:
    """Once more where the store says so: somebody may be deleting its index."""
    for _ in range(5):
        try:
            return mem.learn(text, scope=scope)
        except StoreError as error:
            if "try again" not in str(error):
                raise
    return mem.learn(text, scope=scope)


def main(home: Path, cache: Path, number: int, count: int, shared: list[str]) -> None:
    warm_embedder()
    with Engram.open(ephemeral=True) as rehearsal:
        # What a first learn imports is no wait.
        rehearsal.learn(sentence(number))
        rehearsal.learn(sentence(number + 1))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    made: dict[str, str] = {}
    waits: list[float] = []
    with Engram.open(home, cache=cache, directory=home) as mem:
        for i in range(count):
            text = sentence(number * 1000 + i)
            began = time.monotonic()
            decision = _learn(mem, text, f"project:learner-{number}")
            waits.append(time.monotonic() - began)
            assert decision.memory is not None, decision
            made[decision.memory.id] = text
            if shared and i % 5 == number % 5:
                mem.feedback(shared[(i + number) % len(shared)], "positive")
    sys.stdout.write(json.dumps({"made": made, "longest": max(waits), "total": sum(waits)}) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:])
