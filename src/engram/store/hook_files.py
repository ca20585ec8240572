"""Files that hooks write to a store's folder: the last failure of each event, and the spool of sessions to harvest."""

import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

from engram.disk import DIRECTORY_MODE, json_line, json_object, open_plain, read_bytes, replace_file
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


def failure_log(root: Path) -> Path:
    """The failure log of a home."""
    return root / "state" / "hooks.json"


def failure_logs(root: Path, cache: Path) -> list[Path]:
    """The possible failure logs of a home; the first that can be written is used."""
    return [failure_log(root), cache / "hooks.json", *(folder / "hooks.json" for folder in temporary_folders())]


def temporary_folders() -> list[Path]:
    """This user's fallback folders if neither home nor cache can be written; none if another user has created one of this name."""
    base = os.environ.get("XDG_RUNTIME_DIR") or os.environ.get("TMPDIR") or "/tmp"
    folder = Path(base, f"engram-{os.getuid()}")
    try:
        found = folder.lstat()
    except OSError:
        return [folder]
    is_own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
    return [folder] if is_own else []


def read_failures(*paths: Path) -> list[HookFailure]:
    """The events that failed on their last run, or since the start of the last session, by name."""
    found = [
        _decode_failure(event, one)
        for path in paths
        for event, one in _read_failure_log(path).items()
        if isinstance(one, dict)
    ]
    return sorted(found, key=lambda one: one.event)


def _decode_failure(event: str, fields: dict[str, Any]) -> HookFailure:
    at, count = _number(fields.get("at")), int(_number(fields.get("count")))
    return HookFailure(
        event, str(fields.get("message", "")), at, count, bool(fields.get("told")), bool(fields.get("recovered"))
    )


def record_failure(event: str, message: str, *paths: Path) -> bool:
    """Record a failure in the first of the files that can be written; returns whether one could.

    A hook must not disturb its session, so the failure is reported elsewhere: by `engram doctor`, and once when the
    next session starts.
    """
    for path in paths:
        known = _read_failure_log(path)
        before = known.get(event)
        repeated = isinstance(before, dict) and before.get("message") == message[:_MAX_MESSAGE_CHARACTERS]
        known[event] = {
            "message": message[:_MAX_MESSAGE_CHARACTERS],
            "at": time.time(),
            "count": 1 + int(_number(before.get("count"))) if repeated and isinstance(before, dict) else 1,
            "told": repeated and isinstance(before, dict) and bool(before.get("told")),
        }
        if _write_failure_log(path, known):
            return True
    return False


def record_success(event: str, *paths: Path) -> None:
    """Note that an event works again; its failure is deleted once it was reported.

    Costs one stat per file if there is none.
    """
    for path in paths:
        if not path.exists() or event not in (known := _read_failure_log(path)):
            continue
        failure = known.pop(event)
        if isinstance(failure, dict) and not failure.get("told"):
            known[event] = {**failure, "recovered": True}
        _write_failure_log(path, known)


def mark_reported(*paths: Path) -> None:
    """Note that all failures were reported to a session; those that are over are deleted."""
    for path in paths:
        known = _read_failure_log(path)
        lasting = {event: one for event, one in known.items() if isinstance(one, dict) and not one.get("recovered")}
        if known:
            _write_failure_log(path, {event: {**one, "told": True} for event, one in lasting.items()})


def _write_failure_log(path: Path, known: dict[str, Any]) -> bool:
    try:
        if not known:
            path.unlink(missing_ok=True)
            return True
        path.parent.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        replace_file(path, json_line(known, "replace"), durable=False)
    except OSError:
        return False
    return True


def _read_failure_log(path: Path) -> dict[str, Any]:
    try:
        return json_object(read_bytes(path))
    except OSError:
        return {}


def _number(value: object) -> float:
    """A number from the file; 0 if it is out of range for times and counts."""
    return float(value) if isinstance(value, int | float) and 0 <= value < 1e11 else 0.0


VERSION = 1
CLAIM_SECONDS = 600
"""On file systems without locks: the age at which a claim counts as abandoned, and its entry is harvested again."""
_SUFFIX, _CLAIMED = ".json", ".claimed"
_LONGEST = 80


@dataclass(frozen=True, slots=True)
class SpoolEntry:
    """A session waiting to be harvested.

    A hook writes an entry and returns; a harvest, a worker or the next session reads the transcript. An entry has the
    transcript's path, never its content. The file is named after the session, so that a session of many turns waits
    only once. A harvester renames and locks the entry; the lock ends with its process, so that the claim of a killed
    process is free at once.
    """

    session: str
    transcript: str
    cwd: str
    event: str
    at: float
    harness: str


def spool_folder(root: Path) -> Path:
    """The folder of a home's entries."""
    return root / "state" / "spool"


def add_to_spool(root: Path, entry: SpoolEntry) -> None:
    """Add a session to the spool, replacing its waiting entry. Raises `OSError` if the home cannot be written."""
    place = spool_folder(root)
    if not place.is_dir():
        root.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        place.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    fields = {
        "version": VERSION, "harness": entry.harness, "session": entry.session, "transcript": entry.transcript,
        "cwd": entry.cwd, "event": entry.event, "at": entry.at,
    }  # fmt: skip
    # Not synced: after a power loss, the next full harvest finds the session itself.
    replace_file(place / f"{session_name(entry.session)}{_SUFFIX}", json_line(fields, "replace"), durable=False)


def session_name(session: str) -> str:
    """A session's id as a file name: unchanged if it is a valid one, else its readable part and a checksum."""
    kept = "".join(char for char in session if (char.isascii() and char.isalnum()) or char in "-_")[:_LONGEST]
    return kept if kept and kept == session else f"{kept or 'session'}~{crc32(session.encode('utf-8', 'replace')):08x}"


def count_waiting(root: Path) -> int:
    """How many sessions wait."""
    return len(_list_spooled(root, time.time()))


def _list_spooled(root: Path, now: float) -> list[str]:
    """The files that can be claimed, oldest first."""
    found = []
    try:
        with os.scandir(spool_folder(root)) as entries:
            for entry in entries:
                fresh = entry.name.endswith(_SUFFIX) and not entry.name.startswith(".")
                if fresh or (entry.name.endswith(_CLAIMED) and _is_abandoned(entry, now)):
                    found.append((entry.stat(follow_symlinks=False).st_mtime, entry.name))
    except OSError:
        return []
    return [name for _, name in sorted(found)]


def _is_abandoned(entry: "os.DirEntry[str]", now: float) -> bool:
    try:
        descriptor = open_plain(entry.path, os.O_RDWR)
    except OSError:
        return False  # Another process has finished it, or the home is read-only.
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return abs(now - entry.stat(follow_symlinks=False).st_ctime) > CLAIM_SECONDS
    finally:
        os.close(descriptor)
    return True


def _open_and_lock(path: Path) -> int:
    """Open a file and lock it for this process. Raises `OSError` if another process has the lock, or was faster."""
    descriptor = open_plain(path, os.O_RDWR)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError:
            pass  # Without locks, the name and the time of a claim decide.
        if not os.path.samestat(os.fstat(descriptor), path.stat(follow_symlinks=False)):
            raise FileNotFoundError(errno.ENOENT, "it was replaced meanwhile", str(path))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


@dataclass(frozen=True, slots=True)
class SpoolClaim:
    """An entry that only this process harvests."""

    entry: SpoolEntry
    path: Path
    descriptor: int
    """The file, locked for as long as it is open."""

    def finish(self) -> None:
        """Remove the entry after its transcript was read."""
        self.path.unlink(missing_ok=True)
        os.close(self.descriptor)

    def release(self) -> None:
        """Return the entry to the spool, unless the session has a newer one."""
        target = self.path.with_name(self.path.name.removesuffix(_CLAIMED).rpartition(".")[0])
        try:
            self._return_to(target)
        finally:
            os.close(self.descriptor)

    def _return_to(self, target: Path) -> None:
        try:
            os.link(self.path, target)
        except OSError:
            if not target.exists():
                self.path.rename(target)
                return
        self.path.unlink(missing_ok=True)


def claim_waiting(root: Path) -> Iterator[SpoolClaim]:
    """Claim the waiting entries one by one, oldest first.

    Unreadable entries are removed; those of a newer Engram are left for it.
    """
    place = spool_folder(root)
    for name in _list_spooled(root, time.time()):
        base = name if name.endswith(_SUFFIX) else name.removesuffix(_CLAIMED).rpartition(".")[0]
        # Each name once: a session that waits again while it is harvested may be claimed by another thread.
        claimed = place / f"{base}.{os.getpid()}-{time.monotonic_ns()}{_CLAIMED}"
        try:
            descriptor = _open_and_lock(place / name)
        except OSError:
            continue  # Another process was faster, or the home is read-only.
        try:
            fields = json_object(read_bytes(place / name))
            if _is_newer(fields):
                os.close(descriptor)
                continue
            (place / name).rename(claimed)
        except OSError:
            os.close(descriptor)
            continue
        entry = _decode_entry(fields)
        if entry is None:
            claimed.unlink(missing_ok=True)
            os.close(descriptor)
        else:
            yield SpoolClaim(entry, claimed, descriptor)


def _is_newer(fields: Mapping[str, Any]) -> bool:
    version = fields.get("version")
    return isinstance(version, int) and version > VERSION


def _decode_entry(fields: Mapping[str, Any]) -> SpoolEntry | None:
    if fields.get("version") != VERSION:
        return None
    texts = {name: fields.get(name) for name in ("session", "transcript", "cwd", "event", "harness")}
    if not all(isinstance(text, str) for text in texts.values()) or not texts["transcript"]:
        return None
    return SpoolEntry(
        str(texts["session"]),
        str(texts["transcript"]),
        str(texts["cwd"]),
        str(texts["event"]),
        0.0,
        str(texts["harness"]),
    )
