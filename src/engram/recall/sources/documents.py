"""Files with text for agents: found without following links out of the allowed folders, read up to a limit, stamped by stat."""

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from engram.capture.transcripts.harness import time_of
from engram.disk import reading
from engram.model.lazy import dataclass, field
from engram.recall.sources.places import SourcePlaces, resolved
from engram.recall.sources.source import Source, SourceKind

LONGEST_FILE = 256 * 1024
"""Bytes of a file that are read."""
MOST_FILES = 2_000
"""Files of one kind that are looked at below one folder."""
DEEPEST = 12
"""Folders below a folder of rules or skills."""


@dataclass(slots=True)
class Documents:
    """The files found so far, each once, wherever links lead to it."""

    places: SourcePlaces
    found: list[Source] = field(default_factory=list)
    _known: set[Path] = field(default_factory=set)

    def add(self, kind: SourceKind, path: Path, *further: Path, title: str = "") -> Path | None:
        """Take a file, if it may be read and is new; returns where it really is."""
        target = self.places.may_read(path, *further)
        if target is None or target in self._known:
            return None
        try:
            seen = target.stat()
        except OSError:
            return None
        if not stat.S_ISREG(seen.st_mode):
            return None
        self._known.add(target)
        stamp = (seen.st_size, seen.st_mtime_ns, seen.st_ino, seen.st_ctime_ns)
        # Links are shown as the user named them.
        self.found.append(Source(kind, str(path), target, stamp, time_of(seen.st_mtime_ns), title))
        return target

    def knows(self, target: Path) -> bool:
        """Whether a file was found before."""
        return target in self._known


def read_text(path: Path) -> str:
    """The beginning of a file; "" if it cannot be read. Bytes that are no UTF-8 are replaced."""
    try:
        with reading(path) as file:
            return file.read(LONGEST_FILE).decode("utf-8-sig", "replace").replace("\r\n", "\n")
    except OSError:
        return ""


def files_below(folder: Path, wanted: str, allowed: Iterable[Path]) -> Iterator[Path]:
    """The files below a folder whose name ends so, in order; a linked folder is entered once, if it leads into an allowed one."""
    roots = [*map(resolved, allowed), resolved(folder)]
    entered: set[Path] = set()
    waiting, left = [(folder, 0)], MOST_FILES
    while waiting:
        at, depth = waiting.pop()
        target = resolved(at)
        if depth > DEEPEST or target in entered or not any(target.is_relative_to(root) for root in roots):
            continue
        entered.add(target)
        folders = []
        for entry in _entries(at):
            left -= 1
            if left < 0:
                return
            if entry.name.endswith(wanted):
                yield Path(entry.path)
            elif _is_folder(entry):
                folders.append((Path(entry.path), depth + 1))
        waiting.extend(reversed(folders))


def _entries(folder: Path) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError:
        return []


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
