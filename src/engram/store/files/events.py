"""Appending to a session's ledger: secrets never reach this room, digests chain the events, keys make a repeat harmless."""

import sqlite3
from collections.abc import Sequence

from engram.model.errors import StoreCorrupt, StoreError
from engram.model.event import Event
from engram.store.files import recovery, tasks
from engram.store.files.context import StoreContext, Tail, indexed_size, witness
from engram.store.files.journal import JournalLine as PlacedEntry
from engram.store.files.journal import Position
from engram.store.files.ledger import ledger_name
from engram.store.files.pending_events import PendingEvents, is_untouched
from engram.store.files.sessions import load_session
from engram.store.ledger import Head, chained_events, decode_event, ledger_owner, new_owner, new_positions
from engram.store.ledger_checkpoints import BEGUN, parse_checkpoint
from engram.store.protocol import JobFactory, NewEvent, no_jobs
from engram.store.tasks import refuse_closed, refuse_ended, tasks_named


def append(
    parts: StoreContext, session: str, events: Sequence[NewEvent], jobs: JobFactory = no_jobs, scope: str = ""
) -> list[Event]:
    """Write new events, return all: new ones, and for a repeated key the event it named before. The index takes them in later."""
    with parts.lock.held():
        tail, told = _looked_at(parts, session, keyed=any(event.key for event in events))
        # All that the index is asked for comes first: once the events are written, nothing may be tried again.
        waiting = parts.awaiting or PendingEvents(parts.index.db, parts.index.get("journal"), is_pressing=tail.others)
        task = tasks.load_task(parts.home, session)
        refuse_closed(task)
        for named in tasks_named(session, events):
            refuse_closed(tasks.load_task(parts.home, named))
        kept = load_session(parts.home, session) if task is None else None
        refuse_ended(kept)
        scope = new_owner(session, ledger_owner(session, task, kept, parts.ledger.scope(session)), scope)
        known = _known_keys(parts, session, events)
        fresh = new_positions(events, known)
        if not fresh:
            return [known[event.key] for event in events]
        head, tail = _end_of(parts, session, tail, told)
        new = chained_events(head, session, [events[i] for i in fresh], parts.token, scope)
        # A job without its events finds nothing to do; events without their job would wait for nobody.
        tasks.enqueue(parts.home, jobs(new))
        waiting.add(new, scope, parts.ledger.append_turn(session, new))
        waiting.tell(_anchored(parts, session, new[-1], tail))
        parts.awaiting = waiting
        written = dict(zip(fresh, new, strict=True))
        by_key = known | {event.key: event for event in new if event.key}
        return [written[i] if i in written else by_key[event.key] for i, event in enumerate(events)]


def _looked_at(parts: StoreContext, session: str, *, keyed: bool) -> tuple[Tail, Head | None]:
    """Where the journal ends, and where it saw a ledger end. Nothing is read where nobody else has written since the last append."""
    name, waiting = ledger_name(session), parts.awaiting
    newest = waiting.newest if waiting is not None else None
    # The keys of what waits are not in the index.
    if keyed or waiting is None or newest is None or not _is_as_left(parts, waiting, newest.end, name):
        tail = recovery.catch_up(parts, ledger=name)
        return tail, parts.anchors.told(session)
    own = waiting.told.get(session)
    anchor = parse_checkpoint(own.entry.reason) if own is not None else None
    return Tail(newest.end, newest.entry.seq), anchor.head if anchor is not None else parts.anchors.told(session)


def _is_as_left(parts: StoreContext, waiting: PendingEvents, end: Position, ledger: str) -> bool:
    if not is_untouched(parts, waiting) or parts.journal.end() != end:
        return False
    size = waiting.sizes[ledger] if ledger in waiting.sizes else indexed_size(parts, ledger)
    return size == parts.ledger.size(ledger)


def _end_of(parts: StoreContext, session: str, tail: Tail, told: Head | None) -> tuple[Head, Tail]:
    """Where a ledger ends by its own file, which must not end before what the journal has seen of it."""
    head = parts.ledger.head(session)
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


def _anchored(parts: StoreContext, session: str, head: Event, tail: Tail) -> PlacedEntry | None:
    """Tell the journal where the ledger ends, so that a tail that is cut off later shows. The events stand without it."""
    try:
        return witness(parts, session, Head(head.seq, head.digest), tail, durably=False)
    except (StoreError, sqlite3.Error, OSError) as error:
        parts.warnings.append(f"the end of the ledger {session} is not in the journal: {error}")
        return None


def _known_keys(parts: StoreContext, session: str, events: Sequence[NewEvent]) -> dict[str, Event]:
    known: dict[str, Event] = {}
    for key in dict.fromkeys(event.key for event in events if event.key):
        row = parts.index.db.execute("SELECT id FROM keys WHERE session = ? AND key = ?", (session, key)).fetchone()
        event = find(parts, row[0]) if row else None
        if event is not None:
            known[key] = event
    return known


def find(parts: StoreContext, event_id: str) -> Event | None:
    """An event by id."""
    row = parts.index.db.execute(
        "SELECT r.record FROM docs d JOIN records r ON r.n = d.n WHERE d.id = ? AND d.kind = 'event'", (event_id,)
    ).fetchone()
    return decode_event(row[0]) if row else None


def of_ledger(parts: StoreContext, session: str, last: int | None = None, after: int = 0) -> list[Event]:
    """A ledger's events in order: those after a number, and of these the last so many."""
    rows = parts.index.all("events_of", session, after, -1 if last is None else last)
    return [decode_event(record) for (record,) in reversed(rows)]
