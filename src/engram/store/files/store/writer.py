"""The write operations of a files store: decisions, and events appended to a session's ledger.

A decision writes the journal first, then files, then the index; the caller holds the writer lock. Keys make repeated
appends harmless.
"""

import contextlib
import json
import os
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from engram.model.errors import EngramError, NotFound, StoreCorrupt, StoreError
from engram.model.lazy import dataclass
from engram.model.memory import LIVE_STATUSES, Memory
from engram.model.records import Event
from engram.store.files import memories
from engram.store.files.log.journal import AfterImage, Entry, JournalLine, Position
from engram.store.files.log.ledger import ledger_name
from engram.store.files.memories import UNSEEN_STAMP, Stamp, relative_path
from engram.store.files.reconcile import recovery
from engram.store.files.reconcile.durability import sync_file_and_name
from engram.store.files.reconcile.folders import (
    is_steady,
    is_team,
    memory_roots,
    note_folders,
    team_of,
    trust_own_writes,
)
from engram.store.files.reconcile.hand_edits import pick_up
from engram.store.files.reconcile.index_state import (
    IndexContext,
    MemoryRow,
    PendingEvents,
    Tail,
    append_anchor,
    append_entry,
    drop_split,
    index_entry,
    index_memories,
    indexed_size,
    is_broken,
    keep_original,
    note_file,
    place_of,
    stamp_known,
)
from engram.store.files.reconcile.recovery import is_untouched
from engram.store.files.states import work as task_files
from engram.store.files.states.work import load_session
from engram.store.home import refuse_links
from engram.store.intake import Decider, JobFactory, NewEvent, Screen, no_jobs
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
from engram.store.protocol import ProposalKeys
from engram.store.records import (
    USE_OPS,
    decode_record,
    encoded_image,
    heads_among,
    image,
    keep_update_time,
    versions_among,
)
from engram.store.sqlite.writer import DocumentWriter
from engram.store.tasks import refuse_closed, refuse_ended, tasks_named

if TYPE_CHECKING:
    from engram.embedding.vectors import Vectors

TEAM_TOKEN_BYTES = 6


@dataclass(slots=True)
class _PendingWrite:
    memory: Memory
    vector: "Vectors | None"
    file: str
    expected: Stamp | None
    broken: bool = False
    """Whether the owner left the file unreadable; Engram does not write it until they repair it."""
    stamp: Stamp | None = None
    """The file as this decision wrote it."""


class FilesTransaction:
    """Collects the changes of a decision; `commit` carries them out."""

    def __init__(self, context: IndexContext, op: str, actor: str, reason: str, session: str, screen: Screen) -> None:
        self._context, self._screen = context, screen
        self._op, self._actor, self._reason, self._session = op, actor, reason, session
        self._pending: dict[str, _PendingWrite] = {}
        self._numbers: dict[str, int] = {}
        self._minted: set[str] = set()
        self._judged: set[str] = set()
        """Memories that the gates have judged as they were put."""
        self._day: tuple[datetime | None, str] = (None, "")
        self._names: set[tuple[str, str]] = set()
        self._put_by_key: dict[tuple[str, str], list[str]] = {}
        """Memories put so far, by conflict key and scope."""
        self._new_hashes: set[str] = set()
        self._new_names: set[str] = set()
        """Hashes and names not in the index, looked up together."""
        self.journaled = False

    # -- reading, hand edits included

    def prefetch(self, proposals: Sequence[ProposalKeys]) -> None:
        """Look up together which contents and names of a batch are new; usually all are."""
        self._new_hashes = {proposal.content_hash for proposal in proposals}
        self._new_names = {proposal.name for proposal in proposals if "\0" not in proposal.name}
        index = self._context.index
        self._new_hashes.difference_update(h for (h,) in index.all("known_hashes", json.dumps([*self._new_hashes])))
        self._new_names.difference_update(n for n, _ in index.all("taken_names", json.dumps([*self._new_names])))

    def _pick_up(self, place: str) -> None:
        pick_up(self._context, [place])
        # A hand edit may have any content and name.
        self._new_hashes, self._new_names = set(), set()

    def get(self, memory_id: str) -> Memory | None:
        """A memory as it is now, including the changes of this decision."""
        if memory_id in self._pending:
            return self._pending[memory_id].memory
        place = place_of(self._context.index, memory_id)
        if place:
            self._pick_up(place)
        return self.stored_memory(memory_id)

    @property
    def pending_memories(self) -> list[Memory]:
        """The memories put so far."""
        return [item.memory for item in self._pending.values()]

    def stored_memory(self, memory_id: str) -> Memory | None:
        """A memory as it was before this decision."""
        row = self._context.index.one("by_ref", memory_id)
        return decode_record(row[2]) if row else None

    def _before(self, memory_id: str) -> Memory | None:
        known = self._pending.get(memory_id)
        return known.memory if known is not None else self.stored_memory(memory_id)

    def exact(self, content_hash: str, scope: str) -> Memory | None:
        """The live memory with this content in this scope."""
        if not content_hash or content_hash in self._new_hashes:
            return None
        row = self._context.index.one("exact", content_hash, scope)
        return decode_record(row[1]) if row else None

    def heads(self, conflict_key: str, scope: str) -> Sequence[Memory]:
        """The current memories with a conflict key in a scope."""
        if not conflict_key:
            return []
        ids = [i for (i,) in self._context.index.all("heads", conflict_key, scope)]
        put = self._put_by_key.get((conflict_key, scope), ())
        return heads_among([self.get(i) for i in dict.fromkeys([*ids, *put])], conflict_key, scope)

    def lineage(self, lineage_id: str) -> Sequence[Memory]:
        """Every version of a fact, by revision."""
        known = [decode_record(record) for (record,) in self._context.index.all("lineage", lineage_id)]
        return versions_among([*known, *(item.memory for item in self._pending.values())], lineage_id)

    def changed_since(self, scope: str, mark: int) -> Sequence[Memory]:
        """What others wrote in a scope after `mark`."""
        if self._context.index.change <= mark:
            return []
        return [decode_record(record) for _, record in self._context.index.all("changed_since", mark, scope)]

    # -- assigning ids and names

    def new_id(self, at: datetime, *, team: bool = False) -> str:
        """The next id of a UTC day; in a team store a random one, since two machines cannot agree on a number."""
        if self._day[0] is not at:
            self._day = (at, at.astimezone(UTC).strftime("ENG-%Y-%m%d"))
        day = self._day[1]
        if team:
            return f"{day}-{int(self._context.token(TEAM_TOKEN_BYTES), 16)}"
        last = self._numbers.get(day)
        if last is None:
            row = self._context.index.db.execute("SELECT last FROM numbers WHERE day = ?", (day,)).fetchone()
            last = row[0] if row else 0
        self._numbers[day] = last + 1
        self._minted.add(minted := f"{day}-{last + 1:03d}")
        return minted

    def free_name(self, name: str, scope: str) -> str:
        """The name, with a number appended if it is taken in its scope."""
        if not name:
            return ""
        run = self._context.index.db.execute
        if (name, scope) not in self._names and (
            name in self._new_names
            or not run("SELECT 1 FROM names WHERE name = ? AND scope = ?", (name, scope)).fetchone()
        ):
            self._names.add((name, scope))
            return name
        taken = run("SELECT name FROM names WHERE name >= ? AND name < ? AND scope = ?", (name, name + ".", scope))
        used = {row[0] for row in taken} | {n for n, s in self._names if s == scope}
        free, number = name, 1
        while free in used:
            number += 1
            free = f"{name}-{number}"
        self._names.add((free, scope))
        return free

    # -- changing

    def put(self, memory: Memory, vector: "Vectors | None" = None, *, team: str = "", judged: bool = False) -> None:
        """Add or replace a memory; `judged` if the gates have judged what it says."""
        memory = keep_update_time(memory, self._before)
        (self._judged.add if judged else self._judged.discard)(memory.id)
        if memory.conflict_key:
            self._put_by_key.setdefault((memory.conflict_key, memory.scope), []).append(memory.id)
        known = self._pending.get(memory.id)
        if known is not None:
            known.memory, known.vector = memory, vector if vector is not None else known.vector
            return
        place = "" if memory.id in self._minted else place_of(self._context.index, memory.id)
        if not place:
            self._refuse_purged(memory.id)
            root = team or str(self._context.home.engrams)
            self._pending[memory.id] = _PendingWrite(memory, vector, self._free_place(root, memory), None)
            return
        place = self._split_if_shared(place, memory.id)
        if stamp_known(self._context.index, place) is None:
            self._pick_up(place)
        if is_broken(self._context.index, place) and self._op not in USE_OPS:
            raise StoreCorrupt(
                f"{self._context.path(place)} cannot be read; repair it first (`engram doctor` says how), nothing was changed"
            )
        expected, broken = stamp_known(self._context.index, place), is_broken(self._context.index, place)
        self._pending[memory.id] = _PendingWrite(memory, vector, place, expected, broken)

    def _refuse_purged(self, memory_id: str) -> None:
        run = self._context.index.db.execute
        if memory_id not in self._minted and run("SELECT 1 FROM tombstones WHERE id = ?", (memory_id,)).fetchone():
            raise NotFound(f"{memory_id} was purged and cannot come back")

    def _free_place(self, root: str, memory: Memory) -> str:
        """The path of a new memory's file; an existing file keeps its name."""
        path = wanted = f"{root}/{relative_path(memory)}"
        number = 1
        while os.path.lexists(path) and not self._has_come_back(path, memory.id):
            number += 1
            path = f"{wanted.removesuffix('.yaml')}-{number}.yaml"
        return path.removeprefix(f"{self._context.home.root}/")

    def _has_come_back(self, path: str, memory_id: str) -> bool:
        """Whether the owner of a removed memory has put its file back; their version takes precedence."""
        known = self._context.index.one("by_ref", memory_id) is not None
        if not known or place_of(self._context.index, memory_id):
            return False
        try:
            return any(found.id == memory_id for found in memories.read(Path(path)))
        except EngramError:
            return True

    def _split_if_shared(self, place: str, memory_id: str) -> str:
        """Split a file with several memories before one of them changes; the original is kept as `.orig`."""
        context = self._context
        ids = [i for (i,) in context.index.db.execute("SELECT id FROM places WHERE path = ?", (place,))]
        if len(ids) < 2:
            return place
        path = context.safe_path(place)
        root = team_of(context, place) or str(context.home.engrams)
        found = [decode_record(context.index.one("by_ref", i)[2]) for i in ids]
        moved = [(memory, self._free_place(root, memory)) for memory in found]
        # A second name first, the removal last, so that a crash never leaves the memories without a file.
        with context.index.writing():
            note_file(context.index, place, UNSEEN_STAMP)
        keep_original(path)
        entry = append_entry(context, "split", "engram", f"{place} contained {len(ids)} memories",
                             [AfterImage(m.id, image(m), file) for m, file in moved])  # fmt: skip
        write_through(context, entry, [_PendingWrite(m, None, file, None) for m, file in moved])
        drop_split(context, place)
        return next(file for memory, file in moved if memory.id == memory_id)

    def check(self, memory: Memory) -> None:
        """Raise if this decision may not write the memory."""
        self._screen.memories([memory], self.stored_memory, self._decider)

    def check_all(self) -> None:
        """Raise if this decision may not write one of the memories it has put."""
        self._screen.memories(self.pending_memories, self.stored_memory, self._decider)

    @property
    def _decider(self) -> Decider:
        gone = frozenset(memory.id for memory in self.pending_memories if memory.status not in LIVE_STATUSES)
        vectors = {item.memory.id: item.vector for item in self._pending.values() if item.vector is not None}
        return Decider(self._op, self._actor, gone, vectors, frozenset(self._judged))

    def commit(self) -> None:
        """Journal the decision, then write its files and index it. Without changes nothing is written."""
        if not self._pending:
            return
        if self._context.index.get("filled") is None:
            # An empty index knows no ids and no duplicates: a decision based on it must not count.
            raise StoreError("the index was replaced meanwhile; nothing was written, try again")
        pending = list(self._pending.values())
        changes = []
        for item in pending:
            mapping, text = encoded_image(item.memory)
            changes.append(AfterImage(item.memory.id, mapping, item.file, text))
        placed = append_entry(self._context, self._op, self._actor, self._reason, changes, self._session)
        self.journaled = True
        write_through(self._context, placed, pending)


def write_through(context: IndexContext, placed: JournalLine, pending: Sequence[_PendingWrite]) -> None:
    """Write files, then the index. If a file cannot be written the decision is undone: it was never acknowledged."""
    places = dict.fromkeys(item.file.rpartition("/")[0] for item in pending if item.file)
    folders = _with_parents(context, {context.path(place): None for place in places})
    steady = [folder for folder in folders if is_steady(context, folder)]
    written: list[_PendingWrite] = []
    root = f"{context.home.root}{os.sep}"
    try:
        for place in places:
            refuse_links(context.home.root, f"{place}/")
        for item, change in zip(pending, placed.entry.changes, strict=True):
            if item.file and not item.broken:
                path = item.file if item.file.startswith(os.sep) else root + item.file
                item.stamp = memories.write(path, item.memory, item.expected, change.after)
                written.append(item)
                if is_team(item.file):
                    # What git removes or resets looks like a power loss, so team files are synced at once.
                    _wait_for(context.path(item.file))
    except EngramError:
        _undo_writes(context, placed, written)
        raise
    with context.index.writing() as writer:
        _index_pending(context, writer, placed.entry, pending)
        index_entry(context.index, placed)
        note_folders(context, steady)
    trust_own_writes(context, [(item.file, item.stamp) for item in written if item.stamp and is_team(item.file)])
    pick_up(context, [item.file for item in written if item.stamp is None])


def _wait_for(path: Path) -> None:
    with contextlib.suppress(OSError):
        sync_file_and_name(path)


def _index_pending(
    context: IndexContext, writer: DocumentWriter, entry: Entry, pending: Sequence[_PendingWrite]
) -> None:
    rows = []
    for item, change in zip(pending, entry.changes, strict=True):
        stamp = None if item.broken else item.stamp or UNSEEN_STAMP
        rows.append(MemoryRow(item.memory, change.text or change.after or {}, item.file, stamp, item.vector))
    index_memories(context.index, writer, rows)


def _with_parents(context: IndexContext, folders: dict[Path, None]) -> list[Path]:
    known = dict(folders)
    for folder in folders:
        known[folder.parent] = known[folder.parent.parent] = None
    roots = memory_roots(context)
    return [folder for folder in known if any(folder == root or root in folder.parents for root in roots)]


def _undo_writes(context: IndexContext, placed: JournalLine, written: Sequence[_PendingWrite]) -> None:
    """Undo an unacknowledged decision. If this fails too, recovery completes the decision instead."""
    with contextlib.suppress(OSError, EngramError):
        for item in written:
            if item.stamp is None:
                continue
            path = context.safe_path(item.file)
            row = context.index.one("by_ref", item.memory.id)
            if row is None:
                path.unlink(missing_ok=True)
            else:
                memories.write(path, decode_record(row[2]), item.stamp)
        context.journal.cut(placed.start)


def append_events(
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
        task_files.enqueue_jobs(context.home, jobs(new))
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
    """A ledger's end according to its own file. Raises `StoreCorrupt` if it ends before its last anchor."""
    head = context.ledger.head(session)
    if anchored is not None and _ends_before(head, anchored):
        raise StoreCorrupt(
            f"{context.ledger.path(session)} ends at event {head.seq}, but event {anchored.seq} was written to it; nothing was "
            "written. Restore the file from a backup, or continue in another session or task; see `engram ledger verify`"
        )
    if anchored is None and not head.seq:
        # Before the first event, so that a ledger without any anchor is recognised as tampered with.
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
        event = find_stored_event(context, row[0]) if row else None
        if event is not None:
            known[key] = event
    return known


def find_stored_event(context: IndexContext, event_id: str) -> Event | None:
    """An event by id."""
    row = context.index.db.execute(
        "SELECT r.record FROM docs d JOIN records r ON r.n = d.n WHERE d.id = ? AND d.kind = 'event'", (event_id,)
    ).fetchone()
    return decode_event(row[0]) if row else None


def read_ledger_events(context: IndexContext, session: str, last: int | None = None, after: int = 0) -> list[Event]:
    """A ledger's events in order: those after a number, and only the last `last` of these."""
    rows = context.index.all("events_of", session, after, -1 if last is None else last)
    return [decode_event(record) for (record,) in reversed(rows)]
