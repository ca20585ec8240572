"""Records of any shape: a mapping says which key or column holds which field of a memory. CSV by its header, JSON, JSON lines, YAML."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from engram.dialects.csv_table import TABLE_SUFFIXES, read_table
from engram.dialects.fields import FieldError, plain_mapping, read_time, unit_number
from engram.dialects.record_files import SUFFIXES, records_in
from engram.dialects.source import ImportSource, Projection, origin_of_path, record_label
from engram.model.errors import EngramError, InvalidInput
from engram.model.memory import Memory
from engram.model.types import known_types
from engram.rules.cues import normalize_cues

_TEXTS = ("statement", "type", "scope", "situation", "context", "rationale", "domain", "source", "session")
_TIMES = ("created", "updated", "occurred_at", "valid_from", "valid_until", "last_verified")
_NUMBERS = ("confidence", "importance")
_LISTS = ("tags", "cues", "entities")
_PHRASES = ("cues",)
"""Lists whose entries may contain commas, so that only semicolons separate them in a text."""
FIELDS = ("id", *_TEXTS, *_TIMES, *_NUMBERS, *_LISTS)
"""The fields a mapping may fill."""
_USUAL = {
    "statement": ("statement", "content", "fact", "text", "memory", "note"),
    "id": ("id", "uuid"),
    "type": ("type", "kind", "category"),
    "created": ("created", "created_at", "date", "timestamp"),
    "tags": ("tags",),
}
"""Without a mapping, the names a column of a table usually has."""
_EARLIEST_EPOCH = 1e9
"""Seconds since 1970 from which a number is one; a smaller one is a date such as 20250301, or nothing."""
_MILLISECONDS = 1e11
"""The number from which it counts milliseconds."""


def parse_mapping(text: str) -> dict[str, str]:
    """`statement=text,created=when` as field → key. Raises `InvalidInput` for a field that there is not."""
    mapping: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        field, equals, key = (piece.strip() for piece in part.partition("="))
        if not equals or not key or field not in FIELDS:
            raise InvalidInput(f"--map takes field=column pairs, not {part!r}; fields are {', '.join(FIELDS)}")
        if field in mapping:
            raise InvalidInput(f"--map names {field} twice")
        mapping[field] = key
    return mapping


def read_mapped(path: Path, mapping: Mapping[str, str]) -> ImportSource:
    """Read a file's records by a mapping; a table without one by its usual column names. Raises `InvalidInput`."""
    if not path.is_file():
        raise InvalidInput(f"{path} is a folder; a mapping reads one file")
    if unknown := [field for field in mapping if field not in FIELDS]:
        raise InvalidInput(f"a mapping cannot fill {unknown[0]!r}; fields are {', '.join(FIELDS)}")
    source = ImportSource(origin=origin_of_path("import", path), whole=True)
    if path.suffix.lower() in TABLE_SUFFIXES:
        header, rows = read_table(path, source)
        records: Iterable[tuple[str, Any]] = rows
        mapping = mapping or {field: name for field, names in _USUAL.items() if (name := _first(names, header))}
        _require(mapping, header, path)
    elif path.suffix.lower() in SUFFIXES:
        records = records_in(path, source)
    else:
        raise InvalidInput(f"{path} is neither a table (CSV) nor JSON nor YAML")
    if "statement" not in mapping:
        raise InvalidInput("--map names no statement; write --map statement=COLUMN,…")
    stated = frozenset({*mapping, "metadata"} - {"id", "source"})
    source.projection = Projection(stated, lambda memory: memory)
    source.made_ids = "id" not in mapping
    _take(records, mapping, source)
    return source


def _take(records: Iterable[tuple[str, Any]], mapping: Mapping[str, str], source: ImportSource) -> None:
    for where, record in records:
        try:
            source.add(where, build_memory(record, mapping))
        except EngramError as error:
            source.skipped.append((record_label(record, where), str(error)))


def build_memory(record: Any, mapping: Mapping[str, str]) -> Memory:
    """The memory of a record; keys that no field takes are its metadata. Raises `InvalidInput` naming the key."""
    if not isinstance(record, Mapping):
        raise InvalidInput(f"a record must be fields, is {json.dumps(record, default=str):.60}")
    values: dict[str, Any] = {}
    for field, key in mapping.items():
        value = _at(record, key)
        if value not in (None, ""):
            values[field] = _value(field, key, value)
    if not values.get("statement"):
        raise InvalidInput(f"{mapping['statement']} is empty")
    rest = {key: value for key, value in record.items() if key not in mapping.values() and value not in (None, "")}
    kind = values.get("type", "")
    if kind and kind not in {one.name for one in known_types()}:
        rest, values["type"] = {**rest, mapping["type"]: kind}, "fact"
    return Memory(**{"id": _make_id(record), "type": "fact", **values, "metadata": plain_mapping(rest)})


def _at(record: Mapping[str, Any], key: str) -> Any:
    """The value of a key; `payload.text` is the key of a block, unless there is a key of that name."""
    value: Any = record
    for part in (key,) if key in record else key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _make_id(record: Mapping[str, Any]) -> str:
    """An id for a record without one: the same while the record is the same."""
    text = json.dumps(record, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _value(field: str, key: str, value: Any) -> Any:
    if field in _TIMES:
        return parse_timestamp(key, value)
    if field in _NUMBERS:
        return unit_number(key, value)
    if field in _LISTS:
        items = _split_list(field, value) if isinstance(value, str) else value
        if not isinstance(items, list):
            raise InvalidInput(f"{key} must be a list, is {value!r:.60}")
        texts = tuple(text for item in items if (text := str(item).strip()))
        return normalize_cues(texts) if field in _PHRASES else texts
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InvalidInput(f"{key} must be text, is {json.dumps(value, default=str):.60}")
    return str(value).strip()


def _split_list(field: str, text: str) -> list[str]:
    return text.split(";") if field in _PHRASES else text.replace(";", ",").split(",")


def parse_timestamp(key: str, value: Any) -> Any:
    """A time: ISO 8601, or from 2001 on seconds or milliseconds since 1970. Raises `InvalidInput` naming the key."""
    from datetime import UTC, datetime

    text = str(value).strip() if isinstance(value, str | int | float) and not isinstance(value, bool) else value
    try:
        if (number := _number(text)) >= _EARLIEST_EPOCH:
            return datetime.fromtimestamp(number / 1000 if number >= _MILLISECONDS else number, UTC)
        return read_time(text)
    except (FieldError, OverflowError, ValueError, OSError):
        raise InvalidInput(f"{key} must be a date or a time such as 2026-01-31T09:30:00Z, is {value!r:.60}") from None


def _number(text: Any) -> float:
    try:
        return float(text)
    except (TypeError, ValueError):
        return 0.0


def _first(names: Iterable[str], header: list[str]) -> str:
    lower = {name.lower(): name for name in header}
    return next((lower[name] for name in names if name in lower), "")


def _require(mapping: Mapping[str, str], header: list[str], path: Path) -> None:
    missing = [key for key in mapping.values() if key not in header]
    if missing or "statement" not in mapping:
        wanted = f"no column {', '.join(map(repr, missing))}" if missing else "no recognisable statement column"
        raise InvalidInput(
            f"{path.name} has {wanted}; its columns are {', '.join(header)}. --map statement=COLUMN,… names them"
        )
