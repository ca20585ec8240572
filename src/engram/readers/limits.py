"""What every parser here checks: the size of a file, its encoding, and the depth, numbers and characters of its data."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from engram.model.errors import UnreadableData
from engram.model.lazy import lazy_pattern

MAX_DEPTH = 100
"""Levels of lists and mappings."""
MAX_DIGITS = 4_000
"""Digits of an integer. Python itself converts no integer of more than 4,300."""
MAX_SETTINGS_BYTES = 1024 * 1024
"""Size of a settings file."""
MAX_IMPORT_BYTES = 256 * 1024 * 1024
"""Size of a file to import; 30,000 memories of PLUR are 60 MB in one file."""

Characters = Literal["checked", "any", "repaired"]
"""NUL and halves of surrogate pairs are refused, kept, or (the halves) replaced with U+FFFD."""

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
    """The text of a file. Raises `UnreadableData` for one that is too long or is not UTF-8, and `OSError`."""
    return decode_text(read_limited(path, longest), where=str(path))


def decode_text(data: bytes, *, where: str = "", line: int = 1) -> str:
    """UTF-8 without a byte order mark. Raises `UnreadableData` with the line of the first wrong byte."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        wrong = f"not UTF-8 (byte 0x{data[error.start]:02x}); save the file as UTF-8"
        raise UnreadableData(wrong, where=where, line=line + data.count(b"\n", 0, error.start)) from None


def check_depth(tree: Any, *, where: str = "") -> None:
    """Raise `UnreadableData` for data with more than `MAX_DEPTH` levels: code that walks it would run out of stack."""
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
    """Raise `UnreadableData` for an integer that Python does not print, such as a long hexadecimal one."""
    for values in _levels(tree):
        for value in values:
            if isinstance(value, int) and not -_LARGEST_INTEGER < value < _LARGEST_INTEGER:
                raise UnreadableData(f"contains a number of more than {MAX_DIGITS:,} digits", where=where)


def repair_characters(tree: Any) -> Any:
    """The data with U+FFFD for every half of a surrogate pair, which JavaScript writes where it cut a text inside a character."""
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
