"""An open files store that keeps its index current: other processes' decisions and events, hand edits, a damaged index.

Its guard admits one thread at a time, and survives a fork.
"""

import contextlib
import errno
import json
import os
import sqlite3
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar

from engram.model.arguments import half_character_error
from engram.model.errors import EmbedderError, StoreBusy, StoreClosed, StoreCorrupt, StoreError, StoreReadOnly
from engram.model.forks import wait_for_imports
from engram.store.defaults import random_hex, utc_now
from engram.store.files.lock import DEFAULT_DEADLINE, WriterLock, remove_home_leftovers
from engram.store.files.log.journal import Journal, Usage
from engram.store.files.log.ledger import Ledger
from engram.store.files.reconcile import hand_edits, recovery
from engram.store.files.reconcile.durability import make_durable_at_close
from engram.store.files.reconcile.folders import SWEEP_POSITION_KEY, EditDetector, FileChanges
from engram.store.files.reconcile.hand_edits import pick_up
from engram.store.files.reconcile.index_state import IndexContext
from engram.store.files.reconcile.recovery import fill_vectors
from engram.store.home import FormatGuard, Home
from engram.store.protocol import Progress
from engram.store.reports import SyncReport
from engram.store.sqlite.connection import is_busy, is_damaged, is_unwritable, write_transaction
from engram.store.sqlite.index import Index
from engram.store.sqlite.sweep import find_differing_files

if TYPE_CHECKING:
    from engram.embedding.vectors import Embedder

P = ParamSpec("P")
R = TypeVar("R")
NOTICE_INTERVAL = 0.25
"""Seconds between two checks for team stores and vectors that are still missing."""
LEDGER_CHECK_INTERVAL = 2.0
"""Seconds between two checks of the sizes of all ledgers."""
OPEN_LOCK_SECONDS = 2.0
"""Seconds that opening waits for the lock to fill a new index; then it reads without the lock."""
CATCH_UP_LOCK_SECONDS = 0.05
"""Seconds that a reader waits for the lock to index what others wrote; then it answers from the current index."""
OWN_EVENTS_LOCK_SECONDS = 0.5
"""Seconds that a reader waits to index this process's own events; a longer writer has usually indexed them."""
EVENTS_LOCK_SECONDS = 2.0
"""Seconds that a reader waits for the lock if it must not miss an event; then it answers from the current index."""
EDIT_LOCK_SECONDS = 0.5
"""Seconds that a reader waits for the lock to journal a hand edit; then it answers from the current index."""
MAX_REPAIR_ATTEMPTS = 3
"""How often a call is tried on an index that keeps getting damaged."""
_FORK_LOCK_SECONDS = 5.0
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
_NO_SPACE = {
    **dict.fromkeys(_NO_ROOM, "free some space"),
    errno.EFBIG: "raise the limit on the size of a file (`ulimit -f`)",
}
"""Advice if a file cannot grow."""
_NO_RIGHT = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


# -- a damaged index


def repairs_index(method: Callable[P, R]) -> Callable[P, R]:
    """Run a method on an up-to-date index, rebuilding a damaged one if necessary: everything in it is derived."""
    return _repairing(method, pending_first=True)


def repairs_index_on_append(method: Callable[P, R]) -> Callable[P, R]:
    """`repairs_index` for an append, which does not need earlier events to be indexed."""
    return _repairing(method, pending_first=False)


def _repairing(method: Callable[P, R], *, pending_first: bool) -> Callable[P, R]:
    @wraps(method)
    def with_repair(*args: P.args, **kwargs: P.kwargs) -> R:
        store = args[0]
        assert isinstance(store, RefreshedStore)
        with store.guard:
            for attempt in range(1, MAX_REPAIR_ATTEMPTS + 1):
                try:
                    store.reopen_replaced_index()
                    if pending_first:
                        store.index_pending()
                    return method(*args, **kwargs)
                except UnicodeEncodeError as error:
                    raise half_character_error(error) from None
                except (sqlite3.DatabaseError, OSError) as error:
                    if attempt == MAX_REPAIR_ATTEMPTS:
                        raise_explained(error, store.context.home)
                    store.repair_index(error)
            raise AssertionError("the last attempt returns or raises")

    return with_repair


def is_index_damage(error: Exception, home: Home) -> bool:
    """Whether the index is damaged, so that a rebuild helps, and the cause is not the disk, another process or the caller."""
    if isinstance(error, OSError):
        return isinstance(error, FileNotFoundError) and _is_of_index(error, home)
    return is_damaged(error)


def _is_of_index(error: OSError, home: Home) -> bool:
    return str(error.filename).startswith(str(home.index))


def explain_error(error: sqlite3.Error | OSError, home: Home) -> Exception:
    """The error to raise for a failure; the error itself if it has nothing to do with the store."""
    if isinstance(error, OSError):
        return _explain_file_error(error, home)
    if is_busy(error):
        return StoreBusy(f"another process is using the index ({error}); try again")
    if is_unwritable(error):
        return _no_index(error, home)
    return StoreError(f"the index failed: {error}; `engram index --rebuild` rebuilds it without loss")


def raise_explained(error: sqlite3.Error | OSError, home: Home) -> NoReturn:
    """Raise the error that `explain_error` returns."""
    meaning = explain_error(error, home)
    if meaning is error:
        raise error
    raise meaning from error


def _explain_file_error(error: OSError, home: Home) -> Exception:
    is_of_store = str(error.filename).startswith(f"{home.root}/")
    if _is_of_index(error, home) or (error.errno in _NO_ROOM and not is_of_store):
        return _no_index(error.strerror, home)
    if not is_of_store:
        return error
    if advice := _NO_SPACE.get(error.errno or 0):
        return StoreReadOnly(f"{error.filename} cannot be written: {error.strerror}; {advice}, then try again")
    kind = StoreReadOnly if error.errno in _NO_RIGHT else StoreCorrupt
    return kind(f"{error.filename} cannot be used: {error.strerror}")


def _no_index(why: object, home: Home) -> StoreReadOnly:
    return StoreReadOnly(
        f"the index in {home.index} cannot be written: {why}; free some space or set ENGRAM_CACHE. Journaled changes are kept and are "
        "indexed later"
    )


# -- the store


class _ReadGroup(threading.local):
    """The group of reads that a thread is in."""

    depth = 0
    is_refreshed = False


class RefreshedStore(ABC):
    """Opens a store, finishes what a crash interrupted, and indexes changes before each answer."""

    def __init__(
        self,
        home: Home,
        embedder: "Embedder | None" = None,
        *,
        clock: Callable[[], datetime] = utc_now,
        token: Callable[[int], str] = random_hex,
        deadline: float = DEFAULT_DEADLINE,
    ) -> None:
        self.guard = threading.RLock()
        self._is_closed = False
        _living.add(self)
        self._deadline = deadline
        self._noticed_at = self._ledgers_at = float("-inf")
        self._edits = EditDetector()
        self._is_tidy = False
        self._group = _ReadGroup()
        self._unread_teams: dict[Path, None] = {}
        """Team stores not read yet, because another process was writing."""
        self._context = IndexContext(
            home=home,
            journal=Journal(home.journal, home.quarantine),
            usage=Usage(home.usage),
            ledger=Ledger(home.ledger, home.quarantine),
            index=Index(home.index, embedder.name if embedder else "", embedder.dim if embedder else 0),
            lock=WriterLock(home.lock, FormatGuard(home.root)),
            embedder=embedder,
            clock=clock,
            token=token,
            warnings=[],
        )
        self._prepare()

    @property
    def context(self) -> IndexContext:
        """The store's context. Raises `StoreClosed` once the store is closed."""
        if self._is_closed:
            raise StoreClosed(f"the store in {self._context.home.root} is closed; open it again with `Engram.open()`")
        return self._context

    # -- opening

    def _prepare(self) -> None:
        """Fill a new index, or catch up; on a read-only home only read, with a warning."""
        try:
            if self.context.index.fresh:
                self._fill(min(OPEN_LOCK_SECONDS, self._deadline))
            else:
                self._catch_up_at_opening()
        except StoreBusy as busy:
            # The writer may take long (a backup, say); the store can be read without the lock.
            try:
                self._read_unlocked(provisionally=True)
            except StoreBusy:
                # The other process is filling the index, so wait for it.
                self._fill(self._deadline)
            else:
                self.context.warn(f"recent hand edits are not searchable yet: {busy}")
        except StoreReadOnly as error:
            self.context.warn(str(error))
            if self.context.index.fresh:
                # A read-only home has no writers.
                self._read_unlocked(provisionally=False)

    @repairs_index
    def _fill(self, deadline: float) -> None:
        with self.context.lock.hold(deadline):
            # Another process may have filled it while this one waited.
            if self.context.index.get("filled") is None:
                self.rebuild()
            self.context.index.fresh = False
            self._index_changes(ledger="")

    @repairs_index
    def _catch_up_at_opening(self) -> None:
        self._catch_up_if_free()
        self._fill_if_free()

    @repairs_index
    def _read_unlocked(self, *, provisionally: bool) -> None:
        """Fill a new index without the lock; if others may be writing, it is rebuilt later under the lock."""
        self.context.warnings += recovery.fill_unlocked(self.context, provisionally=provisionally).problems
        self.context.index.fresh = False

    def close(self) -> None:
        """Index pending events and close; if that fails, the next process to open the store does it.

        Waits for a call running in another thread; later calls raise `StoreClosed`. Closing again does nothing.
        """
        with self.guard:
            if self._is_closed:
                return
            with contextlib.suppress(StoreError, sqlite3.Error, OSError):
                self.index_pending()
                make_durable_at_close(self._context)
            self._is_closed = True
            self._edits.stop()
            self._context.index.close()

    # -- before an answer

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """The reads inside share one refresh; each thread has its own groups."""
        group = self._group
        group.depth += 1
        try:
            yield
        finally:
            group.depth -= 1
            if not group.depth:
                group.is_refreshed = False

    def _refresh(self, *, force: bool = False) -> bool:
        """Index what others wrote and what people changed in the files; returns whether people changed anything.

        Reads in a group see the store as of the first of them, unless one finds nothing and refreshes (`force`).
        """
        if not force and self._group.is_refreshed:
            return False
        self._group.is_refreshed = self._group.depth > 0
        self._catch_up_if_free()
        now = time.monotonic()
        if force or now - self._noticed_at >= NOTICE_INTERVAL:
            self._noticed_at = now
            self._read_teams()
            self._fill_if_free()
        return self._read_edits(force=force)

    @repairs_index
    def read_edits(self) -> None:
        """Read the files that people changed, before a decision takes the writer lock."""
        self._read_edits()

    def _read_edits(self, *, force: bool = False) -> bool:
        """Read changed files as far as they are known; returns whether anything was different."""
        changes = self._edits.find(self.context, force=force)
        if self._edits.stopped_at is not None:
            self._save_position()
        return bool(changes) and bool(self._sync_files(changes))

    def _save_position(self) -> None:
        """Record how far the first look at a large store got, for the next process."""
        position, self._edits.stopped_at = self._edits.stopped_at, None
        with (
            contextlib.suppress(StoreBusy, StoreReadOnly),
            self.context.lock.hold(CATCH_UP_LOCK_SECONDS),
            write_transaction(self.context.index.db),
        ):
            self.context.index.set(SWEEP_POSITION_KEY, position)

    def _pick_up_changed(self, numbers: Sequence[int]) -> None:
        """Read the files of these documents that have changed."""
        if self._edits.is_current:
            self._read_edits()
        elif not self._edits.is_waiting:
            rows = self.context.index.all("stamps", json.dumps(list(numbers)))
            changed = find_differing_files(f"{self.context.home.root}{os.sep}", rows)
            if changed:
                self._sync_files(FileChanges(files=set(changed)))

    def _sync_files(self, changes: FileChanges) -> SyncReport | None:
        """Read changed files during a read, after others' journal entries: an entry journaled now must not hide those."""

        def read_changes() -> SyncReport:
            self._index_changes(ledger="")
            noticed = SyncReport()
            for folder in sorted(changes.folders):
                hand_edits.list_folder(self.context, Path(folder), noticed)
            return pick_up(self.context, sorted(changes.files), noticed)

        noticed = self._under_lock(EDIT_LOCK_SECONDS, read_changes, "changed files were not read")
        if noticed is None:
            self._edits.note_unread(changes)
            return None
        self._edits.note_read(self.context, changes)
        self.context.warn(*noticed.problems)
        return noticed

    def _catch_up(self, ledger: str | None = None) -> None:
        """Index what others have appended, waiting for the lock; for callers that must not miss an event."""
        problem = "recent events of other processes are not searchable yet"
        self._under_lock(EVENTS_LOCK_SECONDS, lambda: self._index_changes(ledger), problem)

    def _catch_up_if_free(self) -> None:
        if not self._is_behind() and not self._has_purge_to_hide():
            return
        try:
            with contextlib.suppress(StoreBusy), self.context.lock.hold(CATCH_UP_LOCK_SECONDS):
                self._index_changes()
        except StoreReadOnly as error:
            self.context.warn(f"recent changes by other processes are not searchable yet: {error}")
        self._fill_if_free()

    def _is_behind(self) -> bool:
        return self.context.journal.grew_since(self.context.position) or self._ledgers_grew()

    def _ledgers_grew(self) -> bool:
        """Whether a ledger has events without an anchor, which only a crash leaves; checked now and then."""
        now = time.monotonic()
        if now - self._ledgers_at < LEDGER_CHECK_INTERVAL:
            return False
        self._ledgers_at = now
        known = dict(self.context.index.db.execute("SELECT name, size FROM ledgers").fetchall())
        return self.context.ledger.sizes() != known

    def index_pending(self) -> None:
        """Index the events this process has appended.

        If that is not possible now they stay pending: an answer from the current index is better than none.
        """
        if self.context.pending is None:
            return
        problem = "the latest events are not searchable yet"
        try:
            if recovery.is_untouched(self.context, self.context.pending):
                self._under_lock(OWN_EVENTS_LOCK_SECONDS, lambda: recovery.index_pending(self.context), problem)
            else:
                self.context.pending = None
        except (sqlite3.DatabaseError, OSError) as error:
            if is_index_damage(error, self.context.home):
                raise
            self.context.warn(f"{problem}: {explain_error(error, self.context.home)}")

    @repairs_index
    def sync_team_if_free(self, folder: Path) -> None:
        """Index a team store; if another process is writing, at the next refresh."""
        self._unread_teams[folder] = None
        self._read_teams()

    def _read_teams(self) -> None:
        if self._unread_teams:
            named = ", ".join(map(str, self._unread_teams))
            self._under_lock(CATCH_UP_LOCK_SECONDS, self._sync_teams, f"changes in {named} are not searchable yet")

    def _sync_teams(self) -> None:
        self._finish_interrupted(ledger="")
        for folder in list(self._unread_teams):
            hand_edits.sync_folder(self.context, folder)
            del self._unread_teams[folder]

    def _under_lock(self, seconds: float, work: Callable[[], R], problem: str) -> R | None:
        """Do maintenance work during a read; a reader that cannot write answers from the current index, with a warning."""
        found = None
        try:
            with self.context.lock.hold(seconds):
                found = work()
        except (StoreBusy, StoreReadOnly) as error:
            self.context.warn(f"{problem}: {error}")
        self._fill_if_free()
        return found

    # -- interrupted work

    def _index_changes(self, ledger: str | None = None) -> None:
        """Index what others wrote, for a reader with the writer lock. An interrupted purge is hidden, not finished."""
        recovery.catch_up(self.context, ledger=ledger)
        self._hide_purge()

    def _finish_interrupted(self, ledger: str | None = None) -> None:
        """Finish what a crash interrupted, for a writer with the writer lock."""
        self._tidy()
        recovery.catch_up(self.context, ledger=ledger)
        self._finish_purge()

    def _tidy(self) -> None:
        """Remove files left by killed processes, once for each opened store."""
        if not self._is_tidy:
            self._is_tidy = True
            remove_home_leftovers(self.context.home)

    @abstractmethod
    def _has_purge_to_hide(self) -> bool:
        """Whether the index may still contain records of an interrupted purge."""

    @abstractmethod
    def _hide_purge(self) -> None:
        """Remove the records of an interrupted purge from the index; a failure is a warning."""

    @abstractmethod
    def _finish_purge(self) -> None:
        """Finish an interrupted purge; a failure is a warning and blocks nobody."""

    def _ready_to_write(self) -> None:
        try:
            self.reopen_replaced_index()
            self._finish_interrupted(ledger="")
        except (sqlite3.DatabaseError, OSError) as error:
            self.repair_index(error)
            self._finish_interrupted()

    # -- the index itself

    def reopen_replaced_index(self) -> None:
        """Switch to a new index file if another process has put one in place."""
        if self.context.index.reopen_if_replaced() and self.context.index.fresh:
            self._prepare()

    def repair_index(self, error: sqlite3.DatabaseError | OSError) -> None:
        """Rebuild a damaged index; raises if the cause is a full disk or a busy process instead."""
        index = self.context.index
        if not is_index_damage(error, self.context.home) and not index.reopen_if_replaced() and index.is_whole():
            raise_explained(error, self.context.home)
        try:
            self._replace_index()
        except (sqlite3.DatabaseError, OSError) as again:
            raise_explained(again, self.context.home)

    def _replace_index(self) -> None:
        if not self.context.index.reopen_if_replaced():
            with self.context.lock.hold(self._deadline):
                self.context.index.discard()
        if self.context.index.fresh:
            self.rebuild()

    def rebuild(self, progress: Progress = lambda *_: None) -> SyncReport:
        """Rebuild the index."""
        with self.guard, self.context.lock.hold(self._deadline):
            if not self.context.index.fresh:
                # Others read the old index until the new one is complete.
                with contextlib.suppress(StoreError, sqlite3.Error, OSError):
                    self._finish_interrupted()
            noticed = recovery.rebuild(self.context, progress)
            self._hide_purge()
            self.context.index.fresh = False
        self.context.warnings += noticed.problems
        return noticed

    def _fill_vectors(self, deadline: float | None = None) -> None:
        """Embed documents indexed without a vector (hand edits, replays), outside any transaction."""
        try:
            fill_vectors(self.context, self._deadline if deadline is None else deadline)
        except EmbedderError as error:
            self.context.warn(f"some documents can only be found by keyword for now: {error}")

    def _fill_if_free(self) -> None:
        """Embed such documents during a read, without waiting."""
        with contextlib.suppress(StoreBusy, StoreReadOnly):
            self._fill_vectors(CATCH_UP_LOCK_SECONDS)


# -- forks


_living: "weakref.WeakSet[RefreshedStore]" = weakref.WeakSet()


_guards: list[Any] = []


def _before_fork() -> None:
    """Keep threads out of SQLite and imports during a fork, since their locks would stay locked in the child."""
    guards = [store.guard for store in list(_living)]
    _guards[:] = [guard for guard in guards if guard.acquire(timeout=_FORK_LOCK_SECONDS)]
    wait_for_imports()


def _after_fork_in_parent() -> None:
    while _guards:
        _guards.pop().release()


def _after_fork_in_child() -> None:
    """Replace the guards: threads that hold one do not exist in the child."""
    _after_fork_in_parent()
    for store in list(_living):
        store.guard = threading.RLock()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
