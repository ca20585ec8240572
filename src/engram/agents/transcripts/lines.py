"""JSON lines of a file that another program writes: read as a stream, from an offset, whatever state the file is in."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from engram.disk import open_plain, reading
from engram.model.errors import UnreadableData
from engram.model.lazy import dataclass
from engram.readers.json_reader import end_of_blank, parse_json_at

MAX_LINE_BYTES = 16 * 1024 * 1024
"""Bytes; a longer line is passed over, since it would have to be held in memory."""
_BUFFER = 1024 * 1024


class JsonLine(NamedTuple):
    """A record and the positions in the file where it begins and where the next one does."""

    record: dict[str, Any]
    start: int
    end: int


@dataclass(slots=True)
class LineReader:
    """The records of one file that matter, and what was wrong with the others."""

    path: Path
    matters: Callable[[bytes], bool]
    """A cheap test of a line's bytes; what fails it is not parsed."""
    position: int = 0
    """How far the file is read: the end of the last whole line."""
    size: int = 0
    """Bytes that were read."""
    _unreadable: int = 0
    _oversized: int = 0
    _garbled: int = 0

    def lines(self, start: int = 0) -> Iterator[JsonLine]:
        """The records from an offset, which is the beginning of a line. Raises `OSError` if the file cannot be read."""
        with os.fdopen(open_plain(self.path, os.O_RDONLY), "rb", buffering=_BUFFER) as file:
            file.seek(start)
            self.position = start
            while data := file.readline(MAX_LINE_BYTES):
                self.size += len(data)
                begin, whole = self.position, data.endswith(b"\n")
                if not whole and len(data) == MAX_LINE_BYTES:
                    if not self._pass_over(file, begin + len(data)):
                        return
                    continue
                records = self._records(data) if self.matters(data) else []
                if not whole and not records:
                    return
                self.position = begin + len(data)
                for record in records:
                    yield JsonLine(record, begin, self.position)

    @property
    def problems(self) -> list[str]:
        """What could not be read, each kind with its number."""
        found = (
            (self._unreadable, "is not JSON and was skipped", "are not JSON and were skipped"),
            (self._oversized, f"is longer than {MAX_LINE_BYTES >> 20} MiB and was skipped", f"are longer than {MAX_LINE_BYTES >> 20} MiB and were skipped"),
            (self._garbled, "contains invalid UTF-8", "contain invalid UTF-8"),
        )  # fmt: skip
        return [
            f"{self.path}: {number} {'line' if number == 1 else 'lines'} {one if number == 1 else many}"
            for number, one, many in found
            if number
        ]

    def _pass_over(self, file: BinaryIO, position: int) -> bool:
        """Skip the rest of an oversized line; False if the file ends before it does."""
        while data := file.readline(MAX_LINE_BYTES):
            self.size += len(data)
            position += len(data)
            if data.endswith(b"\n"):
                self.position = position
                self._oversized += 1
                return True
        return False

    def _records(self, data: bytes) -> list[dict[str, Any]]:
        """The record of a line; several if the newline between them was lost. An unfinished last line has none."""
        try:
            text = data.decode()
        except UnicodeDecodeError:
            self._garbled += 1
            text = data.decode("utf-8", "replace")
        found, place = [], end_of_blank(text, 0)
        try:
            while place < len(text):
                record, end = parse_json_at(text, place)
                place = end_of_blank(text, end)
                found.append(record)
        except UnreadableData:
            if not data.endswith(b"\n"):
                return []
            self._unreadable += 1
        return [record for record in found if isinstance(record, dict)]


def line_start(path: Path, before: int, back: int) -> int:
    """The beginning of a line up to `back` bytes before an offset; the offset itself if there is no line between."""
    first = max(0, before - back)
    if not first:
        return 0
    with reading(path) as file:
        file.seek(first)
        rest = file.read(before - first)
    newline = rest.find(b"\n")
    return first + newline + 1 if newline >= 0 else before
