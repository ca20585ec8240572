"""One file per memory: its path, and how to read and write it without losing a person's edits."""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from engram.dialects import engram_yaml
from engram.disk import DIRECTORY_MODE, read_bytes, write_temporary
from engram.model.errors import EngramError, StoreCorrupt, StoreReadOnly
from engram.model.lazy import dataclass, replace
from engram.model.memory import Memory
from engram.store.home import file_name, scope_folder
from engram.store.sqlite.sweep import COARSE_CLOCK_NS, SECOND_NS

_RENAME_NOREPLACE, _RENAME_SWAP = 1, 2
_MAC_FLAGS = {_RENAME_NOREPLACE: 4, _RENAME_SWAP: 2}
_AT_FDCWD = -100
_SAVING_SECONDS = 0.5
"""How long an editor may take between emptying a file and filling it again."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """Modification time, size, inode and change time of a file; equal stamps mean an unchanged file.

    A tool can set the modification time back. Nobody can set the change time, but renames and new links also change it.
    """

    mtime_ns: int
    size: int
    inode: int
    ctime_ns: int

    def has_same_content(self, other: "Stamp | None") -> bool:
        """Whether the two differ at most in the change time, as before and after a rename."""
        return other is not None and (self.mtime_ns, self.size, self.inode) == (
            other.mtime_ns,
            other.size,
            other.inode,
        )

    def to_record(self, now_ns: int) -> "Stamp":
        """The stamp to record for a file that was just read or written.

        If the file system's clock has a resolution of seconds, a save within the same second may leave the stamp
        unchanged. The stamp recorded for such a young file equals no file's stamp, so that the file is read again.
        """
        is_ambiguous = self.mtime_ns % SECOND_NS == 0 and now_ns - self.mtime_ns < COARSE_CLOCK_NS
        return replace(self, ctime_ns=-1) if is_ambiguous else self


UNSEEN_STAMP = Stamp(0, 0, 0, 0)
"""Equals no file's stamp, so that a file recorded with it is read again."""
UNREACHABLE_STAMP = Stamp(-1, -1, -1, -1)
"""The stamp of a file in an inaccessible folder: the file may well exist."""


def relative_path(memory: Memory) -> str:
    """The path of a new memory's file below `engrams/`."""
    month = memory.id[4:8] + "-" + memory.id[9:11] if _is_dated(memory.id) else "undated"
    return f"{scope_folder(memory.scope)}/{month}/{file_name(memory.id)}.yaml"


def _is_dated(identifier: str) -> bool:
    return len(identifier) >= 17 and identifier[4:8].isdigit() and identifier[9:11].isdigit()


def stamp_of(path: Path | str) -> Stamp | None:
    """The file's stamp, or None if there is no file."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return UNREACHABLE_STAMP
    return _stamp(found)


def _stamp(found: os.stat_result) -> Stamp:
    return Stamp(found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns)


def is_memory_file(name: str) -> bool:
    """Whether a file name in `engrams/` is a memory file: not temporary, hidden, a backup or a conflicted copy."""
    return name.endswith((".yaml", ".yml")) and not name.startswith(".") and not is_conflicted_copy(name)


def is_conflicted_copy(name: str) -> bool:
    """Whether a sync tool gave this name to a second version of a file."""
    lowered = name.lower()
    return any(
        mark in lowered for mark in ("conflicted copy", ".sync-conflict-", "(conflict", "_conflict-", " (case conflict")
    )


def walk(root: Path) -> Iterator[Path]:
    """The root and every folder below it that may contain memory files. Links are not followed."""
    stack = [root]
    while stack:
        folder = stack.pop()
        yield folder
        try:
            with os.scandir(folder) as entries:
                stack.extend(
                    Path(e.path) for e in entries if e.is_dir(follow_symlinks=False) and not e.name.startswith(".")
                )
        except OSError:
            continue


def memory_files(root: Path) -> Iterator[Path]:
    """Every memory file below a folder; folders that cannot be listed are left out."""
    for folder in walk(root):
        with contextlib.suppress(OSError):
            yield from (path for path in sorted(folder.iterdir()) if is_memory_file(path.name))


def read(path: Path) -> list[Memory]:
    """The memories of a file. Raises `StoreCorrupt` with file and line if it cannot be read."""
    return parse(content(path), path)


def content(path: Path | str) -> bytes:
    """A file's bytes; links are not followed."""
    try:
        return read_bytes(path)
    except OSError as error:
        raise StoreCorrupt(f"{path}: cannot be read: {error.strerror}") from error


def parse(data: bytes, path: Path | str) -> list[Memory]:
    """The memories in a file's bytes."""
    if not data.strip():
        raise StoreCorrupt(f"{path}: the file is empty")
    return engram_yaml.load(data, where=str(path))


def write(
    path: Path | str, memory: Memory, expected: Stamp | None, mapping: Mapping[str, Any] | None = None
) -> Stamp | None:
    """Write the file of one memory; see `write_data`."""
    return write_data(path, render([memory]) if mapping is None else render_image(mapping), expected)


def write_data(path: Path | str, data: bytes, expected: Stamp | None) -> Stamp | None:
    """Write a file atomically; `expected` is its stamp when it was last read, None for a new file.

    Returns the new file's stamp. If someone saved the file since then, their version stays and None is returned: the
    caller reads it as an edit made after this decision. No saved edit is lost.
    """
    fresh = ""
    try:
        fresh, found = _write_temporary(path, data)
        ours = _stamp(found)
        placed = (expected is None and _place_new(fresh, path)) or _replace(fresh, path, expected, ours)
        return _placed_stamp(path, ours) if placed else None
    except OSError as error:
        with contextlib.suppress(OSError):
            if fresh:
                Path(fresh).unlink()
        raise StoreReadOnly(f"cannot write {path}: {error.strerror}") from error


def _placed_stamp(path: Path | str, ours: Stamp) -> Stamp:
    """The stamp of a file that was just renamed, which changed its change time."""
    current = stamp_of(path)
    # A file saved since then is an edit, so its stamp is not recorded.
    return (current if current is not None and current.has_same_content(ours) else ours).to_record(time.time_ns())


def _write_temporary(path: Path | str, data: bytes) -> tuple[str, os.stat_result]:
    try:
        return write_temporary(path, data, sync=False)
    except FileNotFoundError:
        Path(path).parent.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        return write_temporary(path, data, sync=False)


def _place_new(fresh: str, path: Path | str) -> bool:
    """Give a new file its name, unless the name is taken."""
    rename = _rename_call()
    if rename is not None and rename(fresh, path, _RENAME_NOREPLACE) == 0:
        return True
    try:
        os.link(fresh, path)
    except FileExistsError:
        return False
    Path(fresh).unlink()
    return True


def _replace(fresh: str, path: Path | str, expected: Stamp | None, ours: Stamp) -> bool:
    """Swap the old and the new file atomically if the system can: a plain rename could overwrite a save made just now."""
    current = stamp_of(path)
    if current is not None and not current.has_same_content(expected):
        Path(fresh).unlink()
        return False
    rename = _rename_call()
    if current is None or rename is None or rename(fresh, path, _RENAME_SWAP) != 0:
        Path(fresh).replace(path)
        return True
    if expected is not None and expected.has_same_content(stamp_of(fresh)):
        Path(fresh).unlink()
        return True
    await_save(Path(fresh))
    # Put their version back; if they saved again in the meantime, that version stays.
    if rename(fresh, path, _RENAME_SWAP) == 0 and not ours.has_same_content(stamp_of(fresh)):
        rename(fresh, path, _RENAME_SWAP)
    Path(fresh).unlink()
    return False


def await_save(path: Path) -> None:
    """Wait until an editor that has emptied the file has written it again."""
    deadline = time.monotonic() + _SAVING_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(EngramError):
            if read(path):
                return
        time.sleep(0.01)


@cache
def _rename_call() -> Callable[[Path | str, Path | str, int], int] | None:
    """The system's rename with flags (0 means success); None if it has none."""
    import ctypes

    try:
        library = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "linux":
            rename = library.renameat2
            return lambda a, b, flags: int(rename(_AT_FDCWD, os.fsencode(a), _AT_FDCWD, os.fsencode(b), flags))
        if sys.platform == "darwin":
            swap = library.renamex_np
            return lambda a, b, flags: int(swap(os.fsencode(a), os.fsencode(b), _MAC_FLAGS[flags]))
    except (OSError, AttributeError):
        pass
    return None


def render(found: list[Memory]) -> bytes:
    """A file's bytes for some memories."""
    return engram_yaml.dump(found).encode("utf-8", "surrogatepass")


def render_image(mapping: Mapping[str, Any]) -> bytes:
    """A file's bytes for one memory's image. Raises `InvalidInput` if a file cannot store it."""
    from engram.dialects.yaml_writer import emit_list

    return emit_list((mapping,)).encode("utf-8")
