"""Where files quote what is purged: finding the words and taking them out, whatever state a file is in.

A file that cannot be read costs only itself: its bytes are cleaned as far as they can be, and it is reported.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from engram.store.files.confinement import reading
from engram.store.files.journal import replace_file
from engram.store.files.memories import is_memory_file
from engram.store.purged_words import BLANK, lines_of, reworded, without

CHUNK = 1 << 20


def spellings(text: str) -> list[bytes]:
    """The ways a text may stand in the store's files: as it is, as JSON or YAML quotes it, and line by line."""
    return [spelling for part in lines_of(text) for spelling in quoted(part)]


def quoted(text: str) -> list[bytes]:
    """The ways a text may stand in one line of a file."""
    found = {text, json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1], text.replace("'", "''")}
    return [spelling.encode("utf-8", "surrogatepass") for spelling in found]


class Quotations:
    """The words of one purge, as files may hold them. `unread` names the files that could not be read."""

    def __init__(self, said: Sequence[str]) -> None:
        self.said = said
        self.needles = sorted({needle for text in said for needle in spellings(text)}, key=len, reverse=True)
        self.unread: list[str] = []

    def in_bytes(self, data: bytes) -> bool:
        """Whether some bytes hold any of the words."""
        return any(needle in data for needle in self.needles)

    def in_file(self, path: Path) -> bool:
        """Whether a file holds any of the words; False, and reported, for one that cannot be read."""
        overlap = max((len(needle) for needle in self.needles), default=1)
        tail = b""
        try:
            with reading(path) as file:
                while chunk := file.read(CHUNK):
                    block = tail + chunk
                    if self.in_bytes(block):
                        return True
                    tail = block[-overlap:]
        except OSError as error:
            self.note(path, error)
        return False

    def note(self, path: Path, error: Exception) -> None:
        """Remember that a file could not be read as what it should be."""
        why = (error.strerror if isinstance(error, OSError) else "".join(str(error).splitlines()[:1])) or "damaged"
        line = (
            f"{path}: cannot be read ({why.removeprefix(str(path)).lstrip(': ')}), so nobody can tell what it holds; "
            "mend it, restore it from a backup or remove it"
        )
        if line not in self.unread:
            self.unread.append(line)

    def blanked(self, data: bytes) -> bytes:
        """Bytes that nobody can read, without the words."""
        for needle in self.needles:
            data = data.replace(needle, BLANK.encode())
        return data

    def blank(self, path: Path, problem: Exception) -> None:
        """Take the words out of a file that holds no records; the rest is somebody's, and stays.

        It is reported, unless it is a text of its own, in which the words are found as they are.
        """
        before = self._content(path)
        if before is None:
            return
        after = self.blanked(before)
        if not after.replace(BLANK.encode(), b"").strip():
            path.unlink()
            return
        if after != before:
            replace_file(path, after)
        if is_memory_file(path.name) or not _is_text(before):
            self.note(path, ValueError(self.blanked(str(problem).encode()).decode()))

    def _content(self, path: Path) -> bytes | None:
        """What a file holds; None, and reported, where it cannot be read."""
        try:
            with reading(path) as file:
                return file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            self.note(path, error)
            return None

    def reword(self, path: Path, spared: Callable[[Mapping[str, Any]], bool], *, lines: bool) -> None:
        """Take the words out of a file of JSON, one object or one on each line; those that are `spared` keep them."""
        before = self._content(path)
        if before is None:
            return
        pieces = before.splitlines(keepends=True) if lines else [before]
        after = b"".join(self._piece(path, piece, spared) for piece in pieces)
        if after != before:
            replace_file(path, after)

    def _piece(self, path: Path, piece: bytes, spared: Callable[[Mapping[str, Any]], bool]) -> bytes:
        if not piece.strip():
            return piece
        try:
            fields = json.loads(piece)
            if not isinstance(fields, dict):
                raise ValueError("no JSON object")
        except (ValueError, RecursionError) as error:
            self.note(path, error)
            return self.blanked(piece)
        if not self.in_bytes(piece) or spared(fields):
            return piece
        changed = reworded(fields, lambda text: without(text, self.said))
        return piece if changed == fields else _dumped(changed) + b"\n"


def _is_text(data: bytes) -> bool:
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False


def _dumped(fields: Any) -> bytes:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def files_below(folder: Path, report: Callable[[Path, Exception], None]) -> Iterator[Path]:
    """Every plain file below a folder, whatever folders it holds; links are left alone."""

    def failed(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            report(Path(str(error.filename)), error)

    for place, folders, names in os.walk(folder, onerror=failed):
        folders.sort()
        for name in sorted(names):
            path = Path(place, name)
            if path.is_file() and not path.is_symlink():
                yield path
