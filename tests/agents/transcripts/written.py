"""Transcripts as the harnesses write them: the samples that those programs wrote, and sessions made for a test."""

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engram.agents.transcripts.session import Problems, StoredSession, TranscriptTurn, reader_of

SAMPLES = Path(__file__).parents[1] / "known"
"""A folder per agent, with a session that the program itself wrote."""
SESSION = "6893559a-631c-436a-8536-fe37a2676ea2"
FOLDER = "-home-dev-acme-api"
DIRECTORY = "/home/dev/acme-api"
AT = "2026-11-02T09:00:{:02}.000Z"


def said(role: str, content: Any, key: str = "", second: int = 0, **more: Any) -> dict[str, Any]:
    """A record of Claude Code in which somebody says something."""
    return {
        "parentUuid": None, "isSidechain": False, "type": role, "message": {"role": role, "content": content}, "uuid": key or f"u{second}",
        "timestamp": AT.format(second), "cwd": DIRECTORY, "sessionId": SESSION, "version": "2.1.197", **more,
    }  # fmt: skip


def line(record: Mapping[str, Any]) -> bytes:
    """A record as it is in the file."""
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def claude_file(root: Path, *records: Mapping[str, Any] | str, session: str = SESSION) -> Path:
    """A session of Claude Code; a text is a turn of the user."""
    path = root / FOLDER / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        b"".join(line(said("user", one, second=n) if isinstance(one, str) else one) for n, one in enumerate(records))
    )
    return path


def append(path: Path, *texts: str) -> None:
    """Let a session of Claude Code go on with turns of the user."""
    with path.open("ab") as file:
        for n, text in enumerate(texts):
            file.write(line(said("user", text, f"more-{path.stat().st_size}-{n}", 30 + n)))


def opencode_database(folder: Path, script: str = "") -> Path:
    """OpenCode's database with the sample's session."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "opencode.db"
    with sqlite3.connect(path) as database:
        database.executescript((SAMPLES / "opencode" / "session.sql").read_text("utf-8") + script)
    database.close()
    return path


def stored(harness: str, root: Path) -> tuple[list[StoredSession], list[str]]:
    """The sessions below a folder, and the problems on the way."""
    problems = Problems()
    return list(reader_of(harness).sessions(root, problems)), problems.found


def turns(harness: str, root: Path, start: int = 0) -> list[TranscriptTurn]:
    """The turns of the only session below a folder."""
    (session,) = stored(harness, root)[0]
    return list(reader_of(harness).read(session, start).transcript.turns)


def spoken(harness: str, root: Path) -> list[tuple[str, str]]:
    """Who says what in the only session below a folder."""
    return [(turn.role, turn.content) for turn in turns(harness, root)]
