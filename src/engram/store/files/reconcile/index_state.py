"""An open store's logs with their index, and the index's records of memories, files, ledgers, uses and the journal."""

import glob
import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from engram.model.errors import StoreCorrupt
from engram.model.lazy import dataclass, field, replace
from engram.model.memory import Memory
from engram.model.records import Event, Use
from engram.store.documents import Document, memory_document
from engram.store.files.lock import WriterLock
from engram.store.files.log.journal import AfterImage, Durability, Entry, Journal, JournalLine, Position, Usage, is_own
from engram.store.files.log.ledger import Ledger, LedgerRange, last_anchored
from engram.store.files.memories import Stamp, stamp_of
from engram.store.home import Home, memory_file, refuse_links
from engram.store.ledger import FIRST_LINK, LEDGER_OP, Head, checkpoint_text, link_to, parse_checkpoint, to_fields
from engram.store.records import decode_record, highest_numbers
from engram.store.sqlite.index import Index
from engram.store.sqlite.writer import DocumentWriter

if TYPE_CHECKING:
    from engram.embedding.vectors import Embedder, Vectors

IMAGES_PER_CALL = 4096
"""Images recorded with one call of the database."""


class MemoryRow(NamedTuple):
    """A memory to index: its record, its file ("" for none), and the file's stamp, if that is to be recorded."""

    memory: Memory
    record: Mapping[str, Any] | str
    file: str
    stamp: Stamp | None = None
    vector: "Vectors | None" = None


def index_memories(index: Index, writer: DocumentWriter, rows: Sequence[MemoryRow]) -> None:
    """Put memories into the index, with their relations, places and stamps; inside a transaction."""
    writer.look_up([row.memory.id for row in rows])
    for row in rows:
        is_new = writer.put(memory_document(row.memory), row.record, row.vector)
        writer.put_memory_relations(row.memory, fresh=is_new)
        if not row.file:
            note_place(index, row.memory.id, "")
    run_many, statement = index.db.executemany, index.statement
    run_many(statement("put_place"), [(row.memory.id, row.file) for row in rows if row.file])
    stamps = ((row.file, row.stamp) for row in rows if row.file and row.stamp is not None)
    run_many(statement("put_file"), [(file, s.mtime_ns, s.size, s.inode, s.ctime_ns, "") for file, s in stamps])


def index_event(
    index: Index, writer: DocumentWriter, event: Event, document: Document, vector: "Vectors | None" = None
) -> None:
    """Put an event and its key into the index."""
    writer.put(document, to_fields(event), vector)
    if event.key:
        index.db.execute(
            "INSERT OR IGNORE INTO keys (session, key, id) VALUES (?, ?, ?)", (event.session, event.key, event.id)
        )


def indexed_size(index: Index, ledger: str) -> int | None:
    """How many bytes of a ledger's file are indexed; None for an unknown ledger."""
    row = index.db.execute("SELECT size FROM ledgers WHERE name = ?", (ledger,)).fetchone()
    return row[0] if row else None


def note_ledger(index: Index, name: str, size: int) -> None:
    """Record how many bytes of a ledger's file are indexed; inside a transaction."""
    index.db.execute("INSERT OR REPLACE INTO ledgers (name, size) VALUES (?, ?)", (name, size))


def index_entry(index: Index, placed: JournalLine) -> None:
    """Record the positions of a journal entry's images, and how far the index has read; inside a transaction."""
    index_entries(index, [placed])


def index_entries(index: Index, lines: Iterable[JournalLine]) -> None:
    """Record several entries, in order."""
    images: list[tuple[Any, ...]] = []
    gone: list[tuple[str]] = []
    last = None
    for last in lines:
        entry, start = last.entry, last.start
        if entry.changes:
            at = entry.at.timestamp()
            images += [(c.id, entry.seq, at, entry.op, start.month, start.offset) for c in entry.changes]
            gone += [(change.id,) for change in entry.changes if change.after is None]
        if entry.op == LEDGER_OP:
            index_anchor(index, entry)
        if len(images) >= IMAGES_PER_CALL:
            _index_images(index, images)
            images = []
    _index_images(index, images)
    if last is not None:
        run = index.db
        run.executemany("INSERT OR IGNORE INTO tombstones (id) VALUES (?)", gone)
        read = json.dumps([last.end.month, last.end.offset, last.start.offset])
        run.execute(
            "INSERT OR REPLACE INTO meta (key, value) VALUES ('seq', ?), ('journal', ?)", (last.entry.seq, read)
        )


def _index_images(index: Index, images: Sequence[tuple[Any, ...]]) -> None:
    """Record the positions of images, and the highest id number of each day, so that none is used twice."""
    if images:
        index.db.executemany(index.statement("put_image"), images)
        highest = highest_numbers(image[0] for image in images)
        index.db.executemany(index.statement("raise_number"), list(highest.items()))


def note_file(index: Index, stored: str, stamp: Stamp | None, error: str = "") -> None:
    """Record a file's stamp when it is read or written; inside a transaction."""
    if stamp is None:
        index.db.execute("DELETE FROM files WHERE path = ?", (stored,))
        return
    values = (stored, stamp.mtime_ns, stamp.size, stamp.inode, stamp.ctime_ns, error)
    index.db.execute(index.statement("put_file"), values)


def note_place(index: Index, memory_id: str, stored: str) -> None:
    """Record which file contains a memory; "" for none."""
    if stored:
        index.db.execute(index.statement("put_place"), (memory_id, stored))
    else:
        index.db.execute("DELETE FROM places WHERE id = ?", (memory_id,))


def forget_memory(index: Index, home: Home, writer: DocumentWriter, memory_id: str) -> None:
    """Remove a purged memory from the index, with its path and its uses; inside a transaction."""
    place = index.db.execute("SELECT path FROM places WHERE id = ?", (memory_id,)).fetchone()
    writer.delete(memory_id)
    note_place(index, memory_id, "")
    if place is not None:
        note_file(index, place[0], stamp_of(home.root / place[0]))
    index.db.execute("DELETE FROM uses WHERE id = ?", (memory_id,))


def records_in(index: Index, stored_paths: Sequence[str]) -> dict[str, list[str]]:
    """The indexed records of files, as JSON."""
    found: dict[str, list[str]] = {}
    for stored, record in index.all("records_in", json.dumps(stored_paths)):
        found.setdefault(stored, []).append(record)
    return found


def stamp_known(index: Index, stored: str) -> Stamp | None:
    """A file's stamp when it was last read or written; None if unknown."""
    row = index.db.execute("SELECT mtime_ns, size, inode, ctime_ns FROM files WHERE path = ?", (stored,)).fetchone()
    return Stamp(*row) if row else None


def stamps_known(index: Index, stored_paths: Iterable[str]) -> list[tuple[str, int, int, int, int]]:
    """The recorded stamps of those files that the index knows, each with its path."""
    return index.all("file_stamps", json.dumps(list(stored_paths)))


def is_broken(index: Index, stored: str) -> bool:
    """Whether a file, or a part of it, could not be used when it was last read."""
    row = index.db.execute("SELECT error FROM files WHERE path = ?", (stored,)).fetchone()
    return bool(row and row[0])


def place_of(index: Index, memory_id: str) -> str:
    """The file that contains a memory, or ""."""
    row = index.db.execute("SELECT path FROM places WHERE id = ?", (memory_id,)).fetchone()
    return row[0] if row else ""


NEWEST_ANCHOR_KEY = "word"
"""Key of the newest anchor of any ledger in the index's metadata, as ledger and reason."""


class Anchors:
    """The newest anchor of all, and of each ledger. The index must have read the journal to its end."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._given: tuple[Position, str] | None = None
        """The journal's end after this process's own last anchor, which may not be indexed yet, and the link to it."""

    def link(self, end: Position) -> str:
        """The link from the next anchor to the newest one; `end` is the journal's end."""
        if self._given is not None and self._given[0] == end:
            return self._given[1]
        newest = self._index.get(NEWEST_ANCHOR_KEY)
        return link_to(*json.loads(newest)) if newest else FIRST_LINK

    def head_of(self, session: str) -> Head | None:
        """The end of a ledger by its last anchor; None if there is none."""
        row = self._index.db.execute("SELECT reason FROM ends WHERE session = ?", (session,)).fetchone()
        anchor = parse_checkpoint(row[0]) if row else None
        return anchor.head if anchor is not None else None

    def note(self, placed: JournalLine) -> None:
        """Remember an anchor of this process."""
        self._given = placed.end, link_to(placed.entry.session, placed.entry.reason)


def index_anchor(index: Index, entry: Entry) -> None:
    """Index an anchor; inside a transaction."""
    if parse_checkpoint(entry.reason) is not None:
        index.db.execute("INSERT OR REPLACE INTO ends (session, reason) VALUES (?, ?)", (entry.session, entry.reason))
    index.set(NEWEST_ANCHOR_KEY, json.dumps([entry.session, entry.reason]))


_COLUMNS = "u.kind, u.id, u.at, u.session, u.signal, u.position"


def index_uses(index: Index, usage: Usage) -> None:
    """Index new uses. SQLite's own lock is enough, and a read-only home has no other."""
    end, known = usage.end(), int(index.get("usage") or 0)
    if end <= known:
        return
    with index.writing():
        for use in usage.read(int(index.get("usage") or 0)):
            for memory_id in use.ids:
                index.db.execute(
                    "INSERT OR IGNORE INTO uses (position, id, kind, signal, session, at) SELECT ?, ?, ?, ?, ?, ? "
                    "WHERE NOT EXISTS (SELECT 1 FROM tombstones WHERE id = ?)",
                    (use.position, memory_id, use.kind, use.signal, use.session, use.at.timestamp(), memory_id),
                )
        index.set("usage", end)


def uses_of(index: Index, usage: Usage, memory_ids: Iterable[str]) -> list[Use]:
    """Every use of these memories, oldest first."""
    return _select(
        index, usage, "FROM json_each(?) j CROSS JOIN uses u ON u.id = j.value", json.dumps(list(memory_ids))
    )


def uses_in(index: Index, usage: Usage, session: str) -> list[Use]:
    """Every use in a session."""
    return _select(index, usage, "FROM uses u WHERE u.session = ?", session)


def used_since(index: Index, usage: Usage, position: int) -> list[str]:
    """Ids of memories used after a position."""
    index_uses(index, usage)
    rows = index.db.execute("SELECT DISTINCT id FROM uses WHERE position >= ?", (position,))
    return [row[0] for row in rows]


def last_use(index: Index, usage: Usage, kind: str) -> Use | None:
    """The newest use of a kind, with all its ids."""
    found = _select(
        index, usage, "FROM uses u WHERE u.position = (SELECT max(position) FROM uses WHERE kind = ?)", kind
    )
    return replace(found[0], ids=tuple(use.ids[0] for use in found)) if found else None


def _select(index: Index, usage: Usage, clause: str, value: str) -> list[Use]:
    index_uses(index, usage)
    rows = index.db.execute(f"SELECT {_COLUMNS} {clause} ORDER BY u.position", (value,))
    return [_use(row) for row in rows]


def _use(row: tuple[Any, ...]) -> Use:
    kind, memory_id, at, session, signal, position = row
    return Use(kind, (memory_id,), datetime.fromtimestamp(at, UTC), session, signal, position)


@dataclass(slots=True)
class LogContext:
    """The logs of an open store. `warnings` collects messages for the owner."""

    home: Home
    journal: Journal
    usage: Usage
    ledger: Ledger
    lock: WriterLock
    clock: Callable[[], datetime]
    token: Callable[[int], str]
    warnings: list[str]

    def warn(self, *problems: str) -> None:
        """Add warnings for the owner, each once."""
        self.warnings += [text for text in dict.fromkeys(problems) if text and text not in self.warnings]

    def path(self, stored: str) -> Path:
        """The full path of a stored path, which is relative to the home, or absolute in a team store."""
        return self.home.root / stored

    def safe_path(self, stored: str) -> Path:
        """The full path of a memory file about to be read or changed. Raises if it is outside the store or behind a link."""
        try:
            memory_file(stored)
        except ValueError as error:
            raise StoreCorrupt(f"{self.home.index}: {error}; run `engram index --rebuild`") from None
        refuse_links(self.home.root, stored)
        return self.path(stored)

    def stored_path(self, path: Path) -> str:
        """The path by which the index identifies a file."""
        return str(path).removeprefix(f"{self.home.root}/")


MOST, MOST_BYTES = 64, 1_000_000
"""Maximum events, and bytes of events, that may stay pending; the append that reaches a limit indexes all of them."""


@dataclass(slots=True)
class PendingEvents:
    """Events that this process has appended but not indexed yet.

    The ledger is the commit point and the index is derived, so an append need not wait for it. Nothing depends on this
    process: every append is anchored in the journal, and any process that finds the journal longer than its index has
    read will index the events.
    """

    into: sqlite3.Connection
    read: str | None
    """How far the index had read the journal; while that is unchanged, no other process has indexed the events."""
    events: list[tuple[Event, str]] = field(default_factory=list)
    """Each event with the scope of its ledger."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Each ledger's size after its last event."""
    anchors: dict[str, JournalLine] = field(default_factory=dict)
    """The last anchor journaled for each session, the newest of all last."""
    size: int = 0
    """Bytes of all pending events."""
    is_urgent: bool = False
    """Whether to index them at once, because others are writing, too, or the anchor could not be journaled."""

    @property
    def newest(self) -> JournalLine | None:
        """The newest anchor of any of these ledgers."""
        return next(reversed(self.anchors.values()), None)

    @property
    def is_due(self) -> bool:
        """Whether the events should be indexed now."""
        return self.is_urgent or self.read is None or len(self.events) >= MOST or self.size >= MOST_BYTES

    def add(self, events: Sequence[Event], scope: str, written: LedgerRange) -> None:
        """Add events appended to a ledger."""
        self.events += [(event, scope) for event in events]
        self.size += written.end - written.start
        self.sizes[written.ledger] = written.end

    def note_anchor(self, placed: JournalLine | None) -> None:
        """Add the anchor that was journaled; None if that failed."""
        if placed is None:
            self.is_urgent = True
            return
        self.anchors.pop(placed.entry.session, None)
        self.anchors[placed.entry.session] = placed


@dataclass(slots=True)
class IndexContext(LogContext):
    """The logs of an open store, and the index that follows them and the memory files."""

    index: Index
    embedder: "Embedder | None"
    teams: set[str] = field(default_factory=set)
    """The folders of the team stores in use."""
    trust: tuple[Stamp | None, dict[str, frozenset[str]]] | None = None
    """The digests the owner trusts, by folder, and the stamp of the file they were read from."""
    anchors: Anchors = field(init=False)
    durability: Durability = field(default_factory=Durability)
    pending: PendingEvents | None = None
    """Events this process has appended to ledgers and not indexed yet."""

    def __post_init__(self) -> None:
        self.anchors = Anchors(self.index)
        # Without a reference to self: the index of a closed store must be freed at once, not by the cycle collector.
        self.ledger.last_anchored = partial(last_anchored, self.journal)

    def embed(self, texts: Sequence[str]) -> "Vectors | None":
        """Vectors of texts; None if this process does not have the index's embedder."""
        if self.embedder is None or not self.index.can_embed():
            return None
        return self.embedder.embed(texts)

    def image_before(self, memory_id: str, seq: int) -> AfterImage | None:
        """A memory's last image before a decision, among those the index has read; None if there is none."""
        row = self.index.db.execute(
            "SELECT month, offset FROM images WHERE id = ? AND seq < ? ORDER BY seq DESC LIMIT 1", (memory_id, seq)
        ).fetchone()
        changes = self.journal.at(Position(*row)).changes if row else ()
        return next((change for change in reversed(changes) if change.id == memory_id), None)

    @property
    def seq(self) -> int:
        """The number of the last decision the index knows."""
        return int(self.index.get("seq") or 0)

    @property
    def position(self) -> Position:
        """How far into the journal the index has read."""
        return self.position_of(self.index.get("journal"))

    @staticmethod
    def position_of(stored: str | None) -> Position:
        """The position stored in the index."""
        return Position(*json.loads(stored)[:2]) if stored else Position()


def reindex_journal(context: IndexContext) -> None:
    """Record the positions of all images again, after the journal was rewritten. The caller holds the writer lock."""
    with context.index.writing():
        context.index.db.execute("DELETE FROM images")
        context.index.db.execute("DELETE FROM meta WHERE key = 'journal'")
        seq = context.seq
        unread: list[str] = []
        index_entries(context.index, context.journal.readable(unread))
        context.index.set("seq", max(seq, context.seq))
    context.warn(*unread)


class Tail(NamedTuple):
    """The end of the journal and the number of its last entry."""

    end: Position
    seq: int
    others: bool = False
    """Whether other processes have written to it since this one last read it."""


def journal_tail(context: IndexContext) -> Tail:
    """The journal's end, with the last number from the index if it has read that far."""
    end = context.journal.end()
    return Tail(end, context.seq if end == context.position else context.journal.last_seq())


def append_entry(
    context: IndexContext,
    op: str,
    actor: str,
    reason: str,
    changes: Sequence[AfterImage],
    session: str = "",
    *,
    durably: bool = True,
    tail: Tail | None = None,
) -> JournalLine:
    """Journal one decision: the commit point. `tail` is the journal's end, if the caller knows it."""
    tail = tail or journal_tail(context)
    entry = Entry(
        max(tail.seq, context.durability.floor) + 1, context.clock(), op, actor, reason, tuple(changes), session
    )
    context.durability.waiting += sum(1 for change in changes if is_own(change.file) or not change.file)
    return context.journal.append(entry, tail.end, durably=durably)


def append_anchor(context: IndexContext, session: str, head: Head, tail: Tail, *, durably: bool) -> JournalLine:
    """Record a ledger's end in the journal (an anchor), linked to the previous anchor."""
    reason = checkpoint_text(head, context.anchors.link(tail.end))
    placed = append_entry(context, LEDGER_OP, "engram", reason, (), session, durably=durably, tail=tail)
    context.anchors.note(placed)
    return placed


def id_problem(context: IndexContext, stored: str, memory: Memory, seen: set[str]) -> str:
    """Why a memory with this id may not be in this file; "" if it may. `seen` are the ids of the file so far."""
    if memory.id in seen:
        return f"id {memory.id} occurs twice in this file; the first one counts"
    if context.index.db.execute("SELECT 1 FROM tombstones WHERE id = ?", (memory.id,)).fetchone():
        return f"{memory.id} was purged and cannot come back; give it a new id or remove the file"
    place = place_of(context.index, memory.id)
    if place and place != stored and context.path(place).exists():
        return f"id {memory.id} is already taken by {place}; give this one another id or remove it"
    return ""


def retire_missing(context: IndexContext, stored: str, present: set[str]) -> list[Memory]:
    """Memories that were in a file before and are no longer, as retired."""
    rows = context.index.db.execute("SELECT id FROM places WHERE path = ?", (stored,)).fetchall()
    gone = [context.index.one("by_ref", memory_id) for (memory_id,) in rows if memory_id not in present]
    return [decode_record(row[2]).replace(status="retired") for row in gone if row]


def drop_memories(context: IndexContext, writer: DocumentWriter, gone: Iterable[Memory]) -> None:
    """Remove memories from the index, with their places; inside a transaction."""
    for memory in gone:
        writer.delete(memory.id)
        note_place(context.index, memory.id, "")


def keep_original(path: Path) -> None:
    """Give a second name to a file that is about to be split."""
    number = 1
    while True:
        try:
            os.link(path, path.with_name(f"{path.name}.orig{f'-{number}' if number > 1 else ''}"))
            return
        except FileExistsError:
            if is_split(path):
                return
            number += 1


def is_split(path: Path) -> bool:
    """Whether a file was split into one file per memory and still has its first name."""
    originals = path.parent.glob(f"{glob.escape(path.name)}.orig*")
    return any(path.exists() and original.samefile(path) for original in originals)


def drop_split(context: IndexContext, stored: str) -> None:
    """Remove the first name of a split file; the second keeps its content."""
    context.safe_path(stored).unlink(missing_ok=True)
    with context.index.writing():
        note_file(context.index, stored, None)
