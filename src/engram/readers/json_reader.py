"""JSON that others wrote → plain data."""

import json
import re
from math import isfinite
from typing import Any, cast

from engram.model.errors import UnreadableData
from engram.model.lazy import lazy_pattern
from engram.readers.limits import (
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_IMPORT_BYTES,
    Characters,
    check_characters,
    check_depth,
    decode_text,
    repair_characters,
)

_UNUSUAL_ESCAPE = lazy_pattern(r"\\u(?:[dD][89a-fA-F]|0000)")
"""An escape that may stand for NUL or half a surrogate pair."""
_UNUSUAL = lazy_pattern("[\x00\ud800-\udfff]")
_NUMBER = lazy_pattern(r"[0-9]+")
_BLANK = lazy_pattern("[ \t\r\n\ufeff]*")


class NotJson(UnreadableData):
    """A text with another syntax than JSON's; other refusals are about the values of a JSON text."""


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
    - `characters` says what to do about text that no file can contain.
    - `unique_keys` refuses an object that has a key twice, of which the first value would be lost.
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
    """The value that begins at a place in a text, and where it ends; its characters are not checked. Raises `UnreadableData`."""
    return _decode(text, start, _ANY, "", 1)


def end_of_blank(text: str, start: int) -> int:
    """Where the blanks that begin at a place end."""
    return cast("re.Match[str]", _BLANK.match(text, start)).end()


class LongNumber(ValueError):
    """An integer with more digits than are read."""

    def __init__(self, digits: int) -> None:
        super().__init__(f"contains a number of {digits:,} digits; at most {MAX_DIGITS:,} are read")


def parse_integer(digits: str) -> int:
    """An integer. Raises `LongNumber`."""
    if len(digits) > MAX_DIGITS:
        raise LongNumber(len(digits))
    return int(digits)


def parse_decimal(digits: str) -> float:
    """A decimal number. Raises `ValueError` where it is too large."""
    number = float(digits)
    return number if isfinite(number) else refuse_constant(digits)


def refuse_constant(name: str) -> Any:
    """Raise `ValueError` for NaN and infinite numbers, which Python's parser accepts and JSON does not have."""
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
    if characters == "any" or not (_UNUSUAL_ESCAPE.search(text) or _UNUSUAL.search(text)):
        return value
    if characters == "repaired":
        return repair_characters(value)
    check_characters(value, where=where)
    return value
