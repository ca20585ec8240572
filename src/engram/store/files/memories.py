"""One file per memory: where it lies, how it is written without losing what a person wrote, how it is read."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from engram.dialects import engram_yaml
from engram.model.errors import StoreCorrupt, StoreReadOnly
from engram.model.memory import Memory
from engram.store.files.home import DIRECTORY_MODE, FILE_MODE, scope_folder

_RENAME_EXCHANGE = 2
_RENAME_SWAP = 2
_AT_FDCWD = -100


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a stat says of a file; two equal stamps mean an unchanged file."""

    mtime_ns: int
    size: int
    inode: int


@dataclass(frozen=True, slots=True)
class Surprise:
    """Content that stood in a file at the moment it was replaced and that the writer had not seen."""

    path: Path
    data: bytes


def relative_path(memory: Memory) -> str:
    """Where a new memory's file goes, below `engrams/`."""
    month = memory.id[4:8] + "-" + memory.id[9:11] if _is_dated(memory.id) else "undated"
    return f"{scope_folder(memory.scope)}/{month}/{memory.id}.yaml"


def _is_dated(identifier: str) -> bool:
    return len(identifier) >= 17 and identifier[4:8].isdigit() and identifier[9:11].isdigit()


def stamp_of(path: Path | str) -> Stamp | None:
    """The file's stamp, or None where there is none."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
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
        except FileNotFoundError:
            continue


def read(path: Path) -> list[Memory]:
    """The memories of a file; `StoreCorrupt` names file and line when it cannot be read."""
    return parse(_bytes(path), path)


def _bytes(path: Path) -> bytes:
    if path.is_symlink() or not path.is_file():
        raise StoreCorrupt(f"{path}: not a plain file; Engram does not follow links out of the store")
    try:
        return path.read_bytes()
    except OSError as error:
        raise StoreCorrupt(f"{path}: cannot be read: {error.strerror}") from error


def parse(data: bytes, path: Path) -> list[Memory]:
    """The memories in a file's bytes."""
    if not data.strip():
        raise StoreCorrupt(f"{path}: the file is empty")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise StoreCorrupt(f"{path}:{line}: not valid UTF-8 (byte {error.start}); save the file as UTF-8") from None
    return engram_yaml.load(text, where=str(path))


def write(path: Path, memory: Memory, expected: Stamp | None) -> Surprise | None:
    """Put a memory's file in place in one step; `expected` is the stamp it had when it was last read, None for a new one.

    If someone saved the file since then, the new version still goes in, and what stood there is returned, so that the
    caller can journal it: nothing a person saved is lost.
    """
    data = rendered([memory])
    fresh = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        _write_new(fresh, data)
        if expected is None and _place_new(fresh, path):
            return None
        return _replace(fresh, path, expected)
    except OSError as error:
        raise StoreReadOnly(f"cannot write {path}: {error.strerror}") from error


def _write_new(fresh: Path, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    try:
        descriptor = os.open(fresh, flags, FILE_MODE)
    except FileNotFoundError:
        fresh.parent.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        descriptor = os.open(fresh, flags, FILE_MODE)
    try:
        _write_all(descriptor, data)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _place_new(fresh: Path, path: Path) -> bool:
    """Give a new file its name, unless something already has it."""
    try:
        os.link(fresh, path)
    except FileExistsError:
        return False
    fresh.unlink()
    return True


def _replace(fresh: Path, path: Path, expected: Stamp | None) -> Surprise | None:
    """Swap old and new in one step where the system can: a plain rename would overwrite a save of the last microsecond."""
    swap = _swap_call()
    if swap is not None and swap(os.fsencode(fresh), os.fsencode(path)) == 0:
        stood = fresh.read_bytes() if stamp_of(fresh) != expected else None
        fresh.unlink()
    else:
        stood = path.read_bytes() if stamp_of(path) not in (expected, None) else None
        fresh.replace(path)
    return Surprise(path, stood) if stood is not None else None


@cache
def _swap_call() -> Callable[[bytes, bytes], int] | None:
    import ctypes

    try:
        library = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "linux":
            rename = library.renameat2
            return lambda a, b: int(rename(_AT_FDCWD, a, _AT_FDCWD, b, _RENAME_EXCHANGE))
        if sys.platform == "darwin":
            swap = library.renamex_np
            return lambda a, b: int(swap(a, b, _RENAME_SWAP))
    except (OSError, AttributeError):
        pass
    return None


def from_image(mapping: Mapping[str, Any]) -> Memory:
    """The memory of a journal image."""
    return engram_yaml.from_mapping(mapping)


def rendered(found: list[Memory]) -> bytes:
    """A file's bytes for some memories."""
    return engram_yaml.dump(found).encode("utf-8", "surrogatepass")
