"""Reads the records of transcripts that other programs write.

JSON lines are streamed from an offset; helpers read the parts of a record and remove what an agent adds to a person's
turns.
"""

import os
import re
from collections.abc import Callable, Iterator
from datetime import MAXYEAR, MINYEAR, UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from engram.disk import open_plain, reading
from engram.model.errors import UnreadableData
from engram.model.lazy import dataclass
from engram.readers.data import end_of_blank, parse_json_at

MAX_LINE_BYTES = 16 * 1024 * 1024
"""Maximum bytes of a line; a longer one is skipped, since it would have to be loaded into memory."""
_BUFFER = 1024 * 1024


class JsonLine(NamedTuple):
    """A record, its start in the file, and the start of the next one."""

    record: dict[str, Any]
    start: int
    end: int


@dataclass(slots=True)
class LineReader:
    """Reads the relevant records of one file, and collects problems with the others."""

    path: Path
    matters: Callable[[bytes], bool]
    """A cheap test of a line's bytes; lines that fail it are not parsed."""
    position: int = 0
    """How far the file has been read: the end of the last complete line."""
    size: int = 0
    """Bytes read."""
    _unreadable: int = 0
    _oversized: int = 0
    _garbled: int = 0

    def lines(self, start: int = 0) -> Iterator[JsonLine]:
        """The records from an offset, which must be the beginning of a line.

        Raises `OSError` if the file cannot be read.
        """
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
        """The kinds of lines that could not be read, with their counts."""
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
        """Skip the rest of an oversized line; False if the file ends first."""
        while data := file.readline(MAX_LINE_BYTES):
            self.size += len(data)
            position += len(data)
            if data.endswith(b"\n"):
                self.position = position
                self._oversized += 1
                return True
        return False

    def _records(self, data: bytes) -> list[dict[str, Any]]:
        """The record of a line; several if the newline between them was lost; none for an unfinished last line."""
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
    """The start of a line at most `back` bytes before an offset; the offset itself if there is none."""
    first = max(0, before - back)
    if not first:
        return 0
    with reading(path) as file:
        file.seek(first)
        rest = file.read(before - first)
    newline = rest.find(b"\n")
    return first + newline + 1 if newline >= 0 else before


_TEXTS = ("text", "input_text", "output_text")
_LONGEST_KEY = 200
_LONGEST_NAME, _LONGEST_PATH = 255, 4095
"""Bytes that file systems allow for a name, and for a path."""


def text_of(content: Any) -> str:
    """The text of a message: its text blocks, one below the other, without other blocks."""
    if isinstance(content, str):
        return content
    return "\n".join(_texts(content))


def results_of(content: Any) -> Iterator[str]:
    """The results of tools in a message, each as one text, whether it is a text or a list of blocks."""
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == "tool_result":
            yield text_of(block.get("content"))


def moment(given: Any) -> datetime | None:
    """Parse a time from text (ISO 8601) or milliseconds.

    None if it is neither, or so close to the calendar's limits that some time zone has no date for it.
    """
    try:
        if isinstance(given, str):
            found = datetime.fromisoformat(given)
            found = found if found.tzinfo else found.replace(tzinfo=UTC)
        elif isinstance(given, int | float) and not isinstance(given, bool):
            found = datetime.fromtimestamp(given / 1000, UTC)
        else:
            return None
    except (ValueError, OverflowError, OSError):
        return None
    return found if MINYEAR < found.year < MAXYEAR else None


def milliseconds(given: Any) -> int:
    """A time in milliseconds since 1970; 0 if it is not a time."""
    found = moment(given)
    return round(found.timestamp() * 1000) if found is not None else 0


def key_of(given: Any, otherwise: str) -> str:
    """The id of a record, or a substitute if it has none that can be stored."""
    usable = isinstance(given, str) and 0 < len(given) <= _LONGEST_KEY and given.isprintable()
    return given if usable else otherwise


def folder_of(given: Any) -> str:
    """The path of a folder; "" if no file system could have it."""
    if not isinstance(given, str) or "\0" in given:
        return ""
    name = given.encode("utf-8", "replace")
    longest = max(map(len, name.split(b"/")))
    return given if name.decode() == given and longest <= _LONGEST_NAME and len(name) <= _LONGEST_PATH else ""


def _texts(content: Any) -> Iterator[str]:
    for block in content if isinstance(content, list) else ():
        if isinstance(block, str):
            yield block
        elif isinstance(block, dict) and block.get("type") in _TEXTS and isinstance(block.get("text"), str):
            yield block["text"]


_DATA = Path(__file__).parent / "data" / "boilerplate.txt"
_COMMENT = ";;"


@dataclass(frozen=True, slots=True)
class _Boilerplate:
    drop: tuple[str, ...]
    remove: re.Pattern[str]
    keep: tuple[str, ...]
    wrapper: tuple[str, ...]
    after: tuple[str, ...]


def typed_text(content: str) -> str:
    """The part of a turn that the person typed; "" if there is none."""
    known = _boilerplate()
    text = content.strip()
    if "<" in text:
        if kept := [inner for name in known.keep for inner in _inside(text, name)]:
            return "\n".join(filter(None, kept))
        if any(f"<{name}>" in text for name in known.wrapper):
            return ""
        text = known.remove.sub("", text).strip()
    for marker in known.after:
        text = text.partition(marker)[2].strip() if marker in text else text
    return "" if text.startswith(known.drop) else text


def _inside(text: str, name: str) -> Iterator[str]:
    """The content of every element of a name, in one pass."""
    opening, closing = f"<{name}>", f"</{name}>"
    begin = text.find(opening)
    while begin >= 0 and (end := text.find(closing, begin)) >= 0:
        yield text[begin + len(opening) : end].strip()
        begin = text.find(opening, end)


def read_sections(file: Path) -> dict[str, list[str]]:
    """The lines of a data file by section; a line that starts with `;;` is a comment."""
    found: dict[str, list[str]] = {}
    section: list[str] = []
    for line in file.read_text("utf-8").splitlines():
        if line.startswith("[") and line.endswith("]") and line[1:-1].isalpha():
            section = found.setdefault(line[1:-1], [])
        elif line.strip() and not line.startswith(_COMMENT):
            section.append(line)
    return found


@lru_cache(maxsize=1)
def _boilerplate() -> _Boilerplate:
    listed = read_sections(_DATA)
    return _Boilerplate(
        tuple(listed["drop"]),
        re.compile(rf"<({'|'.join(listed['remove'])})\b[^<>]*>.*?(?:</\1>|\Z)", re.DOTALL),
        tuple(listed["keep"]),
        tuple(listed["wrapper"]),
        tuple(listed["after"]),
    )
