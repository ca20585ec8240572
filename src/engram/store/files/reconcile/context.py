"""The parts of an open files store, passed to the functions that work on them, and its records in the index."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from engram.model.errors import StoreCorrupt
from engram.model.event import Event
from engram.model.lazy import dataclass, field
from engram.model.memory import Memory
from engram.store.documents import Document, memory_document
from engram.store.files.lock import WriterLock
from engram.store.files.log.journal import Change, Entry, Journal, JournalLine, Position
from engram.store.files.log.ledger import Anchors, Ledger, index_anchor, last_anchored
from engram.store.files.log.usage import Usage
from engram.store.files.memories import Stamp, stamp_of
from engram.store.files.reconcile.durability import Durability, is_own
from engram.store.home import Home, memory_file, refuse_links
from engram.store.ledger import LEDGER_OP, Head, checkpoint_text, to_fields
from engram.store.records import highest_numbers
from engram.store.sources import random_hex, utc_now
from engram.store.sqlite.index import Index
from engram.store.sqlite.writer import DocumentWriter

if TYPE_CHECKING:
    from engram.embedding.protocol import Embedder, Vectors
    from engram.store.files.reconcile.recovery import PendingEvents


AT_ONCE = 4096
"""Images recorded with one call of the database."""


@dataclass(slots=True)
class StoreContext:
    """Everything an open store consists of. `warnings` collects messages for the owner."""

    home: Home
    journal: Journal
    usage: Usage
    ledger: Ledger
    index: Index
    lock: WriterLock
    embedder: "Embedder | None"
    clock: Callable[[], datetime] = utc_now
    token: Callable[[int], str] = random_hex
    teams: set[str] = field(default_factory=set)
    """The folders of the team stores in use."""
    trust: tuple[Stamp | None, dict[str, frozenset[str]]] | None = None
    """The digests the owner trusts, by folder, and the stamp of the file they were read from."""
    warnings: list[str] = field(default_factory=list)
    anchors: Anchors = field(init=False)
    durability: Durability = field(default_factory=Durability)
    pending: "PendingEvents | None" = None
    """Events this process has appended to ledgers and not indexed yet."""

    def __post_init__(self) -> None:
        self.anchors = Anchors(self.index)
        # Without a reference to self: the index of a closed store must be freed at once, not by the cycle collector.
        self.ledger.last_anchored = partial(last_anchored, self.journal)

    def warn(self, *problems: str) -> None:
        """Add warnings for the owner, each once."""
        self.warnings += [text for text in dict.fromkeys(problems) if text and text not in self.warnings]

    def path(self, stored: str) -> Path:
        """The full path of a stored path, which is relative to the home, or absolute in a team store."""
        return self.home.root / stored

    def confined(self, stored: str) -> Path:
        """The full path of a memory file about to be read or changed. Raises if it is outside the store or behind a link."""
        try:
            memory_file(stored)
        except ValueError as error:
            raise StoreCorrupt(f"{self.home.index}: {error}; run `engram index --rebuild`") from None
        refuse_links(self.home.root, stored)
        return self.path(stored)

    def stored(self, path: Path) -> str:
        """The path under which the index knows a file."""
        return str(path).removeprefix(f"{self.home.root}/")

    def embed(self, texts: Sequence[str]) -> "Vectors | None":
        """Vectors of texts; None if this process does not have the index's embedder."""
        if self.embedder is None or not self.index.can_embed():
            return None
        return self.embedder.embed(texts)

    def image_before(self, memory_id: str, seq: int) -> Change | None:
        """A memory's last image before a decision, of those the index has read; None if there is none."""
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


class MemoryRow(NamedTuple):
    """A memory to index: its record, its file ("" for none), and the file's stamp, if that is to be recorded."""

    memory: Memory
    record: Mapping[str, Any] | str
    file: str
    stamp: Stamp | None = None
    vector: "Vectors | None" = None


def index_memories(context: StoreContext, writer: DocumentWriter, rows: Sequence[MemoryRow]) -> None:
    """Put memories into the index, with their relations, places and stamps; inside a transaction."""
    writer.look_up([row.memory.id for row in rows])
    for row in rows:
        is_new = writer.put(memory_document(row.memory), row.record, row.vector)
        writer.put_memory_relations(row.memory, fresh=is_new)
        if not row.file:
            note_place(context, row.memory.id, "")
    run_many, statement = context.index.db.executemany, context.index.statement
    run_many(statement("put_place"), [(row.memory.id, row.file) for row in rows if row.file])
    stamps = ((row.file, row.stamp) for row in rows if row.file and row.stamp is not None)
    run_many(statement("put_file"), [(file, s.mtime_ns, s.size, s.inode, s.ctime_ns, "") for file, s in stamps])


def index_event(
    context: StoreContext, writer: DocumentWriter, event: Event, document: Document, vector: "Vectors | None" = None
) -> None:
    """Put an event and its key into the index."""
    writer.put(document, to_fields(event), vector)
    if event.key:
        context.index.db.execute(
            "INSERT OR IGNORE INTO keys (session, key, id) VALUES (?, ?, ?)", (event.session, event.key, event.id)
        )


def indexed_size(context: StoreContext, ledger: str) -> int | None:
    """How many bytes of a ledger's file are indexed; None for an unknown ledger."""
    row = context.index.db.execute("SELECT size FROM ledgers WHERE name = ?", (ledger,)).fetchone()
    return row[0] if row else None


def note_ledger(context: StoreContext, name: str, size: int) -> None:
    """Record how many bytes of a ledger's file are indexed; inside a transaction."""
    context.index.db.execute("INSERT OR REPLACE INTO ledgers (name, size) VALUES (?, ?)", (name, size))


def index_entry(context: StoreContext, placed: JournalLine) -> None:
    """Record the positions of a journal entry's images, and how far the index has read; inside a transaction."""
    index_entries(context, [placed])


def index_entries(context: StoreContext, lines: Iterable[JournalLine]) -> None:
    """The same for several entries in order."""
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
            index_anchor(context.index, entry)
        if len(images) >= AT_ONCE:
            _index_images(context.index, images)
            images = []
    _index_images(context.index, images)
    if last is not None:
        run = context.index.db
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


def reindex_journal(context: StoreContext) -> None:
    """Record the positions of all images again, after the journal was rewritten. The caller holds the writer lock."""
    with context.index.writing():
        context.index.db.execute("DELETE FROM images")
        context.index.db.execute("DELETE FROM meta WHERE key = 'journal'")
        seq = context.seq
        unread: list[str] = []
        index_entries(context, context.journal.readable(unread))
        context.index.set("seq", max(seq, context.seq))
    context.warn(*unread)


def note_file(context: StoreContext, stored: str, stamp: Stamp | None, error: str = "") -> None:
    """Record a file's stamp when it is read or written; inside a transaction."""
    if stamp is None:
        context.index.db.execute("DELETE FROM files WHERE path = ?", (stored,))
        return
    values = (stored, stamp.mtime_ns, stamp.size, stamp.inode, stamp.ctime_ns, error)
    context.index.db.execute(context.index.statement("put_file"), values)


def note_place(context: StoreContext, memory_id: str, stored: str) -> None:
    """Record which file contains a memory; "" for none."""
    if stored:
        context.index.db.execute(context.index.statement("put_place"), (memory_id, stored))
    else:
        context.index.db.execute("DELETE FROM places WHERE id = ?", (memory_id,))


def forget_memory(context: StoreContext, writer: DocumentWriter, memory_id: str) -> None:
    """Remove a purged memory from the index, with its path and its uses; inside a transaction."""
    place = context.index.db.execute("SELECT path FROM places WHERE id = ?", (memory_id,)).fetchone()
    writer.delete(memory_id)
    note_place(context, memory_id, "")
    if place is not None:
        note_file(context, place[0], stamp_of(context.path(place[0])))
    context.index.db.execute("DELETE FROM uses WHERE id = ?", (memory_id,))


class Tail(NamedTuple):
    """The end of the journal and the number of its last entry."""

    end: Position
    seq: int
    others: bool = False
    """Whether other processes have written to it since this one last read it."""


def journal_tail(context: StoreContext) -> Tail:
    """The journal's end, with the last number from the index if it has read that far."""
    end = context.journal.end()
    return Tail(end, context.seq if end == context.position else context.journal.last_seq())


def append_entry(
    context: StoreContext,
    op: str,
    actor: str,
    reason: str,
    changes: Sequence[Change],
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


def append_anchor(context: StoreContext, session: str, head: Head, tail: Tail, *, durably: bool) -> JournalLine:
    """Record a ledger's end in the journal (an anchor), linked to the previous anchor."""
    reason = checkpoint_text(head, context.anchors.link(tail.end))
    placed = append_entry(context, LEDGER_OP, "engram", reason, (), session, durably=durably, tail=tail)
    context.anchors.note(placed)
    return placed
