"""OpenCode's sessions: an SQLite database, and the JSON files of older versions.

The database belongs to a program that may be running, so it is opened read-only. A database that is locked or has an
unknown schema is reported and retried the next time. Sessions of subagents and synthetic parts are left out.
"""

import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engram.agents.transcripts.records import folder_of, key_of, milliseconds, moment, typed_text
from engram.agents.transcripts.session import (
    Problems,
    Reading,
    Role,
    StoredSession,
    Transcript,
    TranscriptTurn,
    entries,
    session_file,
    time_of,
)
from engram.disk import read_bytes
from engram.model.errors import UnreadableData
from engram.model.lazy import dataclass, field, replace
from engram.readers.data import parse_json_object

HARNESS = "opencode"
DATABASE = "opencode.db"
MAX_PART_BYTES = 16 * 1024 * 1024
"""Maximum characters of a part; a longer one is skipped and reported, since it would have to be loaded into memory."""
_WAIT = 2.0
"""Seconds to wait for a locked database."""
_NEEDED = {
    "session": ("id", "directory", "time_updated"),
    "message": ("id", "session_id", "time_created", "data"),
    "part": ("id", "message_id", "data"),
}
_SESSIONS = "SELECT id, directory, time_updated FROM session {} ORDER BY time_updated"
_NO_SUBAGENT = "WHERE parent_id IS NULL"
_PARTS = """
SELECT message.id, message.time_created, message.data, CASE WHEN length(part.data) <= ? THEN part.data END, length(part.data)
FROM message JOIN part ON part.message_id = message.id
WHERE message.session_id = ?
ORDER BY message.time_created, message.id, part.id
"""


@dataclass(slots=True)
class RowReader:
    """How far a session's rows have been read."""

    position: int = 0
    size: int = 0
    problems: list[str] = field(default_factory=list)


class OpenCodeReader:
    """Finds and reads OpenCode's sessions."""

    def sessions(self, root: Path, problems: Problems) -> Iterator[StoredSession]:
        """The sessions of a data folder or of one database; a session that a newer version copied to the database is listed once."""
        database = root if root.is_file() else root / DATABASE
        known: set[str] = set()
        if database != root and database.is_symlink():
            problems.add(database, "a symbolic link; it was not followed")
        elif database.is_file():
            try:
                found = list(_list_stored_sessions(database))
            except (sqlite3.Error, OSError) as error:
                problems.add(database, f"{_reason(error)}; nothing was read, the next harvest tries again")
                return
            known = {_id_of(session) for session in found}
            yield from found
        if root.is_dir():
            yield from (
                session for session in list_session_files(root / "storage", problems) if session.path.stem not in known
            )

    def read(self, session: StoredSession, start: int) -> Reading:
        """A session, whose turns are read lazily. Raises `OSError` if it cannot be read."""
        if not session.name.startswith(f"{session.path}#"):
            return read_session_files(session, start)
        name = _id_of(session)
        try:
            with closing(_open_read_only(session.path)) as database:
                row = database.execute("SELECT directory FROM session WHERE id = ?", (name,)).fetchone()
        except sqlite3.Error as error:
            raise OSError(_reason(error)) from error
        directory, progress = folder_of(row[0]) if row else "", RowReader()
        turns = turns_of(_rows(session.path, name, progress), progress)
        transcript = Transcript(HARNESS, Path(directory).name, directory, name, str(session.path), turns, start=start)
        return Reading(transcript, progress)


def turns_of(rows: Iterator[tuple[str, int, Any, Any]], progress: RowReader) -> Iterator[TranscriptTurn]:
    """The turns of a session, in order, from its parts (message, time, message's data, part's data)."""
    key, texts, about = "", dict[Role, list[str]](), (0, "")
    for message, created, data, part in rows:
        if message != key:
            yield from _turn(key, texts, about)
            key, texts, about = message, {}, (created, str(data.get("role", "")))
        progress.position = max(progress.position, created)
        if (said := _find_speech(about[1], part)) is not None:
            texts.setdefault(said[0], []).append(said[1])
    yield from _turn(key, texts, about)


def _turn(key: str, texts: Mapping[Role, list[str]], about: tuple[int, str]) -> Iterator[TranscriptTurn]:
    for role, said in texts.items():
        content = "\n".join(said)
        content = typed_text(_remove_quotes(content)) if role == "user" else content
        if content.strip():
            yield TranscriptTurn(role, content, moment(about[0]), f"{key}/tool" if role == "tool" else key, about[0])


def _find_speech(role: str, part: Mapping[str, Any]) -> tuple[Role, str] | None:
    if part.get("type") == "tool":
        state = part.get("state")
        output = state.get("output") if isinstance(state, dict) else None
        return ("tool", output) if isinstance(output, str) else None
    text = part.get("text")
    if part.get("type") != "text" or part.get("synthetic") or part.get("ignored") or not isinstance(text, str):
        return None
    if role == "user":
        return "user", text
    return ("assistant", text) if role == "assistant" else None


def _remove_quotes(text: str) -> str:
    """A turn without the quotes that `opencode run` adds around its argument."""
    inner = text.strip()
    return inner[1:-1] if len(inner) > 1 and inner[0] == inner[-1] == '"' and '"' not in inner[1:-1] else text


# -- the database


def _open_read_only(database: Path) -> sqlite3.Connection:
    """The database, read-only. Raises `sqlite3.Error` if it cannot be opened."""
    opened = sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True, timeout=_WAIT)
    opened.text_factory = lambda data: data.decode("utf-8", "replace")
    return opened


def _id_of(session: StoredSession) -> str:
    return session.name.removeprefix(f"{session.path}#")


def _list_stored_sessions(database: Path) -> Iterator[StoredSession]:
    with closing(_open_read_only(database)) as opened:
        columns = {table: {row[1] for row in opened.execute(f"PRAGMA table_info({table})")} for table in _NEEDED}
        for table, needed in _NEEDED.items():
            if missing := [column for column in needed if column not in columns[table]]:
                raise OSError(f"its schema is not known: {table} has no {', '.join(missing)}")
        list_session_files = _SESSIONS.format(_NO_SUBAGENT if "parent_id" in columns["session"] else "")
        for name, directory, updated in opened.execute(list_session_files).fetchall():
            when = moment(updated) or datetime.fromtimestamp(0, UTC)
            stamp = (updated if isinstance(updated, int) else zlib.crc32(repr(updated).encode()),)
            yield StoredSession(HARNESS, f"{database}#{name}", database, stamp, when, folder_of(directory), grows=False)


def _rows(database: Path, session: str, progress: RowReader) -> Iterator[tuple[str, int, Any, Any]]:
    try:
        with closing(_open_read_only(database)) as opened:
            for message, created, data, part, length in opened.execute(_PARTS, (MAX_PART_BYTES, session)):
                if length is not None and length > MAX_PART_BYTES:
                    progress.problems.append(f"{database}: a part of {message} is too large and was skipped")
                    continue
                progress.size += sum(len(one) for one in (data, part) if isinstance(one, str | bytes))
                about, said = parse_object(data), parse_object(part)
                if about is None or said is None:
                    progress.problems.append(f"{database}: a part of {message} is not JSON and was skipped")
                else:
                    yield str(message), milliseconds(created), about, said
    except sqlite3.Error as error:
        raise OSError(_reason(error)) from error


def parse_object(data: Any) -> dict[str, Any] | None:
    """Parse a JSON object; None if it is not one."""
    if not isinstance(data, str | bytes):
        return None
    try:
        return parse_json_object(data, characters="any")
    except UnreadableData:
        return None


def _reason(error: Exception) -> str:
    return f"the database cannot be read ({error})" if isinstance(error, sqlite3.Error) else str(error)


def list_session_files(storage: Path, problems: Problems) -> Iterator[StoredSession]:
    """The sessions of a storage folder."""
    for project in entries(storage / "session", problems, lambda entry: entry.is_dir(follow_symlinks=False)):
        for file in entries(Path(project), problems, lambda entry: entry.name.endswith(".json")):
            found = session_file(HARNESS, file, problems)
            if found is not None:
                yield _with_messages(found, storage)


def _with_messages(session: StoredSession, storage: Path) -> StoredSession:
    """The session with the time of its latest message, which may be newer than the session's own file."""
    try:
        changed = (storage / "message" / session.path.stem).stat().st_mtime_ns
    except OSError:
        changed = 0
    modified = max(session.modified, time_of(changed))
    return replace(session, stamp=(*session.stamp, changed), modified=modified, grows=False)


def read_session_files(session: StoredSession, start: int) -> Reading:
    """A session of the older layout. Raises `OSError` if its file cannot be read."""
    about = parse_object(read_bytes(session.path)) or {}
    directory, name, progress = folder_of(about.get("directory")), session.path.stem, RowReader()
    storage = session.path.parents[2]
    turns = () if about.get("parentID") else turns_of(_stored_rows(storage, name, progress), progress)
    transcript = Transcript(HARNESS, Path(directory).name, directory, name, str(session.path), turns, start=start)
    return Reading(transcript, progress)


def _stored_rows(storage: Path, session: str, progress: RowReader) -> Iterator[tuple[str, int, Any, Any]]:
    found = (_part_file(path, progress) for path in sorted((storage / "message" / session).glob("*.json")))
    messages = [(_read_creation_time(message), key_of(message.get("id"), ""), message) for message in found if message]
    for created, key, message in sorted(messages, key=lambda one: one[:2]):
        for path in (
            sorted((storage / "part" / key).glob("*.json")) if key not in ("", ".", "..") and "/" not in key else ()
        ):
            if part := _part_file(path, progress):
                yield key, created, message, part


def _read_creation_time(message: dict[str, Any]) -> int:
    time = message.get("time")
    return milliseconds(time.get("created")) if isinstance(time, dict) else 0


def _part_file(path: Path, progress: RowReader) -> dict[str, Any] | None:
    try:
        if path.is_symlink() or path.stat().st_size > MAX_PART_BYTES:
            progress.problems.append(f"{path}: a symbolic link, or too large; it was skipped")
            return None
        data = read_bytes(path)
    except OSError as error:
        progress.problems.append(f"{path}: {error.strerror}")
        return None
    progress.size += len(data)
    if (found := parse_object(data)) is None:
        progress.problems.append(f"{path}: not JSON; it was skipped")
    return found
