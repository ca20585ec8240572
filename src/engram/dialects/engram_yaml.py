"""Engram's own dialect: spec 1's engrams as YAML, one list per file."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from engram.dialects.record import TEXT_KEYS, from_mapping, to_mapping
from engram.model.errors import InvalidInput, StoreCorrupt, UnknownVersion
from engram.model.memory import Memory

__all__ = ["decode", "dump", "from_mapping", "load", "load_mappings", "to_mapping"]


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


def load(text: str, *, where: str = "") -> list[Memory]:
    """The memories in a file: a list, one record alone, or PLUR's `engrams:` list in PLUR's wording.

    Raises `StoreCorrupt` with file and line, or `UnknownVersion`.
    """
    records, lines, key = _records(text, where)
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


def decode(content: bytes, *, where: str = "") -> str:
    """The text of a file, which must be UTF-8. Raises `StoreCorrupt` with the line of the first wrong byte."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise StoreCorrupt(
            f"{where or 'YAML'}:{line}: not UTF-8 (byte 0x{content[error.start]:02x}); save the file as UTF-8"
        ) from None


def load_mappings(text: str, *, where: str = "") -> list[dict[str, Any]]:
    """The records in a file as plain data: a list, PLUR's `engrams:` list, or one record alone."""
    return _records(text, where)[0]


def _plur_reader() -> Callable[[Mapping[str, Any]], Memory]:
    from engram.dialects.plur import from_plur

    return from_plur


def _records(text: str, where: str) -> tuple[list[dict[str, Any]], list[int], str]:
    """The records, the line each begins on, and the key they are listed under."""
    from engram.dialects.yaml_parser import parse_yaml

    document = parse_yaml(text, where=where, text_keys=TEXT_KEYS)
    tree = document.tree
    key = "engrams" if isinstance(tree, dict) and "engrams" in tree else ""
    records = tree[key] if key else [tree] if isinstance(tree, dict) else tree
    if not isinstance(records, list):
        problem = "is empty" if tree is None else "has no list of records"
        raise StoreCorrupt(f"{where or 'YAML'}:1: the file {problem}; an empty list is written []")
    # The list may be an alias of one above it, whose lines are unknown.
    lines = document.lines if len(document.lines) == len(records) else [1] * len(records)
    for line, record in zip(lines, records, strict=True):
        if not isinstance(record, dict):
            raise StoreCorrupt(f"{where or 'YAML'}:{line}: a record must be a block of fields, is {record!r:.60}")
    return records, lines, key
