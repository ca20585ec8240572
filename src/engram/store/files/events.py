"""Appending to a session's ledger: secrets never reach this room, digests chain the events, keys make a repeat harmless."""

import sqlite3
from collections.abc import Sequence

from engram.model.errors import StoreCorrupt, StoreError
from engram.model.event import Event
from engram.store.documents import MAX_INDEXED_CHARS, event_document, spoken
from engram.store.files import recovery, tasks
from engram.store.files.index.writing import Row
from engram.store.files.journal import Placed as PlacedEntry
from engram.store.files.ledger import encode, ledger_name
from engram.store.files.parts import KeptUp, Parts, Tail, index_entry, witness
from engram.store.files.sessions import session_scope
from engram.store.ledgers import Head, decode_event, following_on, to_fields, unrepeated
from engram.store.protocol import Following, NewEvent, no_jobs
from engram.store.tasks import refuse_closed
from engram.store.witnesses import BEGUN


def append(parts: Parts, session: str, events: Sequence[NewEvent], jobs: Following = no_jobs) -> list[Event]:
    """Write new events, return all: new ones, and for a repeated key the event it named before."""
    vectors = parts.embed([spoken(event.role, event.content[:MAX_INDEXED_CHARS]) for event in events])
    with parts.lock.held():
        tail = recovery.catch_up(parts, ledger=ledger_name(session))
        task = tasks.load_task(parts.home, session)
        refuse_closed(task)
        scope = task.scope if task is not None else session_scope(parts.home, session)
        known = _known_keys(parts, session, events)
        fresh = unrepeated(events, known)
        if not fresh:
            return [known[event.key] for event in events]
        head, tail = _end_of(parts, session, tail)
        new = following_on(head, session, [events[i] for i in fresh], parts.token)
        # A job without its events finds nothing to do; events without their job would wait for nobody.
        tasks.enqueue(parts.home, jobs(new))
        records = [to_fields(event) for event in new]
        name, size = parts.ledger.append_turn(session, [encode(record) for record in records], new[-1])
        told = _anchored(parts, session, new[-1], tail)
        written = dict(zip(fresh, new, strict=True))
        by_key = known | {event.key: event for event in new if event.key}
        result = [written[i] if i in written else by_key[event.key] for i, event in enumerate(events)]
        try:
            with parts.index.writing() as writer:
                for (i, event), record in zip(written.items(), records, strict=True):
                    vector = vectors[i] if vectors is not None else None
                    writer.put(Row(event_document(event, scope), record, vector))
                    if event.key:
                        _note_key(parts, event)
                parts.index.db.execute("INSERT OR REPLACE INTO ledgers (name, size) VALUES (?, ?)", (name, size))
                if told is not None:
                    index_entry(parts, told)
        except (sqlite3.DatabaseError, OSError) as error:
            raise NotIndexed(error, result) from error
        parts.kept_up = KeptUp(parts.index.db, Tail(told.end, told.entry.seq), name, size) if told else None
    return result


def _end_of(parts: Parts, session: str, tail: Tail) -> tuple[Head, Tail]:
    """Where a ledger ends by its own file, which must not end before what the journal has seen of it."""
    head, told = parts.ledger.head(session), parts.anchors.told(session)
    if told is not None and _ends_before(head, told):
        raise StoreCorrupt(
            f"{parts.ledger.path(session)} ends at event {head.seq}, and event {told.seq} was written to it; nothing was "
            "written. Restore the file from a backup, or go on in another session or task; `engram ledger verify` says more"
        )
    if told is None and not head.seq:
        # Before the first event: a ledger of which the journal knows nothing is then one that was tampered with.
        placed = witness(parts, session, Head(0, BEGUN), tail, durably=True)
        tail = Tail(placed.end, placed.entry.seq)
    return head, tail


def _ends_before(head: Head, told: Head) -> bool:
    return head.seq < told.seq or (head.seq == told.seq > 0 and head.digest != told.digest)


def _anchored(parts: Parts, session: str, head: Event, tail: Tail) -> PlacedEntry | None:
    """Tell the journal where the ledger ends, so that a tail that is cut off later shows. The events stand without it."""
    try:
        return witness(parts, session, Head(head.seq, head.digest), tail, durably=False)
    except StoreError as error:
        parts.warnings.append(f"the end of the ledger {session} is not in the journal: {error}")
        return None


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


def of_ledger(parts: Parts, session: str, last: int | None = None, after: int = 0) -> list[Event]:
    """A ledger's events in order: those after a number, and of these the last so many."""
    rows = parts.index.all("events_of", session, after, -1 if last is None else last)
    return [decode_event(record) for (record,) in reversed(rows)]
