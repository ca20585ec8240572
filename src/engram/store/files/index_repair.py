"""Rebuilding a damaged index during a call, errors in terms of the store, and surviving a fork."""

import errno
import os
import sqlite3
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar

from engram.model.arguments import half_character
from engram.model.errors import StoreBusy, StoreClosed, StoreCorrupt, StoreError, StoreReadOnly
from engram.store.files.home import Home
from engram.store.files.index.connection import is_busy, is_damaged, is_unwritable

if TYPE_CHECKING:
    from engram.store.files.context import StoreContext

P = ParamSpec("P")
R = TypeVar("R")
ATTEMPTS = 3
"""How often a call is tried on an index that keeps getting damaged."""
_FORK_PATIENCE = 5.0
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
_NO_RIGHT = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


class RepairableIndex(ABC):
    """A store whose index can be rebuilt. Its guard admits one thread at a time."""

    _parts: "StoreContext"

    def __init__(self) -> None:
        self.guard = threading.RLock()
        self._is_closed = False
        _living.add(self)

    @property
    def parts(self) -> "StoreContext":
        """The store's context. Raises `StoreClosed` once the store is closed."""
        if self._is_closed:
            raise StoreClosed(f"the store in {self._parts.home.root} is closed; open it again with `Engram.open()`")
        return self._parts

    @abstractmethod
    def reopen_replaced_index(self) -> None:
        """Switch to a new index file if another process has put one in place."""

    @abstractmethod
    def index_pending(self) -> None:
        """Index the events this process has appended."""

    @abstractmethod
    def repair_index(self, error: sqlite3.DatabaseError | OSError) -> None:
        """Rebuild a damaged index, or raise an error for the caller."""


def repairs_index(method: Callable[P, R]) -> Callable[P, R]:
    """Run a method on an up-to-date index and rebuild a damaged one on the way: everything in it is derived."""
    return _repairing(method, pending_first=True)


def repairs_index_on_append(method: Callable[P, R]) -> Callable[P, R]:
    """The same for an append, which does not need earlier events to be indexed."""
    return _repairing(method, pending_first=False)


def _repairing(method: Callable[P, R], *, pending_first: bool) -> Callable[P, R]:
    @wraps(method)
    def healed(*args: P.args, **kwargs: P.kwargs) -> R:
        store = args[0]
        assert isinstance(store, RepairableIndex)
        with store.guard:
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    store.reopen_replaced_index()
                    if pending_first:
                        store.index_pending()
                    return method(*args, **kwargs)
                except UnicodeEncodeError as error:
                    raise half_character(error) from None
                except (sqlite3.DatabaseError, OSError) as error:
                    if attempt == ATTEMPTS:
                        raise_explained(error, store.parts.home)
                    store.repair_index(error)
            raise AssertionError("the last attempt returns or raises")

    return healed


def is_index_damage(error: Exception, home: Home) -> bool:
    """Whether the index is damaged, so that a rebuild helps; not the disk, another process or the caller."""
    if isinstance(error, OSError):
        return isinstance(error, FileNotFoundError) and _is_of_index(error, home)
    return is_damaged(error)


def _is_of_index(error: OSError, home: Home) -> bool:
    return str(error.filename).startswith(str(home.index))


def explained(error: sqlite3.Error | OSError, home: Home) -> Exception:
    """The error to raise for a failure; the error itself if it has nothing to do with the store."""
    if isinstance(error, OSError):
        return _explained_file(error, home)
    if is_busy(error):
        return StoreBusy(f"another process is using the index ({error}); try again")
    if is_unwritable(error):
        return _no_index(error)
    return StoreError(f"the index failed: {error}; `engram index --rebuild` rebuilds it without loss")


def raise_explained(error: sqlite3.Error | OSError, home: Home) -> NoReturn:
    """Raise the error that `explained` returns."""
    meaning = explained(error, home)
    if meaning is error:
        raise error
    raise meaning from error


def _explained_file(error: OSError, home: Home) -> Exception:
    if _is_of_index(error, home) or error.errno in _NO_ROOM:
        return _no_index(error.strerror)
    if not str(error.filename).startswith(f"{home.root}/"):
        return error
    kind = StoreReadOnly if error.errno in _NO_RIGHT else StoreCorrupt
    return kind(f"{error.filename} cannot be used: {error.strerror}")


def _no_index(why: object) -> StoreReadOnly:
    return StoreReadOnly(
        f"the index cannot be written: {why}; free some space or set ENGRAM_CACHE. Journaled changes are kept and are "
        "indexed later"
    )


_living: "weakref.WeakSet[RepairableIndex]" = weakref.WeakSet()


_guards: list[Any] = []


def _before_fork() -> None:
    """Keep threads out of SQLite during a fork: its locks would stay locked in the child."""
    guards = [store.guard for store in list(_living)]
    _guards[:] = [guard for guard in guards if guard.acquire(timeout=_FORK_PATIENCE)]


def _after_fork_in_parent() -> None:
    while _guards:
        _guards.pop().release()


def _after_fork_in_child() -> None:
    """Replace the guards: threads that hold one do not exist in the child."""
    _after_fork_in_parent()
    for store in list(_living):
        store.guard = threading.RLock()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
