"""A session's ledger: events chained under its head's lock, keys that make a repeat harmless."""

import json
from collections.abc import Iterator, Sequence

from engram.model.errors import StoreCorrupt
from engram.model.event import Event, Session
from engram.model.task import Job
from engram.rules.scopes import GLOBAL
from engram.store.documents import MAX_INDEXED_CHARS, event_document, spoken
from engram.store.ledgers import NO_HEAD, Head, decode_event, following_on, to_fields, unrepeated
from engram.store.postgres.database import Connection
from engram.store.postgres.parts import Parts
from engram.store.postgres.sql import statement
from engram.store.postgres.task_keeping import held_task, job_columns
from engram.store.postgres.witnessing import witness
from engram.store.postgres.writing import Row, Work, dumped, put_documents
from engram.store.protocol import Following, NewEvent, no_jobs
from engram.store.tasks import refuse_closed


def append(parts: Parts, session: str, events: Sequence[NewEvent], jobs: Following = no_jobs) -> list[Event]:
    """Write new events, return all: new ones, and for a repeated key the event it named before."""
    scope = session_scope(parts, session)
    vectors = parts.embed([spoken(event.role, event.content[:MAX_INDEXED_CHARS]) for event in events])
    with parts.database.transaction() as connection:
        refuse_closed(held_task(parts, connection, session, "share_task"))
        ((seq, digest),) = parts.database.within(connection, statement("lock_ledger"), {"session": session})
        keys = [event.key for event in events if event.key]
        rows = parts.database.within(connection, statement("events_by_key"), {"session": session, "keys": keys})
        known = {key: decode_event(record) for key, record in rows}
        fresh = unrepeated(events, known)
        head = _checked_head(parts, connection, session, Head(seq, digest))
        new = following_on(head, session, [events[i] for i in fresh], parts.token)
        if new:
            _write(parts, connection, session, new, jobs(new))
            documents = [
                Row(event_document(event, scope), vectors[i] if vectors is not None else None)
                for i, event in zip(fresh, new, strict=True)
            ]
            put_documents(parts.database, connection, documents, parts.facts.generation)
    written = dict(zip(fresh, new, strict=True))
    by_key = known | {event.key: event for event in new if event.key}
    return [written[i] if i in written else by_key[event.key] for i, event in enumerate(events)]


def _checked_head(parts: Parts, connection: Connection, session: str, head: Head) -> Head:
    """Where a ledger ends: its last event must be the one that its head speaks of."""
    if not head.seq:
        return NO_HEAD
    rows = parts.database.within(connection, statement("event_at"), {"session": session, "seq": head.seq})
    if not rows or decode_event(rows[0][0]).digest != head.digest:
        raise StoreCorrupt(
            f"event {head.seq}, the last one of the ledger {session}, is not there as it was; nothing was written. Restore the "
            "database from a backup, or go on in another session or task; `engram ledger verify` says more"
        )
    return head


def _write(parts: Parts, connection: Connection, session: str, new: Sequence[Event], jobs: Sequence[Job]) -> None:
    values = {
        "session": session,
        "ids": [event.id for event in new],
        "seqs": [event.seq for event in new],
        "keys": [event.key for event in new],
        "records": [dumped(to_fields(event)) for event in new],
    }
    head = Head(new[-1].seq, new[-1].digest)
    work: Work = [("put_events", values), ("move_head", {"session": session, **head._asdict()})]
    work.append(witness(parts, connection, session, head))
    work += [("put_jobs", job_columns(jobs))] if jobs else []
    parts.database.all_of(connection, work)


def heads(parts: Parts) -> Iterator[tuple[str, Head]]:
    """Where each ledger ends, as its head says."""
    after = ""
    while rows := parts.database.run("ledgers", after=after):
        yield from ((session, Head(seq, digest)) for session, seq, digest in rows)
        after = rows[-1][0]


def find(parts: Parts, event_id: str) -> Event | None:
    """An event by id."""
    rows = parts.database.run("event", id=event_id)
    return decode_event(rows[0][0]) if rows else None


def of_ledger(parts: Parts, session: str, last: int | None = None, after: int = 0) -> list[Event]:
    """A ledger's events in order: those after a number, and of these the last so many."""
    rows = parts.database.run("events_of", session=session, after=after, limit=last)
    return [decode_event(record) for (record,) in reversed(rows)]


def save_session(parts: Parts, session: Session) -> None:
    """Create or update a session."""
    parts.database.change(
        "save_session",
        id=session.id,
        task=session.task,
        scopes=list(session.scopes),
        started=session.started,
        ended=session.ended,
        summary=session.summary,
        through=session.summary_through,
        style=session.summary_style,
        by=session.summary_by,
    )


def load_session(parts: Parts, session_id: str) -> Session | None:
    """A session, or None."""
    rows = parts.database.run("session", id=session_id)
    return session_of(rows[0]) if rows else None


def sessions(parts: Parts, limit: int | None) -> list[Session]:
    """Sessions, newest first."""
    return [session_of(row) for row in parts.database.run("sessions", limit=limit)]


def session_of(row: tuple[object, ...]) -> Session:
    """A session from its row."""
    session_id, task, scopes, *rest = row
    return Session(session_id, task, tuple(scopes), *rest)  # type: ignore[arg-type]


def session_scope(parts: Parts, session_id: str) -> str:
    """The scope a ledger's events belong to: its task's, or its session's first, else global."""
    rows = parts.database.run("task", id=session_id)
    if rows:
        return str(json.loads(rows[0][0])["scope"])
    session = load_session(parts, session_id)
    return session.scopes[0] if session and session.scopes else GLOBAL
