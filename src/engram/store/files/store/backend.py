"""The files backend: combines home, journal, usage, ledger and index with sessions, tasks, jobs and named states.

It also reads attached team stores.
"""

import contextlib
import os
import sqlite3
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from engram.llm.spend import SpendFolder
from engram.model.errors import EngramError, InvalidInput, NotFound, Refused, StoreBusy, StoreError, StoreReadOnly
from engram.model.logs import Log
from engram.model.records import Checkpoint, Event, Job, Session, TaskRun, Use
from engram.rules.scopes import GLOBAL, is_scope_visible
from engram.store.files import memories
from engram.store.files.log.ledger import ledger_name, verify_ledgers
from engram.store.files.reconcile import hand_edits, index_state
from engram.store.files.reconcile.durability import make_all_durable, make_due_durable, sync_folders
from engram.store.files.reconcile.folders import content_digest, save_trust, team_content, trusted_digests
from engram.store.files.reconcile.index_state import IndexContext, indexed_size
from engram.store.files.reconcile.recovery import journal_task
from engram.store.files.reconcile.refresh import (
    EVENTS_LOCK_SECONDS,
    explain_error,
    is_index_damage,
    repairs_index,
    repairs_index_on_append,
)
from engram.store.files.states import named
from engram.store.files.states import named as named_states
from engram.store.files.states import work as session_files
from engram.store.files.states import work as task_files
from engram.store.files.store import health
from engram.store.files.store import purge as purging
from engram.store.files.store.health import BEGUN, CHECKPOINT
from engram.store.files.store.purge_plan import has_unfinished_purge, marked_ids
from engram.store.files.store.reader import FilesReader
from engram.store.files.store.writer import FilesTransaction, append_events, read_ledger_events
from engram.store.intake import MAX_SCREENED_EVENTS, JobFactory, NewEvent, NoScreen, Screen, no_jobs, screen_jobs
from engram.store.protocol import ListedT, LoadedT, Progress
from engram.store.reports import Check, Pruned, Purged, SyncReport, TeamFile
from engram.store.scopes import (
    decoded_settings,
    is_plain_folder,
    repository_of,
    settings_folder,
    team_folder,
    trusted_of,
)
from engram.store.states import PAUSE_STATE, StateChange, apply_change, checked_name, spending_day


class FilesWork(FilesReader):
    """The files backend's sessions, tasks, checkpoints, jobs and states."""

    screen: Screen = NoScreen()

    def load_record(self, kind: type[LoadedT], record_id: str) -> LoadedT | None:
        """A session or task by id."""
        load: Callable[..., Session | TaskRun | None] = (
            session_files.load_session if kind is Session else task_files.load_task
        )
        return cast("LoadedT | None", load(self.context.home, record_id))

    def list_records(
        self,
        kind: type[ListedT],
        *,
        of: str = "",
        statuses: Sequence[str] | None = None,
        limit: int | None = None,
        scopes: Collection[str] | None = None,
    ) -> list[ListedT]:
        """Sessions, tasks or checkpoints, newest first, or unfinished jobs, oldest first."""
        found: Sequence[Session | TaskRun | Checkpoint | Job]
        if kind is Session:
            found = [
                one for one in session_files.all_sessions(self.context.home) if is_scope_visible(scopes, one.owner)
            ]
        elif kind is Checkpoint:
            found = task_files.load_checkpoints(self.context.home, of)[::-1]
        elif kind is Job:
            found = [
                job
                for job in task_files.all_jobs(self.context.home)
                if (statuses is None or job.status in statuses) and (scopes is None or self._scope_of(job) in scopes)
            ]
        else:
            found = self._tasks(statuses, scopes)
        return cast("list[ListedT]", found[:limit])

    def _tasks(self, statuses: Sequence[str] | None, scopes: Collection[str] | None) -> list[TaskRun]:
        problems: list[str] = []
        found = [
            task
            for task in task_files.all_tasks(self.context.home, problems)
            if (statuses is None or task.status in statuses) and is_scope_visible(scopes, task.scope)
        ]
        self.context.warn(*problems)
        return sorted(found, key=lambda t: (t.created, t.id), reverse=True)

    def save_record(self, record: Session | TaskRun) -> None:
        """Create or update a session, or write a new task."""
        if isinstance(record, Session):
            session_files.save_session(self.context.home, self.screen.session(record))
            return
        kept = self.screen.task(record)
        with self.guard, self.context.lock.hold(self._deadline):
            task_files.save_task(self.context.home, kept)
            journal_task(self.context, kept.id, BEGUN)

    def change_task(self, task_id: str, change: Callable[[TaskRun], TaskRun]) -> TaskRun:
        """Change a task under the writer lock; returns it changed."""
        with self.guard, self.context.lock.hold(self._deadline):
            return task_files.change_task(self.context.home, task_id, lambda task: self.screen.task(change(task), task))

    def add_checkpoint(self, task_id: str, make: Callable[[int], Checkpoint]) -> Checkpoint:
        """Append the checkpoint that `make` gives for the next number."""
        with self.guard, self.context.lock.hold(self._deadline):
            known = task_files.load_checkpoints(self.context.home, task_id)
            made = self.screen.checkpoint(make(known[-1].number + 1 if known else 1))
            task_files.add_checkpoint(self.context.home, made)
            journal_task(self.context, task_id, f"{CHECKPOINT} {made.number}")
            return made

    def change_checkpoints(self, task_id: str, change: Callable[[Checkpoint], Checkpoint]) -> None:
        """Rewrite every checkpoint of a task."""
        with self.guard, self.context.lock.hold(self._deadline):
            task_files.change_checkpoints(self.context.home, task_id, change)

    def enqueue(self, jobs: Sequence[Job]) -> None:
        """Add jobs; one that exists already stays as it is."""
        with self.guard, self.context.lock.hold(self._deadline):
            task_files.enqueue_jobs(self.context.home, [self.screen.job(job) for job in jobs])

    def lease_jobs(
        self, owner: str, now: datetime, until: datetime, *, kinds: tuple[str, ...] | None = None, limit: int = 1
    ) -> list[Job]:
        """Take jobs that are due."""
        with self.guard, self.context.lock.hold(self._deadline):
            return task_files.lease_jobs(self.context.home, kinds, owner, now, until, limit)

    def settle_job(self, job: Job, then: Job | None) -> bool:
        """End a lease: the job is removed, or replaced by `then`."""
        with self.guard, self.context.lock.hold(self._deadline):
            return task_files.settle_job(self.context.home, job, then and self.screen.job(then, job))

    def _scope_of(self, job: Job) -> str:
        """The scope of a job's events; for an older job from its task or payload."""
        task = task_files.load_task(self.context.home, str(job.payload.get("task", "")))
        return job.scope or str(job.payload.get("scope", "")) or (task.scope if task is not None else GLOBAL)

    # -- small states by name

    def state(self, name: str) -> Mapping[str, Any]:
        """A state's value."""
        home = self.context.home
        if name == PAUSE_STATE:
            return {"paused": True} if named.is_paused(home) else {}
        if (day := spending_day(name)) is not None:
            return {"tokens": SpendFolder(home.state / "spend").tokens_spent(day)}
        return named_states.load_state(home, checked_name(name))

    def change_state(self, name: str, change: StateChange) -> Mapping[str, Any]:
        """Change a state under the writer lock; returns its new value.

        Pauses and token counts are written without the lock: they must not wait, and tokens only accumulate.
        """
        if name == PAUSE_STATE:
            after = apply_change(dict(self.state(name)), change)
            named.pause(self.context.home, bool(after))
            return after
        if (day := spending_day(name)) is not None:
            before = dict(self.state(name))
            after = apply_change(before, change)
            SpendFolder(self.context.home.state / "spend").spend_tokens(day, after["tokens"] - before["tokens"])
            return after
        kept = self.screen.state(checked_name(name))
        with self.guard, self.context.lock.hold(self._deadline):
            return named_states.change_state(self.context.home, kept, change)

    def states(self, prefix: str) -> list[str]:
        """The names of states; a warning names each file that cannot be read."""
        problems: list[str] = []
        found = named_states.list_state_names(self.context.home, prefix, problems)
        self.context.warn(*problems)
        return found


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
            noticed = hand_edits.sync_all(self.context, seconds=seconds)
        self._fill_vectors()
        return noticed

    @repairs_index
    def _sync_briefly(self) -> SyncReport:
        """Sync for a reader, which waits only briefly and leaves an interrupted purge to writers."""
        with self.context.lock.hold(EVENTS_LOCK_SECONDS):
            self._tidy()
            self._index_changes()
            noticed = hand_edits.sync_all(self.context)
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
            return index_state.uses_in(self.context.index, self.context.usage, session)
        return index_state.uses_of(self.context.index, self.context.usage, memory_ids)

    @repairs_index
    def used_since(self, position: int) -> list[str]:
        """Ids of memories used after a position."""
        return index_state.used_since(self.context.index, self.context.usage, position)

    @repairs_index
    def last_use(self, kind: str) -> Use | None:
        """The newest use of a kind, with all its ids."""
        return index_state.last_use(self.context.index, self.context.usage, kind)

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
        """Index appended events; a failure is only a warning, because they are stored, and a retry would duplicate them."""
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
        return append_events(self.context, session, new, jobs, scope)

    @repairs_index
    def events(self, session: str, *, last: int | None = None, after: int = 0) -> list[Event]:
        """A ledger's events in order."""
        name = ledger_name(session)
        if self.context.pending is None and self.context.ledger.size(name) != indexed_size(self.context.index, name):
            self._catch_up(name)
        return read_ledger_events(self.context, session, last, after)

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
                    hand_edits.forget_stamps(self.context, folder)
            noticed = hand_edits.sync_folder(self.context, folder)
        self._fill_vectors()
        return noticed

    @repairs_index
    def reembed(self, progress: Progress = lambda *_: None) -> int:
        """Recreate all vectors with this process's embedder; the old ones are used until all are done."""
        from engram.store.files.reconcile.recovery import reembed

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
        named.note_verdict(self.context.home, gate, outcome, at)

    def verdicts(self, since: datetime) -> list[tuple[str, str]]:
        """Gate and outcome of the proposals since a time."""
        return named.verdicts_since(self.context.home, since)

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
        from engram.store.files.store.health import find_drift

        return find_drift(self.context, noticed)


def attach_team(store: "FilesStore", directory: Path) -> None:
    """Attach the team store of a directory's repository; untrusted files are not used."""
    folder = team_folder(directory)
    if folder is None or str(folder) in store.context.teams:
        return
    store.context.teams.add(str(folder))
    store.sync_team_if_free(folder)
    unused = waiting_files(store.context, folder)
    if broken := sum(1 for file in unused if file.error):
        store.context.warnings.append(
            f"{folder.parent} contains {broken} file(s) that cannot be read; they are not used. `engram trust` says why."
        )
    waiting = [file for file in unused if not file.error]
    if waiting:
        store.context.warnings.append(
            f"{folder.parent} contains {len(waiting)} file(s) you have not trusted; they are not used. "
            f"Read them, then run `engram trust`."
        )


def begin_team(store: "FilesStore", directory: Path) -> Path:
    """The team store of a directory's repository, created if there is none."""
    top = repository_of(directory)
    if top is None:
        raise NotFound(f"{directory} is not in a repository; team memories are kept in a repository, next to its code")
    folder = top / ".engram" / "engrams"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreReadOnly(f"cannot create {folder}: {error.strerror}") from error
    if team_folder(directory) is None:
        raise Refused(f"{folder} is a link; team memories must stay inside their repository: replace it with a folder")
    attach_team(store, directory)
    return folder


def team_files(context: IndexContext, folder: Path) -> list[TeamFile]:
    """Every file of a team store, and the repository's settings, with their trust."""
    known = trusted_digests(context, folder)
    return [_team_file(path, known) for path in _list_team_paths(folder)]


def waiting_files(context: IndexContext, folder: Path) -> list[TeamFile]:
    """Files whose current content is not trusted."""
    return [file for file in team_files(context, folder) if not file.trusted]


def _list_team_paths(folder: Path) -> list[Path]:
    found = [config] if os.path.lexists(config := folder.parent / "config.toml") else []
    return [*found, *memories.memory_files(folder)] if is_plain_folder(folder) else found


def _team_file(path: Path, known: Container[str]) -> TeamFile:
    try:
        data = team_content(path)
        digest = content_digest(data)
        if digest in known:
            return TeamFile(path, digest, True)
        if path.suffix == ".toml":
            return TeamFile(path, digest, False, settings=decoded_settings(data, path))
        return TeamFile(path, digest, False, tuple(memories.parse(data, path)))
    except (EngramError, OSError) as error:
        return TeamFile(path, "", False, error=str(error))


def trust_team_files(store: "FilesStore", directory: Path, listed: Sequence[TeamFile] | None = None) -> list[TeamFile]:
    """Trust these files with the content they were listed with, or all as they are now; returns the newly trusted ones.

    Files trusted before stay trusted while their content is unchanged.
    """
    folder = settings_folder(directory)
    files = team_files(store.context, folder)
    new = [file for file in files if not file.trusted] if listed is None else listed
    save_trust(store.context, folder, {f.digest for f in (*files, *new) if f.digest and (f.trusted or f in new)})
    store.sync_team(folder, again=True)
    return list(new)


def distrust_team(store: "FilesStore", directory: Path) -> None:
    """Stop trusting anything in the team store."""
    folder = settings_folder(directory)
    save_trust(store.context, folder, ())
    store.sync_team(folder, again=True)
