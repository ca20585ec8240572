"""OpenCode's sessions before it had a database: `storage/session/<project>/<session>.json` and a file per message and part."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engram.agents.known.opencode.transcripts import HARNESS, MAX_PART_BYTES, RowReader, parse_object, turns_of
from engram.agents.transcripts.content import folder_of, key_of, milliseconds
from engram.agents.transcripts.session import Problems, Reading, StoredSession, entries, session_file, time_of
from engram.agents.transcripts.transcript import Transcript
from engram.disk import read_bytes
from engram.model.lazy import replace


def sessions(storage: Path, problems: Problems) -> Iterator[StoredSession]:
    """The sessions of a storage folder."""
    for project in entries(storage / "session", problems, lambda entry: entry.is_dir(follow_symlinks=False)):
        for file in entries(Path(project), problems, lambda entry: entry.name.endswith(".json")):
            found = session_file(HARNESS, file, problems)
            if found is not None:
                yield _with_messages(found, storage)


def _with_messages(session: StoredSession, storage: Path) -> StoredSession:
    """The session with the time of its latest message, which may be newer than its own file."""
    try:
        changed = (storage / "message" / session.path.stem).stat().st_mtime_ns
    except OSError:
        changed = 0
    modified = max(session.modified, time_of(changed))
    return replace(session, stamp=(*session.stamp, changed), modified=modified, grows=False)


def read(session: StoredSession, start: int) -> Reading:
    """A session of the older layout. Raises `OSError` if its file cannot be read."""
    about = parse_object(read_bytes(session.path)) or {}
    directory, name, progress = folder_of(about.get("directory")), session.path.stem, RowReader()
    storage = session.path.parents[2]
    turns = () if about.get("parentID") else turns_of(_rows(storage, name, progress), progress)
    transcript = Transcript(HARNESS, Path(directory).name, directory, name, str(session.path), turns, start=start)
    return Reading(transcript, progress)


def _rows(storage: Path, session: str, progress: RowReader) -> Iterator[tuple[str, int, Any, Any]]:
    found = (_file(path, progress) for path in sorted((storage / "message" / session).glob("*.json")))
    messages = [(_read_creation_time(message), key_of(message.get("id"), ""), message) for message in found if message]
    for created, key, message in sorted(messages, key=lambda one: one[:2]):
        for path in (
            sorted((storage / "part" / key).glob("*.json")) if key not in ("", ".", "..") and "/" not in key else ()
        ):
            if part := _file(path, progress):
                yield key, created, message, part


def _read_creation_time(message: dict[str, Any]) -> int:
    time = message.get("time")
    return milliseconds(time.get("created")) if isinstance(time, dict) else 0


def _file(path: Path, progress: RowReader) -> dict[str, Any] | None:
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
