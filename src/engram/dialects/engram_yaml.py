"""Engram's own dialect: spec 1's engrams as YAML, one list per file."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from engram.dialects.record import TEXT_KEYS, from_mapping, to_mapping
from engram.model.errors import InvalidInput, StoreCorrupt, UnknownVersion, UnreadableData
from engram.model.memory import Memory
from engram.readers.limits import decode_text

__all__ = ["dump", "from_mapping", "load", "load_mappings", "to_mapping"]


def dump(memories: Sequence[Memory]) -> str:
    """Memories as a YAML list. Raises `InvalidInput` for what no file can store, such as half a surrogate pair."""
    return "".join(map(_dump_one, memories)) or "[]\n"


def _dump_one(memory: Memory) -> str:
    from engram.dialects.yaml_writer import emit_list

    try:
        return emit_list((to_mapping(memory),))
    except InvalidInput as error:
        text = str(error)
        raise InvalidInput(text if text.startswith(memory.id) else f"{memory.id}: {text}") from None


def load(source: str | bytes, *, where: str = "") -> list[Memory]:
    """The memories in a file: a list, one record alone, or PLUR's `engrams:` list in PLUR's wording.

    Raises `StoreCorrupt` with file and line, or `UnknownVersion`.
    """
    try:
        text = source if isinstance(source, str) else decode_text(source, where=where or "YAML")
        records, lines, key = _records(text, where)
    except UnreadableData as error:
        raise StoreCorrupt(str(error)) from None
    read = _plur_reader() if key else from_mapping
    memories = []
    for line, record in zip(lines, records, strict=True):
        try:
            memories.append(read(record))
        except UnknownVersion as error:
            raise UnknownVersion(f"{where or 'YAML'}:{line}: {error}") from None
        except InvalidInput as error:
            raise StoreCorrupt(f"{where or 'YAML'}:{line}: {error}") from None
    return memories


def load_mappings(text: str, *, where: str = "") -> list[dict[str, Any]]:
    """The records in a file as plain data: a list, PLUR's `engrams:` list, or one record alone. Raises `UnreadableData`."""
    return _records(text, where)[0]


def _plur_reader() -> Callable[[Mapping[str, Any]], Memory]:
    from engram.dialects.plur import from_plur

    return from_plur


def _records(text: str, where: str) -> tuple[list[dict[str, Any]], list[int], str]:
    """The records, the line each begins on, and the key they are listed under."""
    from engram.readers.yaml_parser import parse_yaml

    document = parse_yaml(text, where=where, text_keys=TEXT_KEYS)
    tree = document.tree
    key = "engrams" if isinstance(tree, dict) and "engrams" in tree else ""
    records = tree[key] if key else [tree] if isinstance(tree, dict) else tree
    if not isinstance(records, list):
        problem = "is empty" if tree is None else "has no list of records"
        raise UnreadableData(f"the file {problem}; an empty list is written []", where=where or "YAML", line=1)
    # The list may be an alias of one above it, whose lines are unknown.
    lines = document.lines if len(document.lines) == len(records) else [1] * len(records)
    for line, record in zip(lines, records, strict=True):
        if not isinstance(record, dict):
            wrong = f"a record must be a block of fields, is {record!r:.60}"
            raise UnreadableData(wrong, where=where or "YAML", line=line)
    return records, lines, key
