"""Files of sessions, and the scope of a ledger by its owner's file."""

import contextlib
import json
from datetime import UTC, datetime
from pathlib import Path

from engram.disk import (
    UNREADABLE,
    digest_name,
    make_folder,
    read_bytes,
    replace_file,
)
from engram.model.errors import StoreCorrupt, StoreReadOnly
from engram.model.event import Session
from engram.model.lazy import lazy_pattern
from engram.rules.scopes import GLOBAL
from engram.store.files.states.tasks import load_task
from engram.store.home import Home
from engram.store.ledger import ledger_owner

_SESSION_NAME = lazy_pattern(r"(?:S-|(?!s-)[a-z0-9])[a-z0-9._-]{0,99}")
"""Ids that can be file names as they are, in one case only: some file systems ignore case."""
_UNSAFE = lazy_pattern(r"[^a-z0-9._-]")

_OWN_ID = lazy_pattern(r"(?:S|TASK)-\d{8}-\d{6}-[0-9a-f]+")


def session_path(home: Home, session_id: str) -> Path:
    """The file of a session: its id, or the safe characters of it and a digest. No two ids share a file."""
    name = session_id
    if not _SESSION_NAME.fullmatch(session_id):
        name = digest_name(session_id, _UNSAFE.sub("_", session_id.lower())[:80].lstrip("."))
    return home.state / "sessions" / f"{name}.json"


def _former_path(home: Home, session_id: str) -> Path:
    """The file of a session in Engram 0.1, where different ids could share a file."""
    plain = "".join(char for char in session_id if char.isalnum() or char in "._-").lstrip(".")
    return home.state / "sessions" / f"{plain or '_'}.json"


def save_session(home: Home, session: Session) -> None:
    """Write a session's file durably in one step: it determines the scope of the session's events."""
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
    former = _former_path(home, session.id)
    try:
        make_folder(path.parent)
        replace_file(path, json.dumps(fields, ensure_ascii=False, indent=1).encode("utf-8", "replace") + b"\n")
        if former.name != path.name and (old := _read_session(former)) is not None and old.id == session.id:
            former.unlink(missing_ok=True)
    except OSError as error:
        raise StoreReadOnly(f"cannot write {path}: {error.strerror}") from error


def load_session(home: Home, session_id: str) -> Session | None:
    """A session, or None."""
    for path in (session_path(home, session_id), _former_path(home, session_id)):
        session = _read_session(path)
        if session is not None and session.id == session_id:
            return session
    return None


def all_sessions(home: Home) -> list[Session]:
    """Every session, newest first."""
    found: dict[str, Session] = {}
    for path in (home.state / "sessions").glob("*.json"):
        session = _read_session(path)
        # A crash may have left a second file under the former name.
        if session is not None and (session.id not in found or path.name == session_path(home, session.id).name):
            found[session.id] = session
    return sorted(found.values(), key=lambda one: (one.started, one.id), reverse=True)


def session_problems(home: Home) -> list[str]:
    """Problems with session files that cannot be read."""
    paths = sorted((home.state / "sessions").glob("*.json"))
    return [
        f"{path}: not a session; restore it from a backup, or remove it"
        for path in paths
        if _read_session(path) is None
    ]


def _read_session(path: Path) -> Session | None:
    with contextlib.suppress(*UNREADABLE):
        fields = json.loads(read_bytes(path))
        return Session(
            id=str(fields["id"]),
            task=str(fields["task"] or ""),
            scopes=tuple(map(str, fields["scopes"])),
            started=datetime.fromisoformat(fields["started"]).astimezone(UTC),
            ended=datetime.fromisoformat(fields["ended"]).astimezone(UTC) if fields["ended"] else None,
            summary=str(fields["summary"] or ""),
            summary_through=int(fields.get("through", 0)),
            summary_style=str(fields.get("style", "")),
            summary_by=str(fields.get("by", "")),
        )
    return None


def session_scope(home: Home, session_id: str) -> str:
    """The scope of events without one of their own: their task's, or their session's first, else global.

    If the file that determines it is lost, they are shown in their own session only.
    """
    with contextlib.suppress(StoreCorrupt):
        task, session = load_task(home, session_id), load_session(home, session_id)
        if task is not None or session is not None or not _had_a_file(home, session_id):
            return ledger_owner(session_id, task, session) or GLOBAL
    return f"session:{session_id}"


def is_lost(home: Home, session_id: str) -> bool:
    """Whether the file of a session or task is missing or unreadable."""
    with contextlib.suppress(StoreCorrupt):
        if load_task(home, session_id) is not None or load_session(home, session_id) is not None:
            return False
        return _had_a_file(home, session_id)
    return True


def _had_a_file(home: Home, session_id: str) -> bool:
    """Whether it had a file: an unreadable one is left, or the id is one that Engram assigns with a file."""
    path = session_path(home, session_id)
    return _OWN_ID.fullmatch(session_id) is not None or (path.exists() and _read_session(path) is None)


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
