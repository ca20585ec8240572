"""The text of one note: `key: value` lines between two `---`, then the body. It looks like YAML and is not: `source: a: b` is allowed.

Lists are written as JSON, with commas and quotes inside an item escaped, because a reader of the format may split a list at every comma.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from engram.model.errors import InvalidInput, UnreadableData
from engram.readers.frontmatter import split_frontmatter
from engram.readers.json_reader import parse_json

Keys = dict[str, Any]
"""The keys of a note: text, a list of texts, a list of blocks, or a mapping."""
_KEY = re.compile(r"([A-Za-z_][\w.-]*):(?:[ \t]+(.*))?")
_ITEM = re.compile(r"\s*-\s+(.*)")
_INNER = re.compile(r"\s+([A-Za-z_][\w.-]*):[ \t]*(.*)")
_PLAIN = re.compile(
    r"[^\s\"'\[\]{}\x00-\x1f\x7f-\x9f\u2028\u2029](?:[^\x00-\x1f\x7f-\x9f\u2028\u2029]*[^\s\x00-\x1f\x7f-\x9f\u2028\u2029])?"
)
_SPLIT_BY_OTHERS = {",": "\\u002c", '\\"': "\\u0022"}


def parse_note(text: str) -> tuple[Keys, str]:
    """The keys and the body of a note. Raises `InvalidInput` for text without closed frontmatter."""
    parts = split_frontmatter(text)
    if parts is None:
        raise InvalidInput("has no frontmatter between two `---` lines")
    keys: Keys = {}
    key = ""
    for line in parts.head.split("\n"):
        found = _KEY.fullmatch(line.rstrip())
        if found:
            key = found[1]
            keys[key] = _value(found[2] or "")
        elif key and line.strip():
            keys[key] = _continue_list(keys[key], line)
    return keys, parts.body.removeprefix("\n").removesuffix("\n")


def _continue_list(value: Any, line: str) -> list[Any]:
    """A list that goes on with another line: an item, or another key of the item above."""
    items = value if isinstance(value, list) else []
    if found := _ITEM.fullmatch(line.rstrip()):
        inner = _INNER.fullmatch(" " + found[1])
        items.append({inner[1]: _text(inner[2])} if inner else _text(found[1]))
    elif items and isinstance(items[-1], dict) and (inner := _INNER.fullmatch(line.rstrip())):
        items[-1][inner[1]] = _text(inner[2])
    return items


def _value(text: str) -> Any:
    text = text.strip()
    if text.startswith(("[", "{", '"')):
        try:
            found = parse_json(text, characters="any")
        except UnreadableData:
            return _split_list(text[1:-1]) if text.startswith("[") and text.endswith("]") else text
        if isinstance(found, list):
            return [item if isinstance(item, str) else json.dumps(item) for item in found]
        return found if isinstance(found, str | dict) else text
    return _text(text)


def _split_list(inside: str) -> list[str]:
    """A list that is not JSON, split as its own readers split it."""
    return [_text(part.strip()) for part in inside.split(",") if part.strip()]


def _text(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] == '"':
        try:
            return str(parse_json(text, characters="any"))
        except UnreadableData:
            return text[1:-1]
    return text[1:-1] if len(text) >= 2 and text[0] == text[-1] == "'" else text


def render_note(keys: Mapping[str, Any], body: str) -> str:
    """The text of a note."""
    lines = [line for key, value in keys.items() for line in _lines(key, value)]
    return "\n".join(["---", *lines, "---", "", body, ""])


def is_writable(key: str, value: Any) -> bool:
    """Whether a note says just this under a key: nothing else on its lines, and no other value."""
    if not isinstance(value, str | list | Mapping):
        return False
    try:
        keys, body = parse_note(render_note({key: value}, ""))
    except (InvalidInput, AttributeError, TypeError, ValueError):
        return False
    return keys == {key: value} and not body


def _lines(key: str, value: Any) -> list[str]:
    if isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        return [f"{key}:", *(line for item in value for line in _block(item))]
    if isinstance(value, list):
        return [f"{key}: [{', '.join(_list_item(item) for item in value)}]"]
    if isinstance(value, Mapping):
        return [f"{key}: {json.dumps(value, ensure_ascii=False)}"]
    return [f"{key}: {_scalar(value)}".rstrip()]


def _block(item: Any) -> Sequence[str]:
    if not isinstance(item, Mapping):
        return [f"  - {_list_item(item)}"]
    pairs = [f"{name}: {_scalar(value)}".rstrip() for name, value in item.items()]
    return [("  - " if index == 0 else "    ") + pair for index, pair in enumerate(pairs)]


def _list_item(item: str) -> str:
    text = json.dumps(item, ensure_ascii=False)
    inside = text[1:-1]
    for sign, escaped in _SPLIT_BY_OTHERS.items():
        inside = inside.replace(sign, escaped)
    return f'"{inside}"'


def _scalar(value: str) -> str:
    return value if not value or _PLAIN.fullmatch(value) else json.dumps(value)
