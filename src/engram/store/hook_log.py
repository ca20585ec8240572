"""What went wrong in hooks: the last failure of each event, kept until the event has succeeded again and a session was told.

A hook must not disturb the session it runs in, so its failure is told elsewhere: by `engram doctor`, and once by the next session's start.
"""

import os
import stat
import time
from pathlib import Path
from typing import Any

from engram.disk import DIRECTORY_MODE, json_line, json_object, read_bytes, replace_file
from engram.model.lazy import dataclass

_MAX_MESSAGE_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class HookFailure:
    """The last failure of one event."""

    event: str
    message: str
    at: float
    count: int
    told: bool
    recovered: bool
    """Whether the event has succeeded since."""


def path_of(root: Path) -> Path:
    """The file of a home."""
    return root / "state" / "hooks.json"


def logs_of(root: Path, cache: Path) -> list[Path]:
    """The files of a home: the first that can be written is used."""
    return [path_of(root), cache / "hooks.json", *(folder / "hooks.json" for folder in temporary_folders())]


def temporary_folders() -> list[Path]:
    """This user's folder for where neither home nor cache can be written; none where somebody else has made one of this name."""
    base = os.environ.get("XDG_RUNTIME_DIR") or os.environ.get("TMPDIR") or "/tmp"
    folder = Path(base, f"engram-{os.getuid()}")
    try:
        found = folder.lstat()
    except OSError:
        return [folder]
    is_own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
    return [folder] if is_own else []


def failures(*paths: Path) -> list[HookFailure]:
    """Every event that failed last time it ran, or since the last session's start, by name."""
    found = [_failure(event, one) for path in paths for event, one in _read(path).items() if isinstance(one, dict)]
    return sorted(found, key=lambda one: one.event)


def _failure(event: str, fields: dict[str, Any]) -> HookFailure:
    at, count = _number(fields.get("at")), int(_number(fields.get("count")))
    return HookFailure(
        event, str(fields.get("message", "")), at, count, bool(fields.get("told")), bool(fields.get("recovered"))
    )


def record_failure(event: str, message: str, *paths: Path) -> bool:
    """Keep a failure in the first of the files that can be written; returns whether there is one."""
    for path in paths:
        known = _read(path)
        before = known.get(event)
        repeated = isinstance(before, dict) and before.get("message") == message[:_MAX_MESSAGE_CHARACTERS]
        known[event] = {
            "message": message[:_MAX_MESSAGE_CHARACTERS],
            "at": time.time(),
            "count": 1 + int(_number(before.get("count"))) if repeated and isinstance(before, dict) else 1,
            "told": repeated and isinstance(before, dict) and bool(before.get("told")),
        }
        if _write(path, known):
            return True
    return False


def record_success(event: str, *paths: Path) -> None:
    """Note that an event works again; its failure is forgotten once a session was told. Costs one look at each file where there is none."""
    for path in paths:
        if not path.exists() or event not in (known := _read(path)):
            continue
        failure = known.pop(event)
        if isinstance(failure, dict) and not failure.get("told"):
            known[event] = {**failure, "recovered": True}
        _write(path, known)


def mark_reported(*paths: Path) -> None:
    """Note that a session was told of every failure; those that are over are forgotten."""
    for path in paths:
        known = _read(path)
        lasting = {event: one for event, one in known.items() if isinstance(one, dict) and not one.get("recovered")}
        if known:
            _write(path, {event: {**one, "told": True} for event, one in lasting.items()})


def _write(path: Path, known: dict[str, Any]) -> bool:
    try:
        if not known:
            path.unlink(missing_ok=True)
            return True
        path.parent.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        replace_file(path, json_line(known, "replace"), durable=False)
    except OSError:
        return False
    return True


def _read(path: Path) -> dict[str, Any]:
    try:
        return json_object(read_bytes(path))
    except OSError:
        return {}


def _number(value: object) -> float:
    """A number of the file; 0 for one that no clock and no count can have."""
    return float(value) if isinstance(value, int | float) and 0 <= value < 1e11 else 0.0
