"""The time of a signal scan: `python -m benchmarks.signals [--json]`. The bars are 1 ms for a normal turn and 10 ms for 100 kB.

Processor time, the best of several runs, so that a busy machine does not count.
"""

import argparse
import json
import sys
import time

from engram.capture.signals import scan
from tests.hostile import PIECES

TURN = "I think we should move the deploy of the billing service to Thursday; my team usually has time then. What do you say?"
PROSE = (
    "The deploy of the billing service runs on Thursdays, and my team watches it from the office. Usually nothing happens. "
    "I think that we could do it twice a week, which the customers would like. You asked for the logs: they are in the bucket. "
)
SIZE = 100_000
RUNS = 15


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args().json
    scan(TURN)
    found = {"a normal turn": best(TURN, 200), "100 kB of prose": best((PROSE * SIZE)[:SIZE])}
    pieces = {repr(piece)[:40]: best((piece * SIZE)[:SIZE], 3) for piece in (*PIECES, "i ", "no i'm ", "i work now ")}
    worst = max(pieces, key=lambda piece: pieces[piece])
    found[f"the slowest 100 kB of one repeated piece, {worst}"] = pieces[worst]
    if as_json:
        sys.stdout.write(json.dumps(found) + "\n")
        return
    for what, milliseconds in found.items():
        sys.stdout.write(f"{milliseconds:8.3f} ms  {what}\n")


def best(text: str, runs: int = RUNS) -> float:
    """The shortest of some scans, in milliseconds of processor time."""
    times = []
    for _ in range(runs):
        began = time.process_time()
        scan(text)
        times.append(time.process_time() - began)
    return min(times) * 1000


if __name__ == "__main__":
    main()
