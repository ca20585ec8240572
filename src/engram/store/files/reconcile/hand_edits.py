"""Reading what a person edited, added or removed: it wins, is journaled and indexed. The caller holds the writer lock."""

import contextlib
import os
import time
from collections.abc import Iterable, Sequence

from engram.dialects.record import hand_problem
from engram.model.errors import EngramError
from engram.model.memory import Memory
from engram.rules.limits import limit_problem
from engram.store.files import memories
from engram.store.files.log.journal import AfterImage
from engram.store.files.memories import UNSEEN_STAMP, Stamp, stamp_of
from engram.store.files.reconcile.context import IndexContext, append_entry
from engram.store.files.reconcile.durability import sync_files
from engram.store.files.reconcile.folders import find_new_files, full_path
from engram.store.files.reconcile.index_records import (
    MemoryRow,
    index_entry,
    index_memories,
    note_file,
    place_of,
    records_in,
    stamp_known,
)
from engram.store.files.reconcile.memory_places import drop_memories, drop_split, id_problem, is_split, retire_missing
from engram.store.files.reconcile.saves import await_saves, is_as_written
from engram.store.files.reconcile.team_files import pick_up_team_file
from engram.store.files.reconcile.team_trust import is_attached, is_team, team_of
from engram.store.records import decode_record, image
from engram.store.reports import SyncReport

HAND_ACTOR = "hand"
"""The actor of changes a person made to the files."""
EDIT_OP = "edit"
"""The operation of a change made with an editor."""
EMPTY_FILE_SECONDS = 2.0
"""An editor may still be saving an empty file that is younger than this."""


def pick_up(context: IndexContext, stored_paths: Iterable[str], noticed: SyncReport | None = None) -> SyncReport:
    """Read changed files: what a person wrote wins, is journaled and indexed.

    A file that is gone may have been renamed: new files are read first, and while one of them is being saved nothing is removed.
    """
    noticed = SyncReport() if noticed is None else noticed
    changed = dict.fromkeys(stored_paths)
    gone = [stored for stored in changed if not os.path.lexists(full_path(context, stored))]
    new = dict.fromkeys(find_new_files(context)) if gone else {}
    unfinished = await_saves(context, {**changed, **new})
    for stored in {**new, **changed}:
        if stored not in unfinished and stored not in gone:
            _pick_up_one(context, stored, noticed)
    for stored in gone if unfinished.isdisjoint(new) else ():
        if stored not in unfinished:
            _pick_up_one(context, stored, noticed)
    return noticed


def _pick_up_one(context: IndexContext, stored: str, noticed: SyncReport) -> None:
    if not is_attached(context, stored) or stored in context.durability.unrepaired:
        return
    team = team_of(context, stored)
    path = context.path(stored)
    stamp = stamp_of(path)
    try:
        context.safe_path(stored)
    except EngramError as error:
        if not team:
            _unreadable(context, stored, stamp or UNSEEN_STAMP, str(error), noticed)
        elif stamp is not None:
            with context.index.writing():
                note_file(context.index, stored, stamp)
        return
    if stamp is None:
        _retire_file(context, stored, noticed)
        return
    if stamp_known(context.index, stored) == stamp:
        return
    stamp = stamp.to_record(time.time_ns())
    if team:
        pick_up_team_file(context, stored, stamp, noticed)
        return
    try:
        data = memories.content(path)
        if is_as_written(data, records_in(context.index, [stored]).get(stored, ())):
            with context.index.writing():
                note_file(context.index, stored, stamp)
            return
        found = memories.parse(data, path)
    except EngramError as error:
        _unreadable(context, stored, stamp, str(error), noticed)
        return
    _index_hand_edit(context, stored, stamp, found, noticed)


def _unreadable(context: IndexContext, stored: str, stamp: Stamp, error: str, noticed: SyncReport) -> None:
    """Leave an unreadable file alone, its last good version stays current; a file left empty is restored."""
    is_empty = stamp.size == 0 and stamp != UNSEEN_STAMP
    is_settled = time.time() - stamp.mtime_ns / 1e9 > EMPTY_FILE_SECONDS
    if is_empty and is_settled and _restore(context, stored, noticed):
        return
    with context.index.writing():
        # An empty file is looked at again until it is written or settled.
        note_file(context.index, stored, UNSEEN_STAMP if is_empty and not is_settled else stamp, error)
    noticed.problems.append(error)


def _restore(context: IndexContext, stored: str, noticed: SyncReport) -> bool:
    rows = context.index.db.execute("SELECT id FROM places WHERE path = ?", (stored,)).fetchall()
    if len(rows) != 1:
        return False
    record = context.index.one("by_ref", rows[0][0])[2]
    written = memories.write(context.safe_path(stored), decode_record(record), stamp_of(context.path(stored)))
    with context.index.writing():
        note_file(context.index, stored, written or UNSEEN_STAMP)
    noticed.restored.append(rows[0][0])
    return True


def _index_hand_edit(
    context: IndexContext, stored: str, stamp: Stamp, found: list[Memory], noticed: SyncReport
) -> None:
    accepted, problems, has_clash = _sort_edits(context, stored, found, noticed)
    if problems and not accepted and is_split(context.path(stored)):
        drop_split(context, stored)
        return
    # With an id that cannot count, the file may have a memory whose id was changed: until that is corrected, none is removed.
    gone = [] if has_clash else retire_missing(context, stored, {memory.id for memory in found})
    noticed.removed += [memory.id for memory in gone]
    changed = [*((memory, stored) for memory in accepted), *((memory, "") for memory in gone)]
    _record(context, EDIT_OP, "", stored, changed, stamp, "; ".join(problems))
    noticed.problems += problems


def _record(
    context: IndexContext,
    op: str,
    reason: str,
    stored: str,
    changed: Sequence[tuple[Memory, str]],
    stamp: Stamp | None,
    problem: str = "",
) -> None:
    """Journal and index a person's change: each memory with its file now.

    The file is synced first: a torn one in the person's own layout could not be told from an edit.
    """
    changes = [AfterImage(memory.id, image(memory), file) for memory, file in changed]
    placed = None
    if changes:
        with contextlib.suppress(OSError):
            sync_files(context.home, [stored])
        placed = append_entry(context, op, HAND_ACTOR, reason, changes)
    rows = [
        MemoryRow(memory, change.after or {}, change.file) for (memory, _), change in zip(changed, changes, strict=True)
    ]
    with context.index.writing() as writer:
        index_memories(context.index, writer, rows)
        if placed is not None:
            index_entry(context.index, placed)
        note_file(context.index, stored, stamp, problem)
        if stamp is None:
            # A file that was skipped because this one had its id may count now.
            context.index.db.execute("UPDATE files SET mtime_ns = 0 WHERE error <> ''")


def _sort_edits(
    context: IndexContext, stored: str, found: list[Memory], noticed: SyncReport
) -> tuple[list[Memory], list[str], bool]:
    """The new or changed memories of a file, the problems of the others, and whether one of them has an id that is not its own."""
    accepted: list[Memory] = []
    problems: list[str] = []
    has_clash = False
    seen: set[str] = set()
    for memory in found:
        row = context.index.one("by_ref", memory.id)
        before = decode_record(row[2]) if row else None
        clash = id_problem(context, stored, memory, seen)
        has_clash = has_clash or bool(clash)
        problem = clash or hand_problem(memory, before) or limit_problem(memory)
        seen.add(memory.id)
        if problem:
            problems.append(f"{context.path(stored)}: {problem}")
            continue
        if before is None:
            noticed.added.append(memory.id)
            accepted.append(memory)
        elif image(before) != image(memory):
            noticed.edited.append(memory.id)
            accepted.append(memory)
        elif place_of(context.index, memory.id) != stored:
            accepted.append(memory)
    return accepted, problems, has_clash


def _retire_file(context: IndexContext, stored: str, noticed: SyncReport) -> None:
    """Retire the memories of a removed file; those of a team store are only removed from the index."""
    if not is_team(stored) and not context.home.engrams.is_dir():
        noticed.problems.append(f"{context.home.engrams} is missing; its memories stay current")
        return
    gone = retire_missing(context, stored, set())
    if team_of(context, stored):
        with context.index.writing() as writer:
            drop_memories(context, writer, gone)
            note_file(context.index, stored, None)
        return
    _record(context, "remove", f"{stored} was removed", stored, [(memory, "") for memory in gone], None)
    noticed.removed += [memory.id for memory in gone]
