"""Reading documents: what is text, in which encoding, and of what kind.

An encoding is taken from the file's own mark or is UTF-8; it is never guessed, because a wrong guess would make every
quote differ from its source.
"""

import codecs
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from engram.capture.longinput.ignoring import Ignored
from engram.capture.longinput.kinds import KINDS, look_of
from engram.model.errors import InvalidInput

__all__ = ["LARGEST", "Document", "Report", "documents_in", "look_of", "read_document"]

LARGEST = 64 * 1024 * 1024
"""Bytes: a longer file is an archive or a dump, and is better split by who knows its parts."""

Report = Callable[[str, int, int], None]
"""Told which file was looked at, how many were, and 0 because the total is not known."""

LOOKED_AT = 8_192
# Text has a control character here and there (form feeds, escapes of a terminal's log); data is full of them.
MOST_CONTROLS = 0.05

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROLS = bytes(code for code in (*range(32), 127) if code not in b"\t\n\r\f\b\x1b")
# Folders that hold what programs made or fetched; hidden ones (.git, .venv) are left out anyway.
_FOREIGN_FOLDERS = frozenset({"node_modules", "__pycache__", "site-packages", "CVS"})


@dataclass(frozen=True, slots=True)
class Document:
    """A text to be split: its title, its characters exactly as decoded (line ends kept), its kind.

    The kind is "markdown", "text", "code" or "diff".
    """

    title: str
    text: str
    kind: str


def read_document(path: Path, *, kind: str = "") -> Document:
    """The document in a file; its kind by name and look unless given.

    A file that is empty, binary, too large, not UTF-8 or not readable is refused with what to do about it.
    """
    if kind and kind not in KINDS:
        raise InvalidInput(f"There is no kind of document called {kind!r}; known are {', '.join(KINDS)}")
    text = _decoded(_bytes_of(path), path)
    if not text.strip():
        raise InvalidInput(f"{path} is empty: there is nothing to remember in it")
    return Document(path.name, text, kind or look_of(text, path.name))


def documents_in(folder: Path, *, progress: Report | None = None) -> Iterator[Path]:
    """The text files below a folder, in order of their paths.

    Left out are hidden files and folders, what `.gitignore` files below the folder name, installed packages, links (a
    linked folder may lead back here), binary and empty files.
    """
    if not folder.is_dir():
        raise InvalidInput(f"{folder} is not a folder. Give the path of a folder, or of one file")
    yield from _walk(folder, Ignored(), progress or (lambda *_: None), [0])


def _walk(folder: Path, ignored: Ignored, progress: Report, looked: list[int]) -> Iterator[Path]:
    ignored = ignored.within(folder)
    for entry in _entries(folder):
        is_folder = entry.is_dir(follow_symlinks=False)
        if entry.name.startswith(".") or entry.is_symlink() or ignored.holds(Path(entry.path), is_folder):
            continue
        if is_folder:
            if entry.name not in _FOREIGN_FOLDERS:
                yield from _walk(Path(entry.path), ignored, progress, looked)
        elif entry.is_file(follow_symlinks=False):
            looked[0] += 1
            progress(entry.name, looked[0], 0)
            if _looks_like_text(Path(entry.path)):
                yield Path(entry.path)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """What a folder holds, by name; nothing where it may not be read."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def _looks_like_text(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            start = file.read(LOOKED_AT)
    except OSError:
        return False
    return bool(start.strip()) and not _is_binary(start)


def _bytes_of(path: Path) -> bytes:
    try:
        found = path.stat()
        if stat.S_ISDIR(found.st_mode):
            raise InvalidInput(f"{path} is a folder. Give one file, or ingest the folder as a whole")
        if not stat.S_ISREG(found.st_mode):
            raise InvalidInput(f"{path} is not a file that can be read to its end. Copy what it gives into a file")
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except FileNotFoundError as error:
        raise InvalidInput(f"There is no file {path}. Check the path") from error
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}. Check its permissions") from error
    if len(content) > LARGEST:
        raise InvalidInput(
            f"{path} is larger than {LARGEST // 1024**2} MB. Split it into parts (split -C 32m) and ingest those"
        )
    return content


def _decoded(content: bytes, path: Path) -> str:
    if _is_binary(content[:LOOKED_AT]) or (_encoding(content) == "utf-8" and b"\0" in content):
        raise InvalidInput(f"{path} is not a text: it holds binary data. Export it as text or Markdown first")
    encoding = _encoding(content)
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{path} is not valid {encoding.removesuffix('-sig').upper()} (byte {error.start}). Convert it first, for "
            "example: iconv -f WINDOWS-1252 -t UTF-8 OLD > NEW"
        ) from error


def _encoding(content: bytes) -> str:
    return next((name for mark, name in _MARKS if content.startswith(mark)), "utf-8")


def _is_binary(start: bytes) -> bool:
    """Whether the beginning of a file looks like data: NULs, or many control characters."""
    if _encoding(start) not in ("utf-8", "utf-8-sig"):
        return False
    controls = len(start) - len(start.translate(None, _CONTROLS))
    return b"\0" in start or controls > MOST_CONTROLS * len(start)
