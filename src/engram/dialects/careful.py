"""YAML read event by event: slower than the fast reader, but it knows lines, limits and what was written.

It refuses what a memory file never needs and what may hurt: tags, merge keys, duplicate keys, aliases that multiply,
nesting without end. Nothing is ever constructed but text, numbers, truth values, null, lists and mappings.
"""

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import yaml

from engram.model.errors import StoreCorrupt

MAX_DEPTH = 100
"""Levels of nesting; the fast reader stops at 128."""
MAX_EXPANDED = 16 * 1024 * 1024
"""Characters a file may amount to once every alias stands for its anchor's text; a larger file, to twice its own."""

_CORE_TAG = "tag:yaml.org,2002:"
_AS_WRITTEN = frozenset({"!", _CORE_TAG + "str", _CORE_TAG + "timestamp"})
_RESOLVED = frozenset(_CORE_TAG + name for name in ("int", "float", "bool", "null"))
_COLLECTIONS = frozenset({"!", _CORE_TAG + "map", _CORE_TAG + "seq"})
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_NOT_IN_YAML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_BASED = re.compile(r"[-+]?0(?:o[0-7]+|x[0-9a-fA-F]+|b[01]+)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?")
_MOST_DIGITS = 4000
"""Python converts no longer integers; a longer run of digits is text."""

Resolve = Callable[[str], Any]


def resolve_core(text: str) -> Any:
    """A bare scalar by YAML 1.2's core schema.

    `010`, on which 1.1 and 1.2 disagree, and numbers too large to hold stay text.
    """
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text) if len(text) < _MOST_DIGITS else text
    if _BASED.fullmatch(text):
        number = int(text, 0)
        return number if number.bit_length() <= 128 else text
    if _FLOAT.fullmatch(text):
        decimal = float(text)
        return decimal if math.isfinite(decimal) else text
    return text


def as_written(text: str) -> str:
    """A bare scalar as the characters in the file."""
    return text


def read_carefully(text: str, *, where: str = "", resolve: Resolve = resolve_core) -> Any:
    """The one document in `text`, or None if there is none. Raises `StoreCorrupt` with the line."""
    return _Tree(text, where, resolve).document()


def item_lines(text: str) -> list[int]:
    """The line on which each record of a file begins: items of the list, of `engrams:`, or the one mapping."""
    lines: list[int] = []
    depth = 0
    sequence_at = 0
    for event in _events(text):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.CollectionStartEvent):
            if isinstance(event, yaml.SequenceStartEvent) and not sequence_at and depth <= 1:
                sequence_at = depth + 1
            elif depth == sequence_at:
                lines.append(line)
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
            if sequence_at and depth < sequence_at:
                break
        elif depth == sequence_at and sequence_at:
            lines.append(line)
    return lines[1:] if sequence_at == 2 else lines


def _events(text: str) -> Iterator[Any]:
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return iter(yaml.parse(text, Loader=loader))


class _Tree:
    """Builds one document out of parser events."""

    def __init__(self, text: str, where: str, resolve: Resolve) -> None:
        self._text = text
        self._events = _events(text)
        self._where = where
        self._resolve = resolve
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._size = 0
        self._most = max(MAX_EXPANDED, 2 * len(text))

    def document(self) -> Any:
        try:
            return self._document()
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            raise self._wrong(mark, error.problem or error.context or "not YAML") from None
        except (yaml.YAMLError, UnicodeEncodeError):
            raise self._wrong_character() from None

    def _document(self) -> Any:
        next(self._events)
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return None
        tree = self._node(next(self._events), 1)
        next(self._events)
        following = next(self._events)
        if not isinstance(following, yaml.StreamEndEvent):
            raise self._wrong(following.start_mark, "a second document begins; put all records into one list")
        return tree

    def _node(self, event: Any, depth: int) -> Any:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        before = self._size
        if isinstance(event, yaml.ScalarEvent):
            value = self._scalar(event)
        elif depth > MAX_DEPTH:
            raise self._wrong(event.start_mark, f"nested deeper than {MAX_DEPTH} levels")
        else:
            self._check_tag(event, _COLLECTIONS)
            self._grow(1, event)
            sequence = isinstance(event, yaml.SequenceStartEvent)
            value = self._items(depth) if sequence else self._pairs(depth)
        if event.anchor:
            self._anchors[event.anchor] = (value, self._size - before)
        return value

    def _items(self, depth: int) -> list[Any]:
        items = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(event, depth + 1))
        return items

    def _pairs(self, depth: int) -> dict[str, Any]:
        pairs: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._key(event)
            if key in pairs:
                raise self._wrong(event.start_mark, f"the key {key!r} stands here a second time")
            pairs[key] = self._node(next(self._events), depth + 1)
        return pairs

    def _key(self, event: Any) -> str:
        if not isinstance(event, yaml.ScalarEvent):
            raise self._wrong(event.start_mark, "a key must be plain text")
        if event.value == "<<" and event.implicit[0]:
            raise self._wrong(event.start_mark, "merge keys (<<) are not read; write the fields out")
        self._check_tag(event, _AS_WRITTEN | _RESOLVED)
        self._grow(len(event.value), event)
        return str(event.value)

    def _scalar(self, event: Any) -> Any:
        self._grow(len(event.value) + 1, event)
        if event.tag is None:
            bare = event.style in (None, "")
            return self._resolve(event.value) if bare else event.value
        self._check_tag(event, _AS_WRITTEN | _RESOLVED)
        return event.value if event.tag in _AS_WRITTEN else self._resolve(event.value)

    def _alias(self, event: Any) -> Any:
        if event.anchor not in self._anchors:
            raise self._wrong(event.start_mark, f"*{event.anchor} refers to nothing that is complete above it")
        value, size = self._anchors[event.anchor]
        self._grow(size, event)
        return value

    def _grow(self, size: int, event: Any) -> None:
        self._size += size
        if self._size > self._most:
            raise self._wrong(
                event.start_mark, f"amounts to more than {self._most:,} characters with its aliases filled in"
            )

    def _check_tag(self, event: Any, allowed: frozenset[str]) -> None:
        if event.tag is not None and event.tag not in allowed:
            tag = event.tag.replace(_CORE_TAG, "!!")
            raise self._wrong(event.start_mark, f"the tag {tag} is not allowed; memories are plain data")

    def _wrong_character(self) -> StoreCorrupt:
        found = _NOT_IN_YAML.search(self._text)
        if found is None:
            return StoreCorrupt(f"{self._where or 'YAML'}: not YAML")
        line = self._text.count("\n", 0, found.start()) + 1
        return StoreCorrupt(
            f"{self._where or 'YAML'}:{line}: the character U+{ord(found[0]):04X} cannot stand in a YAML file; "
            'write it as an escape in double quotes, such as "\\x07", or remove it'
        )

    def _wrong(self, mark: Any, what: str) -> StoreCorrupt:
        line = f"{mark.line + 1}:{mark.column + 1}" if mark is not None else "?"
        return StoreCorrupt(f"{self._where or 'YAML'}:{line}: {what}")
