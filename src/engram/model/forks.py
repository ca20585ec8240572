"""Makes a process wait before it forks until other threads finish imports and short work.

A lock that another thread holds stays locked in the child, in which that thread does not exist: the child would wait
for it forever. Python locks each module while it is imported, and Engram imports much on first use.
"""

import os
import sys
import threading
import time
import weakref
from importlib import _bootstrap
from typing import Any

IMPORT_WAIT_SECONDS = 5.0
"""How long a fork waits. After that a child may hang, but the parent never does."""
_PAUSE = 0.0005
_PACKAGES = frozenset({"engram", "numpy", "psycopg", "psycopg_binary", "psycopg_pool"}) | sys.stdlib_module_names
"""The packages that Engram imports. Imports of a caller's own modules may last as long as the program."""
_LOCKS: dict[str, Any] = getattr(_bootstrap, "_module_locks", {})
"""Weak references to the locks of the modules being imported; Python offers no other way to see them."""


def wait_for_imports(patience: float = IMPORT_WAIT_SECONDS) -> None:
    """Wait until no other thread imports a module that Engram may need."""
    deadline = time.monotonic() + patience
    while _is_importing() and time.monotonic() < deadline:
        time.sleep(_PAUSE)


def _is_importing() -> bool:
    here = threading.get_ident()
    locks = [found() for name, found in list(_LOCKS.items()) if name.partition(".")[0] in _PACKAGES]
    return any(getattr(lock, "owner", None) not in (None, here) for lock in locks)


class ForkedLock:
    """A lock for short work that waits for nothing else. A fork waits until it is free, so it is also free in the
    child.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        _living.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def acquire(self, timeout: float) -> bool:
        """Acquire the lock within this many seconds; returns whether that was possible."""
        return self._lock.acquire(timeout=timeout)

    def renew(self) -> None:
        """Reset the lock to free, whoever holds it."""
        self._lock = threading.Lock()


_living: "weakref.WeakSet[ForkedLock]" = weakref.WeakSet()
_held: list[ForkedLock] = []


def _before_fork() -> None:
    # The locks of the stores are acquired before these, because Python calls the first registered function last.
    _held[:] = [lock for lock in list(_living) if lock.acquire(IMPORT_WAIT_SECONDS)]


def _after_fork_in_parent() -> None:
    while _held:
        _held.pop().__exit__()


def _after_fork_in_child() -> None:
    _held.clear()
    for lock in list(_living):
        lock.renew()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
