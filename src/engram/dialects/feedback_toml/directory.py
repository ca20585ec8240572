"""A directory of TOML files: which of them are memories, read and written. Nothing that is read is ever changed."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from engram.dialects.feedback_toml.toml_record import STATED_FIELDS, as_exported, read_toml, render_toml
from engram.dialects.source import ImportSource, Projection, origin_of_path
from engram.disk import make_folder, read_bytes, remove_leftovers, replace_file
from engram.model.errors import EngramError, InvalidInput
from engram.model.memory import Memory
from engram.readers.limits import decode_text

__all__ = ["is_feedback_toml", "read_feedback_toml", "write_feedback_toml"]

CURRENT_FOLDERS = ("feedback", "facts")
OLD_FOLDERS = ("memories", "memories.v1-backup")
"""The flat layouts before."""
MAX_TOML_BYTES = 1024 * 1024
"""Bytes of one file."""


def is_feedback_toml(path: Path) -> bool:
    """Whether a path is a memory in TOML, or a directory with any."""
    if path.is_file():
        return path.suffix.lower() == ".toml" and _is_memory(path)
    return any(True for _ in _files(path))


def _is_memory(path: Path) -> bool:
    try:
        read_toml(decode_text(read_bytes(path), where=path.name), "x")
    except (EngramError, OSError):
        return False
    return True


def read_feedback_toml(path: Path) -> ImportSource:
    """Read a file, or all files of a directory in any of the layouts; what is unclear or cannot be read is named. Raises `InvalidInput`."""
    root = path if path.is_dir() else _root_of(path)
    source = ImportSource(
        origin=origin_of_path("import", root), whole=True, projection=Projection(STATED_FIELDS, as_exported)
    )
    files = list(_files(path)) if path.is_dir() else [path]
    for file in files:
        place = file.relative_to(root).as_posix() if file.is_relative_to(root) else file.name
        try:
            memory, notes = read_toml(_text(file), f"{file.parent.name}/{file.stem}")
        except EngramError as error:
            source.skipped.append((place, str(error)))
            continue
        source.add(place, memory)
        source.notices += [(place, note) for note in notes]
    if not files:
        raise InvalidInput(f"{path} has no TOML files below memory/feedback, memory/facts or memories")
    return source


def _files(folder: Path) -> Iterator[Path]:
    """The files of every layout in a directory: its `memory/` or itself, the flat ones, or the directory's own."""
    if not folder.is_dir():
        return
    named = [folder / "memory" / name for name in CURRENT_FOLDERS] + [
        folder / name for name in (*CURRENT_FOLDERS, *OLD_FOLDERS)
    ]
    places = [place for place in named if place.is_dir()] or (
        [folder] if folder.name in (*CURRENT_FOLDERS, *OLD_FOLDERS) else []
    )
    for place in places:
        with os.scandir(place) as entries:
            found = sorted(
                entry.name for entry in entries if entry.name.endswith(".toml") and not entry.name.startswith(".")
            )
        yield from (place / name for name in found)


def _root_of(file: Path) -> Path:
    """The directory whose layout a file is part of; its own folder, if that has none."""
    folder = file.parent
    if folder.name not in (*CURRENT_FOLDERS, *OLD_FOLDERS):
        return folder
    return folder.parent.parent if folder.parent.name == "memory" else folder.parent


def _text(file: Path) -> str:
    try:
        data = read_bytes(file)
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror or error}") from None
    if len(data) > MAX_TOML_BYTES:
        raise InvalidInput(f"{len(data):,} bytes, at most {MAX_TOML_BYTES:,} are read")
    return decode_text(data, where=file.name)


def write_feedback_toml(directory: Path, memories: Sequence[Memory], names: Mapping[str, str], *, force: bool) -> None:
    """Write each memory as the file below `memory/` that `names` gives its id. Raises `InvalidInput` where one is in the way."""
    files = {directory / "memory" / f"{names[memory.id]}.toml": render_toml(memory) for memory in memories}
    taken = next((file for file in files if file.exists() or file.is_symlink()), None)
    if taken is not None and not force:
        raise InvalidInput(f"{taken} already exists; choose another directory, or add --force to replace it")
    if linked := next((file for file in files if not _is_inside(file.parent, directory)), None):
        raise InvalidInput(f"{linked.parent} leads out of {directory}; remove the link")
    for folder in {file.parent for file in files}:
        make_folder(folder)
        remove_leftovers(folder)
    for file, text in files.items():
        replace_file(file, text.encode(), durable=False)


def _is_inside(folder: Path, directory: Path) -> bool:
    return folder.resolve().is_relative_to(directory.resolve())
