"""Watches the folders of a store where the system reports changes (Linux, local file systems)."""

import contextlib
import os
import weakref
from collections.abc import Iterable
from pathlib import Path

from engram.store.files import memories
from engram.store.files.reconcile import inotify
from engram.store.files.reconcile.file_changes import FileChanges, WatchLost

MAX_WATCHED_STORES = 8
"""The most stores that one process watches; Linux allows a user 128 queues of events in all."""
_RENEWING = inotify.UNMOUNT | inotify.OVERFLOW | inotify.IGNORED | inotify.DELETE_SELF | inotify.MOVE_SELF
"""Events after which paths and events may not belong together any more."""
_APPEARING = inotify.CREATE | inotify.MOVED_TO


class FolderWatch:
    """A watch over the folders of one store. It belongs to one process: a forked child would take its parent's events."""

    def __init__(self, folders: Iterable[str]) -> None:
        """Raises `OSError` where folders cannot be watched."""
        if len(_living) >= MAX_WATCHED_STORES:
            raise OSError("this process watches enough stores")
        self.process = os.getpid()
        self._most, self._local = inotify.most_folders(), dict[int, bool]()
        self._folders: dict[int, str] = {}
        self._queue = inotify.Inotify()
        self.close = weakref.finalize(self, os.close, self._queue.descriptor)
        _living.add(self)
        try:
            for folder in folders:
                self._add(folder)
        except OSError:
            self.close()
            _living.discard(self)
            raise

    def _add(self, folder: str) -> None:
        """Watch one folder. Raises `OSError` if there are too many or its changes are not reported."""
        device = os.stat(folder).st_dev
        if device not in self._local:
            self._local[device] = inotify.is_local(folder)
        if not self._local[device] or len(self._folders) >= self._most:
            raise OSError(f"{folder} cannot be watched")
        self._folders[self._queue.watch(folder)] = folder

    def read(self) -> FileChanges:
        """What has changed since the last call. Raises `WatchLost` if that is not known."""
        changes = FileChanges()
        for event in self._queue.read():
            folder = self._folders.get(event.watch)
            if event.mask & _RENEWING or folder is None:
                raise WatchLost
            path = f"{folder}/{event.name}"
            if event.mask & inotify.IS_FOLDER:
                self._follow_folder(event.mask, path, changes)
            elif memories.is_memory_file(event.name):
                changes.files.add(path)
            elif event.mask & _APPEARING and memories.is_conflicted_copy(event.name):
                changes.folders.add(folder)
        return changes

    def _follow_folder(self, mask: int, path: str, changes: FileChanges) -> None:
        # A folder whose permissions changed may hide or show all its files.
        if mask & (inotify.MOVED_FROM | inotify.DELETE | inotify.ATTRIB):
            raise WatchLost
        if mask & _APPEARING:
            # First the watch, then the listing: nothing that appears between them is missed.
            for folder in memories.walk(Path(path)):
                try:
                    self._add(str(folder))
                except OSError as error:
                    raise WatchLost from error
                changes.folders.add(str(folder))

    def stop(self) -> None:
        """End the watch; closing it again does nothing."""
        _living.discard(self)
        self.close()


_living: "weakref.WeakSet[FolderWatch]" = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for watch in list(_living):
        with contextlib.suppress(OSError):
            watch.stop()


os.register_at_fork(after_in_child=_after_fork_in_child)
