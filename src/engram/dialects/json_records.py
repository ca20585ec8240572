"""The same records as JSON: for programs that would rather not read YAML."""

import json
from collections.abc import Sequence
from typing import Any

from engram.dialects.record import from_mapping, to_mapping
from engram.model.errors import InvalidInput, StoreCorrupt
from engram.model.memory import Memory


class _Duplicate(Exception):
    """A key that an object holds twice."""


def dump_json(memories: Sequence[Memory]) -> str:
    """Memories as a JSON list, one record per line, so that a diff shows which one changed."""
    lines = [_line(to_mapping(memory)) for memory in memories]
    return "[\n" + ",\n".join(lines) + "\n]\n" if lines else "[]\n"


def _line(record: dict[str, Any]) -> str:
    text = json.dumps(record, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(record)
    return text


def load_json(text: str, *, where: str = "") -> list[Memory]:
    """The memories in a JSON list, in a single object, or in one object per line. Raises `StoreCorrupt` with the line."""
    memories = []
    for index, record in enumerate(_records(text, where)):
        place = f"{where or 'JSON'} record {index + 1}"
        if not isinstance(record, dict):
            raise StoreCorrupt(f"{place}: must be an object, is {record!r:.60}")
        try:
            memories.append(from_mapping(record))
        except InvalidInput as error:
            raise StoreCorrupt(f"{place}: {error}") from None
    return memories


def _records(text: str, where: str) -> list[Any]:
    place = where or "JSON"
    try:
        return _list_or_lines(text)
    except json.JSONDecodeError as error:
        raise StoreCorrupt(f"{place}:{error.lineno}:{error.colno}: {error.msg}") from None
    except _Duplicate as error:
        raise StoreCorrupt(f"{place}: the key {error} stands twice in one object") from None
    except RecursionError:
        raise StoreCorrupt(f"{place}: nested too deep") from None


def _list_or_lines(text: str) -> list[Any]:
    try:
        tree = _parsed(text)
    except json.JSONDecodeError as whole:
        lines = [line for line in text.split("\n") if line.strip()]
        if len(lines) < 2:
            raise
        try:
            return [_parsed(line) for line in lines]
        except json.JSONDecodeError:
            raise whole from None
    return tree if isinstance(tree, list) else [tree]


def _parsed(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_without_duplicates)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        names = [name for name, _ in pairs]
        raise _Duplicate(repr(next(name for name in names if names.count(name) > 1)))
    return fields
