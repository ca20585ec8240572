"""The harnesses whose sessions can be harvested: where each keeps them, and the form in which they are found and read."""

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from engram.capture.transcripts.content import moment
from engram.capture.transcripts.transcript import Transcript
from engram.disk import reading
from engram.model.errors import EngramError, InvalidInput
from engram.model.lazy import dataclass, field

HARNESSES = ("claude-code", "codex", "opencode")
NAMES = {"claude-code": "Claude Code", "codex": "Codex", "opencode": "OpenCode"}
_SQLITE = b"SQLite format 3"
_OPENING = 64 * 1024
"""Bytes of a file by which the harness that wrote it is recognised."""
_CODEX_MARKS = (b'"payload"', b'"record_type"', b'"instructions"')
_CLAUDE_MARKS = (b'"sessionId"', b'"uuid"', b'"leafUuid"')


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session in a harness's own store, before it is read."""

    harness: str
    name: str
    """Names it among all sessions of the harness: the path of its file, or of its database and its id."""
    path: Path
    stamp: tuple[int, ...]
    """What changes whenever it does: of a file its size, the times of its content and of its inode, and the inode."""
    modified: datetime
    directory: str = ""
    """The folder the agent worked in, if that is known before it is read."""
    grows: bool = True
    """Whether it is a file to which lines are appended, so that reading can go on from an offset."""


@dataclass(slots=True)
class Problems:
    """What could not be read, each with the file and the reason."""

    found: list[str] = field(default_factory=list)

    def add(self, path: Path | str, why: object) -> None:
        """Report a file."""
        self.found.append(f"{path}: {problem_of(why) if isinstance(why, Exception) else why}")


def problem_of(error: Exception) -> str:
    """Why something could not be read: an `OSError` by its reason, an error that nobody expected also by its kind."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error) if isinstance(error, EngramError) else f"it could not be read ({type(error).__name__}: {error})"


class ReadProgress(Protocol):
    """How far a session is read; it moves on while its turns are."""

    @property
    def position(self) -> int:
        """Where reading goes on the next time."""

    @property
    def size(self) -> int:
        """Bytes that were read."""

    @property
    def problems(self) -> list[str]:
        """What could not be read so far."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A session that is being read."""

    transcript: Transcript
    progress: ReadProgress


class Reader(Protocol):
    """Finds and reads the sessions of one harness."""

    def sessions(self, root: Path, problems: Problems) -> Iterator[StoredSession]:
        """The sessions below a folder, in any order."""

    def read(self, session: StoredSession, start: int) -> Reading:
        """The session; its turns up to `start` only explain the others. Raises `OSError` if it cannot be read."""


def default_root(harness: str, environment: Mapping[str, str] = os.environ) -> Path:
    """Where a harness keeps its sessions: as its own variable says, else the usual folder."""
    home = Path(environment.get("HOME") or Path.home())
    if harness == "claude-code":
        return Path(environment.get("CLAUDE_CONFIG_DIR") or home / ".claude").expanduser() / "projects"
    if harness == "codex":
        return Path(environment.get("CODEX_HOME") or home / ".codex")
    if named := environment.get("OPENCODE_DB"):
        return Path(named)
    return Path(environment.get("XDG_DATA_HOME") or home / ".local" / "share") / "opencode"


def reader_of(harness: str) -> Reader:
    """The reader of a harness. Raises `InvalidInput` for an unknown one."""
    if harness == "claude-code":
        from engram.capture.transcripts.claude_code import ClaudeCode

        return ClaudeCode()
    if harness == "codex":
        from engram.capture.transcripts.codex import Codex

        return Codex()
    if harness == "opencode":
        from engram.capture.transcripts.opencode import OpenCode

        return OpenCode()
    raise InvalidInput(f"Unknown harness {harness!r}; choose {', '.join(HARNESSES)} or all")


def in_home(path: Path) -> str:
    """A path as people write it: with `~` for their home."""
    home = Path(os.environ.get("HOME") or Path.home())
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


def detected(path: Path) -> tuple[str, ...]:
    """The harnesses whose sessions a folder or a file holds; none if that is not clear."""
    if path.is_file():
        return tuple(filter(None, [_harness_if_readable(path.resolve())]))
    holds = {entry.name for entry in entries(path, Problems(), lambda _: True)}
    found = {_harness_if_readable(file) for file in path.rglob("*.jsonl") if file.is_file() and not file.is_symlink()}
    if holds & {"opencode.db", "storage"}:
        found.add("opencode")
    if holds & {"sessions", "archived_sessions"}:
        found.add("codex")
    return tuple(harness for harness in HARNESSES if harness in found)


def _harness_if_readable(path: Path) -> str:
    """The harness that wrote a file; "" for one that cannot be read, which its reader reports."""
    try:
        return harness_of(path)
    except OSError:
        return ""


def harness_of(path: Path) -> str:
    """The harness that wrote a file, by its first records; "" if that is not clear. Raises `OSError` if it cannot be read."""
    with reading(path) as file:
        opening = file.read(_OPENING)
    if opening.startswith(_SQLITE):
        return "opencode"
    for line in opening.splitlines():
        if any(mark in line for mark in _CODEX_MARKS):
            return "codex"
        if any(mark in line for mark in _CLAUDE_MARKS):
            return "claude-code"
    return ""


def session_file(harness: str, entry: "os.DirEntry[str] | Path", problems: Problems) -> StoredSession | None:
    """A session's file. None, and reported, if it cannot be read or is a symbolic link out of the folder."""
    path = os.fspath(entry)
    try:
        found = os.lstat(path)
    except OSError as error:
        problems.add(path, error)
        return None
    if stat.S_ISLNK(found.st_mode):
        problems.add(path, "a symbolic link; it was not followed")
        return None
    if not stat.S_ISREG(found.st_mode):
        problems.add(path, "a folder, a pipe or a device; it was not read")
        return None
    stamp = (found.st_size, found.st_mtime_ns, found.st_ino, found.st_ctime_ns)
    return StoredSession(harness, path, Path(path), stamp, time_of(found.st_mtime_ns))


def time_of(nanoseconds: int) -> datetime:
    """The time of a file; 1970 for one that no calendar has."""
    return moment(nanoseconds / 1e6) or datetime.fromtimestamp(0, UTC)


def entries(folder: Path, problems: Problems, wanted: Callable[["os.DirEntry[str]"], bool]) -> list["os.DirEntry[str]"]:
    """The entries of a folder that are wanted, by name; none if there is no such folder."""
    try:
        with os.scandir(folder) as found:
            return sorted(filter(wanted, found), key=lambda entry: entry.name)
    except FileNotFoundError:
        return []
    except OSError as error:
        problems.add(folder, error)
        return []
