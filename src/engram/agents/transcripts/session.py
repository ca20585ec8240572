"""The form in which the sessions of coding agents are found and read."""

import os
import stat
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from engram.agents.transcripts.content import moment
from engram.agents.transcripts.transcript import Transcript
from engram.model.errors import EngramError
from engram.model.lazy import dataclass, field


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
