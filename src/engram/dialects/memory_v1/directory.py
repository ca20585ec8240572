"""The two files of memory.v1, read together and never written over anything else."""

import re
from pathlib import Path

from engram.dialects.memory_v1.item import CURATED, LOG
from engram.dialects.memory_v1.memory_file import load
from engram.dialects.source import ImportSource, origin_of_path
from engram.disk import read_bytes
from engram.model.errors import InvalidInput, NotFound, UnknownVersion, UnreadableData
from engram.readers.frontmatter import split_frontmatter
from engram.readers.limits import decode_text, read_text

_LOOKS_LIKE = re.compile(rb"(?:\xef\xbb\xbf)?---\s*\n(?:[^\n]*\n){0,20}?schema:\s*[\"']?memory\.v")
_ENOUGH_TO_TELL = 4096


def is_memory_v1(path: Path) -> bool:
    """Whether a path looks like the files of some version of this format: a directory of them, or one of them."""
    if path.is_dir():
        return any(is_memory_v1(path / name) for name in (CURATED, LOG) if (path / name).is_file())
    if path.suffix.lower() != ".md" or not path.is_file():
        return False
    with path.open("rb") as file:
        return _LOOKS_LIKE.match(file.read(_ENOUGH_TO_TELL)) is not None


def read_directory(path: Path) -> ImportSource:
    """Read both files of a directory, or one file.

    Raises `NotFound`, `InvalidInput` and `UnknownVersion`: a file is read whole or not at all.
    """
    root = path if path.is_dir() else path.parent
    files = [file for name in (CURATED, LOG) if (file := root / name).is_file()] if path.is_dir() else [path]
    if not files:
        raise NotFound(f"{path} has neither {CURATED} nor {LOG}")
    source = ImportSource(origin=origin_of_path("import", root), whole=True)
    for file in files:
        if path.is_dir() and not file.resolve().is_relative_to(root.resolve()):
            raise InvalidInput(f"{file} is a symbolic link out of the directory; name the file itself to read it")
        text = read_text(file)
        if file.name == LOG and len(files) > 1 and split_frontmatter(text) is None:
            source.not_read.append(f"{file}: a plain log; its records are in {CURATED}")
            continue
        reading = load(text, where=str(file))
        source.skipped += reading.skipped
        for place, memory in reading.found:
            source.add(place, memory)
    return source


def refuse_overwriting(directory: Path, *, force: bool) -> None:
    """Raise `InvalidInput` where a file is in the way that may not be replaced; what is no memory.v1 file never is."""
    for file in (directory / CURATED, directory / LOG):
        if not file.exists() and not file.is_symlink():
            continue
        if not force:
            raise InvalidInput(f"{file} already exists; choose another directory, or add --force to replace it")
        try:
            load(decode_text(read_bytes(file), where=str(file)), where=str(file))
        except (UnreadableData, UnknownVersion, OSError) as error:
            raise InvalidInput(f"{error}. Not replaced; move the file elsewhere first") from None
