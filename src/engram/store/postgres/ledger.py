"""The Postgres store's ledgers and sessions. Events are chained under a lock on the ledger's head; keys make repeats harmless."""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from engram.model.errors import StoreCorrupt
from engram.model.event import Event, Session
from engram.model.task import Job, TaskRun
from engram.rules.scopes import GLOBAL
from engram.store.documents import MAX_INDEXED_CHARS, event_document, event_text
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
from engram.store.new_events import JobFactory, NewEvent, no_jobs
from engram.store.postgres.context import TenantContext
from engram.store.postgres.search import Statistics
from engram.store.postgres.sql import statement
from engram.store.postgres.task_store import job_columns, locked_task, session_of
from engram.store.postgres.write import DocumentRow, Work, to_json, write_documents
from engram.store.screen import MAX_SCREENED_EVENTS, Screen, screen_jobs
from engram.store.tasks import from_fields, refuse_closed, refuse_ended, tasks_named


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
        """A ledger's events in order: those after a number, and of these the last so many."""
        rows = self.context.database.run("events_of", session=session, after=after, limit=last)
        return [decode_event(record) for (record,) in reversed(rows)]

    def ledgers(self) -> list[str]:
        """The name of every ledger that has events."""
        return sorted(session for session, head in heads(self.context) if head.seq)

    def verify_ledgers(self) -> list[str]:
        """What is wrong with the ledgers' chains."""
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
    """A ledger's last event; `StoreCorrupt` unless it is the one its head names."""
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
    """The scope of events that do not carry their own: their task's, else their session's first, else global."""
    return ledger_owner(session_id, *_owners(context, session_id)) or GLOBAL


def _owners(context: TenantContext, ledger: str) -> tuple[TaskRun | None, Session | None]:
    """The task and the session that a ledger belongs to."""
    tasks, sessions = context.database.run("task", id=ledger), context.database.run("session", id=ledger)
    task = from_fields(TaskRun, json.loads(tasks[0][0])) if tasks else None
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
