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
from engram.store.files.durability import Durability, is_own
from engram.store.files.home import Home, memory_file, refuse_links
from engram.store.files.index.index import Index
from engram.store.files.index.writer import DocumentWriter, IndexRow
from engram.store.files.journal import Change, Entry, Journal, JournalLine, Position
from engram.store.files.ledger import Ledger
from engram.store.files.ledger_checkpoints import Anchors, index_anchor, last_anchored
from engram.store.files.lock import WriterLock
from engram.store.files.memories import Stamp, stamp_of
from engram.store.files.usage import Usage
from engram.store.ledger import Head, to_fields
from engram.store.ledger_checkpoints import LEDGER_OP, checkpoint_text
from engram.store.records import highest_numbers
from engram.store.sources import random_hex, utc_now

if TYPE_CHECKING:
    from engram.embedding.protocol import Embedder, Vectors
    from engram.store.files.recovery import PendingEvents


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
    """How many bytes of a ledger's file are indexed; None for an unknown ledger."""
    row = parts.index.db.execute("SELECT size FROM ledgers WHERE name = ?", (ledger,)).fetchone()
    return row[0] if row else None


def note_ledger(parts: StoreContext, name: str, size: int) -> None:
    """Record how many bytes of a ledger's file are indexed; inside a transaction."""
    parts.index.db.execute("INSERT OR REPLACE INTO ledgers (name, size) VALUES (?, ?)", (name, size))


def index_entry(parts: StoreContext, placed: JournalLine) -> None:
    """Record the positions of a journal entry's images, and how far the index has read; inside a transaction."""
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
    """Record the positions of all images again, after the journal was rewritten. The caller holds the writer lock."""
    with parts.index.writing():
        parts.index.db.execute("DELETE FROM images")
        parts.index.db.execute("DELETE FROM meta WHERE key = 'journal'")
        seq = parts.seq
        unread: list[str] = []
        for placed in parts.journal.readable(unread):
            index_entry(parts, placed)
        parts.index.set("seq", max(seq, parts.seq))
    parts.warn(*unread)


def note_numbers(index: Index, memory_ids: Iterable[str]) -> None:
    """Record the highest id number of each day, so that none is used twice."""
    index.db.executemany(index.statement("raise_number"), list(highest_numbers(memory_ids).items()))


def note_file(parts: StoreContext, stored: str, stamp: Stamp | None, error: str = "") -> None:
    """Record a file's stamp when it is read or written; inside a transaction."""
    if stamp is None:
        parts.index.db.execute("DELETE FROM files WHERE path = ?", (stored,))
        return
    values = (stored, stamp.mtime_ns, stamp.size, stamp.inode, error)
    parts.index.db.execute(parts.index.statement("put_file"), values)


def note_place(parts: StoreContext, memory_id: str, stored: str) -> None:
    """Record which file contains a memory; "" for none."""
    if stored:
        parts.index.db.execute(parts.index.statement("put_place"), (memory_id, stored))
    else:
        parts.index.db.execute("DELETE FROM places WHERE id = ?", (memory_id,))


def forget_memory(parts: StoreContext, writer: DocumentWriter, memory_id: str) -> None:
    """Remove a purged memory from the index, with its path and its uses; inside a transaction."""
    place = parts.index.db.execute("SELECT path FROM places WHERE id = ?", (memory_id,)).fetchone()
    writer.delete(memory_id)
    note_place(parts, memory_id, "")
    if place is not None:
        note_file(parts, place[0], stamp_of(parts.path(place[0])))
    parts.index.db.execute("DELETE FROM uses WHERE id = ?", (memory_id,))


class Tail(NamedTuple):
    """The end of the journal and the number of its last entry."""

    end: Position
    seq: int
    others: bool = False
    """Whether other processes have written to it since this one last read it."""


def journal_tail(parts: StoreContext) -> Tail:
    """The journal's end, with the last number from the index if it has read that far."""
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
) -> JournalLine:
    """Journal one decision: the commit point. `tail` is the journal's end, if the caller knows it."""
    tail = tail or journal_tail(parts)
    entry = Entry(max(tail.seq, parts.durability.floor) + 1, parts.clock(), op, actor, reason, tuple(changes), session)
    parts.durability.waiting += sum(1 for change in changes if is_own(change.file) or not change.file)
    return parts.journal.append(entry, tail.end, durably=durably)


def append_anchor(parts: StoreContext, session: str, head: Head, tail: Tail, *, durably: bool) -> JournalLine:
    """Record a ledger's end in the journal (an anchor), linked to the previous anchor."""
    reason = checkpoint_text(head, parts.anchors.link(tail.end))
    placed = append_entry(parts, LEDGER_OP, "engram", reason, (), session, durably=durably, tail=tail)
    parts.anchors.note(placed)
    return placed
