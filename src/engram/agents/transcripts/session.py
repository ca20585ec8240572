"""The sessions of coding agents and the conversations in them, in the one form that every reader yields; and where the stores of sessions are."""

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
    """One turn. Only what the user says is read for facts; the rest explains what it refers to."""

    role: Role
    content: str
    at: datetime | None
    """When it was said; None if the transcript does not say."""
    key: str
    """Unique in its session, and the same each time the transcript is read."""
    position: int = 0
    """How far the transcript is read with this turn; a reader can go on from there. 0 if it cannot."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """A session and its turns, in order. `turns` may be read only once: a long transcript is never held in memory."""

    harness: str
    """claude-code, codex, opencode, or the name of a chat export's format."""
    project: str
    """The project's name, as it is shown in a memory's source."""
    directory: str
    """The absolute path of the folder the agent worked in; "" if there was none."""
    session: str
    path: str
    """The file it was read from."""
    turns: Iterable[TranscriptTurn]
    remote: str = ""
    """The address of the repository, if the transcript names it; the folder may be gone by now."""
    start: int = 0
    """Turns up to this position were harvested before; they only explain what the others refer to."""

    @property
    def source(self) -> str:
        """The source of what is said in it: `harness:<harness>:<project>`."""
        return (
            f"harness:{self.harness}:{safe_word(self.project[:_LONGEST_NAME])}"
            if self.project
            else f"harness:{self.harness}"
        )


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session in an agent's own store, before it is read."""

    harness: str
    name: str
    """Names it among all sessions of the agent: the path of its file, or of its database and its id."""
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
    """Finds and reads the sessions of one agent."""

    def sessions(self, root: Path, problems: Problems) -> Iterator[StoredSession]:
        """The sessions below a folder, in any order."""

    def read(self, session: StoredSession, start: int) -> Reading:
        """The session; its turns up to `start` only explain the others. Raises `OSError` if it cannot be read."""


def directory_in(reader: Reader, session: StoredSession) -> str:
    """The folder that a session ran in, from its opening; "" if it does not say. Raises `OSError` if it cannot be read."""
    size = session.stamp[0] if session.grows else 0
    return session.directory or reader.read(session, size).transcript.directory


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


_OPENING = 64 * 1024
"""Bytes of a file by which the agent that wrote it is recognised."""


def default_root(agent: str, environment: Mapping[str, str] = os.environ) -> Path:
    """Where an agent keeps its sessions: as its own variable says, else the usual folder."""
    return session_store(agent).find_root(home_of(environment), environment)


def reader_of(agent: str) -> Reader:
    """The reader of an agent's sessions. Raises `InvalidInput` for an agent without any that can be read."""
    return session_store(agent).make_reader()


def directory_of(session: StoredSession) -> str:
    """The folder that a session ran in; "" if it does not say. Raises `OSError` if it cannot be read."""
    return directory_in(reader_of(session.harness), session)


def detect_agents(path: Path) -> tuple[str, ...]:
    """The agents whose sessions a folder or a file has; none if that is not clear."""
    if path.is_file():
        return tuple(filter(None, [_find_writer(path.resolve())]))
    names = {entry.name for entry in entries(path, Problems(), lambda _: True)}
    found = {_find_writer(file) for file in path.rglob("*.jsonl") if file.is_file() and not file.is_symlink()}
    stores = {agent.name: agent.sessions for agent in agents_with_sessions()}
    return tuple(name for name, store in stores.items() if name in found or (store and store.entries & names))


def _find_writer(path: Path) -> str:
    """The agent that wrote a file; "" for one that cannot be read, which its reader reports."""
    try:
        return find_writer(path)
    except OSError:
        return ""


def find_writer(path: Path) -> str:
    """The agent that wrote a file, by its first records; "" if that is not clear. Raises `OSError` if it cannot be read."""
    with reading(path) as file:
        opening = file.read(_OPENING)
    stores = [(agent.name, agent.sessions) for agent in agents_with_sessions() if agent.sessions is not None]
    for name, store in stores:
        if store.signature and opening.startswith(store.signature):
            return name
    for line in opening.splitlines():
        # What a record quotes comes after its own first key.
        places = [(at, name) for name, store in stores for mark in store.marks if (at := line.find(mark)) >= 0]
        if places:
            return min(places)[1]
    return ""
