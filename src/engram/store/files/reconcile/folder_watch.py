"""Watches a store's folders for changes, using Linux's inotify through the C library, on local file systems."""

import contextlib
import ctypes
import errno
import os
import struct
import sys
import weakref
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from engram.store.files import memories
from engram.store.files.reconcile.folders import FileChanges, WatchLost

MODIFY, ATTRIB, CLOSE_WRITE = 0x2, 0x4, 0x8
MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x40, 0x80, 0x100, 0x200
DELETE_SELF, MOVE_SELF = 0x400, 0x800
UNMOUNT, OVERFLOW, IGNORED = 0x2000, 0x4000, 0x8000
IS_FOLDER = 0x40000000
_ONLY_FOLDERS, _NO_LINKS = 0x01000000, 0x02000000
_WATCHED = (
    MODIFY | ATTRIB | CLOSE_WRITE | MOVED_FROM | MOVED_TO | CREATE | DELETE | DELETE_SELF | MOVE_SELF
    | _ONLY_FOLDERS | _NO_LINKS
)  # fmt: skip
_EVENT = struct.Struct("iIII")
_READ_SIZE = 1 << 16
_LIMIT = Path("/proc/sys/fs/inotify/max_user_watches")
_SHARE = 8
"""The largest share of the user's watches that a store takes, since editors need the others."""
MAX_FOLDERS = 8192
"""The most folders that one store watches."""
_LOCAL_FILE_SYSTEMS = frozenset(
    {
        0xEF53,  # ext2, ext3, ext4
        0x58465342,  # XFS
        0x9123683E,  # Btrfs
        0xF2F52010,  # F2FS
        0x2FC12FC1,  # ZFS
        0xCA451A4E,  # bcachefs
        0x01021994,  # tmpfs
        0x858458F6,  # ramfs
        0x794C7630,  # overlayfs
    }
)
"""Only these file systems, because not all report every change; network ones do not report those of other machines."""


class FolderEvent(NamedTuple):
    """A change in a watched folder; `name` is "" if it concerns the folder itself."""

    watch: int
    mask: int
    name: str


class Inotify:
    """One queue of events. Raises `OSError` if the system has no inotify or a limit is reached."""

    def __init__(self) -> None:
        self._library = _library()
        # The flags of inotify_init1 are those of open.
        self.descriptor = _raise_on_error(self._library.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK))

    def watch(self, folder: str) -> int:
        """Start watching a folder, without those below it; returns the watch's number."""
        return _raise_on_error(self._library.inotify_add_watch(self.descriptor, os.fsencode(folder), _WATCHED))

    def read(self) -> list[FolderEvent]:
        """The events since the last call, without those of hidden files, which include Engram's own temporary files."""
        events: list[FolderEvent] = []
        while True:
            try:
                data = os.read(self.descriptor, _READ_SIZE)
            except BlockingIOError:
                return events
            position, end = 0, len(data)
            while position < end:
                watch, mask, _, size = _EVENT.unpack_from(data, position)
                position += _EVENT.size
                name = data[position : position + size]
                position += size
                if not name.startswith(b"."):
                    events.append(FolderEvent(watch, mask, os.fsdecode(name.rstrip(b"\0"))))


def most_folders() -> int:
    """How many folders a store may watch here."""
    try:
        return min(MAX_FOLDERS, int(_LIMIT.read_text("ascii")) // _SHARE)
    except (OSError, ValueError):
        return 0


def is_local(folder: str) -> bool:
    """Whether a folder is on a file system that reports all its changes."""
    found = ctypes.create_string_buffer(512)
    try:
        _raise_on_error(_library().statfs(os.fsencode(folder), found))
    except OSError:
        return False
    return ctypes.c_long.from_buffer(found).value & 0xFFFFFFFF in _LOCAL_FILE_SYSTEMS


@cache
def _library() -> Any:
    if sys.platform != "linux":
        raise OSError(errno.ENOSYS, "inotify is part of Linux only")
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "inotify_init1"):
        raise OSError(errno.ENOSYS, "the C library has no inotify")
    return library


def _raise_on_error(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


MAX_WATCHED_STORES = 8
"""The most stores that one process watches; Linux allows a user 128 queues of events in all."""
_RENEWING = UNMOUNT | OVERFLOW | IGNORED | DELETE_SELF | MOVE_SELF
"""Events after which paths and events may not belong together any more."""
_APPEARING = CREATE | MOVED_TO


class FolderWatch:
    """A watch over the folders of one store. It belongs to one process: a forked child would take its parent's events."""

    def __init__(self, folders: Iterable[str]) -> None:
        """Raises `OSError` if folders cannot be watched."""
        if len(_living) >= MAX_WATCHED_STORES:
            raise OSError("this process watches enough stores")
        self.process = os.getpid()
        self._most, self._local = most_folders(), dict[int, bool]()
        self._folders: dict[int, str] = {}
        self._queue = Inotify()
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
            self._local[device] = is_local(folder)
        if not self._local[device] or len(self._folders) >= self._most:
            raise OSError(f"{folder} cannot be watched")
        self._folders[self._queue.watch(folder)] = folder

    def read(self) -> FileChanges:
        """What has changed since the last call. Raises `WatchLost` if events are missing."""
        changes = FileChanges()
        for event in self._queue.read():
            folder = self._folders.get(event.watch)
            if event.mask & _RENEWING or folder is None:
                raise WatchLost
            path = f"{folder}/{event.name}"
            if event.mask & IS_FOLDER:
                self._follow_folder(event.mask, path, changes)
            elif memories.is_memory_file(event.name):
                changes.files.add(path)
            elif event.mask & _APPEARING and memories.is_conflicted_copy(event.name):
                changes.folders.add(folder)
        return changes

    def _follow_folder(self, mask: int, path: str, changes: FileChanges) -> None:
        # A folder whose permissions changed may hide or show all its files.
        if mask & (MOVED_FROM | DELETE | ATTRIB):
            raise WatchLost
        if mask & _APPEARING:
            # Watch first, then list, so that nothing created in between is missed.
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
