"""The waiting sessions of the spool, harvested for a moment while a session starts; the rest waits."""

import os
from pathlib import Path

from engram.hooks.place import HookPlace
from engram.store import spool

HARVEST_SECONDS = 0.1
"""How long transcripts are read, beside loading the engine."""

EDIT_SECONDS = 5.0
"""How long edited files are looked for; nobody waits for it."""


def drain(place: HookPlace) -> str:
    """Harvest waiting sessions for a moment; says nothing, since what was found waits for review.

    Raises `ValueError` for a transcript that cannot be read, so that the next session's start reports it.
    """
    problems = _harvest(place)
    _warm(place)
    if problems:
        raise ValueError(problems[0])
    return ""


def _harvest(place: HookPlace) -> list[str]:
    if not spool.count_waiting(place.root) or (not place.is_server and not place.exists):
        return []
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from engram.client import Engram

    with Engram.open(None if place.is_server else place.root, create=False, directory=Path.home()) as mem:
        return mem.harvest_spooled(seconds=HARVEST_SECONDS).problems


def _warm(place: HookPlace) -> None:
    """Bring the task vectors of the memories up to date, so that no prompt has to."""
    index = None if place.is_server else place.index(EDIT_SECONDS)
    if index is not None:
        try:
            index.tasks(all_of_them=True)
        finally:
            index.close()
