"""Reads files that people edited, added or removed. Their version takes precedence, and is journaled and indexed.

A team's file only counts if it is trusted. The caller holds the writer lock.
"""

import contextlib
import json
import math
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from engram.dialects.engram_yaml import hand_problem
from engram.model.errors import EngramError, StoreError
from engram.model.memory import Memory
from engram.rules.limits import limit_problem
from engram.store.files import memories
from engram.store.files.log.journal import AfterImage
from engram.store.files.memories import UNSEEN_STAMP, Stamp, stamp_of
from engram.store.files.reconcile.durability import sync_files
from engram.store.files.reconcile.folders import (
    await_saves,
    changed_folders,
    content_digest,
    files_in,
    find_new_files,
    full_path,
    is_as_written,
    is_attached,
    is_known_folder,
    is_team,
    is_trusted,
    list_entries,
    memory_roots,
    note_folder,
    note_folders,
    team_content,
    team_of,
    trusted_digests,
)
from engram.store.files.reconcile.index_state import (
    IndexContext,
    MemoryRow,
    append_entry,
    drop_memories,
    drop_split,
    id_problem,
    index_entry,
    index_memories,
    is_split,
    note_file,
    place_of,
    records_in,
    retire_missing,
    stamp_known,
)
from engram.store.records import decode_record, image
from engram.store.reports import SyncReport
from engram.store.sqlite import sweep
from engram.store.sqlite.sweep import Sweep, folder_time


def pick_up_team_file(context: IndexContext, stored: str, stamp: Stamp, noticed: SyncReport) -> None:
    """Index a team file, without journaling it, and only while the reader trusts exactly this content."""
    path = context.path(stored)
    try:
        data = team_content(path)
        trusted = content_digest(data) in trusted_digests(context, team_of(context, stored))
        found = memories.parse(data, path) if trusted or _has_indexed_memories(context, stored) else []
    except EngramError:
        _keep_last_trusted(context, stored, stamp, noticed)
        return
    if trusted:
        _index_team_file(context, stored, stamp, found)
    else:
        _exclude_untrusted(context, stored, stamp, noticed)


def _has_indexed_memories(context: IndexContext, stored: str) -> bool:
    return context.index.db.execute("SELECT 1 FROM places WHERE path = ? LIMIT 1", (stored,)).fetchone() is not None


def _keep_last_trusted(context: IndexContext, stored: str, stamp: Stamp, noticed: SyncReport) -> None:
    """Keep the last trusted version of an unreadable file (during a merge, say); none of its text is reported."""
    indexed = _has_indexed_memories(context, stored)
    problem = (
        f"{team_of(context, stored)}: a file there cannot be read; its last trusted version stays current. "
        "`engram trust` shows which file, and why"
    )
    with context.index.writing():
        note_file(context.index, stored, stamp, problem if indexed else "")
    if indexed and problem not in noticed.problems:
        noticed.problems.append(problem)


def _exclude_untrusted(context: IndexContext, stored: str, stamp: Stamp, noticed: SyncReport) -> None:
    """Remove the memories of an untrusted file from the index; only its stamp is recorded."""
    with context.index.writing() as writer:
        drop_memories(context, writer, retire_missing(context, stored, set()))
        note_file(context.index, stored, stamp)
    problem = (
        f"{team_of(context, stored)}: new or changed files there are not trusted yet and are not used. "
        "`engram trust` lists them"
    )
    if problem not in noticed.problems:
        noticed.problems.append(problem)


def _index_team_file(context: IndexContext, stored: str, stamp: Stamp, found: list[Memory]) -> None:
    gone = retire_missing(context, stored, {memory.id for memory in found})
    problems = []
    seen: set[str] = set()
    with context.index.writing() as writer:
        drop_memories(context, writer, gone)
        for memory in found:
            if _is_in_other_checkout(context, stored, memory):
                continue
            problem = hand_problem(memory) or limit_problem(memory)
            problem = problem or id_problem(context, stored, memory, seen) or _own_id_problem(context, memory)
            seen.add(memory.id)
            if problem:
                problems.append(f"{context.path(stored)}: {problem}")
                continue
            index_memories(context.index, writer, [MemoryRow(memory, image(memory), stored)])
        note_file(context.index, stored, stamp, "; ".join(problems))


def _is_in_other_checkout(context: IndexContext, stored: str, memory: Memory) -> bool:
    """Whether another checkout of the repository already brought exactly this memory."""
    place = place_of(context.index, memory.id)
    if place == stored or not is_team(place) or not context.path(place).exists():
        return False
    row = context.index.one("by_ref", memory.id)
    return row is not None and image(decode_record(row[2])) == image(memory)


def _own_id_problem(context: IndexContext, memory: Memory) -> str:
    """A problem if a team file uses the id of one of the owner's memories, even a removed one."""
    own = context.index.one("by_ref", memory.id) is not None and not is_team(place_of(context.index, memory.id))
    return f"id {memory.id} belongs to one of your own memories; yours is kept" if own else ""


HAND_ACTOR = "hand"
"""The actor of changes a person made to the files."""
EDIT_OP = "edit"
"""The operation of a change made with an editor."""
EMPTY_FILE_SECONDS = 2.0
"""An editor may still be saving an empty file that is younger than this."""


def pick_up(context: IndexContext, stored_paths: Iterable[str], noticed: SyncReport | None = None) -> SyncReport:
    """Read changed files; a person's version takes precedence, and is journaled and indexed.

    A missing file may have been renamed, so new files are read first, and while one of them is being saved nothing is
    removed.
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
    """Leave an unreadable file alone: its last good version stays current. A file left empty is restored."""
    is_empty = stamp.size == 0 and stamp != UNSEEN_STAMP
    is_settled = time.time() - stamp.mtime_ns / 1e9 > EMPTY_FILE_SECONDS
    if is_empty and is_settled and _restore(context, stored, noticed):
        return
    with context.index.writing():
        # An empty file is checked again until it has content or stays empty.
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
    # The file may have a memory whose id was changed to an invalid one; until that is corrected, none is removed.
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
    """Journal and index a person's change, with each memory's current file.

    The file is synced first, because a torn file in the person's own layout could not be distinguished from an edit.
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


_COMPARED_AT_ONCE = 512


def sync_all(context: IndexContext, *, seconds: float | None = None) -> SyncReport:
    """Update the index from every file, or from as many as the time allows."""
    noticed = SyncReport()
    everywhere = memory_roots(context)
    folders = dict.fromkeys(changed_folders(context, everywhere))
    if seconds is None:
        # A folder's time can miss changes within one tick of the clock, so a full sync lists every folder.
        folders |= dict.fromkeys(folder for root in everywhere for folder in memories.walk(root))
    for folder in folders:
        list_folder(context, folder, noticed)
    every_file = Sweep(str(context.home.root), map(context.stored_path, everywhere))
    pick_up(context, every_file.compare(context.index.db, math.inf if seconds is None else seconds), noticed)
    noticed.complete = not every_file.position
    _add_known_problems(context, noticed)
    return noticed


def sync_folder(context: IndexContext, folder: Path) -> SyncReport:
    """Update the index from the files below one folder."""
    noticed = SyncReport()
    known = changed_folders(context, [folder])
    for changed in [f for f in known if f == folder or folder in f.parents]:
        list_folder(context, changed, noticed)
    rows = context.index.db.execute(
        "SELECT path FROM files WHERE substr(path, 1, ?) = ?", (len(str(folder)) + 1, f"{folder}/")
    )
    pick_up(context, [path for (path,) in rows.fetchall()], noticed)
    return noticed


def list_folder(context: IndexContext, folder: Path, noticed: SyncReport) -> None:
    """Compare a folder's listing with the index: new files, removed files, new folders, conflicted copies."""
    stored = context.stored_path(folder)
    mtime = folder_time(folder)
    entries = list_entries(context, folder, noticed)
    if entries is None:
        return
    here = {f"{stored}/{entry.name}" for entry in entries if memories.is_memory_file(entry.name)}
    known = files_in(context, stored)
    pick_up(context, sorted(here - known), noticed)
    pick_up(context, sorted(known - here), noticed)
    with context.index.writing():
        note_folder(context, stored, sweep.time_to_record(mtime, time.time_ns()))
    for entry in entries:
        if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
            path = Path(entry.path)
            if not is_known_folder(context, context.stored_path(path)):
                list_folder(context, path, noticed)


def compare_files(context: IndexContext, noticed: SyncReport) -> list[str]:
    """Record the stamp of every file that agrees with the index; returns the others, to be read as hand edits.

    For an index filled from the journal; inside a transaction.
    """
    differing: list[str] = []
    files = _listed_files(context, noticed)
    while some := list(islice(files, _COMPARED_AT_ONCE)):
        records = records_in(context.index, some)
        stamps = [(stored, _stamp_if_equal(context, stored, records.get(stored, ()))) for stored in some]
        differing += [stored for stored, stamp in stamps if stamp is None]
        rows = [
            (stored, stamp.mtime_ns, stamp.size, stamp.inode, stamp.ctime_ns, "")
            for stored, stamp in stamps
            if stamp is not None
        ]
        context.index.db.executemany(context.index.statement("put_file"), rows)
    return differing


def _listed_files(context: IndexContext, noticed: SyncReport) -> Iterator[str]:
    """Every memory file; the folders' times are recorded."""
    for root in memory_roots(context):
        for folder in memories.walk(root):
            stored = context.stored_path(folder)
            note_folders(context, [folder])
            for entry in list_entries(context, folder, noticed) or ():
                if memories.is_memory_file(entry.name):
                    yield f"{stored}/{entry.name}"


def _stamp_if_equal(context: IndexContext, stored: str, records: Sequence[str]) -> Stamp | None:
    """The stamp of a file that contains exactly these records; None if it does not, or may not be read."""
    # Creating or joining a `Path` costs as much as reading the file.
    path = stored if is_team(stored) else f"{context.home.root}/{stored}"
    stamp = stamp_of(path)
    if not records or (is_team(stored) and not is_trusted(context, stored)):
        return None
    try:
        data = memories.content(path)
        if is_as_written(data, records):
            return stamp
        found = [image(memory) for memory in memories.parse(data, path)]
    except EngramError:
        return None
    expected = {record["id"]: record for record in map(json.loads, records)}
    return stamp if len(found) == len(expected) and {one["id"]: one for one in found} == expected else None


def write_missing(context: IndexContext) -> None:
    """Write the store's own files that the index knows and that are gone; inside a transaction.

    Those that cannot be written are one warning.
    """
    failed: list[StoreError] = []
    missing: dict[str, list[str]] = {}
    for memory_id, stored in context.index.db.execute("SELECT id, path FROM places").fetchall():
        if not is_team(stored) and (stored in missing or not os.path.lexists(f"{context.home.root}/{stored}")):
            missing.setdefault(stored, []).append(memory_id)
    for stored, ids in missing.items():
        together = [decode_record(context.index.one("by_ref", memory_id)[2]) for memory_id in ids]
        try:
            stamp = memories.write_data(context.safe_path(stored), memories.render(together), None)
            note_file(context.index, stored, stamp or UNSEEN_STAMP)
        except StoreError as error:
            failed.append(error)
    if failed:
        context.warnings.append(f"{len(failed)} missing memory file(s) could not be written again: {failed[0]}")


def _add_known_problems(context: IndexContext, noticed: SyncReport) -> None:
    for (error,) in context.index.db.execute("SELECT error FROM files WHERE error <> ''"):
        if error not in noticed.problems:
            noticed.problems.append(error)


def forget_stamps(context: IndexContext, folder: Path) -> None:
    """Make the next sync read every file of a folder again; inside a transaction."""
    context.index.db.execute(
        "UPDATE files SET mtime_ns = 0 WHERE substr(path, 1, ?) = ?", (len(str(folder)) + 1, f"{folder}/")
    )
