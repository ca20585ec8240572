"""Files with text for agents: found where `FileAccess` lets links lead, read up to a limit, stamped by stat."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from engram.agents.sources.places import SourcePlaces, real_file, real_folder
from engram.agents.sources.source import Source, SourceKind
from engram.agents.transcripts.session import time_of
from engram.disk import reading_real
from engram.model.lazy import dataclass, field

MAX_SOURCE_BYTES = 256 * 1024
"""Bytes of a file that are read."""
MAX_SOURCE_FILES = 2_000
"""Files of one kind that are looked at below one folder."""
MAX_SOURCE_DEPTH = 12
"""Folders below a folder of rules or skills."""


@dataclass(slots=True)
class Documents:
    """The files found so far, each once, wherever links lead to it."""

    places: SourcePlaces
    found: list[Source] = field(default_factory=list)
    _known: set[str] = field(default_factory=set)

    def add_below(self, kind: SourceKind, folder: Path, name: str) -> Path | None:
        """Add a file below a folder if it exists, links lead where they may and it is new; returns its real path."""
        target = self.places.find_real(folder, name)
        return Path(target) if target and self.add(kind, FoundFile(str(folder / name), target)) else None

    def add(self, kind: SourceKind, file: "FoundFile", title: str = "") -> bool:
        """Add a file unless it is known; returns whether it is new."""
        path, target = file
        if target in self._known:
            return False
        try:
            seen = os.stat(target, follow_symlinks=False)
        except OSError:
            return False
        if not stat.S_ISREG(seen.st_mode):
            return False
        self._known.add(target)
        stamp = (seen.st_size, seen.st_mtime_ns, seen.st_ino, seen.st_ctime_ns)
        # Links are shown as the user named them.
        self.found.append(Source(kind, path, Path(target), stamp, time_of(seen.st_mtime_ns), title))
        return True


class FoundFile(NamedTuple):
    """A file: its path as the user knows it, and its real path."""

    path: str
    target: str


def read_text(path: Path) -> str:
    """The beginning of a file, by its real path; "" if it cannot be read. Bytes that are no UTF-8 are replaced."""
    try:
        with reading_real(path) as file:
            data = file.read(MAX_SOURCE_BYTES + 1)
    except OSError:
        return ""
    # As "utf-8-sig" decodes it, which is a module of its own to load.
    return _whole_lines(data).decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n")


def _whole_lines(data: bytes) -> bytes:
    """A file's beginning up to the last line end within the limit, else the last space: half a secret would not be recognised as one."""
    if len(data) <= MAX_SOURCE_BYTES:
        return data
    cut = data[:MAX_SOURCE_BYTES]
    return cut[: max(cut.rfind(b"\n"), 0) or max(cut.rfind(b" "), 0)]


def files_below(places: SourcePlaces, folder: Path, name: str, ending: str) -> Iterator[FoundFile]:
    """The files below `folder / name` whose name has this ending, in order; a linked folder is entered once, if its link may lead there."""
    real = places.find_real(folder, name)
    entered = set[str]()
    waiting, left = [(str(folder / name), real, 0)] if real else [], MAX_SOURCE_FILES
    while waiting:
        at, target, depth = waiting.pop()
        if depth > MAX_SOURCE_DEPTH or target in entered:
            continue
        entered.add(target)
        folders = []
        for entry in _entries(target):
            left -= 1
            if left < 0:
                return
            named, leads_to = f"{at}/{entry.name}", entry.path
            if entry.is_symlink():
                leads_to = real_file(entry.path) if entry.name.endswith(ending) else real_folder(entry.path)
                if not leads_to or not places.access.may_read(target, leads_to):
                    continue
            if entry.name.endswith(ending):
                yield FoundFile(named, leads_to)
            elif _is_folder(entry):
                folders.append((named, leads_to, depth + 1))
        waiting.extend(reversed(folders))


def folders_in(folder: str) -> list[str]:
    """The folders in a folder, by name; those behind links, too."""
    return [entry.path for entry in _entries(folder) if _is_folder(entry)]


def _entries(folder: str) -> list["os.DirEntry[str]"]:
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
