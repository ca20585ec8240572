"""The Postgres store's ledgers, sessions, tasks, checkpoints, jobs and small states.

Events are chained under a lock on the ledger's head; keys make repeated appends harmless.
"""

import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any, cast

from engram.model.errors import NotFound, StoreCorrupt
from engram.model.records import Checkpoint, Event, Job, Session, TaskRun
from engram.rules.scopes import GLOBAL
from engram.store.documents import MAX_INDEXED_CHARS, event_document, event_text
from engram.store.intake import MAX_SCREENED_EVENTS, JobFactory, NewEvent, Screen, no_jobs, screen_jobs
from engram.store.ledger import (
    FIRST_LINK,
    LEDGER_OP,
    NO_HEAD,
    REDACT_OP,
    Head,
    broken_links,
    chain_problems,
    chained_events,
    checked_event,
    checkpoint_text,
    decode_event,
    ledger_owner,
    link_to,
    missing_events,
    new_owner,
    new_positions,
    redaction_text,
    to_fields,
    without_checkpoint,
)
from engram.store.postgres.database import TenantContext
from engram.store.postgres.search import Statistics
from engram.store.postgres.sql import statement
from engram.store.postgres.transaction import DocumentRow, Work, to_json, write_documents
from engram.store.protocol import ListedT, LoadedT
from engram.store.scopes import LINKS_STATE
from engram.store.states import (
    PAUSE_STATE,
    StateChange,
    StateValue,
    apply_change,
    checked_name,
    from_text,
    spending_day,
    to_text,
)
from engram.store.tasks import (
    LONGEST_WAIT,
    from_record_fields,
    has_same_lease,
    lease_job,
    refuse_closed,
    refuse_ended,
    tasks_named,
    to_record_fields,
)

LINKS_SECONDS = 5.0
"""How long links between scopes are cached, because every read needs them."""


class PostgresTaskStore:
    """Tasks, checkpoints, jobs and small states of a tenant."""

    context: TenantContext
    screen: Screen
    _links: tuple[float, StateValue] | None = None

    def load_record(self, kind: type[LoadedT], record_id: str) -> LoadedT | None:
        """A session or task by id."""
        rows = self.context.database.run("session" if kind is Session else "task", id=record_id)
        found = (session_of(rows[0]) if kind is Session else _task(rows[0][0])) if rows else None
        return cast("LoadedT | None", found)

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
        run, seen = self.context.database.run, {"scopes": list(scopes or ()), "limit": limit}
        found: Sequence[Session | TaskRun | Checkpoint | Job]
        if kind is Session:
            found = [session_of(row) for row in run("sessions", any=scopes is None, **seen)]
        elif kind is Checkpoint:
            rows = run("checkpoints", task=of, limit=limit)
            found = [from_record_fields(Checkpoint, json.loads(record)) for (record,) in rows]
        elif kind is Job:
            wanted = {"any": statuses is None, "statuses": list(statuses or ()), "everyone": scopes is None}
            found = [_job(record) for (record,) in run("jobs", **wanted, **seen)]
        elif statuses is None:
            found = [_task(record) for (record,) in run("tasks", any=scopes is None, **seen)]
        else:
            rows = run("tasks_in", statuses=list(statuses), any=scopes is None, **seen)
            found = [_task(record) for (record,) in rows]
        return cast("list[ListedT]", found)

    def save_record(self, record: Session | TaskRun) -> None:
        """Create or update a session, or write a new task."""
        if isinstance(record, Session):
            self.context.database.run("save_session", **session_values(self.screen.session(record)))
        else:
            self.context.database.run("put_task", **task_values(self.screen.task(record)))

    def change_task(self, task_id: str, change: Callable[[TaskRun], TaskRun]) -> TaskRun:
        """Change a task under its row lock; returns it changed."""
        database = self.context.database
        with database.transaction():
            task = locked_task(self.context, task_id, "lock_task")
            if task is None:
                raise NotFound(f"no task {task_id!r}; `engram task list` shows what there is")
            changed = self.screen.task(change(task), task)
            if changed != task:
                database.run("put_task", **task_values(changed))
        return changed

    def add_checkpoint(self, task_id: str, make: Callable[[int], Checkpoint]) -> Checkpoint:
        """Append the checkpoint that `make` returns for the next number, under the task's row lock."""
        database = self.context.database
        with database.transaction():
            locked_task(self.context, task_id, "lock_task")
            ((last,),) = database.run("last_checkpoint", task=task_id)
            made = self.screen.checkpoint(make(last + 1))
            database.run("put_checkpoint", **checkpoint_values(made))
        return made

    def change_checkpoints(self, task_id: str, change: Callable[[Checkpoint], Checkpoint]) -> None:
        """Rewrite every checkpoint of a task, under its row lock."""
        database = self.context.database
        with database.transaction():
            locked_task(self.context, task_id, "lock_task")
            rows = database.run("checkpoints", task=task_id, limit=None)
            changed = [change(from_record_fields(Checkpoint, json.loads(record))) for (record,) in rows]
            columns = [checkpoint_values(checkpoint) for checkpoint in changed]
            database.run_all([("blank_checkpoint", {"id": task_id, **values}) for values in columns])

    def enqueue(self, jobs: Sequence[Job]) -> None:
        """Add jobs; existing ones are left unchanged."""
        if jobs:
            self.context.database.run("put_jobs", **job_columns([self.screen.job(job) for job in jobs]))

    def lease_jobs(
        self, owner: str, now: datetime, until: datetime, *, kinds: tuple[str, ...] | None = None, limit: int = 1
    ) -> list[Job]:
        """Lease jobs that are due, oldest first."""
        database = self.context.database
        ahead = now + LONGEST_WAIT
        wanted = {"now": now, "ahead": ahead, "any": kinds is None, "kinds": list(kinds or ()), "limit": limit}
        with database.transaction():
            found = [_job(record) for (record,) in database.run("due_jobs", **wanted)]
            taken = [lease_job(job, owner, until) for job in found]
            database.run_all([("change_job", _job_values(job)) for job in taken])
        return taken

    def settle_job(self, job: Job, then: Job | None) -> bool:
        """End a lease: remove the job, or replace it by `then`."""
        database = self.context.database
        with database.transaction():
            rows = database.run("lock_job", id=job.id)
            if not has_same_lease(_job(rows[0][0]) if rows else None, job):
                return False
            work: Work = (
                [("drop_job", {"id": job.id})]
                if then is None
                else [("change_job", _job_values(self.screen.job(then, job)))]
            )
            database.run_all(work)
        return True

    def state(self, name: str) -> Mapping[str, Any]:
        """A state's value; the links between scopes may be a few seconds old."""
        run = self.context.database.run
        if name == PAUSE_STATE:
            self.context.settings.refresh()
            return {"paused": True} if self.context.settings.get("paused", False) else {}
        if (day := spending_day(name)) is not None:
            rows = run("tokens_spent", day=day)
            return {"tokens": max(0, int(rows[0][0])) if rows else 0}
        now = time.monotonic()
        if name == LINKS_STATE and self._links is not None and now - self._links[0] <= LINKS_SECONDS:
            return self._links[1]
        rows = run("state", name=checked_name(name))
        found = from_text(rows[0][0]) if rows else {}
        if name == LINKS_STATE:
            self._links = now, found
        return found

    def change_state(self, name: str, change: StateChange) -> Mapping[str, Any]:
        """Change a state under its row lock; returns its new value. Tokens are added up without one."""
        database = self.context.database
        if name == PAUSE_STATE:
            after = apply_change(dict(self.state(name)), change)
            with database.transaction():
                self.context.settings.set(paused=bool(after) or None)
            return after
        if (day := spending_day(name)) is not None:
            before = dict(self.state(name))
            after = apply_change(before, change)
            database.run("spend_tokens", day=day, tokens=after["tokens"] - before["tokens"])
            return after
        return self._change_stored(self.screen.state(checked_name(name)), change)

    def _change_stored(self, name: str, change: StateChange) -> StateValue:
        self._links, database = None, self.context.database
        with database.transaction():
            ((stored,),) = database.run("lock_state", name=name, value=to_text({}))
            before = from_text(stored)
            after = apply_change(before, change)
            if not after:
                database.run("drop_state", name=name)
            elif after != before:
                database.run("put_state", name=name, value=to_text(after))
        return after

    def states(self, prefix: str) -> list[str]:
        """The names of states."""
        return [name for (name,) in self.context.database.run("state_names", prefix=prefix)]


def locked_task(context: TenantContext, task_id: str, lock: str) -> TaskRun | None:
    """A task, locked by the named statement; None if there is none."""
    rows = context.database.run(lock, id=task_id)
    return _task(rows[0][0]) if rows else None


def session_values(session: Session) -> dict[str, object]:
    """The columns of a session."""
    return {
        "id": session.id,
        "task": session.task,
        "scopes": list(session.scopes),
        "started": session.started,
        "ended": session.ended,
        "summary": session.summary,
        "through": session.summary_through,
        "style": session.summary_style,
        "by": session.summary_by,
    }


def session_of(row: tuple[object, ...]) -> Session:
    """A session from its row."""
    session_id, task, scopes, *rest = row
    return Session(session_id, task, tuple(scopes), *rest)  # type: ignore[arg-type]


def task_values(task: TaskRun) -> dict[str, object]:
    """The columns of a task."""
    return {"id": task.id, "status": task.status, "created": task.created, "record": to_json(to_record_fields(task))}


def checkpoint_values(checkpoint: Checkpoint) -> dict[str, object]:
    """The columns of a checkpoint."""
    return {"task": checkpoint.task, "number": checkpoint.number, "record": to_json(to_record_fields(checkpoint))}


def job_columns(jobs: Sequence[Job]) -> dict[str, object]:
    """Jobs as columns."""
    return {
        "ids": [job.id for job in jobs],
        "kinds": [job.kind for job in jobs],
        "statuses": [job.status for job in jobs],
        "run_afters": [job.run_after for job in jobs],
        "leases": [job.leased_until for job in jobs],
        "records": [to_json(to_record_fields(job)) for job in jobs],
    }


def _job_values(job: Job) -> dict[str, object]:
    return {
        "id": job.id,
        "status": job.status,
        "run_after": job.run_after,
        "leased_until": job.leased_until,
        "record": to_json(to_record_fields(job)),
    }


def _task(record: str) -> TaskRun:
    return from_record_fields(TaskRun, json.loads(record))


def _job(record: str) -> Job:
    return from_record_fields(Job, json.loads(record))


class PostgresLedger:
    """The events and sessions of a tenant."""

    context: TenantContext
    screen: Screen
    _statistics: Statistics

    def append_events(
        self, session: str, new: Sequence[NewEvent], jobs: JobFactory = no_jobs, *, scope: str = ""
    ) -> list[Event]:
        """Append to a ledger."""
        kept = self.screen.events(session, new, lambda: self.events(session, last=MAX_SCREENED_EVENTS), scope=scope)
        appended = append(self.context, session, kept, screen_jobs(self.screen, jobs), scope)
        self._statistics.note_written(len(new))
        return appended

    def event(self, event_id: str) -> Event | None:
        """An event by id."""
        rows = self.context.database.run("event", id=event_id)
        return decode_event(rows[0][0]) if rows else None

    def events(self, session: str, *, last: int | None = None, after: int = 0) -> list[Event]:
        """A ledger's events in order: those after a number, and of these the last `last`."""
        rows = self.context.database.run("events_of", session=session, after=after, limit=last)
        return [decode_event(record) for (record,) in reversed(rows)]

    def ledgers(self) -> list[str]:
        """The name of every ledger that has events."""
        return sorted(session for session, head in heads(self.context) if head.seq)

    def verify_ledgers(self) -> list[str]:
        """The problems in the ledgers' chains."""
        return verify(self.context)


def checkpoint_entry(context: TenantContext, session: str, head: Head) -> tuple[str, dict[str, Any]]:
    """The statement that writes a ledger's checkpoint to the journal.

    It links to the newest committed checkpoint; writers to different ledgers do not wait for each other.
    """
    # A sequence belongs to no shard, so it is a separate statement; both take one round trip.
    ((seq,),), newest = context.database.fetch_results(
        [(statement("next_decision"), {}), (statement("newest_anchor"), {})]
    )
    link = link_to(*newest[0]) if newest else FIRST_LINK
    entry = {"op": LEDGER_OP, "actor": "engram", "reason": checkpoint_text(head, link), "session": session}
    return "put_decision", {"seq": seq, "at": context.clock(), "ids": [], **entry}


def redaction_entries(context: TenantContext, events: Iterable[Event], actor: str) -> list[tuple[str, dict[str, Any]]]:
    """The statements that record in the journal which events' content is destroyed."""
    ordered = sorted((event for event in events if event.salt), key=lambda event: event.session)
    work = []
    for session, redacted in groupby(ordered, key=lambda event: event.session):
        ((seq,),) = context.database.run("next_decision")
        reason = redaction_text(event.id for event in redacted)
        entry = {"op": REDACT_OP, "actor": actor, "reason": reason, "session": session}
        work.append(("put_decision", {"seq": seq, "at": context.clock(), "ids": [], **entry}))
    return work


def append(
    context: TenantContext, session: str, events: Sequence[NewEvent], jobs: JobFactory = no_jobs, scope: str = ""
) -> list[Event]:
    """Write new events. Returns one for each given: the new one, or the existing one for a repeated key."""
    vectors = context.embed([event_text(event.role, event.content[:MAX_INDEXED_CHARS]) for event in events])
    with context.database.transaction():
        task = locked_task(context, session, "share_task")
        refuse_closed(task)
        for named in tasks_named(session, events):
            refuse_closed(locked_task(context, named, "share_task"))
        ((seq, digest),) = context.database.run("lock_ledger", session=session)
        last = _last(context, session, Head(seq, digest))
        kept = _load_session(context, session) if task is None else None
        refuse_ended(kept)
        scope = new_owner(session, ledger_owner(session, task, kept, last.scope if last else ""), scope)
        keys = [event.key for event in events if event.key]
        rows = context.database.run("events_by_key", session=session, keys=keys)
        known = {key: decode_event(record) for key, record in rows}
        fresh = new_positions(events, known)
        head = Head(last.seq, last.digest) if last else NO_HEAD
        new = chained_events(head, session, [events[i] for i in fresh], context.token, scope)
        if new:
            _write(context, session, new, jobs(new))
            documents = [
                DocumentRow(event_document(event, scope), vectors[i] if vectors is not None else None)
                for i, event in zip(fresh, new, strict=True)
            ]
            write_documents(context.database, documents, context.settings.generation)
    written = dict(zip(fresh, new, strict=True))
    by_key = known | {event.key: event for event in new if event.key}
    return [written[i] if i in written else by_key[event.key] for i, event in enumerate(events)]


def _last(context: TenantContext, session: str, head: Head) -> Event | None:
    """A ledger's last event; raises `StoreCorrupt` unless it is the one named by its head."""
    if not head.seq:
        return None
    rows = context.database.run("event_at", session=session, seq=head.seq)
    last = decode_event(rows[0][0]) if rows else None
    if last is None or last.digest != head.digest:
        raise StoreCorrupt(
            f"event {head.seq}, the last of the ledger {session}, is missing or was altered; nothing was written. Restore the "
            "database from a backup, or continue in another session or task; `engram ledger verify` gives details"
        )
    return last


def _load_session(context: TenantContext, session: str) -> Session | None:
    rows = context.database.run("session", id=session)
    return session_of(rows[0]) if rows else None


def _write(context: TenantContext, session: str, new: Sequence[Event], jobs: Sequence[Job]) -> None:
    values = {
        "session": session,
        "ids": [event.id for event in new],
        "seqs": [event.seq for event in new],
        "keys": [event.key for event in new],
        "records": [to_json(to_fields(event)) for event in new],
    }
    head = Head(new[-1].seq, new[-1].digest)
    work: Work = [("put_events", values), ("move_head", {"session": session, **head._asdict()})]
    work.append(checkpoint_entry(context, session, head))
    work += [("put_jobs", job_columns(jobs))] if jobs else []
    context.database.run_all(work)


def heads(context: TenantContext) -> Iterator[tuple[str, Head]]:
    """The head of each ledger."""
    after = ""
    while rows := context.database.run("ledgers", after=after):
        yield from ((session, Head(seq, digest)) for session, seq, digest in rows)
        after = rows[-1][0]


def session_scope(context: TenantContext, session_id: str) -> str:
    """The scope of events that do not have their own: their task's, else their session's first, else global."""
    return ledger_owner(session_id, *_owners(context, session_id)) or GLOBAL


def _owners(context: TenantContext, ledger: str) -> tuple[TaskRun | None, Session | None]:
    """The task and the session that own a ledger."""
    tasks, sessions = context.database.run("task", id=ledger), context.database.run("session", id=ledger)
    task = from_record_fields(TaskRun, json.loads(tasks[0][0])) if tasks else None
    return task, session_of(sessions[0]) if sessions else None


def verify(context: TenantContext) -> list[str]:
    """The problems of every ledger."""
    run = context.database.run
    redacted = frozenset(event_id for (reason,) in run("redactions") for event_id in reason.split())
    ends = {
        session: {reason: digest for _, reason, digest in rows}
        for session, rows in groupby(run("anchors"), key=lambda row: str(row[0]))
    }
    problems: list[str] = []
    for session, head in _heads(context):
        problems += _of_ledger(context, session, head, list(ends.get(session, ())), redacted)
    for session, checkpoints in ends.items():
        counts = {reason: reason.partition(" ")[0] for reason in checkpoints}
        digests = {int(counts[reason]): digest for reason, digest in checkpoints.items() if counts[reason].isdigit()}
        problems += missing_events(session, checkpoints, digests.get)
    return problems + broken_links((session, reason) for session, reason in run("linked_checkpoints"))


def _heads(context: TenantContext) -> Iterator[tuple[str, Head]]:
    yield from heads(context)
    yield from ((session, NO_HEAD) for (session,) in context.database.run("headless"))


def _of_ledger(
    context: TenantContext, session: str, head: Head, ends: list[str], redacted: frozenset[str]
) -> list[str]:
    found: list[Event] = []
    problems: list[str] = []
    for event_id, seq, key, record in context.database.run("rows_of", session=session):
        event, wrong = checked_event(record)
        if (event.id, event.seq, event.key, event.session) != (event_id, seq, key, session):
            wrong = f"event {event_id} is in the place of event {event.seq} of {event.session}"
        problems += [f"{session}: {wrong}"] if wrong else []
        found.append(event)
    problems += chain_problems(found, session, redacted) + without_checkpoint(session, found, ends)
    last = Head(found[-1].seq, found[-1].digest) if found else NO_HEAD
    if last != head:
        problems.append(f"{session}: the ledger ends at event {last.seq}, but {head.seq} were written")
    return problems
