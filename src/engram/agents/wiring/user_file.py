"""Reads a user's text file with its encoding, and replaces it atomically, keeping its mode, owner and attributes."""

import codecs
import contextlib
import os
import stat
from pathlib import Path

from engram.agents.sources.places import has_private_name
from engram.disk import read_bytes, remove_leftovers, sync_path, write_temporary
from engram.model.errors import InvalidInput, Refused
from engram.model.lazy import dataclass
from engram.store.scopes import repository_of

MAX_USER_FILE_BYTES = 4 * 1024 * 1024
"""Maximum bytes; an instruction file that agents read as a whole is far smaller."""
NEW_FILE_MODE = 0o666
"""The mode of a new file, before the umask."""
# The byte order mark of UTF-32 begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, slots=True)
class UserFile:
    """A file as read. A file that does not exist yet has no `status`."""

    name: Path
    """The path from the caller, made absolute."""
    path: Path
    """The path of its content, with links resolved."""
    text: str = ""
    encoding: str = "utf-8"
    mark: bytes = b""
    status: os.stat_result | None = None

    @property
    def exists(self) -> bool:
        """Whether the file existed when it was read."""
        return self.status is not None


def read_user_file(path: Path, largest: int = MAX_USER_FILE_BYTES) -> UserFile:
    """Read a file. Raises `Refused` for a link out of the repository, and unless it is a text file of reasonable size.

    Leftovers of a killed run are removed first: they may quote memories, and a second link to the file would be
    refused.
    """
    name = path.expanduser().absolute()
    place = _follow_links(name)
    remove_leftovers(place.parent)
    try:
        status = place.stat()
    except FileNotFoundError:
        if not place.parent.is_dir():
            raise InvalidInput(f"{name}: the folder {place.parent} does not exist") from None
        return UserFile(name, place)
    if not stat.S_ISREG(status.st_mode):
        raise Refused(f"{name} is not a plain file; nothing was written")
    if status.st_nlink > 1:
        raise Refused(
            f"{name} has {status.st_nlink} hard links, which a replacement would separate; nothing was written. "
            "Use a symbolic link instead"
        )
    if status.st_size > largest:
        raise Refused(f"{name} has {status.st_size:,} bytes (maximum {largest:,}); nothing was written")
    data = read_bytes(place)
    mark, encoding = next(((mark, known) for mark, known in _MARKS if data.startswith(mark)), (b"", "utf-8"))
    try:
        text = data[len(mark) :].decode(encoding)
    except UnicodeDecodeError as error:
        raise Refused(
            f"{name} is not {encoding.upper()} (byte {error.start + len(mark)}); nothing was written. Convert it first"
        ) from None
    return UserFile(name, place, text, encoding, mark, status)


def _follow_links(name: Path) -> Path:
    """Resolve links. Raises `Refused` for a link out of the file's repository, or out of its folder if it is in none."""
    try:
        place = name.resolve()
    except (RuntimeError, OSError):  # Which of the two depends on the Python version.
        raise Refused(f"{name} is a symbolic link that leads back to itself; nothing was written") from None
    around = repository_of(name.parent) or name.parent
    root = around.resolve()
    if not place.is_relative_to(root):
        raise Refused(
            f"{name} leads to {place}, outside of {around}; nothing was written. Name {place} itself if you mean it"
        )
    if has_private_name(f"/{place.relative_to(root)}") and not has_private_name(f"/{name.relative_to(around)}"):
        raise Refused(f"{name} leads to {place}, which is not a file for instructions; nothing was written")
    return place


def replace_user_file(file: UserFile, text: str, new_mode: int = NEW_FILE_MODE) -> bool:
    """Replace the content atomically; False, with nothing written, if somebody else changed the file since it was read.

    A new file gets `new_mode`, less the umask.
    """
    if file.status is not None and not os.access(file.path, os.W_OK):
        raise Refused(f"{file.name} is write-protected; nothing was written")
    data = file.mark + text.encode(file.encoding)
    fresh, _ = write_temporary(file.path, data, sync=True, mode=new_mode if file.status is None else 0o600)
    try:
        if file.status is not None:
            _keep_attributes(file.path, fresh, file.status)
        if not _is_unchanged(file):
            return False
        if file.status is None:
            return _name_new_file(fresh, file.path)
        Path(fresh).replace(file.path)
    finally:
        Path(fresh).unlink(missing_ok=True)
    sync_path(file.path.parent)
    return True


def _name_new_file(fresh: str, path: Path) -> bool:
    """Give a new file its name; False if somebody else has just created a file with that name."""
    try:
        os.link(fresh, path)  # Unlike a rename, a link replaces nothing.
    except FileExistsError:
        return False
    except OSError:  # A file system without hard links.
        Path(fresh).rename(path)
    sync_path(path.parent)
    return True


def remove_user_file(file: UserFile) -> bool:
    """Delete the file; False if somebody else changed it since it was read."""
    if not _is_unchanged(file):
        return False
    file.path.unlink()
    return True


def _is_unchanged(file: UserFile) -> bool:
    try:
        now = os.lstat(file.path)
    except FileNotFoundError:
        return file.status is None
    before = file.status
    if before is None:
        return False
    return (now.st_ino, now.st_size, now.st_mtime_ns) == (before.st_ino, before.st_size, before.st_mtime_ns)


def _keep_attributes(path: Path, fresh: str, status: os.stat_result) -> None:
    """Copy the owner, mode and extended attributes of the old file to the new one, as far as this user may."""
    with contextlib.suppress(PermissionError):
        os.chown(fresh, status.st_uid, status.st_gid)
    Path(fresh).chmod(stat.S_IMODE(status.st_mode))
    if not hasattr(os, "listxattr"):
        return
    with contextlib.suppress(OSError):
        for attribute in os.listxattr(path):
            with contextlib.suppress(OSError):
                os.setxattr(fresh, attribute, os.getxattr(path, attribute))
