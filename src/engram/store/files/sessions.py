"""Sessions as small files: one JSON object each."""

import contextlib
import json
import os
from datetime import UTC, datetime
from pathlib import Path

from engram.model.errors import StoreReadOnly
from engram.model.event import Session
from engram.rules.scopes import GLOBAL
from engram.store.files.confinement import read_bytes
from engram.store.files.home import DIRECTORY_MODE, Home, write_private
from engram.store.files.tasks import load_task


def session_path(home: Home, session_id: str) -> Path:
    """The file of a session; an id that is no plain name has none."""
    plain = "".join(char for char in session_id if char.isalnum() or char in "._-").lstrip(".")
    return home.state / "sessions" / f"{plain or '_'}.json"


def save_session(home: Home, session: Session) -> None:
    """Write a session's file in one step."""
    path = session_path(home, session.id)
    fields: dict[str, object] = {
        "id": session.id,
        "task": session.task,
        "scopes": list(session.scopes),
        "started": _iso(session.started),
        "ended": _iso(session.ended) if session.ended else None,
        "summary": session.summary,
    }
    if session.summary_through:
        fields |= {"through": session.summary_through, "style": session.summary_style, "by": session.summary_by}
    fresh = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        write_private(fresh, json.dumps(fields, ensure_ascii=False, indent=1).encode("utf-8", "replace") + b"\n")
        fresh.replace(path)
    except OSError as error:
        raise StoreReadOnly(f"cannot write {path}: {error.strerror}") from error


def load_session(home: Home, session_id: str) -> Session | None:
    """A session, or None."""
    session = _read(session_path(home, session_id))
    return session if session is not None and session.id == session_id else None


def all_sessions(home: Home) -> list[Session]:
    """Every session, newest first."""
    found = [_read(path) for path in (home.state / "sessions").glob("*.json")]
    return sorted((one for one in found if one is not None), key=lambda one: (one.started, one.id), reverse=True)


def _read(path: Path) -> Session | None:
    with contextlib.suppress(OSError, ValueError, KeyError):
        fields = json.loads(read_bytes(path))
        return Session(
            id=fields["id"],
            task=fields["task"],
            scopes=tuple(fields["scopes"]),
            started=datetime.fromisoformat(fields["started"]),
            ended=datetime.fromisoformat(fields["ended"]) if fields["ended"] else None,
            summary=fields["summary"],
            summary_through=fields.get("through", 0),
            summary_style=fields.get("style", ""),
            summary_by=fields.get("by", ""),
        )
    return None


def session_scope(home: Home, session_id: str) -> str:
    """The scope a ledger's events belong to: its task's, or its session's first, else global."""
    task = load_task(home, session_id)
    if task is not None:
        return task.scope
    session = load_session(home, session_id)
    return session.scopes[0] if session and session.scopes else GLOBAL


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
