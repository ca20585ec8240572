"""Reads external JSON, TOML and frontmatter into plain data, within limits of size, depth, numbers and characters."""

import json
import re
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from typing import Any, Literal, cast

from engram.model.errors import UnreadableData
from engram.model.lazy import dataclass, lazy_pattern

MAX_DEPTH = 100
"""Maximum levels of lists and mappings."""
MAX_DIGITS = 4_000
"""Maximum digits of an integer. Python itself converts no integer of more than 4,300."""
MAX_SETTINGS_BYTES = 1024 * 1024
"""Maximum size of a settings file."""
MAX_IMPORT_BYTES = 256 * 1024 * 1024
"""Maximum size of a file to import; 30,000 memories of PLUR are 60 MB in one file."""

Characters = Literal["checked", "any", "repaired"]
"""How to treat NUL and halves of surrogate pairs: refuse them, keep them, or replace the halves with U+FFFD."""

_HALF_OR_NUL = lazy_pattern("[\x00\ud800-\udfff]")
_LARGEST_INTEGER = 10**MAX_DIGITS
_HALF = lazy_pattern("[\ud800-\udfff]")


def read_limited(path: Path, longest: int) -> bytes:
    """The content of a file of at most `longest` bytes. Raises `UnreadableData` for a longer one, and `OSError`."""
    with path.open("rb") as file:
        data = file.read(longest + 1)
    if len(data) > longest:
        raise UnreadableData(f"has more than {longest:,} bytes, which is the limit", where=str(path))
    return data


def read_text(path: Path, longest: int = MAX_IMPORT_BYTES) -> str:
    """The text of a file. Raises `UnreadableData` for one that is too long or not UTF-8, and `OSError`."""
    return decode_text(read_limited(path, longest), where=str(path))


def decode_text(data: bytes, *, where: str = "", line: int = 1) -> str:
    """UTF-8 without a byte order mark. Raises `UnreadableData` with the line of the first wrong byte."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        wrong = f"not UTF-8 (byte 0x{data[error.start]:02x}); save the file as UTF-8"
        raise UnreadableData(wrong, where=where, line=line + data.count(b"\n", 0, error.start)) from None


def check_depth(tree: Any, *, where: str = "") -> None:
    """Raise `UnreadableData` for data with more than `MAX_DEPTH` levels, because code that walks it would exhaust the stack."""
    for depth, values in enumerate(_levels(tree)):
        if depth >= MAX_DEPTH and any(isinstance(value, dict | list) for value in values):
            raise UnreadableData(f"nested deeper than {MAX_DEPTH} levels", where=where)


def check_characters(tree: Any, *, where: str = "") -> None:
    """Raise `UnreadableData` for text that no path and no file can contain."""
    for values in _levels(tree):
        for value in values:
            if isinstance(value, str) and (found := _HALF_OR_NUL.search(value)):
                raise UnreadableData(f"contains the character U+{ord(found[0]):04X}; remove it", where=where)


def check_numbers(tree: Any, *, where: str = "") -> None:
    """Raise `UnreadableData` for an integer that Python cannot print, such as a long hexadecimal one."""
    for values in _levels(tree):
        for value in values:
            if isinstance(value, int) and not -_LARGEST_INTEGER < value < _LARGEST_INTEGER:
                raise UnreadableData(f"contains a number of more than {MAX_DIGITS:,} digits", where=where)


def repair_characters(tree: Any) -> Any:
    """The data with U+FFFD for every half of a surrogate pair, which JavaScript writes if it cuts a text inside a character."""
    if isinstance(tree, str):
        return _HALF.sub("\ufffd", tree)
    if isinstance(tree, list):
        return [repair_characters(item) for item in tree]
    if isinstance(tree, dict):
        return {repair_characters(key): repair_characters(item) for key, item in tree.items()}
    return tree


def _levels(tree: Any) -> Iterator[list[Any]]:
    """The values at each depth, keys included, from the outermost on."""
    level = [tree]
    while level:
        yield level
        nested = [part for part in level if isinstance(part, dict | list)]
        level = [item for part in nested for item in (part if isinstance(part, list) else (*part, *part.values()))]


_UNUSUAL_ESCAPE = lazy_pattern(r"\\u(?:[dD][89a-fA-F]|0000)")
"""An escape that may stand for NUL or half a surrogate pair."""
_NUMBER = lazy_pattern(r"[0-9]+")
_BLANK = lazy_pattern("[ \t\r\n\ufeff]*")


class NotJson(UnreadableData):
    """A text with other syntax than JSON's; other refusals are about the values of a JSON text."""


def parse_json(
    source: str | bytes,
    *,
    where: str = "",
    line: int = 1,
    longest: int = MAX_IMPORT_BYTES,
    characters: Characters = "checked",
    unique_keys: bool = False,
) -> Any:
    """The value of a JSON text. Raises `UnreadableData`.

    - `where` and `line` name the file, and the line in it on which the text begins.
    - `characters` decides about text that no file can contain.
    - `unique_keys` refuses an object that has a key twice, because the first value would be lost.
    """
    if len(source) > longest:
        raise UnreadableData(f"has {len(source):,} characters, more than {longest:,}", where=where)
    text = source if isinstance(source, str) else decode_text(source, where=where, line=line)
    value, end = _decode(text, end_of_blank(text, 0), _UNIQUE if unique_keys else _ANY, where, line)
    if end_of_blank(text, end) != len(text):
        raise NotJson("not JSON: something follows the value", where=where, line=line + text.count("\n", 0, end))
    return _with_characters(value, text, characters, where)


def parse_json_object(source: str | bytes, *, where: str = "", characters: Characters = "checked") -> dict[str, Any]:
    """The JSON object of a text. Raises `UnreadableData` for any other value too."""
    found = parse_json(source, where=where, characters=characters)
    if not isinstance(found, dict):
        raise UnreadableData("contains no JSON object", where=where)
    return found


def parse_json_at(text: str, start: int) -> tuple[Any, int]:
    """The value that begins at a position in a text, and its end; its characters are not checked.

    Raises `UnreadableData`.
    """
    return _decode(text, start, _ANY, "", 1)


def end_of_blank(text: str, start: int) -> int:
    """The end of the blanks that begin at a position."""
    return cast("re.Match[str]", _BLANK.match(text, start)).end()


class LongNumber(ValueError):
    """An integer with more digits than allowed."""

    def __init__(self, digits: int) -> None:
        super().__init__(f"contains a number of {digits:,} digits; at most {MAX_DIGITS:,} are read")


def parse_integer(digits: str) -> int:
    """An integer. Raises `LongNumber`."""
    if len(digits) > MAX_DIGITS:
        raise LongNumber(len(digits))
    return int(digits)


def parse_decimal(digits: str) -> float:
    """A decimal number. Raises `ValueError` if it is too large."""
    number = float(digits)
    return number if isfinite(number) else refuse_constant(digits)


def refuse_constant(name: str) -> Any:
    """Raise `ValueError` for NaN and infinite numbers, which Python's parser accepts but JSON does not have."""
    raise ValueError(f"JSON has no number {name:.40}; put it in quotes to store it as text")


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {twice!r:.60} appears twice in one object")
    return found


_NUMBERS: dict[str, Any] = {"parse_int": parse_integer, "parse_float": parse_decimal, "parse_constant": refuse_constant}
_ANY = json.JSONDecoder(**_NUMBERS)
_UNIQUE = json.JSONDecoder(**_NUMBERS, object_pairs_hook=_unique_pairs)


def _decode(text: str, start: int, decoder: json.JSONDecoder, where: str, line: int) -> tuple[Any, int]:
    try:
        value, end = decoder.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise NotJson(f"not JSON: {error.msg}", where=where, line=line + error.lineno - 1) from None
    except LongNumber as error:
        place = next((found.start() for found in _NUMBER.finditer(text, start) if len(found[0]) > MAX_DIGITS), start)
        raise UnreadableData(str(error), where=where, line=line + text.count("\n", 0, place)) from None
    except RecursionError:
        raise UnreadableData(f"nested deeper than {MAX_DEPTH} levels", where=where) from None
    except ValueError as error:
        raise UnreadableData(str(error), where=where) from None
    if text.count("[", start, end) + text.count("{", start, end) > MAX_DEPTH:
        check_depth(value, where=where)
    return value, end


def _with_characters(value: Any, text: str, characters: Characters, where: str) -> Any:
    if characters == "any" or not (_UNUSUAL_ESCAPE.search(text) or _HALF_OR_NUL.search(text)):
        return value
    if characters == "repaired":
        return repair_characters(value)
    check_characters(value, where=where)
    return value


_PLACE = lazy_pattern(r" \(at (?:line (\d+), column \d+|end of document)\)$")
_LONG_KEY = lazy_pattern(
    r"""(?:(?<![\w-])[\w-]++|"[^"\n]*+"|'[^'\n]*+')(?:[ \t]*+\.[ \t]*+(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')){"""
    + f"{MAX_DEPTH},}}"
)
"""A dotted key with more parts than the allowed depth; `tomllib` takes quadratic time for one."""


def parse_toml(
    source: str | bytes,
    *,
    where: str = "",
    longest: int = MAX_SETTINGS_BYTES,
    characters: Literal["checked", "any"] = "checked",
) -> dict[str, Any]:
    """The data of a TOML text. Raises `UnreadableData`, also for NUL if `characters` says so."""
    import tomllib

    if len(source) > longest:
        raise UnreadableData(f"has {len(source):,} characters, more than {longest:,}", where=where)
    text = source if isinstance(source, str) else decode_text(source, where=where)
    if found := _LONG_KEY.search(text):
        raise UnreadableData(
            f"a key has more than {MAX_DEPTH} parts", where=where, line=text.count("\n", 0, found.start()) + 1
        )
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        line = int(place[1]) if place and place[1] else text.rstrip().count("\n") + 1
        raise UnreadableData(f"not TOML: {_PLACE.sub('', str(error))}", where=where, line=line) from None
    except RecursionError:
        raise UnreadableData(f"nested deeper than {MAX_DEPTH} levels", where=where) from None
    except ValueError as error:
        raise UnreadableData(f"not TOML that can be read: {error}", where=where) from None
    check_depth(data, where=where)
    check_numbers(data, where=where)
    if characters == "checked":
        check_characters(data, where=where)
    return data


_BLOCK = lazy_pattern(r"\A---[ \t]*\r?\n(?P<head>(?:.*\n)*?)---[ \t]*(?:\r?\n|\Z)")


@dataclass(frozen=True, slots=True)
class FrontmatterFile:
    """A Markdown file in its two parts."""

    head: str
    """The lines between the markers. They begin on line 2 of the file."""
    body: str


def split_frontmatter(text: str) -> FrontmatterFile | None:
    """The two parts of a file; None if it does not begin with a closed block."""
    found = _BLOCK.match(text)
    return FrontmatterFile(found["head"], text[found.end() :]) if found else None
