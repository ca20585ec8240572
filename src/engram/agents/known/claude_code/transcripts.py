"""Claude Code's transcripts: `projects/<folder>/<session>.jsonl`, one record per line. The format changes without notice.

Left out are other agents of the session (side chains, the folders `subagents` and `tool-results`), summaries, and all
text that the program itself adds to the user's turns.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from engram.agents.known.claude_code.paths import NAME
from engram.agents.transcripts.records import (
    JsonLine,
    LineReader,
    folder_of,
    key_of,
    line_start,
    moment,
    results_of,
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

CONTEXT_BYTES = 256 * 1024
"""Bytes before the resume offset that are read again, for context."""
_AGENT = "agent-"
"""The prefix of older side chains, which were stored next to the sessions."""
_SKIPPED = frozenset(("isMeta", "isSidechain", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage"))
_TEXT_CONTENT = re.compile(rb'"content"\s*:\s*"')
"""A message whose content is text instead of a list of blocks."""


class ClaudeCodeReader:
    """Finds and reads Claude Code's sessions."""

    def sessions(self, root: Path, problems: Problems) -> Iterator[StoredSession]:
        """The sessions of every project, of one project's folder, or of one file."""
        if root.is_file():
            yield from filter(None, [session_file(NAME, root, problems)])
            return
        yield from self._in_folder(root, problems)
        for folder in entries(root, problems, lambda entry: entry.is_dir(follow_symlinks=False) or entry.is_symlink()):
            if folder.is_symlink():
                problems.add(folder.path, "a symbolic link; it was not followed")
            else:
                yield from self._in_folder(Path(folder), problems)

    def _in_folder(self, folder: Path, problems: Problems) -> Iterator[StoredSession]:
        files = entries(folder, problems, lambda one: one.name.endswith(".jsonl") and not one.name.startswith(_AGENT))
        yield from filter(None, (session_file(NAME, file, problems) for file in files))

    def read(self, session: StoredSession, start: int) -> Reading:
        """A session, whose turns are read lazily. Raises `OSError` if the file cannot be read."""
        opening = LineReader(session.path, _matters).lines()
        directory = next((found for line in opening if (found := folder_of(line.record.get("cwd")))), "")
        reader = LineReader(session.path, _matters)
        turns = _turns(reader.lines(line_start(session.path, start, CONTEXT_BYTES)))
        name = Path(directory).name or session.path.parent.name
        transcript = Transcript(NAME, name, directory, session.path.stem, str(session.path), turns, start=start)
        return Reading(transcript, reader)


def _matters(line: bytes) -> bool:
    """Whether a line may contain a turn. Most bytes are the program's own records and tool calls."""
    if b'"isSidechain":true' in line:
        return False
    if b'"user"' in line or b'"queued_command"' in line:
        return True
    return b'"assistant"' in line and (b'"text"' in line or _TEXT_CONTENT.search(line) is not None)


def _turns(lines: Iterable[JsonLine]) -> Iterator[TranscriptTurn]:
    for line in lines:
        record = line.record
        if _is_left_out(record):
            continue
        at, key = moment(record.get("timestamp")), key_of(record.get("uuid"), f"byte:{line.start}")
        for number, (role, content) in enumerate(_find_speech(record)):
            if content.strip():
                yield TranscriptTurn(role, content, at, key if not number else f"{key}/{number}", line.end)


def _is_left_out(record: dict[str, Any]) -> bool:
    """Whether a record comes from the program itself or another agent, not from a person, tool or assistant."""
    flags = _SKIPPED & record.keys()
    return any(record[flag] for flag in flags) or ("origin" in record and not _is_persons(record["origin"]))


def _find_speech(record: dict[str, Any]) -> Iterator[tuple[Role, str]]:
    """The text and the speaker of a record: the user, the results of tools, or the assistant."""
    attached = record.get("attachment")
    if isinstance(attached, dict):
        yield from _find_queued_words(attached)
        return
    message = record.get("message")
    if not isinstance(message, dict):
        return
    role, content = message.get("role", record.get("type")), message.get("content")
    if role == "assistant":
        yield "assistant", text_of(content)
    elif role == "user":
        yield "user", typed_text(text_of(content))
        yield "tool", "\n".join(results_of(content))


def _find_queued_words(attached: dict[str, Any]) -> Iterator[tuple[Role, str]]:
    """Find what the user typed while the agent was busy."""
    is_prompt = attached.get("type") == "queued_command" and attached.get("commandMode", "prompt") == "prompt"
    if is_prompt and not attached.get("isMeta") and _is_persons(attached.get("origin")):
        yield "user", typed_text(text_of(attached.get("prompt")))


def _is_persons(origin: Any) -> bool:
    """Whether a person sent a turn; other agents, channels and notifications also send turns."""
    return not isinstance(origin, dict) or origin.get("kind", "human") == "human"
