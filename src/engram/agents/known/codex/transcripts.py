"""Codex's rollouts: `sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl` and `archived_sessions/`.

Each line is a record `{timestamp, type, payload}`; older files have only the payloads. Left out are messages of the
roles developer and system, the copy for the display (`event_msg`), sessions of other agents, and text that the program
adds to the user's turns.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from engram.agents.transcripts.records import (
    JsonLine,
    LineReader,
    folder_of,
    key_of,
    line_start,
    moment,
    text_of,
    typed_text,
)
from engram.agents.transcripts.session import (
    Problems,
    Reading,
    Role,
    StoredSession,
    Transcript,
    TranscriptTurn,
    entries,
    session_file,
)
from engram.model.lazy import dataclass, lazy_pattern

HARNESS = "codex"
CONTEXT_BYTES = 256 * 1024
_DEPTH = 4
"""Folder levels below `sessions`: year, month, day, and one to spare."""
_ID = lazy_pattern(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_DIRECTORY = lazy_pattern(r"<cwd>([^<\n]+)</cwd>|^Current working directory: (.+)$", re.MULTILINE)
_ENVIRONMENT = "<environment_context>"
_OPENING = 12
"""Records at the beginning that may describe the session."""
_MARKS = (b'"message"', b'"session_meta"', b'_output"', b'"cwd"', b'"git"')
_RESULTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output", "mcp_tool_call_output")


@dataclass(slots=True)
class _Header:
    """A rollout's description of its session."""

    directory: str = ""
    remote: str = ""
    by_agent: bool = False
    """Whether the prompts came from another agent, not a person."""

    def note(self, record: dict[str, Any]) -> None:
        """Read a record near the beginning of the file."""
        payload = _payload(record)
        git, source = payload.get("git"), payload.get("source")
        self.directory = (
            self.directory or folder_of(payload.get("cwd")) or _directory_in(text_of(payload.get("content")))
        )
        self.remote = self.remote or _text(git.get("repository_url") if isinstance(git, dict) else "")
        if record.get("type") == "session_meta":
            by_agent = payload.get("thread_source") == "subagent" or (isinstance(source, dict) and "subagent" in source)
            self.by_agent = self.by_agent or by_agent


class CodexReader:
    """Finds and reads Codex's sessions."""

    def sessions(self, root: Path, problems: Problems) -> Iterator[StoredSession]:
        """The sessions of a Codex home, of a folder in it, or of one file."""
        if root.is_file():
            yield from filter(None, [session_file(HARNESS, root, problems)])
            return
        homes = [root / name for name in ("sessions", "archived_sessions") if (root / name).is_dir()]
        for folder in homes or [root]:
            yield from self._below(folder, problems, _DEPTH)

    def _below(self, folder: Path, problems: Problems, depth: int) -> Iterator[StoredSession]:
        for entry in entries(folder, problems, lambda _: True):
            if entry.name.endswith(".jsonl"):
                yield from filter(None, [session_file(HARNESS, entry, problems)])
            elif entry.is_symlink():
                problems.add(entry.path, "a symbolic link; it was not followed")
            elif depth and entry.is_dir():
                yield from self._below(Path(entry), problems, depth - 1)

    def read(self, session: StoredSession, start: int) -> Reading:
        """A session, whose turns are read lazily. Raises `OSError` if the file cannot be read."""
        header = _Header()
        for line in islice(LineReader(session.path, _matters).lines(), _OPENING):
            header.note(line.record)
        reader = LineReader(session.path, _matters)
        lines = reader.lines(line_start(session.path, start, CONTEXT_BYTES))
        found = _ID.search(session.path.stem)
        name = found[0] if found else session.path.stem
        turns = () if header.by_agent else _turns(lines)
        transcript = Transcript(
            HARNESS, Path(header.directory).name, header.directory, name, str(session.path), turns, header.remote, start
        )
        return Reading(transcript, reader)


def _matters(line: bytes) -> bool:
    """Whether a line may contain a turn or a description of the session."""
    return not (b'"event_msg"' in line or b'"reasoning"' in line) and any(mark in line for mark in _MARKS)


def _payload(record: dict[str, Any]) -> dict[str, Any]:
    """The payload of a record; an older record is its own payload."""
    payload = record.get("payload")
    return payload if isinstance(payload, dict) else record


def _turns(lines: Iterable[JsonLine]) -> Iterator[TranscriptTurn]:
    for line in lines:
        payload = _payload(line.record)
        if (said := _find_speech(payload)) is not None and said[1].strip():
            key = key_of(payload.get("id"), f"byte:{line.start}")
            yield TranscriptTurn(*said, moment(line.record.get("timestamp")), key, line.end)


def _find_speech(payload: dict[str, Any]) -> tuple[Role, str] | None:
    """The speaker and the text of a record; None if it has no speech."""
    kind, role = payload.get("type"), payload.get("role")
    if kind in _RESULTS:
        return "tool", _output(payload.get("output"))
    if kind != "message":
        return None
    if role == "assistant":
        return "assistant", text_of(payload.get("content"))
    return ("user", typed_text(text_of(payload.get("content")))) if role == "user" and _is_persons(payload) else None


def _is_persons(payload: dict[str, Any]) -> bool:
    """Whether a user message is a person's; the newest versions record the parts of each message."""
    passed = payload.get("internal_chat_message_metadata_passthrough")
    kinds = passed.get("content_item_kinds") if isinstance(passed, dict) else None
    return not isinstance(kinds, list) or any(str(kind).startswith(("user.", "unknown")) for kind in kinds)


def _output(output: Any) -> str:
    """The output of a tool: text, a list of blocks, or an object with either."""
    if isinstance(output, dict):
        output = output.get("content") or output.get("output")
    return text_of(output)


def _directory_in(content: str) -> str:
    """The folder that an older file records in its message about the environment."""
    found = _DIRECTORY.search(content) if content.lstrip().startswith(_ENVIRONMENT) else None
    return folder_of((found[1] or found[2]).strip()) if found else ""


def _text(given: Any) -> str:
    return given if isinstance(given, str) else ""
