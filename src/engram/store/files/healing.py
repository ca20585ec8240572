"""A damaged index costs one rebuild, never an answer; and what a store needs to survive a fork."""

import os
import sqlite3
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from engram.model.errors import StoreBusy, StoreError, StoreReadOnly

P = ParamSpec("P")
R = TypeVar("R")
ATTEMPTS = 3
"""How often a read is tried on an index that someone keeps damaging."""
_FORK_PATIENCE = 5.0


class Mendable(ABC):
    """A store whose index can be made anew. One thread at a time passes its guard."""

    def __init__(self) -> None:
        self.guard = threading.RLock()
        _living.add(self)

    @abstractmethod
    def follow_replacement(self) -> None:
        """Use the index that lies at its place, should another process have put a new one there."""

    @abstractmethod
    def take_in(self) -> None:
        """Put what this process has appended and not indexed yet into the index."""

    @abstractmethod
    def mend(self, error: sqlite3.DatabaseError | OSError) -> None:
        """Make a damaged index anew, or raise what the caller should know."""


def healing(method: Callable[P, R]) -> Callable[P, R]:
    """A damaged index costs one rebuild, never an answer: everything in it is derived. It has what this process appended."""
    return _healed(method, taking_in=True)


def healing_append(method: Callable[P, R]) -> Callable[P, R]:
    """The same for an append, which need not wait until the index has the ones before it."""
    return _healed(method, taking_in=False)


def _healed(method: Callable[P, R], *, taking_in: bool) -> Callable[P, R]:
    @wraps(method)
    def healed(*args: P.args, **kwargs: P.kwargs) -> R:
        store = args[0]
        assert isinstance(store, Mendable)
        with store.guard:
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    store.follow_replacement()
                    if taking_in:
                        store.take_in()
                    return method(*args, **kwargs)
                except (sqlite3.DatabaseError, OSError) as error:
                    if attempt == ATTEMPTS:
                        raise
                    store.mend(error)
            raise AssertionError("the last attempt returns or raises")

    return healed


def is_damage(error: Exception, index: Path) -> bool:
    """Whether the index is at fault, not the disk or a neighbour: then making it anew helps."""
    if isinstance(error, OSError):
        return isinstance(error, FileNotFoundError) and str(error.filename).startswith(str(index))
    if not isinstance(error, sqlite3.OperationalError):
        return True
    signs = ("no such table", "no such column", "malformed", "corrupt", "disk I/O", "not a database")
    return any(sign in str(error) for sign in signs)


def explained(error: Exception) -> StoreError:
    """What a failure of the index means to the caller."""
    if "locked" in str(error) or "busy" in str(error):
        return StoreBusy(f"another process has been busy with the index for too long ({error}); try again")
    said = error.strerror if isinstance(error, OSError) else error
    return StoreReadOnly(
        f"the index cannot be written: {said}; make room or set ENGRAM_CACHE. What reached the journal is kept and is "
        "indexed as soon as that is possible"
    )


_living: "weakref.WeakSet[Mendable]" = weakref.WeakSet()


_guards: list[Any] = []


def _before_fork() -> None:
    """No thread may be inside SQLite while the process is copied: its own locks would stay locked in the child."""
    guards = [store.guard for store in list(_living)]
    _guards[:] = [guard for guard in guards if guard.acquire(timeout=_FORK_PATIENCE)]


def _after_fork_in_parent() -> None:
    while _guards:
        _guards.pop().release()


def _after_fork_in_child() -> None:
    """Threads that hold a guard do not exist in the child; nobody there would ever release it."""
    _after_fork_in_parent()
    for store in list(_living):
        store.guard = threading.RLock()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
