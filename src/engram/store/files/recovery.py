"""Finishing what a crash left undone: decisions that reached the journal but not the files or the index.

Everything here is for the holder of the writer lock.
"""

import contextlib
import json
import os
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from engram.model.errors import EngramError, StoreCorrupt, StoreError
from engram.model.memory import Memory
from engram.store.documents import event_document
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
from engram.store.files.journal import Change, Position
from engram.store.files.journal import JournalLine as PlacedEntry
from engram.store.files.ledger import ledger_name
from engram.store.files.memories import UNSEEN, stamp_of
from engram.store.files.pending_events import take_in, vectors_of
from engram.store.files.power_loss import Leftovers, is_torn, look_after_restart
from engram.store.files.sessions import session_scope
from engram.store.ledger_checkpoints import LEDGER_OP, TASK
from engram.store.records import from_image, image

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
    look_after_restart(parts)
    take_in(parts)
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
    follow_ledgers(parts, {ledger_name(placed.entry.session) for placed in pending if placed.entry.op == LEDGER_OP})
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


def _redo_files(parts: StoreContext, pending: Sequence[PlacedEntry]) -> None:
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
    spellings = [memories.rendered([memory]), *(memories.rendered([from_image(old)]) for old in older)]
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


def _replay(parts: StoreContext, writer: DocumentWriter, placed: PlacedEntry) -> None:
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
    vectors = vectors_of(parts, documents) if len(documents) <= FEW else [None] * len(documents)
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
