"""Engram's own dialect: spec 1's engrams as YAML, one list per file."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from engram.dialects.mapping import TEXT_KEYS, from_mapping, to_mapping
from engram.dialects.reader import decode, read_yaml
from engram.model.errors import InvalidInput, StoreCorrupt, UnknownVersion
from engram.model.memory import Memory

__all__ = ["as_written", "decode", "dump", "from_mapping", "load", "load_mappings", "to_mapping"]


def dump(memories: Sequence[Memory]) -> str:
    """Memories as a YAML list. Raises `InvalidInput` for what no file can hold, such as half a surrogate pair."""
    return "".join(map(_dump_one, memories)) or "[]\n"


def _dump_one(memory: Memory) -> str:
    from engram.dialects.emitter import emit_list

    try:
        return emit_list((to_mapping(memory),))
    except InvalidInput as error:
        text = str(error)
        raise InvalidInput(text if text.startswith(memory.id) else f"{memory.id}: {text}") from None


def load(text: str, *, where: str = "") -> list[Memory]:
    """The memories in a file: a list, one record alone, or PLUR's `engrams:` list in PLUR's wording.

    Raises `StoreCorrupt` with file and line, or `UnknownVersion`.
    """
    records, key = _records(text, where)
    read = _plur_reader() if key else from_mapping
    memories = []
    for index, record in enumerate(records):
        try:
            memories.append(read(record))
        except UnknownVersion as error:
            raise UnknownVersion(f"{_place(text, where, index)}: {error}") from None
        except InvalidInput as error:
            raise StoreCorrupt(f"{_place(text, where, index)}: {error}") from None
    return memories


def load_mappings(text: str, *, where: str = "") -> list[dict[str, Any]]:
    """The records in a file as plain data: a list, PLUR's `engrams:` list, or one record alone."""
    return _records(text, where)[0]


def as_written(text: str, records: list[Any], *, key: str = "", where: str = "") -> list[Any]:
    """Records of a file with text fields as the file spells them: `3.10` is a version there, not the number 3.1."""
    if not any(map(_has_untexted, records)):
        return records
    from engram.dialects.careful import as_written, read_carefully

    tree = read_carefully(text, where=where, resolve=as_written)
    written = tree[key] if key else tree if isinstance(tree, list) else [tree]
    return [_record_as_written(record, source) for record, source in zip(records, written, strict=True)]


def _plur_reader() -> Callable[[Mapping[str, Any]], Memory]:
    from engram.dialects.plur import from_plur

    return from_plur


def _records(text: str, where: str) -> tuple[list[dict[str, Any]], str]:
    """The records, and the key they stood under."""
    tree = read_yaml(text, where=where)
    key = "engrams" if isinstance(tree, dict) and "engrams" in tree else ""
    records = tree[key] if key else [tree] if isinstance(tree, dict) else tree
    if not isinstance(records, list):
        holds = "is empty" if tree is None else "holds no list of records"
        raise StoreCorrupt(f"{where or 'YAML'}:1: the file {holds}; an empty list is written []")
    for index, record in enumerate(records):
        if not isinstance(record, dict):
            raise StoreCorrupt(f"{_place(text, where, index)}: a record must be a block of fields, is {record!r:.60}")
    return as_written(text, records, key=key, where=where), key


def _has_untexted(record: Any) -> bool:
    """Whether YAML took a text field for a number or a truth value."""
    if type(record) is not dict:
        return False
    for key in TEXT_KEYS.intersection(record):
        value = record[key]
        if type(value) is str or value is None:
            continue
        if type(value) is not list or not all(type(item) is str or type(item) is dict for item in value):
            return True
    return False


def _record_as_written(record: Any, source: Any) -> Any:
    if not isinstance(record, dict):
        return record
    return {key: _text_as_written(value, source[key]) if key in TEXT_KEYS else value for key, value in record.items()}


def _text_as_written(value: Any, source: Any) -> Any:
    if isinstance(value, list):
        return [_text_as_written(item, part) for item, part in zip(value, source, strict=True)]
    return value if value is None or isinstance(value, str | dict) else source


def _place(text: str, where: str, index: int) -> str:
    from engram.dialects.careful import item_lines

    lines = item_lines(text)
    line = lines[index] if index < len(lines) else 1
    return f"{where or 'YAML'}:{line}"
