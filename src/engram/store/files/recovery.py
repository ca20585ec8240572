"""Finishing what a crash left undone: decisions that reached the journal but not the files or the index.

Everything here is for the holder of the writer lock.
"""

import contextlib
import json
import os
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram.model.errors import EmbedderError, EngramError, StoreCorrupt, StoreError
from engram.model.event import Event
from engram.model.memory import Memory
from engram.store.documents import Document, event_document
from engram.store.files import file_sync, memories
from engram.store.files.context import (
    StoreContext,
    Tail,
    append_entry,
    forget_memory,
    index_entry,
    index_event,
    index_memory,
    journal_tail,
    note_file,
    note_ledger,
    note_place,
)
from engram.store.files.index.writer import DocumentWriter
from engram.store.files.journal import Change, JournalLine, Position
from engram.store.files.ledger import Written, ledger_name
from engram.store.files.memories import UNSEEN, stamp_of
from engram.store.files.power_loss import Leftovers, is_torn, repair_after_restart
from engram.store.files.state import session_scope
from engram.store.ledger_checkpoints import ANCHOR, TASK
from engram.store.records import from_image, image

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors


MOST, MOST_BYTES = 64, 1_000_000
"""So many may wait, and so much; the append that comes to it pays for all of them."""


@dataclass(slots=True)
class PendingEvents:
    """What this process has appended since the index was in step with all logs."""

    into: sqlite3.Connection
    read: str | None
    """How far the index had read the journal, in its own words: as long as that stands, nobody else took the events in."""
    events: list[tuple[Event, str]] = field(default_factory=list)
    """Each with the scope its ledger belongs to."""
    sizes: dict[str, int] = field(default_factory=dict)
    """How long each ledger is behind its last event."""
    told: dict[str, JournalLine] = field(default_factory=dict)
    """What the journal was told of each session's ledger last; the newest word of all is the last."""
    size: int = 0
    """Bytes of all of them."""
    is_pressing: bool = False
    """Whether the index should have them at once: others are writing too, or the journal could not be told."""

    @property
    def newest(self) -> JournalLine | None:
        """The journal's newest word on any of these ledgers."""
        return next(reversed(self.told.values()), None)

    @property
    def is_due(self) -> bool:
        """Whether the index should have all this now."""
        return self.is_pressing or self.read is None or len(self.events) >= MOST or self.size >= MOST_BYTES

    def add(self, events: Sequence[Event], scope: str, written: Written) -> None:
        """An append to a ledger."""
        self.events += [(event, scope) for event in events]
        self.size += written.end - written.start
        self.sizes[written.ledger] = written.end

    def tell(self, placed: JournalLine | None) -> None:
        """What the journal was told of it."""
        if placed is None:
            self.is_pressing = True
            return
        self.told.pop(placed.entry.session, None)
        self.told[placed.entry.session] = placed


def is_untouched(parts: StoreContext, waiting: PendingEvents) -> bool:
    """Whether the index is as it was before these events were appended; if not, another process has taken them in.

    Whoever moves on in the journal has taken in every ledger that it tells of.
    """
    return waiting.into is parts.index.db and parts.index.get("journal") == waiting.read


def event_vectors(parts: StoreContext, documents: Sequence[Document]) -> "Sequence[Vectors | None]":
    """A vector for each; None where there is none yet: it is found by its words, and by its meaning once that can be made."""
    vectors = None
    with contextlib.suppress(EmbedderError):
        vectors = parts.embed([document.meaning for document in documents])
    return list(vectors) if vectors is not None else [None] * len(documents)


def index_pending(parts: StoreContext) -> None:
    """Put what waits into the index. For the holder of the writer lock."""
    waiting = parts.awaiting
    if waiting is not None and is_untouched(parts, waiting):
        documents = [event_document(event, scope) for event, scope in waiting.events]
        vectors = event_vectors(parts, documents)
        with parts.index.writing() as writer:
            for (event, _), document, vector in zip(waiting.events, documents, vectors, strict=True):
                index_event(parts, writer, event, document, vector)
            for ledger, size in waiting.sizes.items():
                note_ledger(parts, ledger, size)
            for placed in waiting.told.values():
                index_entry(parts, placed)
    parts.awaiting = None


Images = Sequence[Mapping[str, Any]]
FEW = 512
"""So many events of a ledger are embedded while the lock is held."""


class IndexOutdated(sqlite3.DatabaseError):
    """The journal is not the one the index has read (purged by another version, pruned, restored): as good as damaged."""

    sqlite_errorcode = sqlite3.SQLITE_CORRUPT


def catch_up(parts: StoreContext, *, ledger: str | None = None) -> Tail:
    """Finish what another writer's crash, or another version's index, left for us: journal first, then ledgers.

    A decision about memories needs no ledger (""), an event only its own; all of them are looked at when a store is opened.
    Returns the journal's end.
    """
    repair_after_restart(parts)
    index_pending(parts)
    end = parts.journal.end()
    known = dict(parts.index.db.execute(_READ_SO_FAR, (ledger or "",)).fetchall())
    tail = Tail(end, int(known.get("seq") or 0))
    if tail.end != parts.position_of(known.get("journal")):
        _follow_journal(parts)
        tail = journal_tail(parts)._replace(others=True)
    if ledger is None:
        follow_ledgers(parts)
    elif ledger and parts.ledger.size(ledger) != known.get("size"):
        follow_ledgers(parts, {ledger})
    return tail


_READ_SO_FAR = "SELECT key, value FROM meta WHERE key IN ('seq', 'journal') UNION ALL SELECT 'size', size FROM ledgers WHERE name = ?"


def _follow_journal(parts: StoreContext) -> None:
    check_continuity(parts)
    parts.warnings += parts.journal.mend()
    pending = list(parts.journal.read(parts.position))
    _redo_files(parts, pending)
    touched = [change.file for placed in pending for change in placed.entry.changes if change.file]
    touched += [file_sync.place_of(parts, c.id) for p in pending if p.entry.op == "split" for c in p.entry.changes]
    # Their events first: once the index has read the journal, nobody looks for them any more.
    follow_ledgers(parts, {ledger_name(placed.entry.session) for placed in pending if placed.entry.op == ANCHOR})
    for _, together in groupby(pending, lambda placed: placed.entry.seq if placed.entry.changes else 0):
        with parts.index.writing() as writer:
            for placed in together:
                _replay(parts, writer, placed)
    file_sync.pick_up(parts, [stored for stored in touched if stored])


def witness_task(parts: StoreContext, task_id: str, what: str) -> None:
    """Tell the journal of a task or checkpoint that was written, so that it is missed should it get lost. It stands without."""
    try:
        tail = catch_up(parts, ledger="")
        placed = append_entry(parts, TASK, "engram", what, (), task_id, durably=False, tail=tail)
        with parts.index.writing():
            index_entry(parts, placed)
    except (StoreError, sqlite3.Error, OSError) as error:
        parts.warnings.append(f"{task_id}: the journal was not told of it: {error}")


def check_continuity(parts: StoreContext) -> None:
    """Raise `IndexOutdated` unless the entry the index read last still stands where it stood."""
    month, end, start = [*json.loads(parts.index.get("journal") or '["", 0]'), -1][:3]
    if start >= 0 and not parts.journal.stands(Position(month, start), end, parts.seq):
        raise IndexOutdated(f"the index does not fit the journal in {parts.home.journal}")


def _redo_files(parts: StoreContext, pending: Sequence[JournalLine]) -> None:
    """Write each memory's newest image to its file, unless its owner wrote something there since."""
    newest: dict[str, tuple[str, Change]] = {}
    older: dict[str, list[Mapping[str, Any]]] = {}
    for placed in pending:
        for change in placed.entry.changes:
            known = newest.get(change.id)
            if known is not None and known[1].after is not None:
                older.setdefault(change.id, []).append(known[1].after)
            newest[change.id] = placed.entry.op, change
    leftovers = Leftovers(parts.home)
    for memory_id, (op, change) in newest.items():
        # What a person's edit says was in the file before it was in the journal.
        if op != file_sync.EDIT:
            row = parts.index.one("by_ref", memory_id)
            before = [*older.get(memory_id, []), *([json.loads(row[2])] if row else [])]
            redo_file(parts, change, before, leftovers)


def redo_file(parts: StoreContext, change: Change, older: Images, leftovers: Leftovers) -> None:
    """Write a file that is missing, torn or older than its journal entry. Anything else in it is its owner's.

    A repository's file is written only while that repository's store is in use: a journal alone must not make files there.
    """
    memory = readable_image(parts, change)
    if (
        memory is None
        or not change.file
        or (file_sync.is_team(change.file) and not file_sync.team_of(parts, change.file))
    ):
        return
    try:
        path = parts.confined(change.file)
    except StoreError as error:
        parts.warnings.append(str(error))
        return
    if file_sync.is_team(change.file) and not path.parent.is_dir():
        return
    spellings = [memories.render([memory]), *(memories.render([from_image(old)]) for old in older)]
    leftovers.clear(path, spellings)
    stamp = stamp_of(path)
    if stamp is None or (not _holds(path, spellings[0]) and _is_ours(path, spellings, older, change)):
        memories.write(path, memory, stamp)


def _holds(path: Path, data: bytes) -> bool:
    """Whether a file has just these bytes."""
    try:
        return memories.content(path) == data
    except EngramError:
        return False


def _is_ours(path: Path, spellings: Sequence[bytes], older: Images, change: Change) -> bool:
    if not path.is_symlink() and path.is_file() and stamp_of(path) is not None:
        memories.await_save(path)
    try:
        data = memories.content(path)
    except EngramError:
        return False
    if is_torn(data, spellings):
        return True
    with contextlib.suppress(EngramError):
        found = [image(memory) for memory in memories.parse(data, path)]
        return len(found) == 1 and found[0] != change.after and found[0] in older
    return False


def readable_image(parts: StoreContext, change: Change) -> Memory | None:
    """The memory of an image; None, with a warning, for one that only a newer Engram can read."""
    if change.after is None:
        return None
    try:
        return from_image(change.after)
    except EngramError as error:
        parts.warnings.append(f"{parts.home.journal}: {change.id}: {error}")
        return None


def _replay(parts: StoreContext, writer: DocumentWriter, placed: JournalLine) -> None:
    """Put a journaled decision into the index; its files are read afterwards, so no stamp of them is known yet."""
    for change in placed.entry.changes:
        memory = readable_image(parts, change)
        if change.after is None:
            forget_memory(parts, writer, change.id)
        if memory is None:
            continue
        index_memory(writer, memory, change.after or {})
        note_place(parts, change.id, change.file)
        if change.file:
            note_file(parts, change.file, UNSEEN)
    index_entry(parts, placed)


def follow_ledgers(parts: StoreContext, names: Collection[str] | None = None) -> None:
    """Index events that were written and not indexed; forget those of ledgers that are gone. Of these ledgers, or of all."""
    known = dict(parts.index.all("ledger_sizes", None if names is None else json.dumps(list(names))))
    sizes = parts.ledger.sizes(names)
    if known == sizes:
        return
    parts.warnings += parts.ledger.mend(names)
    for name, size in parts.ledger.sizes(names).items():
        before = known.get(name, -1)
        if before != size:
            try:
                _index_ledger(parts, name, before if 0 <= before < size else 0, size)
            except StoreCorrupt as error:
                # Whose it is cannot be told: it waits until its task can be read.
                _warn(parts, str(error))
    forget_ledgers(parts, [name for name in known if name not in sizes])


def _index_ledger(parts: StoreContext, name: str, offset: int, size: int) -> None:
    events, broken = parts.ledger.readable(name, offset)
    _warn(parts, broken)
    documents = [event_document(event, session_scope(parts.home, event.session)) for event in events]
    # Others wait for the lock; of many, the vectors are made when it is free again.
    vectors = event_vectors(parts, documents) if len(documents) <= FEW else [None] * len(documents)
    with parts.index.writing() as writer:
        for event, document, vector in zip(events, documents, vectors, strict=True):
            index_event(parts, writer, event, document, vector)
        note_ledger(parts, name, size)


def _warn(parts: StoreContext, problem: str) -> None:
    if problem and problem not in parts.warnings:
        parts.warnings.append(problem)


def forget_ledgers(parts: StoreContext, names: Sequence[str]) -> None:
    """Take the events of ledgers that no longer exist out of the index."""
    if not names:
        return
    run = parts.index.db.execute
    parents = [parent for (parent,) in run("SELECT DISTINCT parent FROM docs WHERE kind = 'event'").fetchall()]
    gone = [parent for parent in parents if parts.ledger.path(parent).name in names]
    with parts.index.writing() as writer:
        for name in names:
            run("DELETE FROM ledgers WHERE name = ?", (name,))
        for parent in gone:
            for (event_id,) in run("SELECT id FROM docs WHERE kind = 'event' AND parent = ?", (parent,)).fetchall():
                writer.delete(event_id)
                run("DELETE FROM keys WHERE id = ?", (event_id,))


def remove_stray(folder: Path) -> None:
    """Remove temporary files that a crash left in one of the log folders."""
    for name in os.listdir(folder) if folder.is_dir() else ():
        if name.startswith(".") and name.endswith(".tmp"):
            (folder / name).unlink(missing_ok=True)
