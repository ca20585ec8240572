"""Harvests transcripts, and is killed at a given step that reaches the disk: HOME CACHE TRANSCRIPTS STEP, 0 for none."""

import sys
from pathlib import Path

from engram import Engram
from tests.faults.workers.steps import Steps


def main(home: str, cache: str, transcripts: str, fatal: str) -> None:
    """Harvest once."""
    steps = Steps(int(fatal))
    steps.install()
    with Engram.open(home, cache=cache, directory=home) as mem:
        steps.begin()
        mem.harvest(Path(transcripts))
        steps.counting = False


if __name__ == "__main__":
    main(*sys.argv[1:])
