"""Changes one table of a TOML file; every other byte stays as it is."""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import date, time
from itertools import islice
from typing import Any

from engram.model.errors import InvalidInput, UnreadableData
from engram.readers.data import parse_toml

_HEADER = re.compile(r"[ \t]*\[")
MAX_HASHES = 50
"""How many `#` in a value may begin a comment; each is tried."""


def parse(text: str) -> dict[str, Any]:
    """Parse a text. Raises `InvalidInput`, naming the line, if it is not TOML."""
    try:
        return parse_toml(text)
    except UnreadableData as error:
        where = f", line {error.line}" if error.line is not None else ""
        raise InvalidInput(f"it is not valid TOML{where}: {error.reason}") from None


def with_table(text: str, path: Sequence[str], data: Mapping[str, Any]) -> str:
    """The text with a new table appended."""
    newline = _newline(text)
    written = newline.join([f"[{'.'.join(map(_key, path))}]", *(_assignment(*item) for item in data.items())]) + newline
    before = text if not text or text.endswith("\n") else text + newline
    return before + (newline if before.strip() else "") + written


def with_value(text: str, path: Sequence[str], value: Any) -> str:
    """The text with a key of a table set in place, or added after the table's last key; comments stay.

    Raises `InvalidInput` for a table without its own header.
    """
    *table, key = path
    lines = text.splitlines(keepends=True)
    header = next((number for number, found in _headers(lines) if found == table), None)
    if header is None:
        raise InvalidInput(f"`{'.'.join(table)}` has no header of its own")
    stop = next((number for number, _ in _headers(lines) if number > header), len(lines))
    statements = _statements(lines, header + 1, stop)
    if key in statements:
        start, end = statements[key]
        return "".join([*lines[:start], _assignment(key, value), _remark("".join(lines[start:end])), *lines[end:]])
    last = max((end for _, end in statements.values()), default=header + 1)
    newline = _newline(text)
    line_end = "" if lines[last - 1].endswith("\n") else newline
    return "".join([*lines[:last], line_end, _assignment(key, value), newline, *lines[last:]])


def has_header(text: str, path: Sequence[str]) -> bool:
    """Whether a table has its own header."""
    return any(found == list(path) for _, found in _headers(text.splitlines(keepends=True)))


def with_table_of(text: str, path: Sequence[str], other: str) -> str:
    """The text with its table at a path replaced by another text's, comments included.

    Raises `InvalidInput` if one of them has none.
    """
    lines, others = text.splitlines(keepends=True), other.splitlines(keepends=True)
    place, wanted = _place(lines, path), _place(others, path)
    if place is None or wanted is None:
        raise InvalidInput(f"`{'.'.join(path)}` has no header of its own")
    table = "".join(others[wanted.start : wanted.stop])
    end = "" if table.endswith("\n") or place.stop == len(lines) else _newline(text)
    return "".join([*lines[: place.start], table, end, *lines[place.stop :]])


def without_table(text: str, path: Sequence[str]) -> str:
    """The text without the table at a path and the tables below it; unchanged if it is missing."""
    lines = text.splitlines(keepends=True)
    place = _place(lines, path)
    if place is None:
        return text
    before, after = lines[: place.start], lines[place.stop :]
    if before and not before[-1].strip():
        before.pop()
    return "".join(before + after)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _headers(lines: Sequence[str]) -> list[tuple[int, list[str]]]:
    """The header lines, and the path that each names."""
    return [(number, _header(line)) for number, line in enumerate(lines) if _HEADER.match(line)]


def _statements(lines: Sequence[str], start: int, stop: int) -> dict[str, tuple[int, int]]:
    """The keys of a table, and where each statement begins and ends; a value may span several lines."""
    found: dict[str, tuple[int, int]] = {}
    end = start
    while end < stop:
        end += 1
        if _is_toml(statement := "".join(lines[start:end])):
            found |= dict.fromkeys(parse(statement), (start, end))
            start = end
    return found


def _is_toml(text: str) -> bool:
    try:
        parse_toml(text)
    except UnreadableData:
        return False
    return True


def _remark(statement: str) -> str:
    """The comment after a key and its value, with the blanks before it and the line end."""
    hashes = islice(re.finditer(r"(?<![ \t])[ \t]*+#", statement), MAX_HASHES)
    remarks = (found.start() for found in hashes if _is_toml(statement[: found.start()]))
    return statement[next(remarks, len(statement.rstrip("\r\n"))) :]


def _place(lines: Sequence[str], path: Sequence[str]) -> range | None:
    """The lines of a table and of the tables below it."""
    headers = _headers(lines)
    own = [number for number, header in headers if header[: len(path)] == list(path)]
    if not own:
        return None
    later = [number for number, header in headers if number > own[0] and header[: len(path)] != list(path)]
    stop = later[0] if later else len(lines)
    while not lines[stop - 1].strip() or lines[stop - 1].lstrip().startswith("#"):
        stop -= 1  # An empty line or a comment before the next table belongs to that table.
    while not later and stop < len(lines) and lines[stop].strip():
        stop += 1  # If no table follows, a comment without an empty line before it belongs to this table.
    blank = stop < len(lines) and not lines[stop].strip()
    return range(own[0], stop + 1 if blank else stop)


def _header(line: str) -> list[str]:
    """The path in a header line; [] if the line is not a header."""
    try:
        found: Any = parse_toml(line)
    except UnreadableData:
        return []
    path = []
    while isinstance(found, dict) and len(found) == 1:
        ((key, found),) = found.items()
        path.append(key)
    return path


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _value(key)


def _assignment(key: str, value: Any) -> str:
    return f"{_key(key)} = {_value(value)}"


def _value(value: Any) -> str:
    """A value as TOML: text, number, boolean, date, or a list or table of these. JSON strings are valid TOML."""
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(_assignment(*item) for item in value.items())} }}" if value else "{}"
    if isinstance(value, date | time):
        return value.isoformat()
    return json.dumps(value, ensure_ascii=False)
