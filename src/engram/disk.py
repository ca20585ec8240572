"""Reading and writing plain files: opened without following links, replaced in one step, appended durably.

A store may come from anyone (an archive, a clone, a shared disk), so nothing but a plain file is ever opened.
"""

import contextlib
import errno
import hashlib
import itertools
import json
import os
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from engram.model.errors import InvalidInput
from engram.model.lazy import lazy_pattern

DIRECTORY_MODE, FILE_MODE = 0o700, 0o600
MALFORMED = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)
"""What parsing a damaged record raises: not JSON, wrong fields or types, huge numbers, endless brackets."""
UNREADABLE = (OSError, *MALFORMED)
"""The same for a whole file."""

_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Do not follow a link, do not wait for a pipe; neither matters for a plain file."""
_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
"""A folder to open files in: Linux needs no permission to list it."""
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LONGEST_PREFIX = 200
_FIRST_STEP, _LONGEST_STEP = 1 << 13, 1 << 22
_serial = itertools.count()
_RUN = os.urandom(3).hex()
"""Makes temporary names unique across containers, whose processes may have the same process id."""
_TEMPORARY = lazy_pattern(
    r"\..+\.engram-(?P<machine>[0-9a-f]{8})-(?P<process>[0-9]{1,10})-[0-9a-f]{6}[0-9]+\.tmp", re.DOTALL
)
_LONGEST_WRITE = 3600.0
"""Seconds after which a temporary file belongs to no running process, whatever machine it comes from."""
_USUAL_WRITE = 60.0
"""Seconds after which a running process has given a temporary file its name; another one may have got the id of a killed one."""


def digest_name(identifier: str, readable: str, digits: int = 16) -> str:
    """A file name for an id that is not one itself: a readable beginning and a digest of the whole id."""
    return f"{readable}~{hashlib.sha256(identifier.encode('utf-8', 'surrogatepass')).hexdigest()[:digits]}"


def expand_home(path: Path, what: str) -> Path:
    """Expand a leading `~`; raises `InvalidInput` for an unknown user or one without a home directory."""
    try:
        return path.expanduser()
    except RuntimeError:
        raise InvalidInput(
            f"{what} is {str(path)!r}, and there is no user {path.parts[0][1:]!r} here, or one without a home directory; "
            "give the whole path"
        ) from None


# -- reading


def open_plain(path: Path | str, flags: int, mode: int = FILE_MODE) -> int:
    """Open a plain file; raises `OSError` for a link, a folder, a pipe or a device."""
    try:
        descriptor = os.open(path, flags | _FLAGS, mode)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise _not_plain(path, "a symbolic link") from None
        if error.errno == errno.ENXIO:
            raise _not_plain(path, "a pipe or a device") from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _not_plain(path, "a folder, a pipe or a device")
    return descriptor


def _not_plain(path: Path | str, what: str) -> OSError:
    return OSError(errno.EINVAL, f"not a plain file but {what}", str(path))


def reading(path: Path | str) -> BinaryIO:
    """A plain file, open for reading bytes."""
    return cast(BinaryIO, os.fdopen(open_plain(path, os.O_RDONLY), "rb"))


def reading_real(path: Path | str) -> BinaryIO:
    """A plain file by its real path, open for reading bytes.

    Raises `OSError` if any folder on the way is a link by now: a folder that was swapped after a check leads nowhere.
    """
    *folders, name = os.fspath(path).split("/")[1:]
    at = os.open("/", _FOLDER)
    try:
        for folder in folders:
            below = os.open(folder, _FOLDER, dir_fd=at)
            os.close(at)
            at = below
        descriptor = os.open(name, os.O_RDONLY | _FLAGS, dir_fd=at)
    finally:
        os.close(at)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _not_plain(path, "a folder, a pipe or a device")
    return cast(BinaryIO, os.fdopen(descriptor, "rb"))


def read_bytes(path: Path | str) -> bytes:
    """The content of a plain file."""
    with reading(path) as file:
        return file.read()


def json_object(data: bytes) -> dict[str, Any]:
    """The JSON object in some bytes; {} where there is none."""
    try:
        found = json.loads(data)
    except MALFORMED:
        return {}
    return found if isinstance(found, dict) else {}


def lines_backwards(path: Path) -> Iterator[bytes]:
    """The complete lines of a file without their newlines, last one first; a line cut off by a crash is left out."""
    with os.fdopen(open_plain(path, os.O_RDONLY), "rb", buffering=0) as file:
        position, step = file.seek(0, os.SEEK_END), _FIRST_STEP
        rest, ended = b"", False
        while position > 0:
            step = min(step, position)
            position -= step
            file.seek(position)
            rest, *lines = (file.read(step) + rest).split(b"\n")
            if lines and not ended:
                lines.pop()
                ended = True
            yield from reversed(lines)
            step = min(step * 2, _LONGEST_STEP)
        if ended:
            yield rest


def whole_lines(path: Path) -> tuple[int, int]:
    """A file's size, and the offset at which its last complete line ends."""
    block = 1 << 16
    with reading(path) as file:
        size = position = file.seek(0, os.SEEK_END)
        while position > 0:
            step = min(block, position)
            position -= step
            file.seek(position)
            found = file.read(step).rfind(b"\n")
            if found >= 0:
                return size, position + found + 1
        return size, 0


def torn_tail(path: Path) -> int | None:
    """The offset of a last line without a newline; None if the file ends with a complete line."""
    size, whole = whole_lines(path)
    return None if whole == size else whole


# -- writing


to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
"""A record as the logs and the index keep it."""


def json_line(fields: Any, errors: str = "surrogatepass") -> bytes:
    """A record as one line of a log."""
    return to_json(fields).encode("utf-8", errors) + b"\n"


def sync_path(path: Path) -> None:
    """Wait until the content of a file, or the names in a folder, are on disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Create a folder durably, unless it exists."""
    if not folder.is_dir():
        folder.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        sync_path(folder.parent)


def temporary_prefix(path: Path | str) -> str:
    """How the names of the temporary files for a path begin."""
    return f".{os.path.basename(path)[:_LONGEST_PREFIX]}."  # noqa: PTH119 -- called for every write


def temporary_path(path: Path | str) -> str:
    """A new name next to a path. It names the process, so that `remove_leftovers` knows what a killed one left."""
    folder = os.path.dirname(path) or "."  # noqa: PTH120 -- called for every write
    return f"{folder}/{temporary_prefix(path)}engram-{_MACHINE}-{os.getpid()}-{_RUN}{next(_serial)}.tmp"


def _machine() -> str:
    """A digest of what makes a process id mean the same process: the host, its boot, and the namespace of its processes."""
    parts = [os.uname().nodename]
    with contextlib.suppress(OSError):
        parts += [Path("/proc/sys/kernel/random/boot_id").read_text("ascii"), str(Path("/proc/self/ns/pid").readlink())]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:8]


_MACHINE = _machine()


def remove_leftovers(folder: Path | str) -> None:
    """Delete temporary files of Engram in a folder whose process was killed; those of a running one stay."""
    for path, status, machine, process in _temporary_files(folder):
        is_ended = machine == _MACHINE and not _is_running(process)
        is_old = time.time() - status.st_mtime > _LONGEST_WRITE
        if status.st_uid == os.geteuid() and (is_ended or is_old):
            with contextlib.suppress(OSError):
                path.unlink()


def find_temporary(folder: Path | str) -> list[Path]:
    """The temporary files of Engram in a folder, less those that a process of this machine is writing now."""
    return [
        path
        for path, status, machine, process in _temporary_files(folder)
        if machine != _MACHINE or not _is_running(process) or time.time() - status.st_mtime > _USUAL_WRITE
    ]


def _temporary_files(folder: Path | str) -> Iterator[tuple[Path, os.stat_result, str, int]]:
    """The temporary files of Engram in a folder, each with the machine and the process that its name contains."""
    try:
        names = [name for name in os.listdir(folder) if name.endswith(".tmp")]
    except OSError:
        return
    for name in names:
        if found := _TEMPORARY.fullmatch(name):
            path = Path(folder, name)
            with contextlib.suppress(OSError):
                status = path.lstat()
                if stat.S_ISREG(status.st_mode):
                    yield path, status, found["machine"], int(found["process"])


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


@contextlib.contextmanager
def _naming(path: Path | str) -> Iterator[None]:
    """Name a file in the errors of its descriptor, which name none."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = os.fspath(path)
        raise


def write_temporary(path: Path | str, data: bytes, *, sync: bool, mode: int = FILE_MODE) -> tuple[str, os.stat_result]:
    """Write data to a new file next to `path`, ready to take its name; returns its path and stat.

    Its name is unique: threads and processes may replace the same file at the same time.
    """
    fresh = temporary_path(path)
    descriptor = os.open(fresh, _CREATE, mode)
    try:
        with _naming(path):
            _write_all(descriptor, data)
            if sync:
                os.fsync(descriptor)
        return fresh, os.fstat(descriptor)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(fresh).unlink()
        raise
    finally:
        os.close(descriptor)


def replace_file(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Create a file or replace its content in one step. Only its owner can read it."""
    fresh, _ = write_temporary(path, data, sync=durable)
    try:
        Path(fresh).replace(path)
    except BaseException:
        Path(fresh).unlink(missing_ok=True)
        raise
    if durable:
        sync_path(path.parent)


def append_durably(path: Path, data: bytes, *, sync: bool = True) -> int:
    """Append and fsync; returns the offset at which the data starts. A failed write is cut off before the error is raised."""
    descriptor = open_plain(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        start = os.fstat(descriptor).st_size
        try:
            with _naming(path):
                _write_all(descriptor, data)
                if sync:
                    os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, start)
            raise
        return start
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


# -- quarantine


def set_aside(path: Path, offset: int, quarantine: Path, reason: str) -> str:
    """Move everything from `offset` on to quarantine; returns a message that says so."""
    with os.fdopen(open_plain(path, os.O_RDWR), "r+b") as file:
        file.seek(offset)
        torn = file.read()
        name = keep_aside(path, torn, quarantine, reason)
        file.truncate(offset)
        os.fsync(file.fileno())
    return f"{path}: {len(torn)} bytes of a torn line, kept in {name}"


def keep_aside(path: Path, data: bytes, quarantine: Path, reason: str) -> Path:
    """Copy bytes to a new quarantine file, after a header with their origin and the reason."""
    quarantine.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    count = len(os.listdir(quarantine))
    target = quarantine / f"{path.parent.name}-{path.stem}-{count:04d}.txt"
    header = json.dumps({"file": str(path.name), "reason": reason}).encode() + b"\n"
    append_durably(target, header + data)
    return target


def boot_id() -> str:
    """The id of the machine's current boot: what was not synced before may be lost. "" if unknown."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
