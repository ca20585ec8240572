"""One file per memory: where it lies, how it is written without losing what a person wrote, how it is read."""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from engram.dialects import engram_yaml
from engram.disk import DIRECTORY_MODE, read_bytes, write_temporary
from engram.model.errors import EngramError, StoreCorrupt, StoreReadOnly
from engram.model.memory import Memory
from engram.store.files.home import file_name, scope_folder

_RENAME_NOREPLACE, _RENAME_SWAP = 1, 2
_MAC_FLAGS = {_RENAME_NOREPLACE: 4, _RENAME_SWAP: 2}
_AT_FDCWD = -100
_SAVING_SECONDS = 0.5
"""How long an editor may take between emptying a file and filling it again."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a stat says of a file; two equal stamps mean an unchanged file."""

    mtime_ns: int
    size: int
    inode: int


UNSEEN = Stamp(0, 0, 0)
"""No file looks like this: whoever compares reads the file again."""
UNREACHABLE = Stamp(-1, -1, -1)
"""A file whose folder may not be entered: it is there, for all anyone knows."""


def relative_path(memory: Memory) -> str:
    """Where a new memory's file goes, below `engrams/`."""
    month = memory.id[4:8] + "-" + memory.id[9:11] if _is_dated(memory.id) else "undated"
    return f"{scope_folder(memory.scope)}/{month}/{file_name(memory.id)}.yaml"


def _is_dated(identifier: str) -> bool:
    return len(identifier) >= 17 and identifier[4:8].isdigit() and identifier[9:11].isdigit()


def stamp_of(path: Path | str) -> Stamp | None:
    """The file's stamp, or None where there is none."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return UNREACHABLE
    return _stamp(found)


def _stamp(found: os.stat_result) -> Stamp:
    return Stamp(found.st_mtime_ns, found.st_size, found.st_ino)


def is_memory_file(name: str) -> bool:
    """Whether a name in `engrams/` is a memory's: temporary, hidden, backup and conflicted copies are not."""
    return name.endswith((".yaml", ".yml")) and not name.startswith(".") and not is_conflicted_copy(name)


def is_conflicted_copy(name: str) -> bool:
    """The names sync tools give a second version of a file."""
    lowered = name.lower()
    return any(
        mark in lowered for mark in ("conflicted copy", ".sync-conflict-", "(conflict", "_conflict-", " (case conflict")
    )


def walk(root: Path) -> Iterator[Path]:
    """Every folder below `engrams/` that holds or may hold memory files, the root first. Links are not followed."""
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


def read(path: Path) -> list[Memory]:
    """The memories of a file; `StoreCorrupt` names file and line when it cannot be read."""
    return parse(content(path), path)


def content(path: Path) -> bytes:
    """A file's bytes; links are not followed."""
    try:
        return read_bytes(path)
    except OSError as error:
        raise StoreCorrupt(f"{path}: cannot be read: {error.strerror}") from error


def parse(data: bytes, path: Path) -> list[Memory]:
    """The memories in a file's bytes."""
    if not data.strip():
        raise StoreCorrupt(f"{path}: the file is empty")
    return engram_yaml.load(engram_yaml.decode(data, where=str(path)), where=str(path))


def write(
    path: Path | str, memory: Memory, expected: Stamp | None, mapping: Mapping[str, Any] | None = None
) -> Stamp | None:
    """Put a memory's file in place in one step; `expected` is the stamp it had when it was last read, None for a new one.

    Returns the stamp of what was written. If someone saved the file since then, their version stays and the answer is None:
    the caller takes it in as an edit made after this decision. Nothing a person saved is lost.
    """
    data = render([memory]) if mapping is None else render_image(mapping)
    fresh = ""
    try:
        fresh, found = _written(path, data)
        ours = _stamp(found)
        placed = (expected is None and _place_new(fresh, path)) or _replace(fresh, path, expected, ours)
        return ours if placed else None
    except OSError as error:
        with contextlib.suppress(OSError):
            if fresh:
                Path(fresh).unlink()
        raise StoreReadOnly(f"cannot write {path}: {error.strerror}") from error


def _written(path: Path | str, data: bytes) -> tuple[str, os.stat_result]:
    try:
        return write_temporary(path, data, sync=False)
    except FileNotFoundError:
        Path(path).parent.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        return write_temporary(path, data, sync=False)


def _place_new(fresh: str, path: Path | str) -> bool:
    """Give a new file its name, unless something already has it."""
    rename = _rename_call()
    if rename is not None and rename(fresh, path, _RENAME_NOREPLACE) == 0:
        return True
    try:
        os.link(fresh, path)
    except FileExistsError:
        return False
    Path(fresh).unlink()
    return True


def _replace(fresh: str, path: Path | str, expected: Stamp | None, ours: Stamp | None) -> bool:
    """Swap old and new in one step where the system can: a plain rename would overwrite a save of the last microsecond."""
    stands = stamp_of(path)
    if stands not in (expected, None):
        Path(fresh).unlink()
        return False
    swap = _swap_call()
    if stands is None or swap is None or swap(fresh, path) != 0:
        Path(fresh).replace(path)
        return True
    if stamp_of(fresh) == expected:
        Path(fresh).unlink()
        return True
    await_save(Path(fresh))
    # Their version goes back; if they saved once more meanwhile, that one stays.
    if swap(fresh, path) == 0 and stamp_of(fresh) != ours:
        swap(fresh, path)
    Path(fresh).unlink()
    return False


def await_save(path: Path) -> None:
    """Let an editor finish: it has emptied the file and still writes to it."""
    deadline = time.monotonic() + _SAVING_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(EngramError):
            if read(path):
                return
        time.sleep(0.01)


def _swap_call() -> Callable[[Path | str, Path | str], int] | None:
    rename = _rename_call()
    return None if rename is None else lambda one, other: rename(one, other, _RENAME_SWAP)


@cache
def _rename_call() -> Callable[[Path | str, Path | str, int], int] | None:
    """The system's rename with flags, where it has one; 0 when it was done."""
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
    """A file's bytes for one memory's image. Raises `InvalidInput` for what no file can store."""
    from engram.dialects.yaml_writer import emit_list

    return emit_list((mapping,)).encode("utf-8")
