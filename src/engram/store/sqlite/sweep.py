"""Finds edited files by their stamps, and new ones by the times of their folders. Standard library only, for the hooks."""

import os
import sqlite3
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

SECOND_NS = 1_000_000_000
COARSE_CLOCK_NS, FINE_CLOCK_NS = 2 * SECOND_NS, SECOND_NS // 100
"""The longest tick of a file system's clock: with a resolution of seconds (FAT uses steps of two), and of the others."""
FILES_PER_STEP = 256
"""Files between two checks of the clock."""
_FOLDERS = "SELECT path, mtime_ns FROM folders WHERE path = ?1 OR (path > ?1 || '/' AND path < ?1 || '0')"
_SLICE = "SELECT path, mtime_ns, size, inode, ctime_ns FROM files WHERE path > ? AND path < ? ORDER BY path LIMIT ?"


def changed_folders(db: sqlite3.Connection, root: str, folders: Iterable[str]) -> list[str]:
    """The known folders, at or below these, whose listing may have changed: one stat each. All are stored paths."""
    home = f"{root}{os.sep}"
    known = folder_times(db, folders).items()
    return [path for path, mtime_ns in known if folder_time(path if path[0] == "/" else home + path) != mtime_ns]


def folder_times(db: sqlite3.Connection, folders: Iterable[str]) -> dict[str, int]:
    """The recorded time of each known folder, at or below these."""
    found: dict[str, int] = {}
    for folder in folders:
        found.update(db.execute(_FOLDERS, (folder,)).fetchall())
    return found


def folder_time(folder: Path | str) -> int:
    """When something was last added to a folder or removed from it; -1 if it does not exist."""
    try:
        return os.stat(folder).st_mtime_ns
    except (FileNotFoundError, NotADirectoryError):
        return -1


def time_to_record(mtime_ns: int, now_ns: int) -> int:
    """The time to record for a folder that was just listed.

    A change within the same tick of the file system's clock would leave the time unchanged, so 0 is recorded for a
    folder that has just changed, and it is listed again.
    """
    tick = COARSE_CLOCK_NS if mtime_ns % SECOND_NS == 0 else FINE_CLOCK_NS
    return 0 if mtime_ns >= 0 and now_ns - mtime_ns < tick else mtime_ns


class Sweep:
    """One pass over the files below some folders, in the order of their paths; it remembers its position between slices."""

    def __init__(self, root: str, folders: Iterable[str], position: str = "") -> None:
        """`folders` are stored paths; a pass that continues an earlier one starts at its `position`."""
        self._root = f"{root}{os.sep}"
        self._put_first: set[str] = set()
        self._ranges = _rotate([_range(folder) for folder in folders], position)

    def put_first(self, folders: Iterable[str]) -> None:
        """Compare the files of these folders first, each once in a pass, so that one that keeps changing does not delay the others."""
        urgent = [folder for folder in folders if folder not in self._put_first]
        self._put_first.update(urgent)
        self._ranges[:0] = map(_range, urgent)

    @property
    def position(self) -> str:
        """Where the next slice starts; "" once the pass is complete."""
        return self._ranges[0][0] if self._ranges else ""

    def compare(self, db: sqlite3.Connection, seconds: float) -> list[str]:
        """The stored paths of files that differ from the index; compares as many as the time allows, but at least a few."""
        deadline = time.monotonic() + seconds
        changed: list[str] = []
        while self._ranges:
            start, end = self._ranges[0]
            rows = db.execute(_SLICE, (start, end, FILES_PER_STEP)).fetchall()
            changed += find_differing_files(self._root, rows)
            if len(rows) < FILES_PER_STEP:
                del self._ranges[0]
            else:
                self._ranges[0] = (rows[-1][0], end)
            if rows and time.monotonic() > deadline:
                break
        return changed


def find_differing_files(root: str, rows: Sequence[tuple[str, int, int, int, int]]) -> list[str]:
    """The files whose stamp is not the recorded one. `root` ends with a slash."""
    changed, stat = [], os.stat
    for path, mtime_ns, size, inode, ctime_ns in rows:
        try:
            # Creating or joining a `Path` costs as much as the stat itself.
            found = stat(path if path[0] == "/" else root + path)
            if (
                found.st_mtime_ns != mtime_ns
                or found.st_size != size
                or found.st_ino != inode
                or found.st_ctime_ns != ctime_ns
            ):
                changed.append(path)
        except (FileNotFoundError, NotADirectoryError):
            changed.append(path)
        except OSError:
            if mtime_ns != -1:
                changed.append(path)
    return changed


def _range(folder: str) -> tuple[str, str]:
    """The paths between which all paths below a folder sort."""
    return f"{folder}/", f"{folder}0"


def _rotate(ranges: list[tuple[str, str]], position: str) -> list[tuple[str, str]]:
    """The ranges from a position on, then those before it."""
    for i, (start, end) in enumerate(ranges):
        if start < position < end:
            return [(position, end), *ranges[i + 1 :], *ranges[:i], (start, position + "\0")]
    return ranges
