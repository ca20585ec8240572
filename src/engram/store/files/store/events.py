"""Appending events to a session's ledger: digests chain them, keys make a repeated append harmless."""

import sqlite3
from collections.abc import Sequence

from engram.model.errors import StoreCorrupt, StoreError
from engram.model.event import Event
from engram.store.files.log.journal import JournalLine, Position
from engram.store.files.log.ledger import ledger_name
from engram.store.files.reconcile import recovery
from engram.store.files.reconcile.context import IndexContext, Tail, append_anchor
from engram.store.files.reconcile.index_records import indexed_size
from engram.store.files.reconcile.pending_events import PendingEvents
from engram.store.files.reconcile.recovery import is_untouched
from engram.store.files.states import tasks as task_files
from engram.store.files.states.sessions import load_session
from engram.store.ledger import (
    BEGUN,
    Head,
    chained_events,
    decode_event,
    ledger_owner,
    new_owner,
    new_positions,
    parse_checkpoint,
)
from engram.store.new_events import JobFactory, NewEvent, no_jobs
from engram.store.tasks import refuse_closed, refuse_ended, tasks_named


def append(
    context: IndexContext, session: str, events: Sequence[NewEvent], jobs: JobFactory = no_jobs, scope: str = ""
) -> list[Event]:
    """Write new events and return all, for a repeated key the earlier event. They are indexed later."""
    with context.lock.hold():
        tail, anchored = _journal_state(context, session, keyed=any(event.key for event in events))
        # Query the index first: once the events are written, nothing may be retried.
        waiting = context.pending or PendingEvents(
            context.index.db, context.index.get("journal"), is_urgent=tail.others
        )
        task = task_files.load_task(context.home, session)
        refuse_closed(task)
        for named in tasks_named(session, events):
            refuse_closed(task_files.load_task(context.home, named))
        kept = load_session(context.home, session) if task is None else None
        refuse_ended(kept)
        scope = new_owner(session, ledger_owner(session, task, kept, context.ledger.scope(session)), scope)
        known = _known_keys(context, session, events)
        fresh = new_positions(events, known)
        if not fresh:
            return [known[event.key] for event in events]
        head, tail = _ledger_end(context, session, tail, anchored)
        new = chained_events(head, session, [events[i] for i in fresh], context.token, scope)
        # Jobs first: a job without events does nothing, but events without their job would never be processed.
        task_files.enqueue(context.home, jobs(new))
        waiting.add(new, scope, context.ledger.append_turn(session, new))
        waiting.note_anchor(_journal_end(context, session, new[-1], tail))
        context.pending = waiting
        written = dict(zip(fresh, new, strict=True))
        by_key = known | {event.key: event for event in new if event.key}
        return [written[i] if i in written else by_key[event.key] for i, event in enumerate(events)]


def _journal_state(context: IndexContext, session: str, *, keyed: bool) -> tuple[Tail, Head | None]:
    """The journal's end and the ledger's last anchor; read only if others have written since the last append."""
    name, waiting = ledger_name(session), context.pending
    newest = waiting.newest if waiting is not None else None
    # The keys of pending events are not in the index.
    if keyed or waiting is None or newest is None or not _is_unchanged(context, waiting, newest.end, name):
        tail = recovery.catch_up(context, ledger=name)
        return tail, context.anchors.head_of(session)
    own = waiting.anchors.get(session)
    anchor = parse_checkpoint(own.entry.reason) if own is not None else None
    return Tail(newest.end, newest.entry.seq), anchor.head if anchor is not None else context.anchors.head_of(session)


def _is_unchanged(context: IndexContext, waiting: PendingEvents, end: Position, ledger: str) -> bool:
    if not is_untouched(context, waiting) or context.journal.end() != end:
        return False
    size = waiting.sizes[ledger] if ledger in waiting.sizes else indexed_size(context.index, ledger)
    return size == context.ledger.size(ledger)


def _ledger_end(context: IndexContext, session: str, tail: Tail, anchored: Head | None) -> tuple[Head, Tail]:
    """A ledger's end by its own file. Raises `StoreCorrupt` if it ends before its last anchor."""
    head = context.ledger.head(session)
    if anchored is not None and _ends_before(head, anchored):
        raise StoreCorrupt(
            f"{context.ledger.path(session)} ends at event {head.seq}, but event {anchored.seq} was written to it; nothing was "
            "written. Restore the file from a backup, or continue in another session or task; see `engram ledger verify`"
        )
    if anchored is None and not head.seq:
        # Before the first event, so that a ledger without any anchor is known to be tampered with.
        placed = append_anchor(context, session, Head(0, BEGUN), tail, durably=True)
        tail = Tail(placed.end, placed.entry.seq)
    return head, tail


def _ends_before(head: Head, anchored: Head) -> bool:
    return head.seq < anchored.seq or (head.seq == anchored.seq > 0 and head.digest != anchored.digest)


def _journal_end(context: IndexContext, session: str, head: Event, tail: Tail) -> JournalLine | None:
    """Anchor the ledger's end in the journal, so that a tail cut off later is noticed; a failure is only a warning."""
    try:
        return append_anchor(context, session, Head(head.seq, head.digest), tail, durably=False)
    except (StoreError, sqlite3.Error, OSError) as error:
        context.warnings.append(f"the end of the ledger {session} is not in the journal: {error}")
        return None


def _known_keys(context: IndexContext, session: str, events: Sequence[NewEvent]) -> dict[str, Event]:
    known: dict[str, Event] = {}
    for key in dict.fromkeys(event.key for event in events if event.key):
        row = context.index.db.execute("SELECT id FROM keys WHERE session = ? AND key = ?", (session, key)).fetchone()
        event = find(context, row[0]) if row else None
        if event is not None:
            known[key] = event
    return known


def find(context: IndexContext, event_id: str) -> Event | None:
    """An event by id."""
    row = context.index.db.execute(
        "SELECT r.record FROM docs d JOIN records r ON r.n = d.n WHERE d.id = ? AND d.kind = 'event'", (event_id,)
    ).fetchone()
    return decode_event(row[0]) if row else None


def of_ledger(context: IndexContext, session: str, last: int | None = None, after: int = 0) -> list[Event]:
    """A ledger's events in order: those after a number, and only the last `last` of these."""
    rows = context.index.all("events_of", session, after, -1 if last is None else last)
    return [decode_event(record) for (record,) in reversed(rows)]
