"""Kills writers at random, hundreds of times, and counts what was lost or doubled: `python -m tests.faults.stress --kills 300`.

Not part of the suite, which kills at every single step instead: this is for a figure, and for machines the suite has not seen.
"""

import argparse
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from engram import Engram
from tests.faults.consistency import assert_consistent, last_images, scratch
from tests.faults.processes import Zygote, zygote

ROUND = 25
"""So many kills one store lives through."""


class Acknowledged:
    """What the killed processes had said, and how the store differs from it."""

    def __init__(self) -> None:
        self.made: set[str] = set()
        self.purged: set[str] = set()
        self.observed: dict[str, str] = {}
        self.found: Counter[str] = Counter()

    def take(self, acks: list[dict[str, Any]]) -> None:
        """One process's words."""
        for ack in acks:
            self.found["acknowledged"] += "open" not in ack
            self.found["doubled"] += len(self.made & set(ack.get("made", ())))
            self.made |= set(ack.get("made", ()))
            self.purged |= set(ack.get("purged", ()))
            self.observed |= ack.get("observed", {})

    def compare(self, home: Path, cache: Path) -> None:
        """Count what is not as it was acknowledged."""
        last = {memory_id: after for memory_id, (after, _) in last_images(home).items()}
        said = Counter(after["statement"] for after in last.values() if after is not None)
        self.found["lost"] += len(self.made - last.keys())
        self.found["revived"] += sum(last.get(memory_id) is not None for memory_id in self.purged)
        self.found["doubled"] += sum(count - 1 for count in said.values())
        with Engram.open(home, cache=cache, directory=home, embedder="none") as mem:
            events = Counter(event.id for name in mem.store.ledgers() for event in mem.store.events(name))
        self.found["lost"] += len(self.observed.keys() - events.keys())
        self.found["doubled"] += sum(count - 1 for count in events.values())


def one_round(forks: Zygote, folder: Path, kills: int, chosen: random.Random) -> Counter[str]:
    """A new store, so many kills, and what they did to it."""
    home, cache, told = folder / "home", folder / "cache", Acknowledged()
    told.take(forks.run(home, cache, "learn", chosen.randrange(10**6))["acks"])
    for _ in range(kills):
        answer = forks.run(home, cache, "loop", chosen.randrange(1, 10**5), kill_after=chosen.uniform(0.001, 0.5))
        told.found["kills"] += bool(answer["killed"])
        told.take(answer["acks"])
        assert_consistent(home, cache, edited=True, rebuilt=chosen.random() < 0.2)
    told.compare(home, cache)
    return told.found


def main() -> None:
    """Say what was counted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    chosen, total, started = random.Random(asked.seed), Counter[str](), time.monotonic()
    with zygote() as forks:
        for first in range(0, asked.kills, ROUND):
            with scratch() as folder:
                total += one_round(forks, folder, min(ROUND, asked.kills - first), chosen)
    names = ("kills", "acknowledged", "lost", "doubled", "revived")
    counted = ", ".join(f"{total[name]} {name}" for name in names)
    sys.stdout.write(f"{counted} in {time.monotonic() - started:.0f} s\n")


if __name__ == "__main__":
    main()
