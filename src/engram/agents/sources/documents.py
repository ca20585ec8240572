"""Sources and the passages they are indexed by.

Also finds text files for agents, such as all agents' instruction files with their imports.
"""

import os
import re
import stat
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from engram.agents.agent import all_agents
from engram.agents.sources.places import SourcePlaces, real_file, real_folder
from engram.agents.transcripts.session import time_of
from engram.disk import reading_real
from engram.model.lazy import dataclass, field, lazy_pattern
from engram.text.display import strip_code_spans, strip_comments

if TYPE_CHECKING:
    from engram.agents.transcripts.session import StoredSession

SourceKind = Literal["auto-memory", "session", "skill", "instructions", "rule"]


@dataclass(frozen=True, slots=True)
class Source:
    """A file or session to read; `stamp` changes whenever its content does."""

    kind: SourceKind
    name: str
    """Unique among all sources: the path of its file, or the path of its database and the session's id."""
    path: Path
    stamp: tuple[int, ...]
    modified: datetime
    title: str = ""
    """Its name, such as a skill's; "" for a file that is named by its path."""
    session: "StoredSession | None" = None


@dataclass(frozen=True, slots=True)
class SourcePassage:
    """A part of a source, as indexed: redacted text and its position."""

    text: str
    section: str = ""
    """The headings above it, outermost first."""
    time: datetime | None = None
    """When it was written; None if it has no time."""
    about: str = ""
    """Additional search words, such as the description of its skill."""


@dataclass(frozen=True, slots=True)
class SourceContent:
    """The passages of a source, and properties found while reading it."""

    passages: tuple[SourcePassage, ...]
    title: str = ""
    directory: str = ""
    """The folder that a session ran in; "" if it is unknown, or the source is no session."""


@dataclass(frozen=True, slots=True)
class SourceHit:
    """A passage that matches a question."""

    n: int
    source: Source
    passage: SourcePassage
    score: float
    relevance: float


MAX_SOURCE_BYTES = 256 * 1024
"""Maximum bytes read of a file."""
MAX_SOURCE_FILES = 2_000
"""Maximum files of one kind checked below one folder."""
MAX_SOURCE_DEPTH = 12
"""Maximum folder levels below a folder of rules or skills."""


@dataclass(slots=True)
class Documents:
    """The files found so far, each once, even if several links lead to it."""

    places: SourcePlaces
    found: list[Source] = field(default_factory=list)
    _known: set[str] = field(default_factory=set)

    def add_below(self, kind: SourceKind, folder: Path, name: str) -> Path | None:
        """Add a file below a folder if it exists, is new, and links stay within bounds; returns its real path."""
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
    """The beginning of a file, by its real path; "" if it cannot be read. Bytes that are not UTF-8 are replaced."""
    try:
        with reading_real(path) as file:
            data = file.read(MAX_SOURCE_BYTES + 1)
    except OSError:
        return ""
    # This decodes like "utf-8-sig", which would load a module of its own.
    return _whole_lines(data).decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n")


def _whole_lines(data: bytes) -> bytes:
    """Cut a file's beginning at the last line end within the limit, else at the last space.

    Half a secret would not be recognised as one.
    """
    if len(data) <= MAX_SOURCE_BYTES:
        return data
    cut = data[:MAX_SOURCE_BYTES]
    return cut[: max(cut.rfind(b"\n"), 0) or max(cut.rfind(b" "), 0)]


def files_below(places: SourcePlaces, folder: Path, name: str, ending: str) -> Iterator[FoundFile]:
    """The files below `folder / name` with this suffix, in order; a linked folder is entered once, if its target is allowed."""
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
    """The folders in a folder, by name, including linked ones."""
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


MAX_IMPORT_HOPS = 5
"""Maximum depth of imports within imports, as in agents."""
MAX_IMPORTS = 200
MAX_IMPORT_CHARS = 1_000
"""Maximum characters of an imported path; file systems have no longer ones."""
MAX_PUNCTUATION = 8
"""Maximum punctuation characters after a path that may belong to the sentence around it."""
_IMPORT = lazy_pattern(r"(?:^|(?<=[\s(]))@((?:\\ |[^\s@()\\])+)", re.MULTILINE)
_FENCED = lazy_pattern(r"^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_ITEM = lazy_pattern(r" {0,3}(?:[-*+]|\d{1,9}[.)])\s")
_PUNCTUATION = ".,;:!?'\"*_>]}`"


def find_instructions(documents: Documents) -> None:
    """Add the instructions for the directory with their imports, nearest first, then the user's and the managed ones."""
    places, agents = documents.places, all_agents()
    named = dict.fromkeys(name for agent in agents for name in agent.instructions.up_the_tree)
    of_users = {places.user_folder(agent) for agent in agents}
    for folder in places.upwards():
        at_root = [name for agent in agents for name in agent.instructions.at_root] if folder == places.top else []
        for name in (*named, *at_root):
            path = folder / name
            # A settings folder in the home is the user's, not a project's.
            is_here = path.parent == folder or (folder != places.home and path.parent not in of_users)
            if is_here and is_own(path, places):
                _add_with_imports(documents, folder, name)
    for agent in agents:
        for name in agent.instructions.of_user:
            _add_with_imports(documents, places.user_folder(agent), name)
        if (managed := places.managed_folder(agent)) is not None:
            for name in agent.instructions.managed:
                _add_with_imports(documents, managed, name)


def is_own(path: Path, places: SourcePlaces) -> bool:
    """Whether a file exists and is trusted here: above the project, it must belong to the user or the administrator."""
    try:
        owner = path.stat().st_uid
    except OSError:
        return False
    return path.is_relative_to(places.top) or owner in (os.getuid(), 0)


def _add_with_imports(documents: Documents, folder: Path, name: str) -> None:
    """Add a file and its imports, level by level; every file once, so that cycles end."""
    target = documents.add_below("instructions", folder, name)
    waiting = [(target, folder / name)] if target is not None else []
    left = MAX_IMPORTS
    for _ in range(MAX_IMPORT_HOPS):
        imported = []
        for origin, named in waiting:
            for wanted in imports_of(read_text(origin)):
                left -= 1
                file = None if left < 0 else _import_of(wanted, (named.parent, origin.parent), documents.places)
                if file is not None and documents.add("instructions", file):
                    imported.append((Path(file.target), Path(file.path)))
        waiting = imported


def imports_of(text: str) -> Iterator[str]:
    """The paths that a text imports, as written; paths in code or comments are not imports."""
    prose = "".join(_outside_indented_code(_FENCED.sub("", text)))
    plain = strip_comments(strip_code_spans(prose), unclosed=True)
    wanted = dict.fromkeys(found[1].replace("\\ ", " ") for found in _IMPORT.finditer(plain))
    yield from (path for path in wanted if len(path) <= MAX_IMPORT_CHARS)


def _outside_indented_code(text: str) -> Iterator[str]:
    """The lines outside of indented code.

    Such a block follows a blank line or a heading; in a list, an indent only continues an item.
    """
    may_begin, in_list = True, False
    for line in text.splitlines(keepends=True):
        if not line.strip():
            may_begin = True
        elif line.startswith(("    ", "\t")):
            if may_begin and not in_list:
                continue
            may_begin = False
        else:
            ends_list = may_begin and not line[0].isspace()
            in_list = _ITEM.match(line) is not None or (in_list and not ends_list)
            may_begin = line.startswith("#")
        yield line


def _import_of(wanted: str, folders: tuple[Path, Path], places: SourcePlaces) -> FoundFile | None:
    """The file that an import names, if it may be read, with or without trailing punctuation of the sentence around it.

    `folders` are the importing file's folder as named, and the real one, which decides what may be read.
    """
    for _ in range(MAX_PUNCTUATION + 1):
        for path in _candidates(wanted, folders, places):
            if target := real_file(str(path)):
                is_allowed = places.access.may_read(str(folders[1]), target)
                return FoundFile(str(path), target) if is_allowed else None
        if wanted[-1:] not in _PUNCTUATION or not wanted[:-1]:
            return None
        wanted = wanted[:-1]
    return None


def _candidates(wanted: str, folders: tuple[Path, Path], places: SourcePlaces) -> list[Path]:
    if wanted == "~" or wanted.startswith("~/"):
        return [places.home / wanted[2:]]
    path = Path(wanted)
    return [path] if path.is_absolute() else [Path(os.path.normpath(folder / path)) for folder in folders]
