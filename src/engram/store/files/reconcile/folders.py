"""The folders with memory files: their listings and times compared with the index."""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from engram.store.files import memories
from engram.store.files.log.context import LogContext
from engram.store.files.reconcile.context import IndexContext
from engram.store.files.reconcile.team_trust import is_team, team_of
from engram.store.reports import SyncReport
from engram.store.sqlite import sweep
from engram.store.sqlite.sweep import folder_time

_SUFFIXES = (".yaml", ".yml")


def changed_folders(context: IndexContext, roots: Sequence[Path]) -> list[Path]:
    """Folders below these roots whose listing may differ from the index."""
    stored_roots = [context.stored_path(root) for root in roots]
    known = sweep.folder_times(context.index.db, stored_roots)
    changed = sweep.changed_folders(context.index.db, str(context.home.root), stored_roots)
    new = [root for stored, root in zip(stored_roots, roots, strict=True) if stored not in known and root.is_dir()]
    return [*map(context.path, changed), *new]


def known_folders(context: IndexContext) -> list[Path]:
    """The folders with memory files that the index knows."""
    return [
        context.path(stored)
        for stored in sweep.folder_times(context.index.db, map(context.stored_path, memory_roots(context)))
    ]


def is_steady(context: IndexContext, folder: Path) -> bool:
    """Whether nothing was added to or removed from a folder since it was last listed."""
    row = context.index.db.execute(
        "SELECT mtime_ns FROM folders WHERE path = ?", (context.stored_path(folder),)
    ).fetchone()
    return folder_time(folder) == (row[0] if row else -1)


def full_path(context: LogContext, stored: str) -> str:
    """The full path of a stored path as text, which is cheaper than a `Path`."""
    return stored if is_team(stored) else f"{context.home.root}/{stored}"


def list_entries(context: IndexContext, folder: Path, noticed: SyncReport) -> list["os.DirEntry[str]"] | None:
    """What is in a folder, sorted by name; None, with a problem, if it cannot be listed. Conflicted copies are reported."""
    stored = context.stored_path(folder)
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


def files_in(context: IndexContext, stored: str) -> set[str]:
    """The files directly in a folder that the index knows."""
    rows = context.index.db.execute("SELECT path FROM files WHERE path >= ? AND path < ?", (stored + "/", stored + "0"))
    return {path for (path,) in rows if "/" not in path[len(stored) + 1 :]}


def find_new_files(context: IndexContext) -> Iterator[str]:
    """The memory files that the index does not know, in folders that have changed and in new ones."""
    waiting = changed_folders(context, memory_roots(context))
    while waiting:
        stored = context.stored_path(folder := waiting.pop())
        known = files_in(context, stored)
        for entry in list_entries(context, folder, SyncReport()) or ():
            path = f"{stored}/{entry.name}"
            if memories.is_memory_file(entry.name) and path not in known:
                yield path
            elif (
                entry.is_dir(follow_symlinks=False)
                and not entry.name.startswith(".")
                and not is_known_folder(context, path)
            ):
                waiting.append(Path(entry.path))


def is_known_folder(context: IndexContext, stored_folder: str) -> bool:
    """Whether the index knows a folder."""
    return bool(context.index.db.execute("SELECT 1 FROM folders WHERE path = ?", (stored_folder,)).fetchone())


def note_folder(context: IndexContext, stored: str, mtime: int) -> None:
    """Record a folder's time, or that it is gone; inside a transaction."""
    if mtime < 0:
        context.index.db.execute("DELETE FROM folders WHERE path = ?", (stored,))
    else:
        context.index.db.execute("INSERT OR REPLACE INTO folders (path, mtime_ns) VALUES (?, ?)", (stored, mtime))


def note_folders(context: IndexContext, folders: Iterable[Path]) -> None:
    """Record the folders' times after Engram's own writes; inside a transaction."""
    for folder in folders:
        mtime = folder_time(folder)
        if mtime >= 0:
            note_folder(context, context.stored_path(folder), mtime)


def memory_roots(context: IndexContext) -> list[Path]:
    """The folders with memory files: the store's own, then the attached team stores."""
    return [context.home.engrams, *(Path(team) for team in context.teams)]
