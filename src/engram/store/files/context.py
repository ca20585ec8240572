"""The parts of an open files store, handed to the functions that work on them."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from engram.model.errors import StoreCorrupt
from engram.model.event import Event
from engram.model.memory import Memory
from engram.store.documents import Document, memory_document
from engram.store.files.confinement import memory_file, refuse_links
from engram.store.files.durability import Durability, is_own
from engram.store.files.home import Home
from engram.store.files.index.index import Index
from engram.store.files.index.writer import DocumentWriter, IndexRow
from engram.store.files.journal import Change, Entry, Journal, Position
from engram.store.files.journal import JournalLine as PlacedEntry
from engram.store.files.ledger import Ledger
from engram.store.files.ledger_checkpoints import Anchors, index_anchor, last_witnessed
from engram.store.files.lock import WriterLock
from engram.store.files.memories import Stamp, stamp_of
from engram.store.files.usage import Usage
from engram.store.ledger import Head, to_fields
from engram.store.ledger_checkpoints import LEDGER_OP, checkpoint_text
from engram.store.records import highest_numbers
from engram.store.sources import random_hex, utc_now

if TYPE_CHECKING:
    from engram.embedding.protocol import Embedder, Vectors
    from engram.store.files.pending_events import PendingEvents


@dataclass(slots=True)
class StoreContext:
    """Everything an open store consists of. `warnings` collects what the owner should hear of."""

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
    """What was last read of the contents that the owner trusts, by folder, and how its file looked then."""
    warnings: list[str] = field(default_factory=list)
    anchors: Anchors = field(init=False)
    durability: Durability = field(default_factory=Durability)
    awaiting: "PendingEvents | None" = None
    """What this process has appended to ledgers and the index does not have yet."""

    def __post_init__(self) -> None:
        self.anchors = Anchors(self.index)
        # Without a way back to these parts: a closed store's index must go at once, not when circles are collected.
        self.ledger.witnessed = partial(last_witnessed, self.journal)

    def path(self, stored: str) -> Path:
        """A file by the path the index knows it by: below the home, or absolute for a team store."""
        return self.home.root / stored

    def confined(self, stored: str) -> Path:
        """The same for a memory's file that is about to be read or changed: it lies in the store and behind no link."""
        try:
            memory_file(stored)
        except ValueError as error:
            raise StoreCorrupt(f"{self.home.index}: {error}; run `engram index --rebuild`") from None
        refuse_links(self.home.root, stored)
        return self.path(stored)

    def stored(self, path: Path) -> str:
        """The path the index knows a file by."""
        return str(path).removeprefix(f"{self.home.root}/")

    def embed(self, texts: Sequence[str]) -> "Vectors | None":
        """Vectors of texts, where this process has the index's embedder."""
        if self.embedder is None or not self.index.can_embed():
            return None
        return self.embedder.embed(texts)

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
        """The position that the index has noted."""
        return Position(*json.loads(stored)[:2]) if stored else Position()


def index_memory(
    writer: DocumentWriter,
    memory: Memory,
    mapping: Mapping[str, Any] | str,
    vector: "Vectors | None" = None,
) -> None:
    """Put a memory and its relations into the index."""
    known = writer.put(IndexRow(memory_document(memory), mapping, vector))
    writer.put_memory_relations(memory, fresh=known.fresh)


def index_event(
    parts: StoreContext, writer: DocumentWriter, event: Event, document: Document, vector: "Vectors | None" = None
) -> None:
    """Put an event and its key into the index."""
    writer.put(IndexRow(document, to_fields(event), vector))
    if event.key:
        parts.index.db.execute(
            "INSERT OR IGNORE INTO keys (session, key, id) VALUES (?, ?, ?)", (event.session, event.key, event.id)
        )


def indexed_size(parts: StoreContext, ledger: str) -> int | None:
    """How much of a ledger's file the index has read; None for one it does not know."""
    row = parts.index.db.execute("SELECT size FROM ledgers WHERE name = ?", (ledger,)).fetchone()
    return row[0] if row else None


def note_ledger(parts: StoreContext, name: str, size: int) -> None:
    """Remember how much of a ledger's file the index has read; inside a transaction."""
    parts.index.db.execute("INSERT OR REPLACE INTO ledgers (name, size) VALUES (?, ?)", (name, size))


def index_entry(parts: StoreContext, placed: PlacedEntry) -> None:
    """Note where a journal entry's images lie, and how far the index has read; inside a transaction."""
    index, entry = parts.index, placed.entry
    if entry.changes:
        at, place = entry.at.timestamp(), (entry.op, placed.start.month, placed.start.offset)
        index.db.executemany(index.statement("put_image"), [(c.id, entry.seq, at, *place) for c in entry.changes])
        note_numbers(index, [change.id for change in entry.changes])
        gone = [(change.id,) for change in entry.changes if change.after is None]
        index.db.executemany("INSERT OR IGNORE INTO tombstones (id) VALUES (?)", gone)
    if entry.op == LEDGER_OP:
        index_anchor(index, entry)
    read = json.dumps([placed.end.month, placed.end.offset, placed.start.offset])
    index.db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('seq', ?), ('journal', ?)", (entry.seq, read))


def reindex_journal(parts: StoreContext) -> None:
    """Record again where every image lies, after the journal was rewritten. For the holder of the writer lock; numbers and tombstones only ever grow."""
    with parts.index.writing():
        parts.index.db.execute("DELETE FROM images")
        parts.index.db.execute("DELETE FROM meta WHERE key = 'journal'")
        seq = parts.seq
        unread: list[str] = []
        for placed in parts.journal.readable(unread):
            index_entry(parts, placed)
        parts.index.set("seq", max(seq, parts.seq))
    parts.warnings += [problem for problem in unread if problem not in parts.warnings]


def note_numbers(index: Index, memory_ids: Iterable[str]) -> None:
    """Remember the highest number of each day, so that none is given out again."""
    index.db.executemany(index.statement("raise_number"), list(highest_numbers(memory_ids).items()))


def note_file(parts: StoreContext, stored: str, stamp: Stamp | None, error: str = "") -> None:
    """Remember how a file looked when it was last read or written; inside a transaction."""
    if stamp is None:
        parts.index.db.execute("DELETE FROM files WHERE path = ?", (stored,))
        return
    values = (stored, stamp.mtime_ns, stamp.size, stamp.inode, error)
    parts.index.db.execute(parts.index.statement("put_file"), values)


def note_place(parts: StoreContext, memory_id: str, stored: str) -> None:
    """Remember which file holds a memory; "" when none does."""
    if stored:
        parts.index.db.execute(parts.index.statement("put_place"), (memory_id, stored))
    else:
        parts.index.db.execute("DELETE FROM places WHERE id = ?", (memory_id,))


def forget_memory(parts: StoreContext, writer: DocumentWriter, memory_id: str) -> None:
    """Take a purged memory out of the index, with its place and its uses; inside a transaction."""
    place = parts.index.db.execute("SELECT path FROM places WHERE id = ?", (memory_id,)).fetchone()
    writer.delete(memory_id)
    note_place(parts, memory_id, "")
    if place is not None:
        note_file(parts, place[0], stamp_of(parts.path(place[0])))
    parts.index.db.execute("DELETE FROM uses WHERE id = ?", (memory_id,))


class Tail(NamedTuple):
    """Where the journal ends, and the number of its last entry."""

    end: Position
    seq: int
    others: bool = False
    """Whether others have written to it since this process last looked."""


def journal_tail(parts: StoreContext) -> Tail:
    """The journal's end; its number from the index where that has read so far: an empty one may have taken its place."""
    end = parts.journal.end()
    return Tail(end, parts.seq if end == parts.position else parts.journal.last_seq())


def append_entry(
    parts: StoreContext,
    op: str,
    actor: str,
    reason: str,
    changes: Sequence[Change],
    session: str = "",
    *,
    durably: bool = True,
    tail: Tail | None = None,
) -> PlacedEntry:
    """Journal one decision: the commit point. `tail` is for whoever has just looked where the journal ends."""
    tail = tail or journal_tail(parts)
    entry = Entry(max(tail.seq, parts.durability.floor) + 1, parts.clock(), op, actor, reason, tuple(changes), session)
    parts.durability.written(sum(1 for change in changes if is_own(change.file) or not change.file))
    return parts.journal.append(entry, tail.end, durably=durably)


def witness(parts: StoreContext, session: str, head: Head, tail: Tail, *, durably: bool) -> PlacedEntry:
    """Tell the journal where a ledger ends, linked to what it was told last."""
    reason = checkpoint_text(head, parts.anchors.link(tail.end))
    placed = append_entry(parts, LEDGER_OP, "engram", reason, (), session, durably=durably, tail=tail)
    parts.anchors.note(placed)
    return placed
