"""PLUR's lock: a file beside the data, created exclusively, holding the token of its owner.

Whoever wants to live beside a running PLUR takes the same lock, loads inside it, and removes only its own.
"""

import itertools
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from engram.model.errors import StoreBusy, StoreReadOnly

STALE_SECONDS = 60.0
"""Age after which the lock of a holder nobody can ask counts as abandoned (PLUR's own number)."""
DEFAULT_WAIT = 30.0
_FIRST_PAUSE = 0.01
_LONGEST_PAUSE = 0.25

_counter = itertools.count()


@contextmanager
def plur_lock(path: Path, *, wait: float = DEFAULT_WAIT) -> Iterator[None]:
    """Hold PLUR's lock on a file. Raises `StoreBusy` naming the holder after `wait` seconds."""
    lock = path.with_name(path.name + ".lock")
    token = f"{socket.gethostname()}:{os.getpid()}:{int(time.time() * 1000)}:{next(_counter)}"
    _acquire(lock, token, wait)
    try:
        yield
    finally:
        if _holder(lock) == token:
            with suppress(FileNotFoundError):
                lock.unlink()


def _acquire(lock: Path, token: str, wait: float) -> None:
    deadline = time.monotonic() + wait
    pause = _FIRST_PAUSE
    while not _created(lock, token):
        holder = _holder(lock)
        if holder is None or (_abandoned(lock, holder) and _taken_aside(lock, holder)):
            continue
        if time.monotonic() >= deadline:
            raise StoreBusy(
                f"{lock}: held by {holder or 'a process that left no name'} for more than {wait:g} s; nothing was "
                "written. Try again when that process is done, or remove the file if it no longer runs"
            )
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)


def _created(lock: Path, token: str) -> bool:
    try:
        handle = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    except OSError as error:
        raise StoreReadOnly(f"{lock}: cannot be created: {error.strerror}; nothing was written") from error
    try:
        os.write(handle, token.encode())
    finally:
        os.close(handle)
    return True


def _holder(lock: Path) -> str | None:
    """The token in the lock file, or None if there is no lock any more."""
    try:
        return lock.read_text(encoding="utf-8", errors="replace").strip()
    except FileNotFoundError:
        return None


def _abandoned(lock: Path, holder: str) -> bool:
    host, _, rest = holder.partition(":")
    pid = rest.partition(":")[0]
    if host == socket.gethostname() and pid.isdigit() and int(pid) > 0:
        return not _runs(int(pid))
    try:
        return time.time() - lock.stat().st_mtime > STALE_SECONDS
    except FileNotFoundError:
        return False


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _taken_aside(lock: Path, holder: str) -> bool:
    """Move an abandoned lock out of the way; put it back if it had meanwhile become somebody else's."""
    aside = lock.with_name(f"{lock.name}.{os.getpid()}.{next(_counter)}.stale")
    try:
        lock.rename(aside)
    except FileNotFoundError:
        return True
    ours = _holder(aside) == holder
    if not ours:
        with suppress(FileExistsError):
            os.link(aside, lock)
    aside.unlink(missing_ok=True)
    return ours
