"""One harvest at a time: transcripts are files of this machine, so a lock in this user's home is enough for any store."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engram.disk import DIRECTORY_MODE, FILE_MODE, open_plain

__all__ = ["harvest_lock"]

NAME = "harvest.lock"
"""The file below `state/`."""
_PAUSE = 0.1


@contextmanager
def harvest_lock(root: Path, *, seconds: float) -> Iterator[bool]:
    """Harvest alone; false in the block if another process still harvests after so many seconds. The lock ends with its process.

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
        yield _acquire_lock(descriptor, seconds)
    finally:
        os.close(descriptor)


def _acquire_lock(descriptor: int, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(_PAUSE)
        except OSError:
            return True
        else:
            return True
