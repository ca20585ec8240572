"""The writer lock: a blocking flock with a deadline, on a file that nothing else opens.

Also removes temporary files that killed writers left, except those next to memory files, which `file_repair` handles.
"""

import contextlib
import fcntl
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from engram.disk import FILE_MODE, find_temporary, open_plain, remove_leftovers
from engram.model.errors import StoreBusy, StoreReadOnly
from engram.store.home import Home

DEFAULT_DEADLINE = 30.0
LONG_WAIT_SECONDS = 1.0
"""A writer that others wait for longer than this many seconds may be stuck; shorter waits are ordinary writes."""


class WriterLock:
    """The store's writer lock; re-entrant within a thread, exclusive between threads and processes.

    Waiters block in the kernel, which serves them in order; polling starves (1.8 s against 97 ms worst wait, measured with
    eight writers). The blocking call runs in a thread of its own only when the lock is taken, so that a deadline can
    end the wait.
    """

    def __init__(self, path: Path, check: Callable[[], None] = lambda: None) -> None:
        """`check` runs each time the lock is taken; if it raises, the block does not run."""
        self._path, self._check = path, check
        self._thread_lock = threading.RLock()
        self._descriptor: int | None = None
        self._waiting: int | None = None
        self._depth = 0
        _living.add(self)

    @contextlib.contextmanager
    def hold(self, deadline: float = DEFAULT_DEADLINE) -> Iterator[None]:
        """Hold the lock for a block. Raises `StoreBusy` when the deadline passes."""
        started, process, thread_lock = time.monotonic(), os.getpid(), self._thread_lock
        if not thread_lock.acquire(timeout=deadline):
            raise self._busy(deadline)
        try:
            if self._depth == 0:
                left = max(0.0, deadline - (time.monotonic() - started))
                self._descriptor = self._acquire(left, deadline)
            self._depth += 1
            try:
                if self._depth == 1:
                    self._check()
                yield
            finally:
                # A child forked inside the block leaves it, too, without the lock.
                if os.getpid() == process:
                    self._depth -= 1
                    if self._depth == 0:
                        self._release()
        finally:
            thread_lock.release()

    def _acquire(self, left: float, deadline: float) -> int:
        descriptor = self._open()
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except BlockingIOError:
            pass
        except OSError:
            os.close(descriptor)
            raise
        return self._wait(descriptor, left, deadline)

    def _wait(self, descriptor: int, left: float, deadline: float) -> int:
        waiter = _Waiter(descriptor)
        self._waiting = descriptor
        try:
            waiter.start()
            if waiter.wait_for_lock(left):
                return descriptor
        finally:
            self._waiting = None
        raise self._busy(deadline)

    def _open(self) -> int:
        try:
            return open_plain(self._path, os.O_RDWR | os.O_CREAT, FILE_MODE)
        except OSError as error:
            raise StoreReadOnly(f"cannot write to {self._path.parent}: {error.strerror}") from error

    def _release(self) -> None:
        if self._descriptor is not None:
            # Closing alone would leave the lock to a process that inherited the descriptor.
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            os.close(self._descriptor)
            self._descriptor = None

    def _busy(self, deadline: float) -> StoreBusy:
        if deadline < LONG_WAIT_SECONDS:
            return StoreBusy(f"another process is writing to {self._path.parent}")
        return StoreBusy(
            f"another process has been writing to {self._path.parent} for {deadline:.0f} s; try again, "
            "or look for a stuck `engram` process"
        )

    def _forget_after_fork(self) -> None:
        """Reset in a forked child, which does not own the lock, and close the inherited descriptors."""
        for descriptor in (self._descriptor, self._waiting):
            if descriptor is not None:
                with contextlib.suppress(OSError):
                    os.close(descriptor)
        self._descriptor, self._waiting, self._depth = None, None, 0
        self._thread_lock = threading.RLock()


class _Waiter(threading.Thread):
    """Blocks in flock; releases the lock if nobody waits for it any more."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(name="engram-lock", daemon=True)
        self._descriptor = descriptor
        self._handover = threading.Lock()
        self._done = threading.Event()
        self._abandoned = False

    def run(self) -> None:
        with contextlib.suppress(OSError):
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        with self._handover:
            if self._abandoned:
                os.close(self._descriptor)
            self._done.set()

    def wait_for_lock(self, timeout: float) -> bool:
        """Wait for the lock; after a timeout this thread closes it once granted."""
        try:
            if self._done.wait(timeout):
                return True
        except BaseException:
            # Ctrl-C: a lock granted to nobody would never be released.
            if not self._abandon():
                os.close(self._descriptor)
            raise
        return not self._abandon()

    def _abandon(self) -> bool:
        with self._handover:
            self._abandoned = not self._done.is_set()
            return self._abandoned


_living: "weakref.WeakSet[WriterLock]" = weakref.WeakSet()


def _after_fork() -> None:
    for lock in list(_living):
        lock._forget_after_fork()


os.register_at_fork(after_in_child=_after_fork)


def remove_home_leftovers(home: Home) -> None:
    """Remove files that killed processes left in the folders of a store, but not those of running processes."""
    for folder in _folders(home):
        remove_leftovers(folder)


def remaining_leftovers(home: Home) -> list[str]:
    """A line for each temporary file that was not removed, because its writer may still be running."""
    return [
        f"{path}: another process, maybe on another machine, may be writing it; purge again when it is gone"
        for folder in _folders(home)
        for path in find_temporary(folder)
    ]


def _folders(home: Home) -> Iterator[Path]:
    """The folders of a store that have its small files and logs."""
    yield from (home.root, home.journal, home.usage, home.ledger, home.tasks, home.quarantine, home.state)
    with suppress(OSError), os.scandir(home.state) as entries:
        yield from [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
