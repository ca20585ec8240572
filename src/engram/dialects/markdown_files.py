"""The Markdown files below a folder: never through a link out of it, never a device, never one of boundless size."""

import os
from collections.abc import Iterator
from pathlib import Path

from engram.disk import read_bytes
from engram.model.errors import InvalidInput
from engram.readers.limits import decode_text

MAX_MARKDOWN_BYTES = 8 * 1024 * 1024
"""Bytes of one file."""
_DEEPEST = 32
Skipped = list[tuple[str, str]]


def markdown_files(folder: Path, skipped: Skipped) -> Iterator[Path]:
    """Every `.md` file below a folder in order of its path, hidden ones left out; links that lead out of it are named."""
    root = folder.resolve()
    yield from _walk(folder, folder, root, skipped, 0)


def _walk(folder: Path, top: Path, root: Path, skipped: Skipped, depth: int) -> Iterator[Path]:
    if depth > _DEEPEST:
        skipped.append((str(folder.relative_to(top)), f"folders nested deeper than {_DEEPEST} levels are not read"))
        return
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        skipped.append((str(folder.relative_to(top)), f"cannot be read: {error.strerror}"))
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        path = Path(entry.path)
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(path, top, root, skipped, depth + 1)
        elif path.suffix.lower() == ".md":
            if problem := _problem(entry, root):
                skipped.append((str(path.relative_to(top)), problem))
            else:
                yield path


def _problem(entry: "os.DirEntry[str]", root: Path) -> str:
    if entry.is_symlink():
        inside = Path(entry.path).resolve().is_relative_to(root)
        return "a symbolic link to another file of the folder" if inside else "a symbolic link out of the folder"
    if not entry.is_file():
        return "not a regular file"
    size = entry.stat().st_size
    return f"{size:,} bytes, at most {MAX_MARKDOWN_BYTES:,} are read" if size > MAX_MARKDOWN_BYTES else ""


def markdown_text(path: Path) -> str:
    """The text of a file. Raises `InvalidInput` naming it."""
    try:
        return decode_text(read_bytes(path), where=path.name)
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}") from None
