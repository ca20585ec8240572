"""Changing one table of a TOML file, and nothing else: every other byte stays as it is."""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from engram.model.errors import InvalidInput

_HEADER = re.compile(r"[ \t]*\[")


def parse(text: str) -> dict[str, Any]:
    """The data of a text. Raises `InvalidInput`, naming the line, for one that is not TOML."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"it is not valid TOML: {error}") from None


def with_table(text: str, path: Sequence[str], data: Mapping[str, Any]) -> str:
    """The text with the table at a path; it takes the place of the one that is there, or comes last."""
    newline = "\r\n" if "\r\n" in text else "\n"
    written = newline.join(_lines(path, data)) + newline
    lines = text.splitlines(keepends=True)
    place = _place(lines, path)
    if place is not None:
        kept = "".join(lines[place.stop :])
        return "".join(lines[: place.start]) + written + (newline if kept.strip() else "") + kept
    before = text if not text or text.endswith("\n") else text + newline
    return before + (newline if before.strip() else "") + written


def without_table(text: str, path: Sequence[str]) -> str:
    """The text without the table at a path and the tables below it; unchanged if it is not there."""
    lines = text.splitlines(keepends=True)
    place = _place(lines, path)
    if place is None:
        return text
    before, after = lines[: place.start], lines[place.stop :]
    if before and not before[-1].strip():
        before.pop()
    return "".join(before + after)


def _lines(path: Sequence[str], data: Mapping[str, Any]) -> list[str]:
    plain = {key: value for key, value in data.items() if not isinstance(value, dict)}
    lines = [f"[{'.'.join(map(_key, path))}]", *(f"{_key(key)} = {_value(value)}" for key, value in plain.items())]
    for key, value in data.items():
        if isinstance(value, dict):
            lines += ["", *_lines((*path, key), value)]
    return lines


def _place(lines: Sequence[str], path: Sequence[str]) -> range | None:
    """The lines of a table and of the tables below it."""
    headers = [(number, _header(line)) for number, line in enumerate(lines) if _HEADER.match(line)]
    own = [number for number, header in headers if header[: len(path)] == list(path)]
    if not own:
        return None
    later = [number for number, header in headers if number > own[0] and header[: len(path)] != list(path)]
    stop = later[0] if later else len(lines)
    while stop > own[0] and (not lines[stop - 1].strip() or (later and lines[stop - 1].lstrip().startswith("#"))):
        stop -= 1  # an empty line or a comment before the next table belongs to that one
    blank = stop < len(lines) and not lines[stop].strip()
    return range(own[0], stop + 1 if blank else stop)


def _header(line: str) -> list[str]:
    """The path that a header names; [] for what is none."""
    try:
        found: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return []
    path = []
    while isinstance(found, dict) and len(found) == 1:
        ((key, found),) = found.items()
        path.append(key)
    return path


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _value(key)


def _value(value: Any) -> str:
    """A text, a number, a truth value or a list of these, as TOML writes them; JSON's strings are TOML's."""
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False)
