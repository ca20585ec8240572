"""An open store on files that follows what others write: decisions, ledgers, hand edits, and a replaced index."""

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
from engram.store.documents import stored_meaning
from engram.store.files import file_sync, pending_events, purge, recovery
from engram.store.files.context import StoreContext
from engram.store.files.durability import make_durable_at_close
from engram.store.files.home import Home
from engram.store.files.index.index import Index
from engram.store.files.index_repair import RepairableIndex, explained, healing, is_damage, raise_explained
from engram.store.files.journal import Journal
from engram.store.files.ledger import Ledger
from engram.store.files.lock import DEFAULT_DEADLINE, WriterLock
from engram.store.files.memories import Stamp, stamp_of
from engram.store.files.purge_plan import unfinished
from engram.store.files.usage import Usage
from engram.store.protocol import Progress, SyncReport
from engram.store.sources import random_hex, utc_now

if TYPE_CHECKING:
    from engram.embedding.protocol import Embedder

NOTICE_EVERY = 0.25
"""Seconds between two looks at the folders' times."""
LEDGERS_EVERY = 2.0
"""Seconds between two looks at the sizes of all ledgers."""
OPENING = 2.0
"""How long opening waits for the lock to fill a new index; after that it reads what there is without it."""
BRIEFLY = 0.05
"""How long a reader waits for the lock to take in what others wrote; after that it answers from what the index has."""
OWN_PATIENCE = 0.5
"""How long it waits to take in what this process itself appended; who holds the lock for longer has mostly done so already."""
PATIENCE = 2.0
"""How long a reader waits for the lock to journal a hand edit it saw; after that it answers from the file."""

EMBEDDED_AT_ONCE = 256


class RefreshedStore(RepairableIndex):
    """Opens the parts, finishes what a crash left, and takes in what changed since it last looked."""

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
        """Team stores that were not read when the store was opened: somebody else was writing."""
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
        self._settle()

    def _settle(self) -> None:
        """Fill a new index; finish what a crash left; on a read-only home only read, and say so."""
        try:
            if self.parts.index.fresh:
                self._fill(min(OPENING, self._deadline))
            else:
                self._look_up()
        except StoreBusy as error:
            # Whoever holds the lock may do so for long (a backup, say); what there is can be read without it.
            self._read_without_lock(error)
        except StoreReadOnly as error:
            self.parts.warnings.append(str(error))
            if self.parts.index.fresh:
                self._fill_unlocked()

    @healing
    def _fill(self, deadline: float) -> None:
        with self.parts.lock.held(deadline):
            # Another process may have filled it while this one waited.
            if self.parts.index.get("filled") is None:
                self.rebuild()
            self.parts.index.fresh = False
            self._follow(ledger="")

    @healing
    def _look_up(self) -> None:
        self._catch_up_if_free()
        self._fill_if_free()

    def _fill_unlocked(self) -> None:
        """Where the home cannot be written nobody needs to be kept out."""
        from engram.store.files.rebuild import read_in

        self.parts.warnings += read_in(self.parts).problems
        self.parts.index.fresh = False

    def _read_without_lock(self, busy: StoreBusy) -> None:
        """Fill a new index from what there is, for as long as somebody else writes: it is made anew under the lock."""
        try:
            self._read_provisionally()
        except StoreBusy:
            # It is the index that is being filled: nothing can be said before that is done.
            self._fill(self._deadline)
        else:
            self._warn(f"what was changed by hand is not found yet: {busy}")

    @healing
    def _read_provisionally(self) -> None:
        from engram.store.files.rebuild import read_in

        self.parts.warnings += read_in(self.parts, provisionally=True).problems
        self.parts.index.fresh = False

    @healing
    def sync_team_if_free(self, folder: Path) -> None:
        """Take in what a team store holds; where somebody else is writing, at the next look."""
        self._unread_teams[folder] = None
        self._read_teams(BRIEFLY)

    def _read_teams(self, deadline: float) -> None:
        if not self._unread_teams:
            return
        try:
            with self.parts.lock.held(deadline):
                self._finish(ledger="")
                for folder in list(self._unread_teams):
                    file_sync.sync_folder(self.parts, folder)
                    del self._unread_teams[folder]
        except (StoreBusy, StoreReadOnly) as error:
            self._warn(f"what changed in {', '.join(map(str, self._unread_teams))} is not found yet: {error}")
        self._fill_if_free()

    def follow_replacement(self) -> None:
        """Use the index that lies at its place, should another process have put a new one there."""
        if self.parts.index.reopen_if_replaced() and self.parts.index.fresh:
            self._settle()

    def take_in(self) -> None:
        """Put what this process has appended and not indexed yet into the index.

        Where that cannot be done it goes on waiting: an answer from what the index has is better than none.
        """
        if self.parts.awaiting is None:
            return
        try:
            if pending_events.is_untouched(self.parts, self.parts.awaiting):
                with self.parts.lock.held(OWN_PATIENCE):
                    pending_events.take_in(self.parts)
            self.parts.awaiting = None
        except (StoreBusy, StoreReadOnly) as error:
            self._warn(f"what was appended last is not found yet: {error}")
        except (sqlite3.DatabaseError, OSError) as error:
            if is_damage(error, self.parts.home):
                raise
            self._warn(f"what was appended last is not found yet: {explained(error, self.parts.home)}")
        self._fill_if_free()

    def mend(self, error: sqlite3.DatabaseError | OSError) -> None:
        """Make a damaged index anew; a full disk or a busy neighbour is told to the caller instead."""
        index = self.parts.index
        if not is_damage(error, self.parts.home) and not index.reopen_if_replaced() and index.is_whole():
            raise_explained(error, self.parts.home)
        try:
            self.heal()
        except (sqlite3.DatabaseError, OSError) as again:
            raise_explained(again, self.parts.home)

    def _catch_up_if_free(self) -> None:
        if not self._is_behind() and not purge.to_hide(self.parts):
            return
        try:
            with contextlib.suppress(StoreBusy), self.parts.lock.held(BRIEFLY):
                self._follow()
        except StoreReadOnly as error:
            self._warn(f"what others wrote since is not found yet: {error}")
        self._fill_if_free()

    def _is_behind(self) -> bool:
        return self.parts.journal.grew_since(self.parts.position) or self._ledgers_grew()

    def _catch_up(self, ledger: str | None = None) -> None:
        """Take in what others have appended, waiting for them a while; for whoever should not miss an event."""
        try:
            with self.parts.lock.held(PATIENCE):
                self._follow(ledger)
        except (StoreBusy, StoreReadOnly) as error:
            self._warn(f"what others appended since is not found yet: {error}")
        self._fill_if_free()

    def _follow(self, ledger: str | None = None) -> None:
        """Take in what others wrote; for a reader that holds the writer lock. An interrupted purge is hidden, not ended."""
        recovery.catch_up(self.parts, ledger=ledger)
        self._see_to_purge(purge.hide)

    def _finish(self, ledger: str | None = None) -> None:
        """What a crash left undone; for a writer, who holds the writer lock."""
        recovery.catch_up(self.parts, ledger=ledger)
        self._see_to_purge(purge.resume)

    def _see_to_purge(self, work: Callable[[StoreContext], None]) -> None:
        """An interrupted purge that cannot be ended keeps nobody from reading or writing; its owner hears of it."""
        if not unfinished(self.parts.home):
            return
        try:
            work(self.parts)
        except (StoreError, OSError) as error:
            self._warn(f"a purge was interrupted and is not ended yet: {error}")

    def _ledgers_grew(self) -> bool:
        """Whether events wait of which the journal does not tell, which only a crash leaves; looked at now and then."""
        now = time.monotonic()
        if now - self._ledgers_at < LEDGERS_EVERY:
            return False
        self._ledgers_at = now
        known = dict(self.parts.index.db.execute("SELECT name, size FROM ledgers").fetchall())
        return self.parts.ledger.sizes() != known

    def heal(self) -> None:
        """Begin a new index where the old one is damaged."""
        if not self.parts.index.reopen_if_replaced():
            with self.parts.lock.held(self._deadline):
                self.parts.index.discard()
        if self.parts.index.fresh:
            self.rebuild()

    def rebuild(self, progress: Progress = lambda *_: None) -> SyncReport:
        """Make the index anew."""
        with self.guard, self.parts.lock.held(self._deadline):
            from engram.store.files.rebuild import rebuild

            if not self.parts.index.fresh:
                # Others read the old one until the new one is whole.
                with contextlib.suppress(StoreError, sqlite3.Error, OSError):
                    self._finish()
            noticed = rebuild(self.parts, progress)
            self._see_to_purge(purge.hide)
            self.parts.index.fresh = False
        self.parts.warnings += noticed.problems
        return noticed

    def _pick_up_changed(self, numbers: Sequence[int]) -> None:
        stamps = self.parts.index.all("stamps", json.dumps(list(numbers)))
        # A `Path` for each costs as much as looking at the file, and so does joining what is mostly relative.
        root = f"{self.parts.home.root}{os.sep}"
        changed = [
            path
            for _, _, path, *stamp in stamps
            if stamp_of(path if path.startswith(os.sep) else root + path) != Stamp(*stamp)
        ]
        if changed:
            self._under_lock(lambda: file_sync.pick_up(self.parts, changed))

    def _under_lock(self, work: Callable[[], SyncReport]) -> SyncReport | None:
        """Do small upkeep on the way of a read; a reader that cannot write answers from what it has, and says so."""
        try:
            with self.parts.lock.held(PATIENCE):
                # What is journaled now must not hide what others were told there before.
                self._follow(ledger="")
                noticed = work()
            self._fill_vectors()
        except (StoreReadOnly, StoreBusy) as error:
            self._warn(f"changed files were not taken in: {error}")
            return None
        for problem in noticed.problems:
            self._warn(problem)
        return noticed

    def _warn(self, text: str) -> None:
        if text not in self.parts.warnings:
            self.parts.warnings.append(text)

    def _notice(self, *, force: bool = False) -> bool:
        """Look at the folders' times; take in files that came or went. Says whether anything did."""
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
            self.follow_replacement()
            self._finish(ledger="")
        except (sqlite3.DatabaseError, OSError) as error:
            self.mend(error)
            self._finish()

    def _fill_vectors(self, deadline: float | None = None) -> None:
        """Embed what was indexed without a vector (hand edits, replays), outside any transaction."""
        try:
            fill_vectors(self.parts, self._deadline if deadline is None else deadline)
        except EmbedderError as error:
            self._warn(f"some documents are found by keyword only for now: {error}")

    def _fill_if_free(self) -> None:
        """The same on the way of a read, which does not wait for it."""
        with contextlib.suppress(StoreBusy, StoreReadOnly):
            self._fill_vectors(BRIEFLY)

    def close(self) -> None:
        """Close the index, with what this process appended; where that fails, whoever opens the store next sees to it.

        A call that is running in another thread is waited for; every later one raises `StoreClosed`. Closing again does nothing.
        """
        with self.guard:
            if self._is_closed:
                return
            with contextlib.suppress(StoreError, sqlite3.Error, OSError):
                self.take_in()
                make_durable_at_close(self._parts)
            self._is_closed = True
            self._parts.index.close()


def fill_vectors(parts: StoreContext, deadline: float) -> None:
    """Embed what lacks a vector, a few at a time; the lock is taken only to write. Raises `EmbedderError` half-way."""
    if parts.embedder is None or not parts.index.get("lacking") or not parts.index.can_embed():
        return
    after = 0
    while rows := parts.index.without_vector(after, EMBEDDED_AT_ONCE):
        vectors = parts.embedder.embed([stored_meaning(kind, record) for _, kind, record in rows])
        with parts.lock.held(deadline), parts.index.writing() as writer:
            # While this was being embedded another writer may have changed, embedded or purged it.
            still = parts.index.without_vector(after, EMBEDDED_AT_ONCE)
            for row, vector in zip(rows, vectors, strict=True):
                if row in still:
                    writer.put_vector(row[0], vector)
        after = rows[-1][0]
    with parts.lock.held(deadline), parts.index.writing():
        if not parts.index.without_vector(0, 1):
            parts.index.set("lacking", 0)
