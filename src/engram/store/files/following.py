"""Keeping the index in step with the files: what a crash left undone, what a person edited, added or removed.

Everything here is for the holder of the writer lock.
"""

import hashlib
import time
from collections.abc import Iterable
from pathlib import Path

from engram.model.errors import EngramError, StoreCorrupt
from engram.model.memory import Memory
from engram.store.documents import event_document
from engram.store.files import memories
from engram.store.files.index.writing import Row
from engram.store.files.journal import Change
from engram.store.files.journal import Placed as PlacedEntry
from engram.store.files.ledger import to_fields
from engram.store.files.memories import Stamp, stamp_of
from engram.store.files.parts import (
    Parts,
    append_entry,
    decode_record,
    image,
    index_entry,
    index_memory,
    note_file,
    note_place,
)
from engram.store.files.sessions import session_scope
from engram.store.protocol import Noticed

HAND = "hand"
"""The actor of what a person did to the files with an editor."""
SETTLED_SECONDS = 2.0
"""An empty file younger than this may be in the middle of an editor's save."""


def catch_up(parts: Parts) -> None:
    """Finish what another writer's crash, or another version's index, left for us: journal first, then ledger."""
    if parts.journal.grew_since(parts.position):
        parts.warnings += parts.journal.mend()
        pending = list(parts.journal.read(parts.position))
        for placed in pending:
            _replay(parts, placed, last=placed is pending[-1])
    follow_ledgers(parts)


def _replay(parts: Parts, placed: PlacedEntry, *, last: bool) -> None:
    """Put a journaled decision into files and index. Only the last one can be missing from the files."""
    for change in placed.entry.changes:
        if last and change.after is not None and change.file:
            _redo_file(parts, change)
    with parts.index.writing() as writer:
        for change in placed.entry.changes:
            if change.after is None:
                writer.delete(change.id)
                note_place(parts, change.id, "")
                continue
            memory = memories.from_image(change.after)
            index_memory(writer, memory, change.after)
            note_place(parts, change.id, change.file)
            note_file(parts, change.file, stamp_of(parts.path(change.file)) if change.file else None)
        index_entry(parts, placed)
    if not last:
        return
    pick_up(parts, [change.file for change in placed.entry.changes if change.file])


def _redo_file(parts: Parts, change: Change) -> None:
    """Write the file unless it already holds this image or something neither we nor the journal wrote."""
    path = parts.path(change.file)
    assert change.after is not None
    try:
        found = {memory.id: image(memory) for memory in memories.read(path)}
    except StoreCorrupt:
        found = {}
    except FileNotFoundError:
        found = {}
    row = parts.index.one("by_ref", change.id)
    before = image(decode_record(row[2])) if row else None
    if change.id not in found or found[change.id] == before:
        memories.write(path, memories.from_image(change.after), stamp_of(path))


def follow_ledgers(parts: Parts) -> None:
    """Index events that were written and not indexed."""
    known = dict(parts.index.db.execute("SELECT name, size FROM ledgers").fetchall())
    behind = {name: size for name, size in parts.ledger.sizes().items() if known.get(name, 0) != size}
    if not behind:
        return
    parts.warnings += parts.ledger.mend()
    for name, size in parts.ledger.sizes().items():
        if known.get(name, 0) != size:
            _index_ledger(parts, name, known.get(name, 0) if known.get(name, 0) < size else 0, size)


def _index_ledger(parts: Parts, name: str, offset: int, size: int) -> None:
    with parts.index.writing() as writer:
        for event in parts.ledger.read(name, offset):
            writer.put(Row(event_document(event, session_scope(parts.home, event.session)), to_fields(event)))
            if event.key:
                parts.index.db.execute("INSERT OR IGNORE INTO keys (session, key, id) VALUES (?, ?, ?)",
                                       (event.session, event.key, event.id))  # fmt: skip
        parts.index.db.execute("INSERT OR REPLACE INTO ledgers (name, size) VALUES (?, ?)", (name, size))


def pick_up(parts: Parts, stored_paths: Iterable[str], noticed: Noticed | None = None) -> Noticed:
    """Read files that changed; what a person wrote wins, is journaled, and goes into the index."""
    noticed = noticed or Noticed()
    for stored in dict.fromkeys(stored_paths):
        _pick_up_one(parts, stored, noticed)
    return noticed


def _pick_up_one(parts: Parts, stored: str, noticed: Noticed) -> None:
    path = parts.path(stored)
    stamp = stamp_of(path)
    if stamp is None:
        _removed(parts, stored, noticed)
        return
    if _stamp_known(parts, stored) == stamp:
        return
    try:
        found = memories.read(path)
    except EngramError as error:
        _unreadable(parts, stored, stamp, str(error), noticed)
        return
    team = team_of(parts, stored)
    if team:
        _index_team_file(parts, stored, stamp, found, team)
        return
    _index_hand_edit(parts, stored, stamp, found, noticed)


def _stamp_known(parts: Parts, stored: str) -> Stamp | None:
    row = parts.index.db.execute("SELECT mtime_ns, size, inode FROM files WHERE path = ?", (stored,)).fetchone()
    return Stamp(*row) if row else None


def _unreadable(parts: Parts, stored: str, stamp: Stamp, error: str, noticed: Noticed) -> None:
    """Leave the file where it is; its last good version stays in force. A settled empty file is filled again."""
    if stamp.size == 0 and time.time() - stamp.mtime_ns / 1e9 > SETTLED_SECONDS and _restore(parts, stored, noticed):
        return
    with parts.index.writing():
        note_file(parts, stored, stamp, error)
    noticed.problems.append(error)


def _restore(parts: Parts, stored: str, noticed: Noticed) -> bool:
    rows = parts.index.db.execute("SELECT id FROM places WHERE path = ?", (stored,)).fetchall()
    if len(rows) != 1:
        return False
    record = parts.index.one("by_ref", rows[0][0])[2]
    memories.write(parts.path(stored), decode_record(record), stamp_of(parts.path(stored)))
    with parts.index.writing():
        note_file(parts, stored, stamp_of(parts.path(stored)))
    noticed.restored.append(rows[0][0])
    return True


def _index_hand_edit(parts: Parts, stored: str, stamp: Stamp, found: list[Memory], noticed: Noticed) -> None:
    accepted, problems = _sort_edits(parts, stored, found, noticed)
    gone = _gone_from(parts, stored, {memory.id for memory in found})
    changes = [Change(memory.id, image(memory), stored) for memory in accepted]
    changes += [Change(memory.id, image(memory), "") for memory in gone]
    placed = append_entry(parts, "edit", HAND, "", changes) if changes else None
    with parts.index.writing() as writer:
        for memory, change in zip([*accepted, *gone], changes, strict=True):
            index_memory(writer, memory, change.after or {})
            note_place(parts, memory.id, change.file)
        if placed is not None:
            index_entry(parts, placed)
        note_file(parts, stored, stamp, "; ".join(problems))
    noticed.problems += problems


def _sort_edits(parts: Parts, stored: str, found: list[Memory], noticed: Noticed) -> tuple[list[Memory], list[str]]:
    """Which memories of a file are new or changed, and what is wrong with the others."""
    accepted: list[Memory] = []
    problems: list[str] = []
    seen: set[str] = set()
    for memory in found:
        problem = _objection(parts, stored, memory, seen)
        seen.add(memory.id)
        if problem:
            problems.append(f"{parts.path(stored)}: {problem}")
            continue
        row = parts.index.one("by_ref", memory.id)
        if row is None:
            noticed.added.append(memory.id)
            accepted.append(memory)
        elif image(decode_record(row[2])) != image(memory):
            noticed.edited.append(memory.id)
            accepted.append(memory)
        elif place_of(parts, memory.id) != stored:
            accepted.append(memory)
    return accepted, problems


def _objection(parts: Parts, stored: str, memory: Memory, seen: set[str]) -> str:
    if memory.id in seen:
        return f"id {memory.id} stands twice in this file; the first one counts"
    if parts.index.db.execute("SELECT 1 FROM tombstones WHERE id = ?", (memory.id,)).fetchone():
        return f"{memory.id} was purged and does not come back; give it a new id or remove the file"
    place = place_of(parts, memory.id)
    if place and place != stored and parts.path(place).exists():
        return f"id {memory.id} is already taken by {place}; give this one another id or remove it"
    return ""


def place_of(parts: Parts, memory_id: str) -> str:
    """The file that holds a memory, or ""."""
    row = parts.index.db.execute("SELECT path FROM places WHERE id = ?", (memory_id,)).fetchone()
    return row[0] if row else ""


def _gone_from(parts: Parts, stored: str, present: set[str]) -> list[Memory]:
    """Memories that stood in a file before and were taken out of it, retired."""
    rows = parts.index.db.execute("SELECT id FROM places WHERE path = ?", (stored,)).fetchall()
    gone = [parts.index.one("by_ref", memory_id) for (memory_id,) in rows if memory_id not in present]
    return [decode_record(row[2]).but(status="retired") for row in gone if row]


def _removed(parts: Parts, stored: str, noticed: Noticed) -> None:
    """A file its owner removed retires its memories; in a team store it only takes them out of sight."""
    gone = _gone_from(parts, stored, set())
    if team_of(parts, stored):
        with parts.index.writing() as writer:
            for memory in gone:
                writer.delete(memory.id)
                note_place(parts, memory.id, "")
            note_file(parts, stored, None)
        return
    changes = [Change(memory.id, image(memory), "") for memory in gone]
    placed = append_entry(parts, "remove", HAND, f"{stored} was removed", changes) if changes else None
    with parts.index.writing() as writer:
        for memory, change in zip(gone, changes, strict=True):
            index_memory(writer, memory, change.after or {})
            note_place(parts, memory.id, "")
        if placed is not None:
            index_entry(parts, placed)
        note_file(parts, stored, None)
    noticed.removed += [memory.id for memory in gone]


# -- looking for changes


def changed_folders(parts: Parts, roots: Iterable[Path]) -> list[Path]:
    """Folders whose listing may differ from what the index knows: one stat each."""
    known = dict(parts.index.db.execute("SELECT path, mtime_ns FROM folders").fetchall())
    changed = [parts.path(stored) for stored in known if _mtime(parts.path(stored)) != known[stored]]
    changed += [root for root in roots if parts.stored(root) not in known and root.is_dir()]
    return changed


def _mtime(folder: Path) -> int:
    try:
        return folder.stat().st_mtime_ns
    except (FileNotFoundError, NotADirectoryError):
        return -1


def list_folder(parts: Parts, folder: Path, noticed: Noticed) -> None:
    """Compare a folder's listing with the index: new files, removed files, new folders, conflicted copies."""
    stored = parts.stored(folder)
    mtime = _mtime(folder)
    names = set() if mtime < 0 else {path.name for path in folder.iterdir() if path.suffix in (".yaml", ".yml")}
    folders = (
        [] if mtime < 0 else [path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")]
    )
    noticed.problems += [f"{folder / name}: a conflicted copy; merge it by hand and remove it"
                         for name in names if memories.is_conflicted_copy(name)]  # fmt: skip
    here = {f"{stored}/{name}" for name in names if memories.is_memory_file(name)}
    known = {path for (path,) in parts.index.db.execute(
        "SELECT path FROM files WHERE path >= ? AND path < ?", (stored + "/", stored + "0"))
        if "/" not in path[len(stored) + 1 :]}  # fmt: skip
    pick_up(parts, sorted(here - known), noticed)
    pick_up(parts, sorted(known - here), noticed)
    with parts.index.writing():
        if mtime < 0:
            parts.index.db.execute("DELETE FROM folders WHERE path = ?", (stored,))
        else:
            parts.index.db.execute("INSERT OR REPLACE INTO folders (path, mtime_ns) VALUES (?, ?)", (stored, mtime))
    for path in folders:
        if not parts.index.db.execute("SELECT 1 FROM folders WHERE path = ?", (parts.stored(path),)).fetchone():
            list_folder(parts, path, noticed)


def sync(parts: Parts, *, seconds: float | None = None) -> Noticed:
    """Bring the index in step with every file, or with as many as the time allows."""
    started = time.monotonic()
    noticed = Noticed()
    for folder in changed_folders(parts, roots(parts)):
        list_folder(parts, folder, noticed)
    changed = []
    for i, (stored, *stamp) in enumerate(
        parts.index.db.execute("SELECT path, mtime_ns, size, inode FROM files").fetchall()
    ):
        if seconds is not None and i % 256 == 0 and time.monotonic() - started > seconds:
            noticed.complete = False
            break
        if stamp_of(parts.path(stored)) != Stamp(*stamp):
            changed.append(stored)
    pick_up(parts, changed, noticed)
    _add_known_problems(parts, noticed)
    return noticed


def _add_known_problems(parts: Parts, noticed: Noticed) -> None:
    for (error,) in parts.index.db.execute("SELECT error FROM files WHERE error <> ''"):
        if error not in noticed.problems:
            noticed.problems.append(error)


def forget_stamps(parts: Parts, folder: Path) -> None:
    """Read every file of a folder again at the next look; inside a transaction."""
    parts.index.db.execute(
        "UPDATE files SET mtime_ns = 0 WHERE substr(path, 1, ?) = ?", (len(str(folder)) + 1, f"{folder}/")
    )


def sync_folder(parts: Parts, folder: Path) -> Noticed:
    """Bring the index in step with the files below one folder."""
    noticed = Noticed()
    known = changed_folders(parts, [folder])
    for changed in [f for f in known if f == folder or folder in f.parents]:
        list_folder(parts, changed, noticed)
    rows = parts.index.db.execute(
        "SELECT path FROM files WHERE substr(path, 1, ?) = ?", (len(str(folder)) + 1, f"{folder}/")
    )
    pick_up(parts, [path for (path,) in rows.fetchall()], noticed)
    return noticed


def roots(parts: Parts) -> list[Path]:
    """The folders that hold memory files: the store's own, then the team stores in use."""
    return [parts.home.engrams, *(Path(team) for team in parts.teams)]


def note_folders(parts: Parts, folders: Iterable[Path]) -> None:
    """Remember folders as they are after our own writes; inside a transaction."""
    for folder in folders:
        mtime = _mtime(folder)
        if mtime >= 0:
            parts.index.db.execute(
                "INSERT OR REPLACE INTO folders (path, mtime_ns) VALUES (?, ?)", (parts.stored(folder), mtime)
            )


# -- team stores


def team_of(parts: Parts, stored: str) -> str:
    """The team store a file lies in, or ""."""
    return next((team for team in parts.teams if stored.startswith(team + "/")), "")


def _index_team_file(parts: Parts, stored: str, stamp: Stamp, found: list[Memory], team: str) -> None:
    """A team's file goes into the index alone; unless its reader trusts this very content, nothing sees it."""
    digest = hashlib.sha256(parts.path(stored).read_bytes()).hexdigest()
    trusted = digest in parts.teams[team]
    problems = []
    with parts.index.writing() as writer:
        for memory in found:
            place = place_of(parts, memory.id)
            if place and place != stored:
                problems.append(f"{parts.path(stored)}: id {memory.id} is already taken by {place}")
                continue
            index_memory(writer, memory, image(memory), trusted=trusted)
            note_place(parts, memory.id, stored)
        note_file(parts, stored, stamp, "; ".join(problems))
