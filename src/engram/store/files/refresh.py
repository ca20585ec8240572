"""An open files store that keeps its index current: other processes' decisions and events, hand edits, a replaced index."""

import contextlib
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from engram.model.errors import EmbedderError, StoreBusy, StoreError, StoreReadOnly
from engram.store.files import file_sync, purge, recovery
from engram.store.files.context import StoreContext
from engram.store.files.durability import make_durable_at_close
from engram.store.files.home import Home
from engram.store.files.index.index import Index
from engram.store.files.index_repair import RepairableIndex, explained, is_index_damage, raise_explained, repairs_index
from engram.store.files.journal import Journal
from engram.store.files.ledger import Ledger
from engram.store.files.lock import DEFAULT_DEADLINE, WriterLock
from engram.store.files.memories import Stamp, stamp_of
from engram.store.files.purge_plan import unfinished
from engram.store.files.usage import Usage
from engram.store.files.vectors import fill_vectors
from engram.store.protocol import (
    Progress,
    SyncReport,
)
from engram.store.sources import random_hex, utc_now

if TYPE_CHECKING:
    from engram.embedding.protocol import Embedder

NOTICE_EVERY = 0.25
"""Seconds between two checks of the folders' times."""
LEDGERS_EVERY = 2.0
"""Seconds between two checks of the sizes of all ledgers."""
OPENING = 2.0
"""Seconds that opening waits for the lock to fill a new index; then it reads without the lock."""
BRIEFLY = 0.05
"""Seconds that a reader waits for the lock to index what others wrote; then it answers from the current index."""
OWN_PATIENCE = 0.5
"""Seconds that a reader waits to index this process's own events; a longer writer has usually indexed them."""
PATIENCE = 2.0
"""Seconds that a reader waits for the lock to journal a hand edit; then it answers from the current index."""


class RefreshedStore(RepairableIndex):
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
        super().__init__()
        self._deadline = deadline
        self._noticed_at = self._ledgers_at = float("-inf")
        self._unread_teams: dict[Path, None] = {}
        """Team stores not read yet, because another process was writing."""
        self._parts = StoreContext(
            home=home,
            journal=Journal(home.journal, home.quarantine),
            usage=Usage(home.usage),
            ledger=Ledger(home.ledger, home.quarantine),
            index=Index(home.index, embedder.name if embedder else "", embedder.dim if embedder else 0),
            lock=WriterLock(home.lock),
            embedder=embedder,
            clock=clock,
            token=token,
        )
        self._prepare()

    def _prepare(self) -> None:
        """Fill a new index, or catch up; on a read-only home only read, with a warning."""
        try:
            if self.parts.index.fresh:
                self._fill(min(OPENING, self._deadline))
            else:
                self._catch_up_at_opening()
        except StoreBusy as error:
            # The writer may take long (a backup, say); the store can be read without the lock.
            self._read_without_lock(error)
        except StoreReadOnly as error:
            self.parts.warn(str(error))
            if self.parts.index.fresh:
                self._fill_unlocked()

    @repairs_index
    def _fill(self, deadline: float) -> None:
        with self.parts.lock.held(deadline):
            # Another process may have filled it while this one waited.
            if self.parts.index.get("filled") is None:
                self.rebuild()
            self.parts.index.fresh = False
            self._index_changes(ledger="")

    @repairs_index
    def _catch_up_at_opening(self) -> None:
        self._catch_up_if_free()
        self._fill_if_free()

    def _fill_unlocked(self) -> None:
        """Fill the index without the lock: a read-only home has no writers."""
        from engram.store.files.rebuild import read_in

        self.parts.warnings += read_in(self.parts).problems
        self.parts.index.fresh = False

    def _read_without_lock(self, busy: StoreBusy) -> None:
        """Fill a new index while another process writes; it is rebuilt later under the lock."""
        try:
            self._read_provisionally()
        except StoreBusy:
            # The other process is filling the index: wait for it.
            self._fill(self._deadline)
        else:
            self.parts.warn(f"recent hand edits are not searchable yet: {busy}")

    @repairs_index
    def _read_provisionally(self) -> None:
        from engram.store.files.rebuild import read_in

        self.parts.warnings += read_in(self.parts, provisionally=True).problems
        self.parts.index.fresh = False

    @repairs_index
    def sync_team_if_free(self, folder: Path) -> None:
        """Index a team store; if another process is writing, at the next refresh."""
        self._unread_teams[folder] = None
        self._read_teams(BRIEFLY)

    def _read_teams(self, deadline: float) -> None:
        if not self._unread_teams:
            return
        try:
            with self.parts.lock.held(deadline):
                self._finish_interrupted(ledger="")
                for folder in list(self._unread_teams):
                    file_sync.sync_folder(self.parts, folder)
                    del self._unread_teams[folder]
        except (StoreBusy, StoreReadOnly) as error:
            self.parts.warn(f"changes in {', '.join(map(str, self._unread_teams))} are not searchable yet: {error}")
        self._fill_if_free()

    def reopen_replaced_index(self) -> None:
        """Switch to a new index file if another process has put one in place."""
        if self.parts.index.reopen_if_replaced() and self.parts.index.fresh:
            self._prepare()

    def index_pending(self) -> None:
        """Index the events this process has appended.

        If that is not possible now they stay pending: an answer from the current index is better than none.
        """
        if self.parts.pending is None:
            return
        try:
            if recovery.is_untouched(self.parts, self.parts.pending):
                with self.parts.lock.held(OWN_PATIENCE):
                    recovery.index_pending(self.parts)
            self.parts.pending = None
        except (StoreBusy, StoreReadOnly) as error:
            self.parts.warn(f"the latest events are not searchable yet: {error}")
        except (sqlite3.DatabaseError, OSError) as error:
            if is_index_damage(error, self.parts.home):
                raise
            self.parts.warn(f"the latest events are not searchable yet: {explained(error, self.parts.home)}")
        self._fill_if_free()

    def repair_index(self, error: sqlite3.DatabaseError | OSError) -> None:
        """Rebuild a damaged index; raises if the cause is a full disk or a busy process instead."""
        index = self.parts.index
        if not is_index_damage(error, self.parts.home) and not index.reopen_if_replaced() and index.is_whole():
            raise_explained(error, self.parts.home)
        try:
            self.replace_index()
        except (sqlite3.DatabaseError, OSError) as again:
            raise_explained(again, self.parts.home)

    def _catch_up_if_free(self) -> None:
        if not self._is_behind() and not purge.to_hide(self.parts):
            return
        try:
            with contextlib.suppress(StoreBusy), self.parts.lock.held(BRIEFLY):
                self._index_changes()
        except StoreReadOnly as error:
            self.parts.warn(f"recent changes by other processes are not searchable yet: {error}")
        self._fill_if_free()

    def _is_behind(self) -> bool:
        return self.parts.journal.grew_since(self.parts.position) or self._ledgers_grew()

    def _catch_up(self, ledger: str | None = None) -> None:
        """Index what others have appended, waiting for the lock; for callers that must not miss an event."""
        try:
            with self.parts.lock.held(PATIENCE):
                self._index_changes(ledger)
        except (StoreBusy, StoreReadOnly) as error:
            self.parts.warn(f"recent events of other processes are not searchable yet: {error}")
        self._fill_if_free()

    def _index_changes(self, ledger: str | None = None) -> None:
        """Index what others wrote, for a reader with the writer lock. An interrupted purge is hidden, not finished."""
        recovery.catch_up(self.parts, ledger=ledger)
        self._handle_purge(purge.hide)

    def _finish_interrupted(self, ledger: str | None = None) -> None:
        """Finish what a crash interrupted, for a writer with the writer lock."""
        recovery.catch_up(self.parts, ledger=ledger)
        self._handle_purge(purge.resume)

    def _handle_purge(self, work: Callable[[StoreContext], None]) -> None:
        """Hide or finish an interrupted purge; a failure is a warning and blocks nobody."""
        if not unfinished(self.parts.home):
            return
        try:
            work(self.parts)
        except (StoreError, OSError) as error:
            self.parts.warn(f"a purge was interrupted and is not finished yet: {error}")

    def _ledgers_grew(self) -> bool:
        """Whether a ledger has events without an anchor, which only a crash leaves; checked now and then."""
        now = time.monotonic()
        if now - self._ledgers_at < LEDGERS_EVERY:
            return False
        self._ledgers_at = now
        known = dict(self.parts.index.db.execute("SELECT name, size FROM ledgers").fetchall())
        return self.parts.ledger.sizes() != known

    def replace_index(self) -> None:
        """Replace a damaged index."""
        if not self.parts.index.reopen_if_replaced():
            with self.parts.lock.held(self._deadline):
                self.parts.index.discard()
        if self.parts.index.fresh:
            self.rebuild()

    def rebuild(self, progress: Progress = lambda *_: None) -> SyncReport:
        """Rebuild the index."""
        with self.guard, self.parts.lock.held(self._deadline):
            from engram.store.files.rebuild import rebuild

            if not self.parts.index.fresh:
                # Others read the old index until the new one is complete.
                with contextlib.suppress(StoreError, sqlite3.Error, OSError):
                    self._finish_interrupted()
            noticed = rebuild(self.parts, progress)
            self._handle_purge(purge.hide)
            self.parts.index.fresh = False
        self.parts.warnings += noticed.problems
        return noticed

    def _pick_up_changed(self, numbers: Sequence[int]) -> None:
        stamps = self.parts.index.all("stamps", json.dumps(list(numbers)))
        # Creating or joining a `Path` costs as much as the stat itself.
        root = f"{self.parts.home.root}{os.sep}"
        changed = [
            path
            for _, _, path, *stamp in stamps
            if stamp_of(path if path.startswith(os.sep) else root + path) != Stamp(*stamp)
        ]
        if changed:
            self._under_lock(lambda: file_sync.pick_up(self.parts, changed))

    def _under_lock(self, work: Callable[[], SyncReport]) -> SyncReport | None:
        """Do small upkeep during a read; a reader that cannot write answers from the current index, with a warning."""
        try:
            with self.parts.lock.held(PATIENCE):
                # An entry journaled now must not hide what others journaled before.
                self._index_changes(ledger="")
                noticed = work()
            self._fill_vectors()
        except (StoreReadOnly, StoreBusy) as error:
            self.parts.warn(f"changed files were not read: {error}")
            return None
        self.parts.warn(*noticed.problems)
        return noticed

    def _refresh(self, *, force: bool = False) -> bool:
        """Check the folders' times and index added or removed files; returns whether there were any."""
        self._catch_up_if_free()
        now = time.monotonic()
        if not force and now - self._noticed_at < NOTICE_EVERY:
            return False
        self._noticed_at = now
        self._read_teams(BRIEFLY)
        self._fill_if_free()
        changed = file_sync.changed_folders(self.parts, file_sync.roots(self.parts))
        if not changed:
            return False
        noticed = self._under_lock(lambda: self._list(changed))
        return bool(noticed)

    def _list(self, folders: Iterable[Path]) -> SyncReport:
        noticed = SyncReport()
        for folder in folders:
            file_sync.list_folder(self.parts, folder, noticed)
        return noticed

    def _ready_to_write(self) -> None:
        try:
            self.reopen_replaced_index()
            self._finish_interrupted(ledger="")
        except (sqlite3.DatabaseError, OSError) as error:
            self.repair_index(error)
            self._finish_interrupted()

    def _fill_vectors(self, deadline: float | None = None) -> None:
        """Embed documents indexed without a vector (hand edits, replays), outside any transaction."""
        try:
            fill_vectors(self.parts, self._deadline if deadline is None else deadline)
        except EmbedderError as error:
            self.parts.warn(f"some documents can only be found by keyword for now: {error}")

    def _fill_if_free(self) -> None:
        """The same during a read, without waiting."""
        with contextlib.suppress(StoreBusy, StoreReadOnly):
            self._fill_vectors(BRIEFLY)

    def close(self) -> None:
        """Index pending events and close; if that fails, the next process to open the store does it.

        Waits for a call running in another thread; later calls raise `StoreClosed`. Closing again does nothing.
        """
        with self.guard:
            if self._is_closed:
                return
            with contextlib.suppress(StoreError, sqlite3.Error, OSError):
                self.index_pending()
                make_durable_at_close(self._parts)
            self._is_closed = True
            self._parts.index.close()
