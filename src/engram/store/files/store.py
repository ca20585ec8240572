"""The files backend: one object over home, journal, usage, ledger and index."""

import contextlib
import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from engram.model.errors import InvalidInput, StoreBusy, StoreError, StoreReadOnly
from engram.model.event import Event, Session
from engram.model.usage import Use
from engram.rules.scopes import shows
from engram.store.files import events, file_sync, health, ledger_verification, sessions, state, tasks, usage_index
from engram.store.files import purge as purging
from engram.store.files.context import indexed_size
from engram.store.files.durability import make_all_durable, make_due_durable, sync_folders
from engram.store.files.index_repair import healing, healing_append
from engram.store.files.ledger import ledger_name
from engram.store.files.purge_plan import unfinished
from engram.store.files.reader import FilesReader
from engram.store.files.refresh import PATIENCE
from engram.store.files.task_store import FileTaskStore
from engram.store.files.transaction import FilesTransaction
from engram.store.ledger import ledger_owner
from engram.store.protocol import Check, JobFactory, NewEvent, Progress, Pruned, Purged, SyncReport, no_jobs
from engram.store.scopes import trusted_of
from engram.store.screen import LATEST, Screen, Unscreened, screened_jobs


class FilesStore(FilesReader, FileTaskStore):
    """Implements `protocol.Store` on plain files."""

    screen: Screen = Unscreened()

    @property
    def place(self) -> str:
        """The store's directory."""
        return str(self.parts.home.root)

    def trusted_here(self, directory: Path) -> frozenset[str]:
        """Digests of what the owner trusts of a directory's repository."""
        return trusted_of(self.parts.home.state, directory)

    @healing
    def sync(self, *, seconds: float | None = None) -> SyncReport:
        """Bring the index in step with all files, or with as many as the time allows."""
        with self.parts.lock.held(self._deadline):
            self._finish()
            noticed = file_sync.sync(self.parts, seconds=seconds)
        self._fill_vectors()
        return noticed

    @healing
    def _looked_through(self) -> SyncReport:
        """The same for whoever only looks and does not wait for long: an interrupted purge is left to writers."""
        with self.parts.lock.held(PATIENCE):
            self._follow()
            noticed = file_sync.sync(self.parts)
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
        """One decision, alone with the store: there is one lock, whatever scopes and memories it is about."""
        process = os.getpid()
        reason = self.screen.decision(actor, reason, session)
        with self.guard:
            with self.parts.lock.held(self._deadline):
                self._ready_to_write()
                transaction = FilesTransaction(self.parts, op, actor, reason, session)
                try:
                    yield transaction
                    if os.getpid() != process:
                        raise StoreError(
                            "a forked child cannot commit its parent's decision; open the store anew there"
                        )
                    self.screen.memories(transaction.proposed, transaction.stored)
                    transaction.commit()
                except (sqlite3.DatabaseError, OSError) as error:
                    self._mend_midway(error, transaction)
            self._fill_vectors()
            make_due_durable(self.parts)

    def _mend_midway(self, error: sqlite3.DatabaseError | OSError, transaction: FilesTransaction) -> None:
        self.mend(error)
        if not transaction.journaled:
            raise StoreError(f"the index was damaged ({error}) and has been made anew; nothing was written, try again")

    # -- usage

    def note_use(self, use: Use) -> None:
        """Append a use; no lock, no wait."""
        self.parts.usage.append(self.screen.use(use))

    @healing
    def uses_of(self, memory_ids: Iterable[str]) -> list[Use]:
        """Every noted use of these memories, oldest first."""
        return usage_index.of(self.parts, memory_ids)

    @healing
    def uses_in(self, session: str) -> list[Use]:
        """Every use noted in a session."""
        return usage_index.in_session(self.parts, session)

    @healing
    def used_since(self, position: int) -> list[str]:
        """Ids of memories used after a position."""
        return usage_index.since(self.parts, position)

    @healing
    def last_use(self, kind: str) -> Use | None:
        """The newest use of a kind, with all its ids."""
        return usage_index.last(self.parts, kind)

    # -- events and sessions

    def append_events(
        self, session: str, new: Sequence[NewEvent], jobs: JobFactory = no_jobs, *, scope: str = ""
    ) -> list[Event]:
        """Append to a ledger."""
        kept = self.screen.events(session, new, lambda: self.events(session, last=LATEST), scope=scope)
        with self.guard:
            written = self._append_events(session, kept, screened_jobs(self.screen, jobs), scope)
            if self.parts.awaiting is not None and self.parts.awaiting.is_due:
                self._index_appended()
        return written

    def _index_appended(self) -> None:
        """The events stand, whatever becomes of the index: appending them again would double them."""
        try:
            try:
                self.take_in()
            except (sqlite3.DatabaseError, OSError) as error:
                self.mend(error)
        except StoreError as error:
            self._warn(f"what was appended last is not found yet: {error}")

    @healing_append
    def _append_events(self, session: str, new: Sequence[NewEvent], jobs: JobFactory, scope: str) -> list[Event]:
        if unfinished(self.parts.home):
            with self.parts.lock.held(self._deadline):
                self._finish()
        return events.append(self.parts, session, new, jobs, scope)

    @healing
    def events(self, session: str, *, last: int | None = None, after: int = 0) -> list[Event]:
        """A ledger's events in order."""
        name = ledger_name(session)
        if self.parts.awaiting is None and self.parts.ledger.size(name) != indexed_size(self.parts, name):
            self._catch_up(name)
        return events.of_ledger(self.parts, session, last, after)

    @healing
    def ledgers(self) -> list[str]:
        """The name of every ledger that has events."""
        self._notice()
        return [name for (name,) in self.parts.index.all("ledgers")]

    def save_session(self, session: Session) -> None:
        """Create or update a session."""
        sessions.save_session(self.parts.home, self.screen.session(session))

    def session(self, session_id: str) -> Session | None:
        """A session by id."""
        return sessions.load_session(self.parts.home, session_id)

    def sessions(self, limit: int | None = None, scopes: Collection[str] | None = None) -> list[Session]:
        """Sessions, newest first."""
        return [one for one in sessions.all_sessions(self.parts.home) if shows(scopes, one.owner)][:limit]

    def ledger_scope(self, name: str) -> str:
        """Whose a ledger is."""
        task, session = self.task(name), self.session(name)
        last = self.events(name, last=1) if task is None else []
        return ledger_owner(name, task, session, last[0].scope if last else "")

    # -- upkeep

    @property
    def warnings(self) -> list[str]:
        """What the owner should hear of."""
        return self.parts.warnings

    def new_token(self, size: int) -> str:
        """Random hex digits."""
        return self.parts.token(size)

    @property
    def paused(self) -> bool:
        """Whether the owner has paused learning and injection."""
        return state.is_paused(self.parts.home)

    def pause(self, paused: bool) -> None:
        """Begin or end a pause."""
        state.pause(self.parts.home, paused)

    @healing
    def sync_team(self, folder: Path, *, again: bool = False) -> SyncReport:
        """Take in what a team store holds; `again` reads files anew because their trust changed."""
        with self.parts.lock.held(self._deadline):
            self._finish(ledger="")
            if again:
                with self.parts.index.writing():
                    file_sync.forget_stamps(self.parts, folder)
            noticed = file_sync.sync_folder(self.parts, folder)
        self._fill_vectors()
        return noticed

    @healing
    def reembed(self, progress: Progress = lambda *_: None) -> int:
        """Make all vectors anew with this process's embedder, beside the old ones until complete."""
        from engram.store.files.vector_generations import reembed

        return reembed(self.parts, self._deadline, progress)

    def build_nearest(self, progress: Progress = lambda *_: None) -> str:
        """Files are searched exactly, in milliseconds."""
        raise InvalidInput(
            "a store of files compares every vector, exactly and in milliseconds; --nearest is for Postgres"
        )

    @healing
    def purge(self, ids: Sequence[str], *, actor: str, drawn: Collection[str] = ()) -> Purged:
        """Destroy memories and events, and prove it."""
        self.screen.decision(actor, "", "")
        with self.parts.lock.held(self._deadline):
            self._finish()
            purged = purging.purge(self.parts, ids, actor, drawn)
            with contextlib.suppress(OSError):
                # A power loss must not bring back what was destroyed.
                sync_folders(self.parts.home)
            return purged

    @healing
    def prune(self, now: datetime, journal: int, usage: int, ledger: int, *, dry_run: bool) -> Pruned:
        """Let go of history older than so many days, or say what would go."""
        from engram.store.files import retention

        make_all_durable(self.parts)
        with self.parts.lock.held(self._deadline):
            self._finish()
            return (retention.plan if dry_run else retention.prune)(self.parts, now, journal, usage, ledger)

    def backup(self, target: Path, now: datetime) -> dict[str, int]:
        """Write everything the store holds to one archive."""
        from engram.store.files.backup import backup

        return backup(self.parts.home, target, now, self.parts.warnings)

    def note_verdict(self, gate: str, outcome: str, at: datetime) -> None:
        """Count what the gates said of an autonomous proposal."""
        state.note(self.parts.home, gate, outcome, at)

    def verdicts(self, since: datetime) -> list[tuple[str, str]]:
        """Gate and outcome of the proposals since then."""
        return state.read(self.parts.home, since)

    @healing
    def verify_ledgers(self) -> list[str]:
        """What is wrong with the ledgers' chains, and with their ends as the journal has them."""
        return ledger_verification.verify(self.parts)

    @healing
    def facts(self) -> Mapping[str, Any]:
        """What `status` and `doctor` say of the store."""
        self._notice()
        return health.facts(self.parts)

    def examine(self) -> list[Check]:
        """What the files, the index and the embedder are like; changes made by hand are taken in first."""
        noticed, closed = SyncReport(), list[Check]()
        try:
            noticed = self._looked_through()
        except StoreReadOnly as error:
            closed = [health.read_only(error)]
        except StoreBusy as error:
            closed = [health.busy(error)]
        damaged = [*tasks.damage(self.parts.home), *sessions.damage(self.parts.home)]
        found = health.checks(self.facts(), [*noticed.problems, *damaged])
        return [*closed, *found, *health.missing_records(self.parts), *health.interrupted(self.parts)]
