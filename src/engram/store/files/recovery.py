"""Recovery: decisions and events that reached the journal and the ledgers, but not yet the files or the index.

The caller of everything here holds the writer lock.
"""

import contextlib
import json
import os
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram.model.errors import EmbedderError, EngramError, StoreCorrupt, StoreError
from engram.model.event import Event
from engram.model.lazy import dataclass, field
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
from engram.store.files.power_loss import Leftovers, repair_after_restart, was_set_back
from engram.store.files.state import session_scope
from engram.store.ledger_checkpoints import LEDGER_OP, TASK
from engram.store.records import from_image

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors


MOST, MOST_BYTES = 64, 1_000_000
"""Events, and bytes of events, that may stay pending; the append that reaches a limit indexes all of them."""


@dataclass(slots=True)
class PendingEvents:
    """Events this process has appended and not indexed yet.

    The ledger is the commit point and the index is derived, so an append need not wait for it. Nothing depends on this process:
    every append is anchored in the journal, and any process that finds the journal longer than the index has read indexes them.
    """

    into: sqlite3.Connection
    read: str | None
    """How far the index had read the journal; while that is unchanged, nobody else has indexed the events."""
    events: list[tuple[Event, str]] = field(default_factory=list)
    """Each event with the scope of its ledger."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Each ledger's size after its last event."""
    anchors: dict[str, JournalLine] = field(default_factory=dict)
    """The last anchor journaled for each session, the newest of all last."""
    size: int = 0
    """Bytes of all pending events."""
    is_urgent: bool = False
    """Whether to index them at once: others are writing too, or the anchor could not be journaled."""

    @property
    def newest(self) -> JournalLine | None:
        """The newest anchor of any of these ledgers."""
        return next(reversed(self.anchors.values()), None)

    @property
    def is_due(self) -> bool:
        """Whether the events should be indexed now."""
        return self.is_urgent or self.read is None or len(self.events) >= MOST or self.size >= MOST_BYTES

    def add(self, events: Sequence[Event], scope: str, written: Written) -> None:
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


def is_untouched(parts: StoreContext, waiting: PendingEvents) -> bool:
    """Whether the index is as it was before these events were appended; if not, another process has indexed them.

    A process that reads on in the journal indexes every ledger that is anchored there.
    """
    return waiting.into is parts.index.db and parts.index.get("journal") == waiting.read


def event_vectors(parts: StoreContext, documents: Sequence[Document]) -> "Sequence[Vectors | None]":
    """A vector for each document; None where there is none yet, so that it is found by keyword only."""
    vectors = None
    with contextlib.suppress(EmbedderError):
        vectors = parts.embed([document.meaning for document in documents])
    return list(vectors) if vectors is not None else [None] * len(documents)


def index_pending(parts: StoreContext) -> None:
    """Index the pending events. The caller holds the writer lock."""
    waiting = parts.pending
    if waiting is not None and is_untouched(parts, waiting):
        documents = [event_document(event, scope) for event, scope in waiting.events]
        vectors = event_vectors(parts, documents)
        with parts.index.writing() as writer:
            for (event, _), document, vector in zip(waiting.events, documents, vectors, strict=True):
                index_event(parts, writer, event, document, vector)
            for ledger, size in waiting.sizes.items():
                note_ledger(parts, ledger, size)
            for placed in waiting.anchors.values():
                index_entry(parts, placed)
    parts.pending = None


Images = Sequence[Mapping[str, Any]]
FEW = 512
"""Up to this many events of a ledger are embedded under the lock."""


class IndexOutdated(sqlite3.DatabaseError):
    """The journal is not the one the index has read (purged by another version, pruned, restored): a rebuild is due."""

    sqlite_errorcode = sqlite3.SQLITE_CORRUPT


def catch_up(parts: StoreContext, *, ledger: str | None = None) -> Tail:
    """Index what other processes wrote and finish what a crash interrupted: journal first, then ledgers.

    A decision about memories needs no ledger (""), an event only its own; opening a store checks all of them.
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


_READ_SO_FAR = """SELECT key, value FROM meta WHERE key IN ('seq', 'journal')
UNION ALL SELECT 'size', size FROM ledgers WHERE name = ?"""


def _follow_journal(parts: StoreContext) -> None:
    check_continuity(parts)
    parts.warnings += parts.journal.quarantine_torn()
    pending = list(parts.journal.read(parts.position))
    _redo_files(parts, pending)
    touched = [change.file for placed in pending for change in placed.entry.changes if change.file]
    touched += [file_sync.place_of(parts, c.id) for p in pending if p.entry.op == "split" for c in p.entry.changes]
    # Their events first: once the index has read the anchor, nobody looks for them again.
    follow_ledgers(parts, {ledger_name(placed.entry.session) for placed in pending if placed.entry.op == LEDGER_OP})
    for _, together in groupby(pending, lambda placed: placed.entry.seq if placed.entry.changes else 0):
        with parts.index.writing() as writer:
            for placed in together:
                _replay(parts, writer, placed)
    file_sync.pick_up(parts, [stored for stored in touched if stored])


def journal_task(parts: StoreContext, task_id: str, what: str) -> None:
    """Journal that a task or checkpoint was written, so that its loss is noticed. A failure is only a warning."""
    try:
        tail = catch_up(parts, ledger="")
        placed = append_entry(parts, TASK, "engram", what, (), task_id, durably=False, tail=tail)
        with parts.index.writing():
            index_entry(parts, placed)
    except (StoreError, sqlite3.Error, OSError) as error:
        parts.warnings.append(f"{task_id}: it is not recorded in the journal: {error}")


def check_continuity(parts: StoreContext) -> None:
    """Raise `IndexOutdated` unless the last entry the index read is still where it was."""
    month, end, start = [*json.loads(parts.index.get("journal") or '["", 0]'), -1][:3]
    if start >= 0 and not parts.journal.has_entry(Position(month, start), end, parts.seq):
        raise IndexOutdated(f"the index does not match the journal in {parts.home.journal}")


def _redo_files(parts: StoreContext, pending: Sequence[JournalLine]) -> None:
    """Write each memory's newest image to its file, unless its owner has changed it since."""
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
        # A person's edit was in the file before it was in the journal.
        if op != file_sync.EDIT:
            row = parts.index.one("by_ref", memory_id)
            before = [*older.get(memory_id, []), *([json.loads(row[2])] if row else [])]
            redo_file(parts, change, before, leftovers)


def redo_file(parts: StoreContext, change: Change, older: Images, leftovers: Leftovers) -> None:
    """Write a file that is missing, torn or older than its journal entry. Any other content is its owner's.

    A team file is written only while its team store is attached: a journal alone must not create files in a repository.
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
    if path.is_file() and not path.is_symlink() and not _holds(path, spellings[0]):
        memories.await_save(path)
    stamp = stamp_of(path)
    expected: dict[str, Mapping[str, Any]] = {change.id: change.after or {}}
    if stamp is None or was_set_back(path, expected, {change.id: older}, spellings):
        memories.write(path, memory, stamp)


def _holds(path: Path, data: bytes) -> bool:
    try:
        return memories.content(path) == data
    except EngramError:
        return False


def readable_image(parts: StoreContext, change: Change) -> Memory | None:
    """The memory of an image; None, with a warning, if only a newer Engram can read it."""
    if change.after is None:
        return None
    try:
        return from_image(change.after)
    except EngramError as error:
        parts.warnings.append(f"{parts.home.journal}: {change.id}: {error}")
        return None


def _replay(parts: StoreContext, writer: DocumentWriter, placed: JournalLine) -> None:
    """Index a journaled decision; its files are read afterwards, so their stamps are unknown."""
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
    """Index new events of these ledgers, or of all, and remove those of ledgers that are gone."""
    known = dict(parts.index.all("ledger_sizes", None if names is None else json.dumps(list(names))))
    sizes = parts.ledger.sizes(names)
    if known == sizes:
        return
    parts.warnings += parts.ledger.quarantine_torn(names)
    for name, size in parts.ledger.sizes(names).items():
        before = known.get(name, -1)
        if before != size:
            with parts.index.writing() as writer:
                index_ledger(parts, writer, name, before if 0 <= before < size else 0, size)
    forget_ledgers(parts, [name for name in known if name not in sizes])


def index_ledger(
    parts: StoreContext, writer: DocumentWriter, name: str, offset: int, size: int, most: int | None = FEW
) -> None:
    """Index a ledger's events from an offset on, inside a transaction; more than `most` get their vectors later."""
    events, broken = parts.ledger.readable(name, offset)
    parts.warn(broken)
    try:
        scopes = {session: session_scope(parts.home, session) for session in {event.session for event in events}}
    except StoreCorrupt as error:
        # The owner is unknown until the task can be read again.
        parts.warn(str(error))
        return
    documents = [event_document(event, scopes[event.session]) for event in events]
    few = most is None or len(documents) <= most
    vectors = event_vectors(parts, documents) if few else [None] * len(documents)
    for event, document, vector in zip(events, documents, vectors, strict=True):
        index_event(parts, writer, event, document, vector)
    note_ledger(parts, name, size)


def forget_ledgers(parts: StoreContext, names: Sequence[str]) -> None:
    """Remove the events of deleted ledgers from the index."""
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
