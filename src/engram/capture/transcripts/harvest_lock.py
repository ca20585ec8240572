"""One harvest at a time: transcripts are files of this machine, so a lock in this user's home is enough for any store."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engram.disk import DIRECTORY_MODE, FILE_MODE, open_plain

__all__ = ["harvest_lock"]

NAME = "harvest.lock"
"""The file below `state/`."""


@contextmanager
def harvest_lock(root: Path, *, waits: bool) -> Iterator[bool]:
    """Harvest alone; false in the block if another process harvests and this one does not wait. The lock ends with its process.

    Two that read the same sessions would propose nothing twice, but each would report all of it. Where the home cannot be written, or its
    file system has no locks, that is what happens.
    """
    try:
        (root / "state").mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        descriptor = open_plain(root / "state" / NAME, os.O_RDWR | os.O_CREAT, FILE_MODE)
    except OSError:
        yield True
        return
    try:
        yield _taken(descriptor, waits=waits)
    finally:
        os.close(descriptor)


def _taken(descriptor: int, *, waits: bool) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
