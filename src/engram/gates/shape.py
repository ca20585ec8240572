"""Shape and size: a statement that can be stored and read back, a known type, a valid scope."""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from operator import attrgetter
from typing import Any

from engram.gates.proposal import GateSettings
from engram.model.errors import InvalidInput
from engram.model.lazy import fields, is_dataclass
from engram.model.memory import Activation, Feedback, Memory
from engram.model.types import memory_type
from engram.rules.limits import limit_problem
from engram.rules.scopes import MAX_SCOPE_PART_BYTES

__all__ = [
    "BARE_SCOPES",
    "RECORD_SEPARATOR",
    "added_problem",
    "label_fields",
    "label_items",
    "scope_problem",
    "statement_problem",
    "strings",
    "texts",
]

BARE_SCOPES = ("global", "user", "local", "public")
_MAX_SCOPE_CHARS = 512
RECORD_SEPARATOR = "\n;\n"
"""Separates two values; no pattern matches across it."""
# Numbers and times contain no text; skipping them halves the walk that `add` makes for every memory.
_NO_TEXT = (bool, int, float, datetime)
_TEXTLESS = (*_NO_TEXT, datetime | None, float | None, Activation, Feedback)
_FIELDS = tuple(part.name for part in fields(Memory) if part.type not in _TEXTLESS)
_values = attrgetter(*_FIELDS)
# Keys of a mapping whose value names something, and keys whose value is its content.
_NAMING = frozenset((
    "name", "key", "field", "label", "id", "title", "variable", "var", "env", "property", "param", "parameter",
    "header", "attribute", "setting", "k",
))  # fmt: skip
_GENERIC = frozenset((
    "value", "val", "content", "data", "text", "default", "string", "secret", "current", "raw", "plain", "v",
    "literal", "answer",
))  # fmt: skip
_LONGEST_LABEL = 80
_KIND = re.compile(r"[a-z][a-z0-9_-]{0,31}\Z")
# C0 and C1 controls but tab, line feed and carriage return; lone surrogates cannot be written as UTF-8.
_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
_UNSAFE_IN_SCOPE = re.compile("[\\\\\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_VISIBLE = re.compile(r"[^\s\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\u00ad\u115f\u1160\u3164\uffa0\u2800]")


def statement_problem(memory: Memory, settings: GateSettings) -> str:
    """Why `learn` cannot accept this memory; "" if it can."""
    size = len(memory.statement)
    if size > settings.max_statement_chars:
        return (
            f"the statement has {size:,} characters (maximum {settings.max_statement_chars:,});"
            " shorten it to 25–60 words, put the source into `context`, or ingest it as a document"
        )
    return _problem(memory)


def added_problem(memory: Memory, settings: GateSettings) -> str:
    """Why `add` cannot accept this memory; "" if it can."""
    size = len(memory.statement.encode("utf-8", "surrogatepass"))
    if size > settings.max_added_bytes:
        return f"the statement has {size:,} bytes (maximum {settings.max_added_bytes:,}); ingest it as a document"
    return _problem(memory)


def texts(memory: Memory) -> Iterator[tuple[str, str]]:
    """Every text in a memory with the name of its field, at any depth, including keys."""
    for name, value in zip(_FIELDS, _values(memory), strict=True):
        if not value:
            continue
        if isinstance(value, str):
            yield name, value
        elif found := RECORD_SEPARATOR.join(strings(value)):
            yield name, found


def strings(value: object) -> Iterator[str]:
    """The strings in a value, each prefixed with its key, because the key can say what the value is."""
    stack: list[tuple[str, object]] = [("", value)]
    while stack:
        key, item = stack.pop()
        if isinstance(item, str):
            yield f"{key}: {item}" if key else item
        elif inner := _inside(key, item):
            stack += inner
        elif key:
            # The key itself may be a secret, or say that a number is one.
            yield f"{key}: {item}" if isinstance(item, int | float) else key


def _inside(key: str, item: object) -> list[tuple[str, object]]:
    """The parts of a value; a mapping's own key is one of its texts."""
    if isinstance(item, _NO_TEXT) or not item:
        return []
    if isinstance(item, list | tuple | set | frozenset):
        return label_items(item, key)
    if isinstance(item, Mapping):
        return [
            ("", key),
            *(
                ((label if label == name else f"{name} {label}"), deeper)
                for name, label, deeper in label_fields(item, key)
            ),
        ]
    if is_dataclass(item):
        return [("", getattr(item, part.name)) for part in fields(item)]
    return []


def label_fields(data: Mapping[Any, Any], key: str = "") -> Iterator[tuple[str, str, Any]]:
    """Each key of a mapping, the label that describes its value, and the value. The label is usually the key.

    In `{"name": "password", "value": …}` and `{"password": {"value": …}}` the label of "value" is "password".
    """
    called = next(
        (word for name in data if str(name).casefold() in _NAMING and isinstance(word := data[name], str)), key
    )
    for name, value in data.items():
        generic = str(name).casefold() in _GENERIC
        yield str(name), called[:_LONGEST_LABEL] if generic and called else str(name), value


def label_items(items: Iterable[Any], key: str = "") -> list[tuple[str, Any]]:
    """Each item of a list with its label: the list's key, or in `["--password", …]` the option before it."""
    found: list[tuple[str, Any]] = []
    for item in items:
        before = found[-1][1] if found else None
        is_option = isinstance(before, str) and before.startswith("-") and len(before) <= _LONGEST_LABEL
        found.append((str(before).lstrip("-") if is_option else key, item))
    return found


def _problem(memory: Memory) -> str:
    if not memory.statement or not _VISIBLE.search(memory.statement):
        return "the statement is empty"
    if problem := limit_problem(memory):
        return problem
    for field, text in texts(memory):
        # A file written by hand may have any id, and its memory must stay editable.
        if field != "id" and (bad := _UNWRITABLE.search(text)):
            return f"{field} contains the control character U+{ord(bad[0]):04X}, which cannot be stored; remove it"
    return _type_problem(memory.type) or scope_problem(memory.scope)


def _type_problem(name: str) -> str:
    try:
        memory_type(name)
    except InvalidInput as unknown:
        return str(unknown)
    return ""


def scope_problem(scope: str) -> str:
    """Why a scope is invalid; "" if it is valid: `global`, `user`, `local`, `public`, or `kind:name[/part…]`."""
    if scope in BARE_SCOPES:
        return ""
    if len(scope) > _MAX_SCOPE_CHARS:
        return f"the scope has {len(scope):,} characters (maximum {_MAX_SCOPE_CHARS})"
    if _UNSAFE_IN_SCOPE.search(scope):
        return f"the scope {scope!r} contains a backslash or a control character"
    kind, colon, name = scope.partition(":")
    if not colon or not _KIND.match(kind):
        return f"the scope {scope!r} is invalid; use {', '.join(BARE_SCOPES)} or kind:name[/part…]"
    return next((problem for part in name.split("/") if (problem := _part_problem(scope, part))), "")


def _part_problem(scope: str, part: str) -> str:
    if not part or part != part.strip():
        return f"the scope {scope!r} has an empty part, or a part that starts or ends with a space"
    if part.strip(".") == "" or part.startswith("~"):
        return f"the scope {scope!r} contains {part!r}, which would point outside its folder"
    if len(part.encode("utf-8")) > MAX_SCOPE_PART_BYTES:
        return f"a part of the scope {scope[:40]!r}… is longer than {MAX_SCOPE_PART_BYTES} bytes"
    return ""
