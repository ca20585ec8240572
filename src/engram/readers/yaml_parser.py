"""Parses YAML text into plain data by YAML 1.2's core schema, from PyYAML's events.

It refuses constructs that a memory file never needs and that may be harmful: tags, merge keys, duplicate keys, aliases
that multiply, unbounded nesting. It builds only text, numbers, truth values, null, lists and mappings, and every error
names its line.
"""

import math
import re
from typing import Any

import yaml

from engram.model.errors import UnreadableData
from engram.model.lazy import dataclass, field
from engram.readers.data import MAX_DEPTH, MAX_DIGITS

MAX_CHARACTERS = 8 * 1024 * 1024
"""Maximum size of a file; a statement of 5 MB fits."""
MAX_EXPANDED = 16 * 1024 * 1024
"""Maximum characters of a file after every alias is replaced by its anchor's text; for a larger file, twice its own
size."""

_CORE_TAG = "tag:yaml.org,2002:"
_TEXT_TAGS = frozenset({"!", _CORE_TAG + "str", _CORE_TAG + "timestamp"})
_SCALAR_TAGS = _TEXT_TAGS | {_CORE_TAG + name for name in ("int", "float", "bool", "null")}
_COLLECTION_TAGS = frozenset({"!", _CORE_TAG + "map", _CORE_TAG + "seq"})
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
_OLD_BREAKS = "\x85\u2028\u2029"
"""Line breaks in YAML 1.1, plain characters in YAML 1.2."""
_NO_KEYS: frozenset[str] = frozenset()


@dataclass(slots=True)
class YamlDocument:
    """One parsed document: its data, and the line on which each record begins."""

    tree: Any = None
    lines: list[int] = field(default_factory=list)


def parse_yaml(
    text: str,
    *,
    where: str = "",
    longest: int = MAX_CHARACTERS,
    text_keys: frozenset[str] = _NO_KEYS,
    list_key: str = "engrams",
) -> YamlDocument:
    """The one document in `text` as plain data with text keys; its tree is None if there is none.

    Records are the items of the list at the top or under `list_key`, or the mapping at the top. The values of their
    `text_keys` are the characters in the file: `3.10` is a version there, not the number 3.1. Raises `UnreadableData`.
    """
    if len(text) > longest:
        raise UnreadableData(
            f"{len(text):,} characters, Engram reads at most {longest:,}; split the file", where=where or "YAML"
        )
    if not any(mark in text for mark in _OLD_BREAKS):
        return _Parser(text, where, text_keys, list_key).document()
    # PyYAML would break lines there, so private characters replace them during parsing.
    spare = (chr(code) for code in range(0xE000, 0xF8FF) if chr(code) not in text)
    stand_ins = dict(zip(map(ord, _OLD_BREAKS), spare, strict=False))
    document = _Parser(text.translate(stand_ins), where, text_keys, list_key).document()
    document.tree = _translate_strings(document.tree, {ord(stand_in): mark for mark, stand_in in stand_ins.items()})
    return document


def resolve_scalar(text: str) -> Any:
    """A bare scalar by YAML 1.2's core schema.

    `010`, on which 1.1 and 1.2 disagree, and numbers too large to represent stay text.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0].isalpha():
        return text
    if _INTEGER.fullmatch(text):
        return int(text) if len(text) <= MAX_DIGITS else text
    if _BASED.fullmatch(text):
        number = int(text, 0)
        return number if number.bit_length() <= 128 else text
    if _FLOAT.fullmatch(text):
        decimal = float(text)
        return decimal if math.isfinite(decimal) else text
    return text


def _translate_strings(tree: Any, table: dict[int, int]) -> Any:
    if isinstance(tree, str):
        return tree.translate(table)
    if isinstance(tree, list):
        return [_translate_strings(item, table) for item in tree]
    if isinstance(tree, dict):
        return {_translate_strings(key, table): _translate_strings(item, table) for key, item in tree.items()}
    return tree


class _Parser:
    """Builds one document from parser events."""

    def __init__(self, text: str, where: str, text_keys: frozenset[str], list_key: str) -> None:
        self._text = text
        self._where = where
        self._text_keys = text_keys
        self._list_key = list_key
        self._lines: list[int] = []
        self._anchors: dict[str, tuple[Any, Any, int]] = {}
        self._size = 0
        self._most = max(MAX_EXPANDED, 2 * len(text))

    def document(self) -> YamlDocument:
        try:
            loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(self._text)
            self._next = loader.get_event
            return YamlDocument(self._document(), self._lines)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            raise self._wrong(mark, error.problem or error.context or "not YAML") from None
        except (yaml.YAMLError, UnicodeEncodeError):
            raise self._wrong_character() from None

    def _document(self) -> Any:
        self._next()
        if type(self._next()) is yaml.StreamEndEvent:
            return None
        event = self._next()
        line = event.start_mark.line + 1
        if type(event) is yaml.MappingStartEvent:
            self._lines.append(line)
        tree = self._node(event, 1, records=True, record=True)
        self._next()
        following = self._next()
        if type(following) is not yaml.StreamEndEvent:
            raise self._wrong(following.start_mark, "a second document begins; put all records into one list")
        return tree

    def _node(self, event: Any, depth: int, *, records: bool = False, record: bool = False, text: bool = False) -> Any:
        kind = type(event)
        if kind is yaml.AliasEvent:
            return self._alias(event, text)
        before = self._size
        written = None
        if kind is yaml.ScalarEvent:
            written = event.value
            value = self._scalar(event, text)
        elif depth > MAX_DEPTH:
            raise self._wrong(event.start_mark, f"nested deeper than {MAX_DEPTH} levels")
        else:
            self._check_tag(event, _COLLECTION_TAGS)
            self._grow(1, event)
            value = self._items(depth, records, text) if kind is yaml.SequenceStartEvent else self._pairs(depth, record)
        if event.anchor:
            self._anchors[event.anchor] = (value, written, self._size - before)
        return value

    def _items(self, depth: int, records: bool, text: bool) -> list[Any]:
        items = []
        while type(event := self._next()) is not yaml.SequenceEndEvent:
            if records:
                self._lines.append(event.start_mark.line + 1)
            items.append(self._node(event, depth + 1, record=records, text=text))
        return items

    def _pairs(self, depth: int, record: bool) -> dict[str, Any]:
        text_keys = self._text_keys if record else _NO_KEYS
        pairs: dict[str, Any] = {}
        while type(event := self._next()) is not yaml.MappingEndEvent:
            key = self._key(event)
            if key in pairs:
                raise self._wrong(event.start_mark, f"the key {key!r} appears twice")
            listed = depth == 1 and key == self._list_key
            if listed:
                self._lines.clear()
            pairs[key] = self._node(self._next(), depth + 1, records=listed, text=key in text_keys)
        return pairs

    def _key(self, event: Any) -> str:
        if type(event) is not yaml.ScalarEvent:
            raise self._wrong(event.start_mark, "a key must be plain text")
        key: str = event.value
        if key == "<<" and event.implicit[0]:
            raise self._wrong(event.start_mark, "merge keys (<<) are not supported; write the fields out")
        self._check_tag(event, _SCALAR_TAGS)
        self._grow(len(key), event)
        return key

    def _scalar(self, event: Any, text: bool) -> Any:
        value: str = event.value
        self._grow(len(value) + 1, event)
        self._check_tag(event, _SCALAR_TAGS)
        if event.tag in _TEXT_TAGS or (event.tag is None and event.style not in (None, "")):
            return value
        return (value if _WORDS.get(value, value) is not None else None) if text else resolve_scalar(value)

    def _alias(self, event: Any, text: bool) -> Any:
        if event.anchor not in self._anchors:
            raise self._wrong(event.start_mark, f"*{event.anchor} refers to no complete value above it")
        value, written, size = self._anchors[event.anchor]
        self._grow(size, event)
        return written if text and value is not None and written is not None else value

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

    def _wrong_character(self) -> UnreadableData:
        found = _NOT_IN_YAML.search(self._text)
        if found is None:
            return UnreadableData("not YAML", where=self._where or "YAML")
        line = self._text.count("\n", 0, found.start()) + 1
        return UnreadableData(
            f"the character U+{ord(found[0]):04X} is not allowed in a YAML file; "
            'write it as an escape in double quotes, such as "\\x07", or remove it',
            where=self._where or "YAML", line=line,
        )  # fmt: skip

    def _wrong(self, mark: Any, what: str) -> UnreadableData:
        line, column = (mark.line + 1, mark.column + 1) if mark is not None else (None, None)
        return UnreadableData(what, where=self._where or "YAML", line=line, column=column)
