"""Detects what people change in the files of an open store, at little cost: by a watch, or by stamps in slices.

The first look of a process compares the stamp of every file. A process that lives on watches the folders from its second
look on, where the system can; then a look is one read of an empty queue. Elsewhere each look compares a slice.
"""

import os
import time
from typing import TYPE_CHECKING

from engram.store.files.reconcile.context import IndexContext
from engram.store.files.reconcile.file_changes import FileChanges, WatchLost
from engram.store.files.reconcile.folders import changed_folders, known_folders, memory_roots
from engram.store.files.reconcile.index_records import stamps_known
from engram.store.files.reconcile.team_trust import is_attached, is_team
from engram.store.sqlite.sweep import Sweep, find_differing_files

if TYPE_CHECKING:
    from engram.store.files.reconcile.folder_watch import FolderWatch

_NEVER = float("-inf")
LOOK_INTERVAL = 0.25
"""Seconds between two looks without a watch."""
FIRST_SWEEP_SECONDS = 1.5
"""Seconds that the first look may take; 100,000 files on a local disk take .4 to .6."""
SWEEP_SHARE = 0.1
"""The part of the time between two looks that a slice may take."""
SHORTEST_SLICE, LONGEST_SLICE = 0.005, 0.1
"""The seconds that a slice takes at least, enough for a thousand files, and at most."""
WATCH_RETRY_SECONDS = 30.0
"""Seconds until folders that could not be watched are tried again."""
READ_RETRY_SECONDS = 2.0
"""Seconds until changed files that could not be read are tried again."""
MAX_TRIES = 20
"""How often a file that still differs after it was read, a dangling link for example, is read again."""
SWEEP_POSITION_KEY = "sweep"
"""Where the last incomplete first look stopped, in the metadata of the index: the next process continues there."""


class EditDetector:
    """Finds the changed files of one store. It only looks: the store reads them under the writer lock."""

    def __init__(self) -> None:
        self._watch: FolderWatch | None = None
        self._sweep: Sweep | None = None
        self._unread, self._tries = FileChanges(), dict[str, int]()
        self._looked_at = self._watch_at = self._read_at = _NEVER
        self._roots: dict[str, tuple[int, int] | None] = {}
        self.stopped_at: str | None = None
        """Where the first look stopped, "" for the end; None if the index knows that."""

    @property
    def is_current(self) -> bool:
        """Whether a watch reports every change, so that no file needs to be checked before it is returned."""
        return self._watch is not None and self._sweep is None and self._watch.process == os.getpid()

    def find(self, context: IndexContext, *, force: bool = False) -> FileChanges:
        """Files and folders that differ from the index; stored paths. `force` compares the folders now, however recent the last look is."""
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
        """What the watch reports; None if it cannot be relied on any more."""
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
        """End the watch. The next look compares every file."""
        if self._watch is not None:
            self._watch.stop()
        self._watch = self._sweep = None
        self._watch_at = _NEVER

    # -- by stamps

    def _look(self, context: IndexContext, found: FileChanges, now: float) -> None:
        """Compare the folders, start a watch if this process lives on, and begin a sweep unless one is under way."""
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
                    # A folder may be new and unwatched: list it first, and watch with the next look.
                    self.stop()
        found.folders.update(map(str, changed))
        if self._sweep is None:
            position = str(context.index.get(SWEEP_POSITION_KEY) or "") if is_first else ""
            self._sweep = Sweep(str(context.home.root), map(context.stored_path, roots), position)
        # A file that was renamed over another changes the folder's time, too.
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
    """Device and inode of the store's folders; a folder that was replaced is another one with the same path."""
    found: dict[str, tuple[int, int] | None] = {}
    for root in memory_roots(context):
        try:
            status = os.stat(root)
            found[str(root)] = (status.st_dev, status.st_ino)
        except OSError:
            found[str(root)] = None
    return found
