"""The files backend: one object over home, journal, usage, ledger and index."""

import contextlib
import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from engram.model.errors import InvalidInput, StoreBusy, StoreError, StoreReadOnly
from engram.model.event import Event
from engram.model.logs import Log
from engram.model.usage import Use
from engram.store.files.log.ledger import ledger_name
from engram.store.files.log.ledger_checks import verify_ledgers
from engram.store.files.reconcile import file_sync, index_records
from engram.store.files.reconcile.durability import make_all_durable, make_due_durable, sync_folders
from engram.store.files.reconcile.index_records import indexed_size
from engram.store.files.reconcile.refresh import (
    EVENTS_LOCK_SECONDS,
    explain_error,
    is_index_damage,
    repairs_index,
    repairs_index_on_append,
)
from engram.store.files.states import named as named_states
from engram.store.files.states import sessions as session_files
from engram.store.files.states import tasks as task_files
from engram.store.files.states import verdicts
from engram.store.files.store import events, health
from engram.store.files.store import purge as purging
from engram.store.files.store.purge_plan import has_unfinished_purge, marked_ids
from engram.store.files.store.transaction import FilesTransaction
from engram.store.files.store.work import FilesWork
from engram.store.new_events import JobFactory, NewEvent, no_jobs
from engram.store.protocol import Progress
from engram.store.reports import Check, Pruned, Purged, SyncReport
from engram.store.scopes import trusted_of
from engram.store.screen import MAX_SCREENED_EVENTS, screen_jobs

_LOG = Log("store")


class FilesStore(FilesWork):
    """Implements `protocol.Store` on plain files."""

    @property
    def place(self) -> str:
        """The store's directory."""
        return str(self.context.home.root)

    def trusted_here(self, directory: Path) -> frozenset[str]:
        """Digests of the repository files the owner trusts."""
        return trusted_of(self.context.home.state, directory)

    @repairs_index
    def sync(self, *, seconds: float | None = None) -> SyncReport:
        """Update the index from all files, or from as many as the time allows."""
        with self.context.lock.hold(self._deadline):
            self._finish_interrupted()
            noticed = file_sync.sync(self.context, seconds=seconds)
        self._fill_vectors()
        return noticed

    @repairs_index
    def _sync_briefly(self) -> SyncReport:
        """The same for a reader, which waits only briefly and leaves an interrupted purge to writers."""
        with self.context.lock.hold(EVENTS_LOCK_SECONDS):
            self._tidy()
            self._index_changes()
            noticed = file_sync.sync(self.context)
        self._fill_if_free()
        return noticed

    # -- decisions

    @contextlib.contextmanager
    def deciding(
        self,
        op: str,
        *,
        actor: str,
        reason: str = "",
        session: str = "",
        scopes: Sequence[str] = (),
        about: Iterable[str] = (),
        ids_for: Iterable[datetime] = (),
    ) -> Iterator[FilesTransaction]:
        """One decision under the writer lock; there is one lock for all scopes and memories."""
        process = os.getpid()
        reason = self.screen.decision(actor, reason, session)
        with _LOG.measure("write", op=op), self.guard:
            self.read_edits()
            with self.context.lock.hold(self._deadline):
                self._ready_to_write()
                transaction = FilesTransaction(self.context, op, actor, reason, session, self.screen)
                try:
                    yield transaction
                    if os.getpid() != process:
                        raise StoreError(
                            "a forked child cannot commit its parent's decision; reopen the store in the child"
                        )
                    transaction.check_all()
                    transaction.commit()
                except (sqlite3.DatabaseError, OSError) as error:
                    self._repair_in_decision(error, transaction)
            self._fill_vectors()
            make_due_durable(self.context)

    def _repair_in_decision(self, error: sqlite3.DatabaseError | OSError, transaction: FilesTransaction) -> None:
        self.repair_index(error)
        if not transaction.journaled:
            raise StoreError(f"the index was damaged ({error}) and has been rebuilt; nothing was written, try again")

    # -- usage

    def note_use(self, use: Use) -> None:
        """Append a use, without a lock."""
        self.context.usage.append(self.screen.use(use))

    @repairs_index
    def uses(self, memory_ids: Iterable[str] | None = None, *, session: str = "") -> list[Use]:
        """Every use of these memories, or in a session, oldest first."""
        if memory_ids is None:
            return index_records.uses_in(self.context.index, self.context.usage, session)
        return index_records.uses_of(self.context.index, self.context.usage, memory_ids)

    @repairs_index
    def used_since(self, position: int) -> list[str]:
        """Ids of memories used after a position."""
        return index_records.used_since(self.context.index, self.context.usage, position)

    @repairs_index
    def last_use(self, kind: str) -> Use | None:
        """The newest use of a kind, with all its ids."""
        return index_records.last_use(self.context.index, self.context.usage, kind)

    # -- events and sessions

    def append_events(
        self, session: str, new: Sequence[NewEvent], jobs: JobFactory = no_jobs, *, scope: str = ""
    ) -> list[Event]:
        """Append to a ledger."""
        kept = self.screen.events(session, new, lambda: self.events(session, last=MAX_SCREENED_EVENTS), scope=scope)
        with self.guard:
            written = self._append_events(session, kept, screen_jobs(self.screen, jobs), scope)
            if self.context.pending is not None and self.context.pending.is_due:
                self._index_appended()
        return written

    def _index_appended(self) -> None:
        """Index appended events; a failure is only a warning: they are stored, and a retry would duplicate them."""
        try:
            try:
                self.index_pending()
            except (sqlite3.DatabaseError, OSError) as error:
                self.repair_index(error)
        except StoreError as error:
            self.context.warn(f"the latest events are not searchable yet: {error}")

    @repairs_index_on_append
    def _append_events(self, session: str, new: Sequence[NewEvent], jobs: JobFactory, scope: str) -> list[Event]:
        if has_unfinished_purge(self.context.home):
            with self.context.lock.hold(self._deadline):
                self._finish_interrupted()
        return events.append(self.context, session, new, jobs, scope)

    @repairs_index
    def events(self, session: str, *, last: int | None = None, after: int = 0) -> list[Event]:
        """A ledger's events in order."""
        name = ledger_name(session)
        if self.context.pending is None and self.context.ledger.size(name) != indexed_size(self.context.index, name):
            self._catch_up(name)
        return events.of_ledger(self.context, session, last, after)

    @repairs_index
    def ledgers(self) -> list[str]:
        """The name of every ledger that has events."""
        self._refresh()
        return [name for (name,) in self.context.index.all("ledgers")]

    # -- tasks, checkpoints and jobs

    # -- small states by name

    # -- upkeep

    @property
    def warnings(self) -> list[str]:
        """Messages for the owner."""
        return self.context.warnings

    def new_token(self, size: int) -> str:
        """Random hex digits."""
        return self.context.token(size)

    @repairs_index
    def sync_team(self, folder: Path, *, again: bool = False) -> SyncReport:
        """Index a team store; `again` reads all its files because their trust changed."""
        with self.context.lock.hold(self._deadline):
            self._finish_interrupted(ledger="")
            if again:
                with self.context.index.writing():
                    file_sync.forget_stamps(self.context, folder)
            noticed = file_sync.sync_folder(self.context, folder)
        self._fill_vectors()
        return noticed

    @repairs_index
    def reembed(self, progress: Progress = lambda *_: None) -> int:
        """Recreate all vectors with this process's embedder; the old ones are used until all are done."""
        from engram.store.files.reconcile.missing_vectors import reembed

        return reembed(self.context, self._deadline, progress)

    def build_nearest(self, progress: Progress = lambda *_: None) -> str:
        """Not available: vectors of a files store are searched exactly, in milliseconds."""
        raise InvalidInput("a files store compares every vector exactly; --nearest is for Postgres")

    @repairs_index
    def purge(self, ids: Sequence[str], *, actor: str, drawn: Collection[str] = ()) -> Purged:
        """Destroy memories and events, and prove it."""
        self.screen.decision(actor, "", "")
        with self.context.lock.hold(self._deadline):
            # An interrupted purge is hidden here and finished with this one, so that the report covers both.
            self._index_changes()
            with self._explaining_purge():
                purged = purging.purge(self.context, ids, actor, drawn)
            with contextlib.suppress(OSError):
                # A power loss must not bring back what was destroyed.
                sync_folders(self.context.home)
            return purged

    @contextlib.contextmanager
    def _explaining_purge(self) -> Iterator[None]:
        """Turn an error of the system into one that names the file and says what to do; a damaged index is repaired elsewhere."""
        try:
            yield
        except OSError as error:
            if is_index_damage(error, self.context.home):
                raise
            meaning = explain_error(error, self.context.home)
            why = (
                meaning if isinstance(meaning, StoreError) else f"{error.filename or 'a file'} cannot be used: {error}"
            )
            raise StoreReadOnly(f"the purge is not finished: {why}. Correct that and purge again") from error

    def interrupted_purge(self) -> Collection[str]:
        """The ids of an interrupted purge, of which some words may still be in files."""
        return marked_ids(self.context.home)

    @repairs_index
    def prune(self, now: datetime, journal: int, usage: int, ledger: int, *, dry_run: bool) -> Pruned:
        """Remove history older than these numbers of days; with `dry_run` only report it."""
        from engram.store.files.store import retention

        make_all_durable(self.context)
        with self.context.lock.hold(self._deadline):
            self._finish_interrupted()
            return (retention.plan if dry_run else retention.prune)(self.context, now, journal, usage, ledger)

    def backup(self, target: Path, now: datetime) -> dict[str, int]:
        """Write the whole store to one archive."""
        from engram.store.files.store.backup import backup

        return backup(self.context.home, target, now, self.context.warnings)

    def note_verdict(self, gate: str, outcome: str, at: datetime) -> None:
        """Record a gate's verdict on an autonomous proposal."""
        verdicts.note_verdict(self.context.home, gate, outcome, at)

    def verdicts(self, since: datetime) -> list[tuple[str, str]]:
        """Gate and outcome of the proposals since a time."""
        return verdicts.verdicts_since(self.context.home, since)

    @repairs_index
    def verify_ledgers(self) -> list[str]:
        """Problems with the ledgers' chains, and with their ends compared with the journal."""
        return verify_ledgers(self.context.journal, self.context.ledger)

    @repairs_index
    def facts(self) -> Mapping[str, Any]:
        """The figures that `status` and `doctor` show."""
        self._refresh()
        return health.facts(self.context)

    def examine(self) -> list[Check]:
        """Checks of the files, the index and the embedder, after reading hand edits."""
        noticed, blocked = SyncReport(), list[Check]()
        try:
            noticed = self._sync_briefly()
        except StoreReadOnly as error:
            blocked = [health.read_only(error)]
        except StoreBusy as error:
            blocked = [health.busy(error)]
        home = self.context.home
        damaged = [
            *task_files.task_problems(home),
            *session_files.session_problems(home),
            *named_states.state_problems(home),
        ]
        found = health.checks(self.facts(), [*noticed.problems, *damaged])
        found.append(self._drift(noticed))
        return [*blocked, *found, *health.missing_records(self.context), *health.check_interrupted_purge(self.context)]

    @repairs_index
    def _drift(self, noticed: SyncReport) -> Check:
        from engram.store.files.store.index_drift import drift

        return drift(self.context, noticed)
