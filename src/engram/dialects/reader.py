"""YAML text → plain data. ryaml does the work; whatever it reads otherwise than Engram would, goes the careful way."""

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from engram.model.errors import StoreCorrupt

MAX_CHARACTERS = 8 * 1024 * 1024
"""The longest file that is read; a statement of 5 MB fits."""

_DEEP = 100
"""Open brackets from which the careful reader takes over: the fast one takes minutes for megabytes of `[`."""
_BRACKET = re.compile(r"[\[\]{}]")
_DASH_RUN = re.compile(r"(?:[-?:][ \t]+){64}")
_TAG = re.compile(r"(?:^|[\s\[{,:])!\S")
_MERGE = re.compile(r"<<\s*:")
_ALIAS = re.compile(r"[\s\[{,:]\*[^\s\[\]{},*]")
_ANCHOR = re.compile(r"(?:^|[\s\[{,:])&[^\s\[\]{},]")
_ROUNDED = 2.0**127
"""From here on a float may be an integer that ryaml rounded."""
_OLD_BREAKS = "\x85\u2028\u2029"
"""Line breaks to YAML 1.1 readers, plain characters to YAML 1.2."""


def decode(content: bytes, *, where: str = "") -> str:
    """The text of a file, which must be UTF-8. Raises `StoreCorrupt` with the line of the first wrong byte."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise StoreCorrupt(
            f"{where or 'YAML'}:{line}: not UTF-8 (byte 0x{content[error.start]:02x}); save the file as UTF-8"
        ) from None


def read_yaml(text: str, *, where: str = "", longest: int = MAX_CHARACTERS) -> Any:
    """The one document in `text` as plain data with text keys, None if it is empty. Raises `StoreCorrupt`."""
    if len(text) > longest:
        raise StoreCorrupt(
            f"{where or 'YAML'}: {len(text):,} characters, Engram reads at most {longest:,}; split the file"
        )
    if any(mark in text for mark in _OLD_BREAKS):
        return _with_breaks_kept(text, where)
    return _read(text, where)


def _read(text: str, where: str) -> Any:
    fast = _fast_reader()
    if fast is None or needs_care(text):
        return _read_carefully(text, where)
    try:
        tree = fast(text)
        _check(tree)
    except Exception:  # ryaml's errors lack a line, and what it misreads the other one reads
        return _read_carefully(text, where)
    return tree


@cache
def _fast_reader() -> Callable[[str], Any] | None:
    try:
        from ryaml import loads  # type: ignore[attr-defined]
    except ImportError:
        return None
    return loads


def _read_carefully(text: str, where: str) -> Any:
    from engram.dialects.careful import read_carefully

    return read_carefully(text, where=where)


def needs_care(text: str) -> bool:
    """Whether a text may hold tags, merge keys, aliases or deep nesting."""
    return (
        ("!" in text and _TAG.search(text) is not None)
        or ("<<" in text and _MERGE.search(text) is not None)
        or ("&" in text and "*" in text and bool(_ANCHOR.search(text)) and bool(_ALIAS.search(text)))
        or (text.count("[") + text.count("{") > _DEEP and _most_open_brackets(text) > _DEEP)
        or (text.count("- ") + text.count("? ") > 64 and _DASH_RUN.search(text) is not None)
    )


def _most_open_brackets(text: str) -> int:
    """An upper bound of flow nesting: brackets inside quotes count too."""
    depth = most = 0
    for bracket in _BRACKET.findall(text):
        if bracket in "[{":
            depth += 1
            most = max(most, depth)
        elif depth:
            depth -= 1
    return most


def _check(tree: Any) -> None:
    """Raises where ryaml lost something: keys that are no text and may have merged, integers it rounded to floats."""
    items = tree
    if type(tree) is dict:
        "".join(tree)
        items = tree.values()
    elif type(tree) is not list:
        return
    for value in items:
        kind = type(value)
        if kind is dict or kind is list:
            _check(value)
        elif kind is float and abs(value) > _ROUNDED:
            raise OverflowError


def _with_breaks_kept(text: str, where: str) -> Any:
    """Read with stand-ins for U+0085, U+2028 and U+2029, which both parsers underneath take for line breaks."""
    spare = (chr(code) for code in range(0xE000, 0xF8FF) if chr(code) not in text)
    stand_ins = dict(zip(map(ord, _OLD_BREAKS), spare, strict=False))
    tree = _read(text.translate(stand_ins), where)
    return _translated(tree, {ord(stand_in): chr(mark) for mark, stand_in in stand_ins.items()})


def _translated(tree: Any, table: dict[int, str]) -> Any:
    if isinstance(tree, str):
        return tree.translate(table)
    if isinstance(tree, list):
        return [_translated(item, table) for item in tree]
    if isinstance(tree, dict):
        return {_translated(key, table): _translated(item, table) for key, item in tree.items()}
    return tree
