"""Appending to a session's ledger: secrets never reach this room, digests chain the events, keys make a repeat harmless."""

import sqlite3
from collections.abc import Sequence

from engram.model.errors import StoreError
from engram.model.event import Event
from engram.store.documents import MAX_INDEXED_CHARS, event_document, spoken
from engram.store.files import recovery
from engram.store.files.index.writing import Row
from engram.store.files.parts import Parts
from engram.store.files.sessions import session_scope
from engram.store.ledgers import decode_event, following_on, to_fields, unrepeated
from engram.store.protocol import NewEvent


def append(parts: Parts, session: str, events: Sequence[NewEvent]) -> list[Event]:
    """Write new events, return all: new ones, and for a repeated key the event it named before."""
    scope = session_scope(parts.home, session)
    vectors = parts.embed([spoken(event.role, event.content[:MAX_INDEXED_CHARS]) for event in events])
    with parts.lock.held():
        recovery.catch_up(parts, ledger=parts.ledger.path(session).name)
        known = _known_keys(parts, session, events)
        fresh = unrepeated(events, known)
        if not fresh:
            return [known[event.key] for event in events]
        new = _chain(parts, session, [events[i] for i in fresh])
        name, size = parts.ledger.append(session, new)
        written = dict(zip(fresh, new, strict=True))
        by_key = known | {event.key: event for event in new if event.key}
        result = [written[i] if i in written else by_key[event.key] for i, event in enumerate(events)]
        try:
            with parts.index.writing() as writer:
                for i, event in written.items():
                    vector = vectors[i] if vectors is not None else None
                    writer.put(Row(event_document(event, scope), to_fields(event), vector))
                    if event.key:
                        _note_key(parts, event)
                parts.index.db.execute("INSERT OR REPLACE INTO ledgers (name, size) VALUES (?, ?)", (name, size))
        except (sqlite3.DatabaseError, OSError) as error:
            raise NotIndexed(error, result) from error
    return result


class NotIndexed(StoreError):
    """The events are in the ledger, durably; only the index did not take them. Appending again would double them."""

    def __init__(self, error: sqlite3.DatabaseError | OSError, events: list[Event]) -> None:
        super().__init__(f"the events are kept; the index could not be updated: {error}")
        self.error, self.events = error, events


def _known_keys(parts: Parts, session: str, events: Sequence[NewEvent]) -> dict[str, Event]:
    known: dict[str, Event] = {}
    for key in dict.fromkeys(event.key for event in events if event.key):
        row = parts.index.db.execute("SELECT id FROM keys WHERE session = ? AND key = ?", (session, key)).fetchone()
        event = find(parts, row[0]) if row else None
        if event is not None:
            known[key] = event
    return known


def _chain(parts: Parts, session: str, events: Sequence[NewEvent]) -> list[Event]:
    row = parts.index.db.execute(
        "SELECT r.record FROM docs d JOIN records r ON r.n = d.n WHERE d.parent = ? AND d.parent <> '' ORDER BY d.position DESC LIMIT 1",
        (session,),
    ).fetchone()
    head = decode_event(row[0]) if row else None
    return following_on(head, session, events, parts.token)


def _note_key(parts: Parts, event: Event) -> None:
    parts.index.db.execute(
        "INSERT OR IGNORE INTO keys (session, key, id) VALUES (?, ?, ?)", (event.session, event.key, event.id)
    )


def find(parts: Parts, event_id: str) -> Event | None:
    """An event by id."""
    row = parts.index.db.execute(
        "SELECT r.record FROM docs d JOIN records r ON r.n = d.n WHERE d.id = ? AND d.kind = 'event'", (event_id,)
    ).fetchone()
    return decode_event(row[0]) if row else None


def of_session(parts: Parts, session: str) -> list[Event]:
    """A session's events, in order."""
    rows = parts.index.db.execute(
        "SELECT r.record FROM docs d JOIN records r ON r.n = d.n WHERE d.parent = ? AND d.parent <> '' AND d.kind = 'event' ORDER BY d.position",
        (session,),
    )
    return [decode_event(record) for (record,) in rows]
