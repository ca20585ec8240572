"""Keeping a store's data inside the store: the paths it may name, and how its files are opened.

A store may come from anyone: an archive, a clone, a shared disk. So no path that was read from data is followed before
`memory_file` has seen it, no folder that is a link is written through, and no file is opened that is not a plain one.
"""

import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from engram.model.errors import StoreCorrupt, StoreReadOnly

_OWN_FILE = re.compile(r"engrams(?:/(?!\.)[^/\0]+)+\.ya?ml")
_TEAM_FILE = re.compile(r"/(?:[^\0]*/)?\.engram/engrams(?:/(?!\.)[^/\0]+)+\.ya?ml")
_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""A link is not followed, and a pipe is not waited for; neither means anything to a plain file."""

MALFORMED = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)
"""What parsing a damaged record raises: no JSON, other fields, other types, endless numbers, endless brackets."""
UNREADABLE = (OSError, *MALFORMED)
"""The same for a file of its own."""


class PointsOutside(ValueError):
    """Data names a file where no memory's can lie."""


def memory_file(stored: object) -> str:
    """Where a journal says that a memory's file lies: below `engrams/`, or below `.engram/engrams/` of a repository.

    "" for a memory that has no file. Raises `PointsOutside` for anything else.
    """
    if stored == "":
        return ""
    if not isinstance(stored, str) or not (_OWN_FILE.fullmatch(stored) or _TEAM_FILE.fullmatch(stored)):
        raise PointsOutside(
            f"it names the file {stored!r:.200}, and a memory's file is a .yaml file below engrams/ of the store"
        )
    os.fsencode(stored)
    return stored


def refuse_links(root: Path | str, stored: str) -> None:
    """Raise `StoreReadOnly` where a folder on the way to a file of the store, or of a repository's, is a link."""
    base, inside = str(root), stored
    if stored.startswith("/"):
        base, _, inside = stored.rpartition("/.engram/engrams/")
        inside = f".engram/engrams/{inside}"
    for part in inside.split("/")[:-1]:
        base = f"{base}/{part}"
        if os.path.islink(base):  # noqa: PTH114 -- at every write
            raise StoreReadOnly(
                f"{base} is a symbolic link, and Engram neither reads nor writes through it; put a folder in its place"
            )


def refuse_linked_folders(root: Path, names: Iterable[str]) -> None:
    """Raise `StoreCorrupt` where one of a store's own folders is a link: whatever is written there would land elsewhere."""
    for name in names:
        if (root / name).is_symlink():
            raise StoreCorrupt(
                f"{root / name} is a symbolic link; Engram does not write through it. Put a folder in its place, or link "
                "the whole store"
            )


def open_plain(path: Path | str, flags: int, mode: int = 0o600) -> int:
    """Open a file of the store. An `OSError` says what is no plain file: a link, a folder, a pipe, a device."""
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


def read_bytes(path: Path | str) -> bytes:
    """A plain file's bytes."""
    with reading(path) as file:
        return file.read()


_FIRST_STEP, _LONGEST_STEP = 1 << 13, 1 << 22


def lines_backwards(path: Path) -> Iterator[bytes]:
    """A file's whole lines without their newlines, the last one first; what a crash left of a line is none."""
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
