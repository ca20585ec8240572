"""The folders with memory files: which files a reader trusts, which are still being saved, and which people changed.

Changes are found while the store is open, by a watch or by comparing stamps in slices.
"""

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engram.disk import read_bytes, replace_file
from engram.model.errors import EngramError, StoreCorrupt
from engram.model.lazy import dataclass, field
from engram.store.files import memories
from engram.store.files.memories import Stamp, stamp_of
from engram.store.files.reconcile.index_state import IndexContext, LogContext, records_in, stamps_known
from engram.store.reports import SyncReport
from engram.store.scopes import (
    TRUST_FILE,
    trusted_by_folder,
)
from engram.store.sqlite import sweep
from engram.store.sqlite.sweep import Sweep, find_differing_files, folder_time

if TYPE_CHECKING:
    from engram.store.files.reconcile.folder_watch import FolderWatch

LARGEST_FILE = 4_000_000
"""Largest team file in bytes, because a clone is opened before anyone has reviewed it."""


def team_content(path: Path) -> bytes:
    """The content of a team file. Raises `StoreCorrupt` for a link, a non-file, and a file that is too large."""
    found = stamp_of(path)
    if found is not None and found.size > LARGEST_FILE:
        raise StoreCorrupt(f"{path}: {found.size:,} bytes; a team file may have at most {LARGEST_FILE:,}")
    return memories.content(path)


def content_digest(data: bytes) -> str:
    """The digest by which a file's content is trusted."""
    return hashlib.sha256(data).hexdigest()


def trusted_digests(context: IndexContext, folder: Path | str) -> frozenset[str]:
    """The digests the reader trusts in a folder, read again when the file has changed."""
    stamp = stamp_of(context.home.state / TRUST_FILE)
    if context.trust is None or context.trust[0] != stamp:
        by_folder = trusted_by_folder(context.home.state)
        context.trust = stamp, {name: frozenset(digests) for name, digests in by_folder.items()}
    return context.trust[1].get(str(folder), frozenset())


def save_trust(context: IndexContext, folder: Path, digests: Iterable[str]) -> None:
    """Trust exactly these contents of a folder."""
    with context.lock.hold():
        everything = trusted_by_folder(context.home.state)
        everything[str(folder)] = sorted(digests)
        path = context.home.state / TRUST_FILE
        replace_file(path, json.dumps(everything, indent=1).encode() + b"\n")
    context.trust = None


def trust_own_writes(context: IndexContext, written: Iterable[tuple[str, Stamp]]) -> None:
    """Trust what the reader's own decision wrote to team files.

    `written` are files with their stamps; one that has changed since is left out, because someone else wrote it.
    """
    for path, stamp in ((Path(stored), stamp) for stored, stamp in written):
        team = next((team for team in context.teams if path.is_relative_to(team)), "")
        if team:
            data = read_bytes(path)
            if stamp.has_same_content(stamp_of(path)):
                save_trust(context, Path(team), trusted_digests(context, team) | {content_digest(data)})


def team_of(context: IndexContext, stored: str) -> str:
    """The attached team store that contains a file, or ""."""
    return next((team for team in context.teams if stored.startswith(team + "/")), "")


def is_team(stored: str) -> bool:
    """Whether a file belongs to a team store, attached or not: its path is absolute."""
    return stored.startswith("/")


def is_attached(context: IndexContext, stored: str) -> bool:
    """Whether a file belongs to the store itself or to an attached team store. Trust in other stores is not known."""
    return not is_team(stored) or bool(team_of(context, stored))


def is_trusted(context: IndexContext, stored: str, team: str = "") -> bool:
    """Whether the reader trusts the current content of a team file; `team` names a store that is not attached."""
    try:
        data = team_content(context.path(stored))
    except EngramError:
        return False
    return content_digest(data) in trusted_digests(context, team or team_of(context, stored))


def is_trusted_anywhere(context: IndexContext, stored: str) -> bool:
    """Whether a team file exists and is trusted, attached or not, so that its journal entry counts."""
    folder = next((f for f in trusted_by_folder(context.home.state) if stored.startswith(f + "/")), "")
    return bool(folder) and is_trusted(context, stored, folder)


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


YOUNG_SECONDS = 0.1
"""An editor may still be saving a file that was changed less than this long ago."""
STEADY_SECONDS = 0.015
"""A young file that stays as it is for this long is complete; it is longer than a tick of a file system's clock."""
SAVING_SECONDS = 0.3
"""The longest wait for a save; a file that keeps changing is read later."""


def await_saves(context: IndexContext, stored_paths: Iterable[str]) -> set[str]:
    """Wait a moment until recently changed files stay unchanged; returns those that still change.

    An editor may save in several steps: empty the file and write it in parts, or move it away and write a new one. Half
    a memory can be valid YAML.
    """
    full = {stored: full_path(context, stored) for stored in stored_paths}
    young = {stored: stamp_of(path) for stored, path in full.items() if _is_young(path)}
    if young:
        known = {row[0]: Stamp(*row[1:]) for row in stamps_known(context.index, young)}
        records = records_in(context.index, list(young))
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
    """Whether a file is as Engram wrote it, for example a moment ago in another process."""
    with contextlib.suppress(EngramError):
        return is_as_written(memories.content(path), records)
    return False


def _is_young(path: str) -> bool:
    """Whether a file was changed, or removed from its folder, a moment ago. A time in the future counts as now."""
    changed = folder_time(path)
    if changed < 0:
        changed = folder_time(os.path.dirname(path))  # noqa: PTH120 -- called for every changed file
    return time.time() - changed / 1e9 < YOUNG_SECONDS


def is_as_written(data: bytes, records: Sequence[str]) -> bool:
    """Whether a file is, byte for byte, what Engram wrote for its only indexed record; then it need not be parsed."""
    return len(records) == 1 and memories.render_image(json.loads(records[0])) == data


@dataclass(slots=True)
class FileChanges:
    """Memory files that may have changed, and folders whose listing may have."""

    files: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.files or self.folders)


class WatchLost(Exception):
    """Events are missing: start a new watch and compare all files."""


_NEVER = float("-inf")
LOOK_INTERVAL = 0.25
"""Seconds between two checks without a watch."""
FIRST_SWEEP_SECONDS = 1.5
"""Maximum seconds of the first check; 100,000 files on a local disk take 0.4 to 0.6."""
SWEEP_SHARE = 0.1
"""The share of the time between two checks that a slice may take."""
SHORTEST_SLICE, LONGEST_SLICE = 0.005, 0.1
"""Minimum seconds of a slice, enough for a thousand files, and maximum seconds."""
WATCH_RETRY_SECONDS = 30.0
"""Seconds until folders that could not be watched are tried again."""
READ_RETRY_SECONDS = 2.0
"""Seconds until changed files that could not be read are tried again."""
MAX_TRIES = 20
"""How often a file that still differs after it was read, a dangling link for example, is read again."""
SWEEP_POSITION_KEY = "sweep"
"""The metadata key of the position where the last incomplete first check stopped; the next process continues there."""


class EditDetector:
    """Finds the changed files of one store. The store reads them under the writer lock.

    The first check of a process compares the stamp of every file. A process that keeps running watches the folders from
    its second check on, if the system supports it; each check then reads an empty queue. Otherwise each check compares
    a slice.
    """

    def __init__(self) -> None:
        self._watch: FolderWatch | None = None
        self._sweep: Sweep | None = None
        self._unread, self._tries = FileChanges(), dict[str, int]()
        self._looked_at = self._watch_at = self._read_at = _NEVER
        self._roots: dict[str, tuple[int, int] | None] = {}
        self.stopped_at: str | None = None
        """Where the first check stopped, "" for the end; None if the index has the position."""

    @property
    def is_current(self) -> bool:
        """Whether a watch reports every change, so that no file needs to be checked before it is returned."""
        return self._watch is not None and self._sweep is None and self._watch.process == os.getpid()

    def find(self, context: IndexContext, *, force: bool = False) -> FileChanges:
        """Files and folders that differ from the index; stored paths.

        `force` compares the folders even after a recent check.
        """
        now = time.monotonic()
        is_due = now - self._looked_at >= LOOK_INTERVAL
        found = self._read_watch(context, check_roots=is_due or force)
        if found is None:
            self.stop()
            is_due, found = True, FileChanges()
        if (is_due or force) and self._watch is None:
            self._look(context, found, now)
        if is_due:
            self._compare_files(context, found, now)
            self._looked_at = now
        if self._unread and now >= self._read_at:
            found.files |= self._unread.files
            found.folders |= self._unread.folders
            self._unread = FileChanges()
        if found.files:
            found.files = find_differing(context, found.files)
        return found

    def _compare_files(self, context: IndexContext, found: FileChanges, now: float) -> None:
        """Compare the next slice of files."""
        if self._sweep is None:
            return
        found.files.update(self._sweep.compare(context.index.db, self._seconds(now)))
        if self._looked_at == _NEVER and self._sweep.position != (context.index.get(SWEEP_POSITION_KEY) or ""):
            self.stopped_at = self._sweep.position
        if not self._sweep.position:
            self._sweep = None

    def _seconds(self, now: float) -> float:
        if self._looked_at == _NEVER:
            return FIRST_SWEEP_SECONDS
        return max(SHORTEST_SLICE, min(LONGEST_SLICE, SWEEP_SHARE * (now - self._looked_at)))

    # -- by watch

    def _read_watch(self, context: IndexContext, *, check_roots: bool) -> FileChanges | None:
        """The changes that the watch reports; None if it is no longer reliable."""
        if self._watch is None:
            return FileChanges()
        if self._watch.process != os.getpid() or (check_roots and self._roots != _identify_roots(context)):
            return None
        try:
            found = self._watch.read()
        except WatchLost:
            return None
        if found.files:
            prefix = f"{context.home.root}/"
            found.files = {path.removeprefix(prefix) for path in found.files}
        return found

    def _start_watch(self, context: IndexContext) -> "FolderWatch | None":
        from engram.store.files.reconcile.folder_watch import FolderWatch

        try:
            return FolderWatch(str(folder) for folder in known_folders(context))
        except OSError:
            return None

    def stop(self) -> None:
        """End the watch. The next check compares every file."""
        if self._watch is not None:
            self._watch.stop()
        self._watch = self._sweep = None
        self._watch_at = _NEVER

    # -- by stamps

    def _look(self, context: IndexContext, found: FileChanges, now: float) -> None:
        """Compare the folders, start a watch if this process keeps running, and begin a sweep unless one is in progress."""
        is_first = self._looked_at == _NEVER
        roots = memory_roots(context)
        changed = changed_folders(context, roots)
        if not is_first and not changed and now >= self._watch_at:
            self._roots = _identify_roots(context)
            self._watch, self._watch_at = self._start_watch(context), now + WATCH_RETRY_SECONDS
            changed = changed_folders(context, roots)
            if self._watch is not None:
                self._sweep = None
                if changed:
                    # A folder may be new and unwatched: list it first, and watch from the next check on.
                    self.stop()
        found.folders.update(map(str, changed))
        if self._sweep is None:
            position = str(context.index.get(SWEEP_POSITION_KEY) or "") if is_first else ""
            self._sweep = Sweep(str(context.home.root), map(context.stored_path, roots), position)
        # A rename over another file changes the folder's time, too.
        self._sweep.put_first(map(context.stored_path, changed))

    # -- afterwards

    def note_read(self, context: IndexContext, changes: FileChanges) -> None:
        """Remember the files that still differ after they were read, such as those an editor has not finished."""
        tried = {path: self._tries.get(path, 0) + 1 for path in find_differing(context, changes.files)}
        self._tries = {path: tries for path, tries in tried.items() if tries < MAX_TRIES}
        self._unread.files |= self._tries.keys()
        self._read_at = time.monotonic() + LOOK_INTERVAL

    def note_unread(self, changes: FileChanges) -> None:
        """Remember changes that could not be read now, because the store is locked or may not be written."""
        self._unread.files |= changes.files
        self._unread.folders |= changes.folders
        self._read_at = time.monotonic() + READ_RETRY_SECONDS

    @property
    def is_waiting(self) -> bool:
        """Whether changes that could not be read are tried again later."""
        return bool(self._unread) and time.monotonic() < self._read_at


def find_differing(context: IndexContext, stored_paths: set[str]) -> set[str]:
    """Those of the files that are not as the index knows them."""
    known = stamps_known(context.index, stored_paths)
    root = f"{context.home.root}/"
    found = set(find_differing_files(root, known))
    found |= {
        path
        for path in stored_paths.difference(row[0] for row in known)
        if os.path.lexists(path if is_team(path) else root + path)
    }
    return {path for path in found - context.durability.unrepaired if is_attached(context, path)}


def _identify_roots(context: IndexContext) -> dict[str, tuple[int, int] | None]:
    """Device and inode of the store's folders, to notice that a folder was replaced by another with the same path."""
    found: dict[str, tuple[int, int] | None] = {}
    for root in memory_roots(context):
        try:
            status = os.stat(root)
            found[str(root)] = (status.st_dev, status.st_ino)
        except OSError:
            found[str(root)] = None
    return found
