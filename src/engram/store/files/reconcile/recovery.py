"""Brings the index up to date with journal, files and ledgers, or rebuilds it, and embeds documents without a vector.

The index records how far it has read each source: the journal by a position, a ledger by its size, a memory file by its
stamp. `catch_up` reads on from there and finishes interrupted work; `rebuild` empties the index and does the same from
the beginning, in one transaction, so that readers see the old index until the new one is complete.

Callers must have the writer lock, except for `fill_unlocked`.
"""

import contextlib
import json
import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engram.disk import whole_lines
from engram.model.errors import EmbedderError, EngramError, StoreCorrupt, StoreError, StoreReadOnly
from engram.model.memory import Memory
from engram.store.documents import Document, event_document, meaning_of, stored_meaning
from engram.store.files.log.journal import AfterImage, JournalLine, Position
from engram.store.files.log.ledger import ledger_name
from engram.store.files.memories import UNSEEN_STAMP
from engram.store.files.reconcile import hand_edits
from engram.store.files.reconcile.file_repair import finish_files, repair_after_restart
from engram.store.files.reconcile.folders import is_team, is_trusted_anywhere
from engram.store.files.reconcile.hand_edits import pick_up
from engram.store.files.reconcile.index_state import (
    IndexContext,
    LogContext,
    MemoryRow,
    PendingEvents,
    Tail,
    append_entry,
    forget_memory,
    index_entries,
    index_entry,
    index_event,
    index_memories,
    journal_tail,
    note_ledger,
    place_of,
)
from engram.store.files.states.work import session_scope
from engram.store.ledger import LEDGER_OP, TASK_OP
from engram.store.protocol import Progress
from engram.store.records import from_image
from engram.store.reports import SyncReport
from engram.store.sqlite.writer import DocumentWriter, to_blob

if TYPE_CHECKING:
    from engram.embedding.vectors import Vectors


def is_untouched(context: IndexContext, waiting: PendingEvents) -> bool:
    """Whether the index is unchanged since before these events were appended; otherwise another process has indexed them.

    A process that reads on in the journal indexes every ledger that is anchored there.
    """
    return waiting.into is context.index.db and context.index.get("journal") == waiting.read


def event_vectors(context: IndexContext, documents: Sequence[Document]) -> "Sequence[Vectors | None]":
    """A vector for each document; None if there is none yet, so that the document is found by keyword only."""
    vectors = None
    with contextlib.suppress(EmbedderError):
        vectors = context.embed([document.meaning for document in documents])
    return list(vectors) if vectors is not None else [None] * len(documents)


def index_pending(context: IndexContext) -> None:
    """Index the pending events. The caller holds the writer lock."""
    waiting = context.pending
    if waiting is not None and is_untouched(context, waiting):
        documents = [event_document(event, scope) for event, scope in waiting.events]
        vectors = event_vectors(context, documents)
        with context.index.writing() as writer:
            for (event, _), document, vector in zip(waiting.events, documents, vectors, strict=True):
                index_event(context.index, writer, event, document, vector)
            for ledger, size in waiting.sizes.items():
                note_ledger(context.index, ledger, size)
            for placed in waiting.anchors.values():
                index_entry(context.index, placed)
    context.pending = None


MAX_EVENTS_EMBEDDED_LOCKED = 512
"""Up to this many events of a ledger are embedded under the lock."""
MEMORIES_PER_BATCH = 512
"""Memories indexed with one call of the embedder and of the database."""


class IndexOutdated(sqlite3.DatabaseError):
    """The journal is not the one the index has read (purged by another version, pruned, restored): a rebuild is due."""

    sqlite_errorcode = sqlite3.SQLITE_CORRUPT


def catch_up(context: IndexContext, *, ledger: str | None = None) -> Tail:
    """Index what other processes wrote and finish interrupted work: journal first, then ledgers.

    A decision about memories needs no ledger (""), an event only its own; opening a store checks all of them. Returns
    the journal's end.
    """
    repair_after_restart(context)
    index_pending(context)
    end = context.journal.end()
    known = dict(context.index.db.execute(_READ_SO_FAR, (ledger or "",)).fetchall())
    tail = Tail(end, int(known.get("seq") or 0))
    if tail.end != context.position_of(known.get("journal")):
        _follow_journal(context)
        tail = journal_tail(context)._replace(others=True)
    if ledger is None:
        follow_ledgers(context)
    elif ledger and context.ledger.size(ledger) != known.get("size"):
        follow_ledgers(context, {ledger})
    return tail


_READ_SO_FAR = """SELECT key, value FROM meta WHERE key IN ('seq', 'journal')
UNION ALL SELECT 'size', size FROM ledgers WHERE name = ?"""


def _follow_journal(context: IndexContext) -> None:
    check_continuity(context)
    context.warnings += context.journal.quarantine_torn()
    unread = list(context.journal.read(context.position))
    finish_files(context, unread, teams=True)
    # Their events first: once the index has read the anchor, no process checks for them again.
    follow_ledgers(context, {ledger_name(placed.entry.session) for placed in unread if placed.entry.op == LEDGER_OP})
    touched = [change.file for placed in unread for change in placed.entry.changes if change.file]
    touched += [place_of(context.index, c.id) for p in unread if p.entry.op == "split" for c in p.entry.changes]
    with context.index.writing() as writer:
        _index_journal(context, writer, lambda: unread)
    pick_up(context, [stored for stored in touched if stored])


def _index_journal(
    context: IndexContext,
    writer: DocumentWriter,
    read: Callable[[], Iterable[JournalLine]],
    progress: Progress = lambda *_: None,
    *,
    anew: bool = False,
) -> None:
    """Index some decisions: the positions of all images, and each memory by its last one.

    Files that these decisions wrote are recorded as unread. With `anew`, for an emptied index, memories are embedded and no file is recorded.
    """
    newest: dict[str, int] = {}

    def note_newest(lines: Iterable[JournalLine]) -> Iterable[JournalLine]:
        for placed in lines:
            newest.update((change.id, placed.entry.seq) for change in placed.entry.changes)
            yield placed

    index_entries(context.index, note_newest(read()))
    # Without the lock others may write between the two readings; what they add is read later.
    batch: list[AfterImage] = []
    done = 0
    for placed in read():
        batch += [change for change in placed.entry.changes if newest.get(change.id) == placed.entry.seq]
        if len(batch) >= MEMORIES_PER_BATCH:
            _index_images(context, writer, batch, anew=anew)
            done += len(batch)
            progress("memories", done, len(newest))
            batch = []
    _index_images(context, writer, batch, anew=anew)
    progress("memories", len(newest), len(newest))


def _index_images(context: IndexContext, writer: DocumentWriter, changes: Sequence[AfterImage], *, anew: bool) -> None:
    rows = []
    for change in changes:
        if change.after is None:
            forget_memory(context.index, context.home, writer, change.id)
        elif not is_team(change.file) or is_trusted_anywhere(context, change.file):
            memory = _readable(context, change)
            if memory is not None:
                rows.append(MemoryRow(memory, change.after, change.file, None if anew else UNSEEN_STAMP))
    vectors = context.embed([meaning_of(row.memory) for row in rows]) if anew and rows else None
    if vectors is not None:
        rows = [row._replace(vector=vector) for row, vector in zip(rows, vectors, strict=True)]
    index_memories(context.index, writer, rows)
    context.index.flush(writer)


def _readable(context: LogContext, change: AfterImage) -> Memory | None:
    """The memory of an image; None, with a warning, if only a newer Engram can read it."""
    try:
        return from_image(change.after or {})
    except EngramError as error:
        context.warnings.append(f"{context.home.journal}: {change.id}: {error}")
        return None


# -- from the beginning


def rebuild(context: IndexContext, progress: Progress = lambda *_: None) -> SyncReport:
    """Fill the index from scratch, then read files that differ from the journal as hand edits."""
    with contextlib.suppress(PermissionError):
        context.warnings += [*context.journal.quarantine_torn(), *context.ledger.quarantine_torn()]
    repair_after_restart(context)
    noticed = SyncReport()
    with context.index.writing() as writer:
        differing = _fill(context, writer, progress, noticed, alone=True)
    context.index.drop_stale_matrices()
    try:
        pick_up(context, differing, noticed)
    except StoreReadOnly:
        with context.index.writing():
            context.index.db.execute("DELETE FROM folders")
        raise
    return noticed


def fill_unlocked(context: IndexContext, *, provisionally: bool = False) -> SyncReport:
    """Fill an empty index without the lock: nothing in the home is changed, and hand edits are left for later.

    If others may be writing, the index is provisional: it records no journal position, so the next writer rebuilds it.
    """
    noticed = SyncReport()
    with context.index.writing() as writer:
        if context.index.get("filled") is not None:
            return noticed
        if _fill(context, writer, lambda *_: None, noticed, alone=False):
            noticed.problems.append("some hand edits are not searchable yet")
            context.index.db.execute("DELETE FROM folders")
        if provisionally:
            context.index.set("journal", json.dumps(["", 0, 0]))
    return noticed


def _fill(
    context: IndexContext, writer: DocumentWriter, progress: Progress, noticed: SyncReport, *, alone: bool
) -> list[str]:
    """Index everything, inside a transaction; returns the files that differ from the journal.

    With `alone` (under the lock), files that a crash left out are written.
    """
    context.index.clear()
    writer.start_generation(context.index.generation)
    _index_journal(context, writer, context.journal.read, progress, anew=True)
    if alone:
        _write_lost_files(context)
    differing = hand_edits.compare_files(context, noticed)
    _index_ledgers(context, writer, progress)
    context.index.set("filled", 1)
    return differing


def _write_lost_files(context: IndexContext) -> None:
    """Finish the last decision, the only one whose files a crash can have prevented, and rewrite missing files.

    Without the old index it is unknown whether a person removed them. A missing team file was removed by git.
    """
    start = json.loads(context.index.get("journal") or "null")
    if start:
        with contextlib.suppress(StoreReadOnly):
            finish_files(context, list(context.journal.read(Position(start[0], start[2]))), teams=False)
    hand_edits.write_missing(context)


def _index_ledgers(context: IndexContext, writer: DocumentWriter, progress: Progress) -> None:
    sizes = context.ledger.sizes()
    for done, (name, size) in enumerate(sorted(sizes.items()), 1):
        # A line that another process is still writing is read once it is complete.
        index_ledger(context, writer, name, 0, min(size, _complete_size(context, name, size)), most=None)
        progress("sessions", done, len(sizes))


def _complete_size(context: LogContext, name: str, size: int) -> int:
    try:
        return whole_lines(context.home.ledger / name)[1]
    except OSError:
        return size


# -- single records


def journal_task(context: IndexContext, task_id: str, what: str) -> None:
    """Journal that a task or checkpoint was written, so that its loss is noticed. A failure is only a warning."""
    try:
        tail = catch_up(context, ledger="")
        placed = append_entry(context, TASK_OP, "engram", what, (), task_id, durably=False, tail=tail)
        with context.index.writing():
            index_entry(context.index, placed)
    except (StoreError, sqlite3.Error, OSError) as error:
        context.warnings.append(f"{task_id}: it is not recorded in the journal: {error}")


def check_continuity(context: IndexContext) -> None:
    """Raise `IndexOutdated` unless the last entry that the index read is still at its position."""
    month, end, start = [*json.loads(context.index.get("journal") or '["", 0]'), -1][:3]
    if start >= 0 and not context.journal.has_entry(Position(month, start), end, context.seq):
        raise IndexOutdated(f"the index does not match the journal in {context.home.journal}")


def follow_ledgers(context: IndexContext, names: Collection[str] | None = None) -> None:
    """Index new events of these ledgers, or of all, and remove those of ledgers that are gone."""
    known = dict(context.index.all("ledger_sizes", None if names is None else json.dumps(list(names))))
    sizes = context.ledger.sizes(names)
    if known == sizes:
        return
    context.warnings += context.ledger.quarantine_torn(names)
    for name, size in context.ledger.sizes(names).items():
        before = known.get(name, -1)
        if before != size:
            with context.index.writing() as writer:
                index_ledger(context, writer, name, before if 0 <= before < size else 0, size)
    forget_ledgers(context, [name for name in known if name not in sizes])


def index_ledger(
    context: IndexContext,
    writer: DocumentWriter,
    name: str,
    offset: int,
    size: int,
    most: int | None = MAX_EVENTS_EMBEDDED_LOCKED,
) -> None:
    """Index a ledger's events from an offset on, inside a transaction; more than `most` get their vectors later."""
    events, broken = context.ledger.readable(name, offset)
    context.warn(broken)
    try:
        scopes = {session: session_scope(context.home, session) for session in {event.session for event in events}}
    except StoreCorrupt as error:
        # The owner is unknown until the task can be read again.
        context.warn(str(error))
        return
    documents = [event_document(event, scopes[event.session]) for event in events]
    few = most is None or len(documents) <= most
    vectors = event_vectors(context, documents) if few else [None] * len(documents)
    for event, document, vector in zip(events, documents, vectors, strict=True):
        index_event(context.index, writer, event, document, vector)
    note_ledger(context.index, name, size)


def forget_ledgers(context: IndexContext, names: Sequence[str]) -> None:
    """Remove the events of deleted ledgers from the index."""
    if not names:
        return
    run = context.index.db.execute
    parents = [parent for (parent,) in run("SELECT DISTINCT parent FROM docs WHERE kind = 'event'").fetchall()]
    gone = [parent for parent in parents if context.ledger.path(parent).name in names]
    with context.index.writing() as writer:
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


DOCUMENTS_PER_BATCH = 256


def reembed(context: IndexContext, deadline: float, progress: Progress) -> int:
    """Embed every document with this process's embedder, continuing an interrupted run; returns how many were embedded.

    Searches use the old vectors until all new ones exist.
    """
    if context.embedder is None:
        raise EmbedderError("this process has no embedder; set one with `engram config embedder static`")
    index = context.index
    name = context.embedder.name
    if index.get("embedder") == name and not index.without_vector(0, 1):
        return 0
    generation = _pending_generation(context, name, deadline)
    done, total = 0, index.count - 1
    while True:
        rows = _find_missing_vectors(context, generation)
        if not rows:
            with context.lock.hold(deadline):
                if _switch_embedder(context, generation):
                    return done
            continue
        vectors = context.embedder.embed([meaning for _, meaning in rows])
        with context.lock.hold(deadline), index.writing():
            for (n, _), vector in zip(rows, vectors, strict=True):
                index.db.execute(index.statement("put_vector"), (generation, n, to_blob(vector)))
        done += len(rows)
        progress("vectors", done, max(total, done))


def _pending_generation(context: IndexContext, name: str, deadline: float) -> int:
    index = context.index
    with context.lock.hold(deadline), index.writing():
        stored = json.loads(index.get("pending") or "null")
        if stored and stored[1] == name and stored[0] > index.generation:
            return int(stored[0])
        generation = max(index.generation, stored[0] if stored else 0) + 1
        if index.get("embedder") == name:
            return index.generation
        index.db.execute("DELETE FROM vectors WHERE generation > ?", (index.generation,))
        index.set("pending", json.dumps([generation, name]))
        return generation


def _find_missing_vectors(context: IndexContext, generation: int) -> list[tuple[int, str]]:
    rows = context.index.db.execute(
        context.index.statement("without_vector"), (generation, 0, DOCUMENTS_PER_BATCH)
    ).fetchall()
    return [(n, stored_meaning(kind, record)) for n, kind, record in rows]


def _switch_embedder(context: IndexContext, generation: int) -> bool:
    """Make a generation current; returns False if a new document has no vector of it yet."""
    index = context.index
    with index.writing():
        if _find_missing_vectors(context, generation):
            return False
        old = index.generation
        index.claim_embedder(generation)
        index.db.execute("DELETE FROM vectors WHERE generation <> ?", (generation,))
        index.db.execute("DELETE FROM meta WHERE key = 'pending'")
    if old != generation:
        index.drop_stale_matrices()
    return True


def fill_vectors(context: IndexContext, deadline: float) -> None:
    """Embed documents without a vector in slices; the lock is held only to write. Raises `EmbedderError`."""
    if context.embedder is None or not context.index.get("lacking") or not context.index.can_embed():
        return
    after = 0
    while rows := context.index.without_vector(after, DOCUMENTS_PER_BATCH):
        vectors = context.embedder.embed([stored_meaning(kind, record) for _, kind, record in rows])
        with context.lock.hold(deadline), context.index.writing() as writer:
            # Another writer may have changed, embedded or purged them in the meantime.
            still = context.index.without_vector(rows[0][0] - 1, len(rows))
            for row, vector in zip(rows, vectors, strict=True):
                if row in still:
                    writer.put_vector(row[0], vector)
        after = rows[-1][0]
    with context.lock.hold(deadline), context.index.writing():
        if not context.index.without_vector(0, 1):
            context.index.set("lacking", 0)
