"""Whether the ledgers are what was written: each chain by itself, its head, and what the journal witnessed of it."""

from collections.abc import Iterator
from itertools import groupby

from engram.model.event import Event
from engram.store.ledgers import NO_HEAD, Head, examined, problems_of
from engram.store.postgres import events
from engram.store.postgres.parts import Parts
from engram.store.witnesses import broken_links, missing_events, unwitnessed


def verify(parts: Parts) -> list[str]:
    """What is wrong, ledger by ledger."""
    run = parts.database.run
    redacted = frozenset(event_id for (reason,) in run("redactions") for event_id in reason.split())
    ends = {
        session: {reason: digest for _, reason, digest in rows}
        for session, rows in groupby(run("anchors"), key=lambda row: str(row[0]))
    }
    problems: list[str] = []
    for session, head in _heads(parts):
        problems += _of_ledger(parts, session, head, list(ends.get(session, ())), redacted)
    for session, told in ends.items():
        counts = {reason: reason.partition(" ")[0] for reason in told}
        standing = {int(counts[reason]): digest for reason, digest in told.items() if counts[reason].isdigit()}
        problems += missing_events(session, told, standing.get)
    return problems + broken_links((session, reason) for session, reason in run("words"))


def _heads(parts: Parts) -> Iterator[tuple[str, Head]]:
    yield from events.heads(parts)
    yield from ((session, NO_HEAD) for (session,) in parts.database.run("headless"))


def _of_ledger(parts: Parts, session: str, head: Head, ends: list[str], redacted: frozenset[str]) -> list[str]:
    found: list[Event] = []
    problems: list[str] = []
    for event_id, seq, key, record in parts.database.run("rows_of", session=session):
        event, wrong = examined(record)
        if (event.id, event.seq, event.key, event.session) != (event_id, seq, key, session):
            wrong = f"event {event_id} stands where event {event.seq} of {event.session} belongs"
        problems += [f"{session}: {wrong}"] if wrong else []
        found.append(event)
    problems += problems_of(found, session, redacted) + unwitnessed(session, found, ends)
    last = Head(found[-1].seq, found[-1].digest) if found else NO_HEAD
    if last != head:
        problems.append(f"{session}: the ledger ends at {last.seq} where {head.seq} was written")
    return problems
