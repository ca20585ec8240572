"""A session's ledger: events chained under its head's lock, keys that make a repeat harmless."""

import json
from collections.abc import Sequence
from itertools import groupby

from engram.model.event import Event, Session
from engram.model.task import Job
from engram.rules.scopes import GLOBAL
from engram.store.documents import MAX_INDEXED_CHARS, event_document, spoken
from engram.store.ledgers import (
    ANCHOR,
    anchor_of,
    decode_event,
    following_on,
    missing_events,
    problems_of,
    to_fields,
    unrepeated,
)
from engram.store.postgres.database import Connection
from engram.store.postgres.parts import Parts
from engram.store.postgres.sql import statement
from engram.store.postgres.task_keeping import held_task, job_columns
from engram.store.postgres.writing import Row, Work, dumped, put_documents
from engram.store.protocol import Following, NewEvent, no_jobs
from engram.store.tasks import refuse_closed


def append(parts: Parts, session: str, events: Sequence[NewEvent], jobs: Following = no_jobs) -> list[Event]:
    """Write new events, return all: new ones, and for a repeated key the event it named before."""
    scope = session_scope(parts, session)
    vectors = parts.embed([spoken(event.role, event.content[:MAX_INDEXED_CHARS]) for event in events])
    with parts.database.transaction() as connection:
        refuse_closed(held_task(parts, connection, session, "share_task"))
        ((seq, _),) = parts.database.within(connection, statement("lock_ledger"), {"session": session})
        keys = [event.key for event in events if event.key]
        rows = parts.database.within(connection, statement("events_by_key"), {"session": session, "keys": keys})
        known = {key: decode_event(record) for key, record in rows}
        fresh = unrepeated(events, known)
        new = following_on(_head(parts, connection, session, seq), session, [events[i] for i in fresh], parts.token)
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


def _head(parts: Parts, connection: Connection, session: str, seq: int) -> Event | None:
    rows = parts.database.within(connection, statement("event_at"), {"session": session, "seq": seq}) if seq else []
    return decode_event(rows[0][0]) if rows else None


def _write(parts: Parts, connection: Connection, session: str, new: Sequence[Event], jobs: Sequence[Job]) -> None:
    values = {
        "session": session,
        "ids": [event.id for event in new],
        "seqs": [event.seq for event in new],
        "keys": [event.key for event in new],
        "records": [dumped(to_fields(event)) for event in new],
    }
    head = {"session": session, "seq": new[-1].seq, "digest": new[-1].digest}
    ((seq,),) = parts.database.within(connection, statement("next_decision"), {})
    anchor = {"seq": seq, "at": parts.clock(), "op": ANCHOR, "actor": "engram", "reason": anchor_of(new[-1])}
    work: Work = [("put_events", values), ("move_head", head)]
    work.append(("put_decision", {**anchor, "session": session, "ids": []}))
    work += [("put_jobs", job_columns(jobs))] if jobs else []
    parts.database.all_of(connection, work)


def find(parts: Parts, event_id: str) -> Event | None:
    """An event by id."""
    rows = parts.database.run("event", id=event_id)
    return decode_event(rows[0][0]) if rows else None


def of_ledger(parts: Parts, session: str, last: int | None = None, after: int = 0) -> list[Event]:
    """A ledger's events in order: those after a number, and of these the last so many."""
    rows = parts.database.run("events_of", session=session, after=after, limit=last)
    return [decode_event(record) for (record,) in reversed(rows)]


def verify(parts: Parts) -> list[str]:
    """What is wrong with the chains: altered, reordered or dropped events."""
    problems: list[str] = []
    after = ""
    while rows := parts.database.run("ledgers", after=after):
        for session, seq, digest in rows:
            events = of_ledger(parts, session)
            problems += problems_of(events, session)
            last = events[-1] if events else None
            if last is None or (last.seq, last.digest) != (seq, digest):
                problems.append(f"{session}: the ledger ends at {last.seq if last else 0} where {seq} was written")
        after = rows[-1][0]
    return problems + _unwitnessed(parts)


def _unwitnessed(parts: Parts) -> list[str]:
    """What the journal saw written and the tables no longer hold."""
    problems: list[str] = []
    for session, rows in groupby(parts.database.run("anchors"), key=lambda row: str(row[0])):
        told = {anchor: digest for _, anchor, digest in rows}
        counts = {anchor: anchor.partition(" ")[0] for anchor in told}
        standing = {int(counts[anchor]): digest for anchor, digest in told.items() if counts[anchor].isdigit()}
        problems += missing_events(session, told, standing.get)
    return problems


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
