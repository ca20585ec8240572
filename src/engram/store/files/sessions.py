"""Sessions as small files: one JSON object each."""

import contextlib
import hashlib
import json
import re
from datetime import UTC, datetime
from pathlib import Path

from engram.model.errors import StoreCorrupt, StoreReadOnly
from engram.model.event import Session
from engram.rules.scopes import GLOBAL
from engram.store.files.confinement import UNREADABLE, read_bytes
from engram.store.files.home import Home
from engram.store.files.journal import make_folder, replace_file
from engram.store.files.tasks import load_task
from engram.store.ledger import ledger_owner

_PLAIN = re.compile(r"(?:S-|(?!s-)[a-z0-9])[a-z0-9._-]{0,99}")
"""Ids that are file names as they are, each in one case only: some file systems do not tell capitals from small letters."""
_UNSAFE = re.compile(r"[^a-z0-9._-]")

_OWN_ID = re.compile(r"(?:S|TASK)-\d{8}-\d{6}-[0-9a-f]+")


def session_path(home: Home, session_id: str) -> Path:
    """The file of a session: its id, or what is plain of it and a digest. No two ids share one."""
    name = session_id
    if not _PLAIN.fullmatch(session_id):
        digest = hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        name = f"{_UNSAFE.sub('_', session_id.lower())[:80].lstrip('.')}~{digest}"
    return home.state / "sessions" / f"{name}.json"


def _former_path(home: Home, session_id: str) -> Path:
    """Where Engram 0.1 kept it: ids that differ only in other characters shared a file."""
    plain = "".join(char for char in session_id if char.isalnum() or char in "._-").lstrip(".")
    return home.state / "sessions" / f"{plain or '_'}.json"


def save_session(home: Home, session: Session) -> None:
    """Write a session's file in one step, durably: by it the scope of what was said in it is known."""
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
        if former.name != path.name and (held := _read(former)) is not None and held.id == session.id:
            former.unlink(missing_ok=True)
    except OSError as error:
        raise StoreReadOnly(f"cannot write {path}: {error.strerror}") from error


def load_session(home: Home, session_id: str) -> Session | None:
    """A session, or None."""
    for path in (session_path(home, session_id), _former_path(home, session_id)):
        session = _read(path)
        if session is not None and session.id == session_id:
            return session
    return None


def all_sessions(home: Home) -> list[Session]:
    """Every session, newest first."""
    found: dict[str, Session] = {}
    for path in (home.state / "sessions").glob("*.json"):
        session = _read(path)
        # A crash may have left one under its former name, too.
        if session is not None and (session.id not in found or path.name == session_path(home, session.id).name):
            found[session.id] = session
    return sorted(found.values(), key=lambda one: (one.started, one.id), reverse=True)


def damage(home: Home) -> list[str]:
    """Sessions whose file cannot be read, in words."""
    paths = sorted((home.state / "sessions").glob("*.json"))
    return [f"{path}: not a session; restore it from a backup, or remove it" for path in paths if _read(path) is None]


def _read(path: Path) -> Session | None:
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
    """The scope of events that carry none of their own: their task's, or their session's first, else global.

    Where the file that said so is lost nobody else may see them: they are shown in their own session alone.
    """
    with contextlib.suppress(StoreCorrupt):
        task, session = load_task(home, session_id), load_session(home, session_id)
        if task is not None or session is not None or not _had_a_file(home, session_id):
            return ledger_owner(session_id, task, session) or GLOBAL
    return f"session:{session_id}"


def is_lost(home: Home, session_id: str) -> bool:
    """Whether a session or task was begun whose file is gone or cannot be read."""
    with contextlib.suppress(StoreCorrupt):
        if load_task(home, session_id) is not None or load_session(home, session_id) is not None:
            return False
        return _had_a_file(home, session_id)
    return True


def _had_a_file(home: Home, session_id: str) -> bool:
    """Whether something is left of it, or it has an id of Engram's own, which it got together with its file."""
    path = session_path(home, session_id)
    return _OWN_ID.fullmatch(session_id) is not None or (path.exists() and _read(path) is None)


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
