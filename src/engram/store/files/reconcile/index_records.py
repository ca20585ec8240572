"""What the index records of files, ledgers, uses and the journal, and how far it has read them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from engram.model.event import Event
from engram.model.lazy import replace
from engram.model.memory import Memory
from engram.model.usage import Use
from engram.store.documents import Document, memory_document
from engram.store.files.log.journal import Entry, JournalLine, Position
from engram.store.files.log.usage import Usage
from engram.store.files.memories import Stamp, stamp_of
from engram.store.home import Home
from engram.store.ledger import FIRST_LINK, LEDGER_OP, Head, link_to, parse_checkpoint, to_fields
from engram.store.records import highest_numbers
from engram.store.sqlite.index import Index
from engram.store.sqlite.writer import DocumentWriter

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors

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
