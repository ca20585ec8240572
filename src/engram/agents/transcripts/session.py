"""Sessions of coding agents, in the common form that every reader returns, and where they are stored."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, Protocol

from engram.agents.agent import agents_with_sessions, home_of, session_store
from engram.agents.transcripts.records import moment
from engram.disk import reading
from engram.model.errors import EngramError
from engram.model.lazy import dataclass, field
from engram.text.display import safe_word

Role = Literal["user", "assistant", "tool"]
_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class TranscriptTurn:
    """One turn. Facts are derived only from the user's text; the rest provides context."""

    role: Role
    content: str
    at: datetime | None
    """The time of the turn; None if the transcript has none."""
    key: str
    """Unique in its session, and the same each time the transcript is read."""
    position: int = 0
    """The position up to which the transcript has been read, from which a reader can resume. 0 if it cannot."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """A session and its turns, in order.

    `turns` can be read only once, because a long transcript is never in memory as a whole.
    """

    harness: str
    """claude-code, codex, opencode, or the name of a chat export's format."""
    project: str
    """The project's name, as shown in a memory's source."""
    directory: str
    """The absolute path of the folder the agent worked in; "" if there was none."""
    session: str
    path: str
    """The file it was read from."""
    turns: Iterable[TranscriptTurn]
    remote: str = ""
    """The address of the repository, if the transcript has it; the folder may no longer exist."""
    start: int = 0
    """Turns up to this position were harvested before; they only provide context for the others."""

    @property
    def source(self) -> str:
        """The source of its memories: `harness:<harness>:<project>`."""
        return (
            f"harness:{self.harness}:{safe_word(self.project[:_LONGEST_NAME])}"
            if self.project
            else f"harness:{self.harness}"
        )


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session in an agent's own store, not yet read."""

    harness: str
    name: str
    """Identifies it among all sessions of the agent: the path of its file, or the path of its database and its id."""
    path: Path
    stamp: tuple[int, ...]
    """Changes whenever the session does: for a file, its size, the times of its content and inode, and the inode."""
    modified: datetime
    directory: str = ""
    """The folder that the agent worked in, if it is known before reading."""
    grows: bool = True
    """Whether it is a file to which lines are appended, so that reading can resume from an offset."""


@dataclass(slots=True)
class Problems:
    """Files that could not be read, with the reasons."""

    found: list[str] = field(default_factory=list)

    def add(self, path: Path | str, why: object) -> None:
        """Report a file."""
        self.found.append(f"{path}: {problem_of(why) if isinstance(why, Exception) else why}")


def problem_of(error: Exception) -> str:
    """Why something could not be read: an `OSError` by its reason, an unexpected error also by its type."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error) if isinstance(error, EngramError) else f"it could not be read ({type(error).__name__}: {error})"


class ReadProgress(Protocol):
    """How far a session has been read; it advances as its turns are read."""

    @property
    def position(self) -> int:
        """Where reading resumes the next time."""

    @property
    def size(self) -> int:
        """Bytes read."""

    @property
    def problems(self) -> list[str]:
        """Problems found so far."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A session that is being read."""

    transcript: Transcript
    progress: ReadProgress


class Reader(Protocol):
    """Finds and reads the sessions of one agent."""

    def sessions(self, root: Path, problems: Problems) -> Iterator[StoredSession]:
        """The sessions below a folder, in any order."""

    def read(self, session: StoredSession, start: int) -> Reading:
        """A session; turns up to `start` only provide context. Raises `OSError` if it cannot be read."""


def directory_in(reader: Reader, session: StoredSession) -> str:
    """The folder that a session ran in, from its opening; "" if unknown. Raises `OSError` if it cannot be read."""
    size = session.stamp[0] if session.grows else 0
    return session.directory or reader.read(session, size).transcript.directory


def session_file(harness: str, entry: "os.DirEntry[str] | Path", problems: Problems) -> StoredSession | None:
    """A session's file. None, with a report, if it cannot be read or is a symbolic link out of the folder."""
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
    """The modification time of a file; 1970 if the calendar cannot represent it."""
    return moment(nanoseconds / 1e6) or datetime.fromtimestamp(0, UTC)


def entries(folder: Path, problems: Problems, wanted: Callable[["os.DirEntry[str]"], bool]) -> list["os.DirEntry[str]"]:
    """The matching entries of a folder, by name; none if the folder does not exist."""
    try:
        with os.scandir(folder) as found:
            return sorted(filter(wanted, found), key=lambda entry: entry.name)
    except FileNotFoundError:
        return []
    except OSError as error:
        problems.add(folder, error)
        return []


_OPENING = 64 * 1024
"""Bytes of a file in which its agent is recognised."""


def default_root(agent: str, environment: Mapping[str, str] = os.environ) -> Path:
    """Where an agent keeps its sessions: the folder in its own variable, else the usual one."""
    return session_store(agent).find_root(home_of(environment), environment)


def reader_of(agent: str) -> Reader:
    """The reader of an agent's sessions. Raises `InvalidInput` for an agent without readable sessions."""
    return session_store(agent).make_reader()


def directory_of(session: StoredSession) -> str:
    """The folder that a session ran in; "" if unknown. Raises `OSError` if it cannot be read."""
    return directory_in(reader_of(session.harness), session)


def detect_agents(path: Path) -> tuple[str, ...]:
    """The agents whose sessions are in a folder or a file; none if that is unclear."""
    if path.is_file():
        return tuple(filter(None, [_find_writer(path.resolve())]))
    names = {entry.name for entry in entries(path, Problems(), lambda _: True)}
    found = {_find_writer(file) for file in path.rglob("*.jsonl") if file.is_file() and not file.is_symlink()}
    stores = {agent.name: agent.sessions for agent in agents_with_sessions()}
    return tuple(name for name, store in stores.items() if name in found or (store and store.entries & names))


def _find_writer(path: Path) -> str:
    """The agent that wrote a file; "" for an unreadable file, which its reader reports."""
    try:
        return find_writer(path)
    except OSError:
        return ""


def find_writer(path: Path) -> str:
    """The agent that wrote a file, by its first records; "" if unclear. Raises `OSError` if it cannot be read."""
    with reading(path) as file:
        opening = file.read(_OPENING)
    stores = [(agent.name, agent.sessions) for agent in agents_with_sessions() if agent.sessions is not None]
    for name, store in stores:
        if store.signature and opening.startswith(store.signature):
            return name
    for line in opening.splitlines():
        # Quoted text in a record comes after the record's own first key.
        places = [(at, name) for name, store in stores for mark in store.marks if (at := line.find(mark)) >= 0]
        if places:
            return min(places)[1]
    return ""
