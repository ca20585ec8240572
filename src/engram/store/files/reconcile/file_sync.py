"""Keeping the index in step with the files: what a person edited, added or removed.

The caller of everything here holds the writer lock.
"""

import contextlib
import glob
import json
import math
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from engram.dialects.record import hand_problem
from engram.model.errors import EngramError, StoreError
from engram.model.memory import Memory
from engram.rules.limits import limit_problem
from engram.store.files import memories
from engram.store.files.log.journal import Change
from engram.store.files.memories import UNSEEN, Stamp, stamp_of
from engram.store.files.reconcile.context import (
    MemoryRow,
    StoreContext,
    append_entry,
    index_entry,
    index_memories,
    note_file,
    note_place,
)
from engram.store.files.reconcile.durability import sync_files
from engram.store.files.reconcile.team import content_digest, team_content, trusted_digests
from engram.store.records import decode_record, image
from engram.store.reports import SyncReport
from engram.store.scopes import trusted_by_folder
from engram.store.sqlite import sweep
from engram.store.sqlite.sweep import Sweep, folder_time
from engram.store.sqlite.writer import DocumentWriter

HAND = "hand"
"""The actor of changes a person made to the files."""
EDIT = "edit"
"""The operation of a change made with an editor."""
_SUFFIXES = (".yaml", ".yml")
_COMPARED_AT_ONCE = 512
YOUNG_SECONDS = 0.1
"""An editor may still be saving a file that was changed less than this long ago."""
STEADY_SECONDS = 0.015
"""A young file that stays as it is for this long is complete; it is longer than a tick of a file system's clock."""
SAVING_SECONDS = 0.3
"""The most time to wait for a save; a file that changes for longer is read later."""
SETTLED_SECONDS = 2.0
"""An editor may still be saving an empty file that is younger than this."""


def pick_up(context: StoreContext, stored_paths: Iterable[str], noticed: SyncReport | None = None) -> SyncReport:
    """Read changed files: what a person wrote wins, is journaled and indexed.

    A file that is gone may have been renamed: new files are read first, and while one of them is being saved nothing is removed.
    """
    noticed = SyncReport() if noticed is None else noticed
    changed = dict.fromkeys(stored_paths)
    gone = [stored for stored in changed if not os.path.lexists(_full_path(context, stored))]
    new = dict.fromkeys(_new_files(context)) if gone else {}
    unfinished = _await_saves(context, {**changed, **new})
    for stored in {**new, **changed}:
        if stored not in unfinished and stored not in gone:
            _pick_up_one(context, stored, noticed)
    for stored in gone if unfinished.isdisjoint(new) else ():
        if stored not in unfinished:
            _pick_up_one(context, stored, noticed)
    return noticed


def _full_path(context: StoreContext, stored: str) -> str:
    return stored if is_team(stored) else f"{context.home.root}/{stored}"


def _new_files(context: StoreContext) -> Iterator[str]:
    """The memory files that the index does not know, in folders that have changed and in new ones."""
    waiting = changed_folders(context, roots(context))
    while waiting:
        stored = context.stored(folder := waiting.pop())
        known = _files_in(context, stored)
        for entry in _entries(context, folder, SyncReport()) or ():
            path = f"{stored}/{entry.name}"
            if memories.is_memory_file(entry.name) and path not in known:
                yield path
            elif entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".") and not _knows(context, path):
                waiting.append(Path(entry.path))


def _knows(context: StoreContext, stored_folder: str) -> bool:
    return bool(context.index.db.execute("SELECT 1 FROM folders WHERE path = ?", (stored_folder,)).fetchone())


def _await_saves(context: StoreContext, stored_paths: Iterable[str]) -> set[str]:
    """Wait a moment until files that were changed just now stay as they are; returns those that still change.

    An editor may save in several steps: empty the file and write it in parts, or move it away and write a new one. Half a
    memory can be valid YAML.
    """
    full = {stored: _full_path(context, stored) for stored in stored_paths}
    young = {stored: stamp_of(path) for stored, path in full.items() if _is_young(path)}
    if young:
        known = {row[0]: Stamp(*row[1:]) for row in stamps_known(context, young)}
        records = _indexed_records(context, list(young))
        young = {
            stored: stamp
            for stored, stamp in young.items()
            if known.get(stored) != stamp and not _is_written_by_engram(full[stored], records.get(stored, ()))
        }
    deadline = time.monotonic() + SAVING_SECONDS
    while young and time.monotonic() < deadline:
        time.sleep(STEADY_SECONDS)
        later = {stored: stamp_of(full[stored]) for stored in young}
        young = {
            stored: stamp
            for stored, stamp in later.items()
            if stamp != young[stored] or (stamp is None and _is_young(full[stored]))
        }
    return set(young)


def _is_written_by_engram(path: str, records: Sequence[str]) -> bool:
    """Whether a file is as Engram wrote it, for example in another process a moment ago."""
    with contextlib.suppress(EngramError):
        return _is_as_written(memories.content(path), records)
    return False


def _is_young(path: str) -> bool:
    """Whether a file was changed, or removed from its folder, a moment ago. A time in the future counts as now."""
    changed = folder_time(path)
    if changed < 0:
        changed = folder_time(os.path.dirname(path))  # noqa: PTH120 -- called for every changed file
    return time.time() - changed / 1e9 < YOUNG_SECONDS


def _pick_up_one(context: StoreContext, stored: str, noticed: SyncReport) -> None:
    if not is_attached(context, stored) or stored in context.durability.unrepaired:
        return
    team = team_of(context, stored)
    path = context.path(stored)
    stamp = stamp_of(path)
    try:
        context.confined(stored)
    except EngramError as error:
        if not team:
            _unreadable(context, stored, stamp or UNSEEN, str(error), noticed)
        elif stamp is not None:
            with context.index.writing():
                note_file(context, stored, stamp)
        return
    if stamp is None:
        _removed(context, stored, noticed)
        return
    if stamp_known(context, stored) == stamp:
        return
    stamp = stamp.to_record(time.time_ns())
    if team:
        _pick_up_team_file(context, stored, stamp, noticed)
        return
    try:
        data = memories.content(path)
        if _is_as_written(data, _indexed_records(context, [stored]).get(stored, ())):
            with context.index.writing():
                note_file(context, stored, stamp)
            return
        found = memories.parse(data, path)
    except EngramError as error:
        _unreadable(context, stored, stamp, str(error), noticed)
        return
    _index_hand_edit(context, stored, stamp, found, noticed)


def _indexed_records(context: StoreContext, stored_paths: Sequence[str]) -> dict[str, list[str]]:
    """The indexed records of files, as JSON."""
    found: dict[str, list[str]] = {}
    for stored, record in context.index.all("records_in", json.dumps(stored_paths)):
        found.setdefault(stored, []).append(record)
    return found


def _is_as_written(data: bytes, records: Sequence[str]) -> bool:
    """Whether a file is, byte for byte, what Engram wrote for its only indexed record; then it need not be parsed."""
    return len(records) == 1 and memories.render_image(json.loads(records[0])) == data


def stamp_known(context: StoreContext, stored: str) -> Stamp | None:
    """A file's stamp when it was last read or written; None if unknown."""
    row = context.index.db.execute(
        "SELECT mtime_ns, size, inode, ctime_ns FROM files WHERE path = ?", (stored,)
    ).fetchone()
    return Stamp(*row) if row else None


def stamps_known(context: StoreContext, stored_paths: Iterable[str]) -> list[tuple[str, int, int, int, int]]:
    """The recorded stamps of those files that the index knows, each with its path."""
    return context.index.all("file_stamps", json.dumps(list(stored_paths)))


def is_broken(context: StoreContext, stored: str) -> bool:
    """Whether a file, or a part of it, could not be used when it was last read."""
    row = context.index.db.execute("SELECT error FROM files WHERE path = ?", (stored,)).fetchone()
    return bool(row and row[0])


def _unreadable(context: StoreContext, stored: str, stamp: Stamp, error: str, noticed: SyncReport) -> None:
    """Leave an unreadable file alone, its last good version stays current; a file left empty is restored."""
    is_empty = stamp.size == 0 and stamp != UNSEEN
    is_settled = time.time() - stamp.mtime_ns / 1e9 > SETTLED_SECONDS
    if is_empty and is_settled and _restore(context, stored, noticed):
        return
    with context.index.writing():
        # An empty file is looked at again until it is written or settled.
        note_file(context, stored, UNSEEN if is_empty and not is_settled else stamp, error)
    noticed.problems.append(error)


def _restore(context: StoreContext, stored: str, noticed: SyncReport) -> bool:
    rows = context.index.db.execute("SELECT id FROM places WHERE path = ?", (stored,)).fetchall()
    if len(rows) != 1:
        return False
    record = context.index.one("by_ref", rows[0][0])[2]
    written = memories.write(context.confined(stored), decode_record(record), stamp_of(context.path(stored)))
    with context.index.writing():
        note_file(context, stored, written or UNSEEN)
    noticed.restored.append(rows[0][0])
    return True


def _index_hand_edit(
    context: StoreContext, stored: str, stamp: Stamp, found: list[Memory], noticed: SyncReport
) -> None:
    accepted, problems, has_clash = _sort_edits(context, stored, found, noticed)
    if problems and not accepted and _is_split(context.path(stored)):
        drop_split(context, stored)
        return
    # With an id that cannot count, the file may have a memory whose id was changed: until that is corrected, none is removed.
    gone = [] if has_clash else _gone_from(context, stored, {memory.id for memory in found})
    noticed.removed += [memory.id for memory in gone]
    changed = [*((memory, stored) for memory in accepted), *((memory, "") for memory in gone)]
    _record(context, EDIT, "", stored, changed, stamp, "; ".join(problems))
    noticed.problems += problems


def _record(
    context: StoreContext,
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
    changes = [Change(memory.id, image(memory), file) for memory, file in changed]
    placed = None
    if changes:
        with contextlib.suppress(OSError):
            sync_files(context.home, [stored])
        placed = append_entry(context, op, HAND, reason, changes)
    rows = [
        MemoryRow(memory, change.after or {}, change.file) for (memory, _), change in zip(changed, changes, strict=True)
    ]
    with context.index.writing() as writer:
        index_memories(context, writer, rows)
        if placed is not None:
            index_entry(context, placed)
        note_file(context, stored, stamp, problem)
        if stamp is None:
            # A file that was skipped because this one had its id may count now.
            context.index.db.execute("UPDATE files SET mtime_ns = 0 WHERE error <> ''")


def _sort_edits(
    context: StoreContext, stored: str, found: list[Memory], noticed: SyncReport
) -> tuple[list[Memory], list[str], bool]:
    """The new or changed memories of a file, the problems of the others, and whether one of them has an id that is not its own."""
    accepted: list[Memory] = []
    problems: list[str] = []
    has_clash = False
    seen: set[str] = set()
    for memory in found:
        row = context.index.one("by_ref", memory.id)
        before = decode_record(row[2]) if row else None
        clash = _id_problem(context, stored, memory, seen)
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
        elif place_of(context, memory.id) != stored:
            accepted.append(memory)
    return accepted, problems, has_clash


def _id_problem(context: StoreContext, stored: str, memory: Memory, seen: set[str]) -> str:
    if memory.id in seen:
        return f"id {memory.id} occurs twice in this file; the first one counts"
    if context.index.db.execute("SELECT 1 FROM tombstones WHERE id = ?", (memory.id,)).fetchone():
        return f"{memory.id} was purged and cannot come back; give it a new id or remove the file"
    place = place_of(context, memory.id)
    if place and place != stored and context.path(place).exists():
        return f"id {memory.id} is already taken by {place}; give this one another id or remove it"
    return ""


def place_of(context: StoreContext, memory_id: str) -> str:
    """The file that contains a memory, or ""."""
    row = context.index.db.execute("SELECT path FROM places WHERE id = ?", (memory_id,)).fetchone()
    return row[0] if row else ""


def _gone_from(context: StoreContext, stored: str, present: set[str]) -> list[Memory]:
    """Memories that were in a file before and are no longer, as retired."""
    rows = context.index.db.execute("SELECT id FROM places WHERE path = ?", (stored,)).fetchall()
    gone = [context.index.one("by_ref", memory_id) for (memory_id,) in rows if memory_id not in present]
    return [decode_record(row[2]).but(status="retired") for row in gone if row]


def _drop(context: StoreContext, writer: DocumentWriter, gone: Iterable[Memory]) -> None:
    for memory in gone:
        writer.delete(memory.id)
        note_place(context, memory.id, "")


def _removed(context: StoreContext, stored: str, noticed: SyncReport) -> None:
    """Retire the memories of a removed file; those of a team store are only removed from the index."""
    if not is_team(stored) and not context.home.engrams.is_dir():
        noticed.problems.append(f"{context.home.engrams} is missing; its memories stay current")
        return
    gone = _gone_from(context, stored, set())
    if team_of(context, stored):
        with context.index.writing() as writer:
            _drop(context, writer, gone)
            note_file(context, stored, None)
        return
    _record(context, "remove", f"{stored} was removed", stored, [(memory, "") for memory in gone], None)
    noticed.removed += [memory.id for memory in gone]


# -- a file of many, split


def keep_original(path: Path) -> None:
    """Give a file that is about to be split a second name."""
    number = 1
    while True:
        try:
            os.link(path, path.with_name(f"{path.name}.orig{f'-{number}' if number > 1 else ''}"))
            return
        except FileExistsError:
            if _is_split(path):
                return
            number += 1


def _is_split(path: Path) -> bool:
    """Whether a file was split into one file per memory and still has its first name."""
    originals = path.parent.glob(f"{glob.escape(path.name)}.orig*")
    return any(path.exists() and original.samefile(path) for original in originals)


def drop_split(context: StoreContext, stored: str) -> None:
    """Remove the first name of a split file; the second keeps its content."""
    context.confined(stored).unlink(missing_ok=True)
    with context.index.writing():
        note_file(context, stored, None)


# -- looking for changes


def changed_folders(context: StoreContext, roots: Sequence[Path]) -> list[Path]:
    """Folders below these roots whose listing may differ from the index."""
    stored_roots = [context.stored(root) for root in roots]
    known = sweep.folder_times(context.index.db, stored_roots)
    changed = sweep.changed_folders(context.index.db, str(context.home.root), stored_roots)
    new = [root for stored, root in zip(stored_roots, roots, strict=True) if stored not in known and root.is_dir()]
    return [*map(context.path, changed), *new]


def known_folders(context: StoreContext) -> list[Path]:
    """The folders with memory files that the index knows."""
    return [
        context.path(stored) for stored in sweep.folder_times(context.index.db, map(context.stored, roots(context)))
    ]


def is_steady(context: StoreContext, folder: Path) -> bool:
    """Whether nothing was added to or removed from a folder since it was last listed."""
    row = context.index.db.execute("SELECT mtime_ns FROM folders WHERE path = ?", (context.stored(folder),)).fetchone()
    return folder_time(folder) == (row[0] if row else -1)


def list_folder(context: StoreContext, folder: Path, noticed: SyncReport) -> None:
    """Compare a folder's listing with the index: new files, removed files, new folders, conflicted copies."""
    stored = context.stored(folder)
    mtime = folder_time(folder)
    entries = _entries(context, folder, noticed)
    if entries is None:
        return
    here = {f"{stored}/{entry.name}" for entry in entries if memories.is_memory_file(entry.name)}
    known = _files_in(context, stored)
    pick_up(context, sorted(here - known), noticed)
    pick_up(context, sorted(known - here), noticed)
    with context.index.writing():
        _note_folder(context, stored, sweep.time_to_record(mtime, time.time_ns()))
    for entry in entries:
        if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
            path = Path(entry.path)
            if not _knows(context, context.stored(path)):
                list_folder(context, path, noticed)


def _entries(context: StoreContext, folder: Path, noticed: SyncReport) -> list["os.DirEntry[str]"] | None:
    """What is in a folder, sorted by name; None, with a problem, if it cannot be listed. Conflicted copies are reported."""
    stored = context.stored(folder)
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        noticed.problems.append(f"{team_of(context, stored) or folder}: cannot be listed: {error.strerror}")
        return None
    # File names in a team store are untrusted text: they are not reported.
    copies = [] if is_team(stored) else [e.name for e in found if memories.is_conflicted_copy(e.name)]
    noticed.problems += [
        f"{folder / name}: a conflicted copy; merge it by hand and remove it"
        for name in copies
        if name.endswith(_SUFFIXES)
    ]
    return found


def compare_files(context: StoreContext, noticed: SyncReport) -> list[str]:
    """Record the stamp of every file that agrees with the index; returns the others, to be read as hand edits.

    For an index filled from the journal; inside a transaction.
    """
    differing: list[str] = []
    files = _listed_files(context, noticed)
    while some := list(islice(files, _COMPARED_AT_ONCE)):
        records = _indexed_records(context, some)
        stamps = [(stored, _stamp_if_equal(context, stored, records.get(stored, ()))) for stored in some]
        differing += [stored for stored, stamp in stamps if stamp is None]
        rows = [
            (stored, stamp.mtime_ns, stamp.size, stamp.inode, stamp.ctime_ns, "")
            for stored, stamp in stamps
            if stamp is not None
        ]
        context.index.db.executemany(context.index.statement("put_file"), rows)
    return differing


def _listed_files(context: StoreContext, noticed: SyncReport) -> Iterator[str]:
    """Every memory file; the folders' times are recorded."""
    for root in roots(context):
        for folder in memories.walk(root):
            stored = context.stored(folder)
            note_folders(context, [folder])
            for entry in _entries(context, folder, noticed) or ():
                if memories.is_memory_file(entry.name):
                    yield f"{stored}/{entry.name}"


def _stamp_if_equal(context: StoreContext, stored: str, records: Sequence[str]) -> Stamp | None:
    """The stamp of a file that contains exactly these records; None if it does not, or may not be read."""
    # Creating or joining a `Path` costs as much as reading the file.
    path = stored if is_team(stored) else f"{context.home.root}/{stored}"
    stamp = stamp_of(path)
    if not records or (is_team(stored) and not is_trusted(context, stored)):
        return None
    try:
        data = memories.content(path)
        if _is_as_written(data, records):
            return stamp
        found = [image(memory) for memory in memories.parse(data, path)]
    except EngramError:
        return None
    expected = {record["id"]: record for record in map(json.loads, records)}
    return stamp if len(found) == len(expected) and {one["id"]: one for one in found} == expected else None


def write_missing(context: StoreContext) -> None:
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
            stamp = memories.write_data(context.confined(stored), memories.render(together), None)
            note_file(context, stored, stamp or UNSEEN)
        except StoreError as error:
            failed.append(error)
    if failed:
        context.warnings.append(f"{len(failed)} missing memory file(s) could not be written again: {failed[0]}")


def _files_in(context: StoreContext, stored: str) -> set[str]:
    rows = context.index.db.execute("SELECT path FROM files WHERE path >= ? AND path < ?", (stored + "/", stored + "0"))
    return {path for (path,) in rows if "/" not in path[len(stored) + 1 :]}


def _note_folder(context: StoreContext, stored: str, mtime: int) -> None:
    if mtime < 0:
        context.index.db.execute("DELETE FROM folders WHERE path = ?", (stored,))
    else:
        context.index.db.execute("INSERT OR REPLACE INTO folders (path, mtime_ns) VALUES (?, ?)", (stored, mtime))


def sync(context: StoreContext, *, seconds: float | None = None) -> SyncReport:
    """Update the index from every file, or from as many as the time allows."""
    noticed = SyncReport()
    everywhere = roots(context)
    folders = dict.fromkeys(changed_folders(context, everywhere))
    if seconds is None:
        # A folder's time can miss changes within one tick of the clock, so a full sync lists every folder.
        folders |= dict.fromkeys(folder for root in everywhere for folder in memories.walk(root))
    for folder in folders:
        list_folder(context, folder, noticed)
    every_file = Sweep(str(context.home.root), map(context.stored, everywhere))
    pick_up(context, every_file.compare(context.index.db, math.inf if seconds is None else seconds), noticed)
    noticed.complete = not every_file.position
    _add_known_problems(context, noticed)
    return noticed


def _add_known_problems(context: StoreContext, noticed: SyncReport) -> None:
    for (error,) in context.index.db.execute("SELECT error FROM files WHERE error <> ''"):
        if error not in noticed.problems:
            noticed.problems.append(error)


def forget_stamps(context: StoreContext, folder: Path) -> None:
    """Make the next sync read every file of a folder again; inside a transaction."""
    context.index.db.execute(
        "UPDATE files SET mtime_ns = 0 WHERE substr(path, 1, ?) = ?", (len(str(folder)) + 1, f"{folder}/")
    )


def sync_folder(context: StoreContext, folder: Path) -> SyncReport:
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


def roots(context: StoreContext) -> list[Path]:
    """The folders with memory files: the store's own, then the attached team stores."""
    return [context.home.engrams, *(Path(team) for team in context.teams)]


def note_folders(context: StoreContext, folders: Iterable[Path]) -> None:
    """Record the folders' times after Engram's own writes; inside a transaction."""
    for folder in folders:
        mtime = folder_time(folder)
        if mtime >= 0:
            _note_folder(context, context.stored(folder), mtime)


# -- team stores


def team_of(context: StoreContext, stored: str) -> str:
    """The attached team store that contains a file, or ""."""
    return next((team for team in context.teams if stored.startswith(team + "/")), "")


def is_team(stored: str) -> bool:
    """Whether a file belongs to a team store, attached or not: its path is absolute."""
    return stored.startswith("/")


def is_attached(context: StoreContext, stored: str) -> bool:
    """Whether a file belongs to the store itself or to an attached team store: what is trusted elsewhere is not known."""
    return not is_team(stored) or bool(team_of(context, stored))


def is_trusted(context: StoreContext, stored: str, team: str = "") -> bool:
    """Whether the reader trusts the current content of a team file; `team` names a store that is not attached."""
    try:
        data = team_content(context.path(stored))
    except EngramError:
        return False
    return content_digest(data) in trusted_digests(context, team or team_of(context, stored))


def is_trusted_anywhere(context: StoreContext, stored: str) -> bool:
    """Whether a team file exists and is trusted, attached or not, so that its journal entry counts."""
    folder = next((f for f in trusted_by_folder(context.home.state) if stored.startswith(f + "/")), "")
    return bool(folder) and is_trusted(context, stored, folder)


def _pick_up_team_file(context: StoreContext, stored: str, stamp: Stamp, noticed: SyncReport) -> None:
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


def _has_indexed_memories(context: StoreContext, stored: str) -> bool:
    return context.index.db.execute("SELECT 1 FROM places WHERE path = ? LIMIT 1", (stored,)).fetchone() is not None


def _keep_last_trusted(context: StoreContext, stored: str, stamp: Stamp, noticed: SyncReport) -> None:
    """Keep the last trusted version of an unreadable file (during a merge, say); none of its text is reported."""
    indexed = _has_indexed_memories(context, stored)
    problem = (
        f"{team_of(context, stored)}: a file there cannot be read; its last trusted version stays current. "
        "`engram trust` shows which file, and why"
    )
    with context.index.writing():
        note_file(context, stored, stamp, problem if indexed else "")
    if indexed and problem not in noticed.problems:
        noticed.problems.append(problem)


def _exclude_untrusted(context: StoreContext, stored: str, stamp: Stamp, noticed: SyncReport) -> None:
    """Remove the memories of an untrusted file from the index; only its stamp is recorded."""
    with context.index.writing() as writer:
        _drop(context, writer, _gone_from(context, stored, set()))
        note_file(context, stored, stamp)
    problem = (
        f"{team_of(context, stored)}: new or changed files there are not trusted yet and are not used. "
        "`engram trust` lists them"
    )
    if problem not in noticed.problems:
        noticed.problems.append(problem)


def _index_team_file(context: StoreContext, stored: str, stamp: Stamp, found: list[Memory]) -> None:
    gone = _gone_from(context, stored, {memory.id for memory in found})
    problems = []
    seen: set[str] = set()
    with context.index.writing() as writer:
        _drop(context, writer, gone)
        for memory in found:
            if _is_in_other_checkout(context, stored, memory):
                continue
            problem = hand_problem(memory) or limit_problem(memory)
            problem = problem or _id_problem(context, stored, memory, seen) or _own_id_problem(context, memory)
            seen.add(memory.id)
            if problem:
                problems.append(f"{context.path(stored)}: {problem}")
                continue
            index_memories(context, writer, [MemoryRow(memory, image(memory), stored)])
        note_file(context, stored, stamp, "; ".join(problems))


def _is_in_other_checkout(context: StoreContext, stored: str, memory: Memory) -> bool:
    """Whether another checkout of the repository already brought exactly this memory."""
    place = place_of(context, memory.id)
    if place == stored or not is_team(place) or not context.path(place).exists():
        return False
    row = context.index.one("by_ref", memory.id)
    return row is not None and image(decode_record(row[2])) == image(memory)


def _own_id_problem(context: StoreContext, memory: Memory) -> str:
    """A problem if a team file uses the id of one of the owner's memories, also of a removed one."""
    own = context.index.one("by_ref", memory.id) is not None and not is_team(place_of(context, memory.id))
    return f"id {memory.id} belongs to one of your own memories; yours is kept" if own else ""
