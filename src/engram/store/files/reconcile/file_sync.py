"""Updating the index from many files: all of them, one folder, or those a rebuilt index has to be compared with.

The caller of everything here holds the writer lock.
"""

import json
import math
import os
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from engram.model.errors import EngramError, StoreError
from engram.store.files import memories
from engram.store.files.memories import UNSEEN_STAMP, Stamp, stamp_of
from engram.store.files.reconcile.context import IndexContext
from engram.store.files.reconcile.folders import (
    changed_folders,
    files_in,
    is_known_folder,
    list_entries,
    memory_roots,
    note_folder,
    note_folders,
)
from engram.store.files.reconcile.hand_edits import pick_up
from engram.store.files.reconcile.index_records import note_file, records_in
from engram.store.files.reconcile.saves import is_as_written
from engram.store.files.reconcile.team_trust import is_team, is_trusted
from engram.store.records import decode_record, image
from engram.store.reports import SyncReport
from engram.store.sqlite import sweep
from engram.store.sqlite.sweep import Sweep, folder_time

_COMPARED_AT_ONCE = 512


def sync(context: IndexContext, *, seconds: float | None = None) -> SyncReport:
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
