"""Reads files of records: in Engram's own format, in others with a mapping of keys or columns, or exported by mem0.

Unusable records are named and skipped.
"""

import csv
import hashlib
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from engram.dialects.engram_yaml import from_mapping, load_mappings
from engram.dialects.fields import FieldError, plain_mapping, read_time, unit_number
from engram.dialects.source import ImportSource, Projection, origin_of_path, record_label
from engram.model.errors import EngramError, InvalidInput, UnreadableData
from engram.model.memory import Memory
from engram.model.types import known_types
from engram.readers.data import parse_json, read_text
from engram.rules.labels import normalize_cues
from engram.rules.scopes import parse_scope

SUFFIXES = (".yaml", ".yml", ".json", ".jsonl")
_LIST_KEYS = ("engrams", "memories", "records", "items", "results")
_PLURS_OWN = frozenset({"knowledge_anchors", "commitment", "write_count", "injection_count", "x_engram"})
"""Keys that only PLUR writes."""


def read_record_files(path: Path) -> ImportSource:
    """Read a file, or every YAML and JSON file below a folder. Raises `InvalidInput` if there is none."""
    reading = ImportSource(origin=origin_of_path("import", path))
    files = [path] if path.is_file() else sorted(record_files(path))
    if not files:
        raise InvalidInput(f"{path} contains nothing to import; `engram import --help` lists the formats")
    for file in files:
        try:
            if file != path and not file.resolve().is_relative_to(path.resolve()):
                raise InvalidInput("a symbolic link out of the folder is not followed")
            _read_file(file, reading)
        except EngramError as error:
            if file == path:
                raise
            reading.skipped.append((str(file), str(error)))
    return reading


def record_files(folder: Path) -> Iterator[Path]:
    """The YAML and JSON files below a folder, without hidden ones."""
    root = folder / "engrams" if (folder / "store.json").is_file() else folder
    for file in root.rglob("*"):
        hidden = any(part.startswith(".") for part in file.relative_to(root).parts)
        if file.suffix.lower() in SUFFIXES and file.is_file() and not hidden:
            yield file


def _read_file(file: Path, reading: ImportSource) -> None:
    if file.suffix.lower() not in SUFFIXES:
        raise InvalidInput(f"Unknown format: {file}; `engram import --help` lists the known ones")
    for where, record in records_in(file, reading):
        try:
            reading.found.append((where, _record(record)))
        except EngramError as error:
            reading.skipped.append((record_label(record, where), str(error)))


def records_in(file: Path, reading: ImportSource) -> list[tuple[str, Any]]:
    """The records of a YAML or JSON file, each with its position. Raises `InvalidInput`."""
    text = read_text(file)
    suffix = file.suffix.lower()
    if suffix == ".jsonl":
        return list(_lines(text, file, reading))
    if suffix == ".json":
        return _number_records(list_in(parse_record_json(text, where=str(file)), file), file)
    return _number_records(load_mappings(text, where=str(file)), file)


def _number_records(records: list[Any], file: Path) -> list[tuple[str, Any]]:
    return [(f"{file.name} record {number}", record) for number, record in enumerate(records, 1)]


def _lines(text: str, file: Path, reading: ImportSource) -> Iterator[tuple[str, Any]]:
    """One record per line; a damaged line loses only that record."""
    for number, line in enumerate(text.split("\n"), 1):
        where = f"{file.name} line {number}"
        if line.strip():
            try:
                yield where, parse_record_json(line, where=file.name, line=number)
            except UnreadableData as error:
                reading.skipped.append((where, error.reason))


def parse_record_json(text: str, *, where: str, line: int = 1) -> Any:
    """The value of a JSON text.

    Raises `UnreadableData`, also for a duplicate key. The characters of each record are checked when it is read.
    """
    return parse_json(text, where=where, line=line, characters="any", unique_keys=True)


def list_in(tree: Any, file: Path) -> list[Any]:
    """The list of records in a JSON file: the file itself, the value of a usual key, or its single record."""
    if isinstance(tree, dict):
        tree = next((tree[key] for key in _LIST_KEYS if isinstance(tree.get(key), list)), [tree])
    if isinstance(tree, list):
        return tree
    raise InvalidInput(f"{file} contains no list of records")


def _record(record: Any) -> "Memory | Mapping[str, Any]":
    """A record in Engram's or PLUR's format as a memory, without an id if it has none; other records stay fields."""
    if isinstance(record, str):
        return {"statement": record}
    if not isinstance(record, Mapping):
        raise InvalidInput(f"a record must be fields or a text, is {json.dumps(record, default=str):.60}")
    if "statement" not in record:
        return dict(record)
    if not record.get("id"):
        return from_mapping({**record, "id": "this record"}).replace(id="")
    if not _PLURS_OWN.isdisjoint(record):
        from engram.dialects.plur import from_plur

        return from_plur(record)
    return from_mapping(record)


TABLE_SUFFIXES = (".csv", ".tsv")
Row = tuple[str, dict[str, str]]
"""The position of a row, and its cells by column."""


def read_table(path: Path, source: ImportSource) -> tuple[list[str], Iterator[Row]]:
    """The columns and rows of a table; invalid rows are named in `source`. Raises `InvalidInput` for a bad header."""
    text = read_text(path)
    delimiter = "\t" if path.suffix.lower() == ".tsv" else _delimiter(text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
    except csv.Error as error:
        raise InvalidInput(f"{path.name} line 1: {error}") from None
    if not any(header):
        raise InvalidInput(f"{path} has no header line")
    names = [name or f"column {number}" for number, name in enumerate(header, 1)]
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        raise InvalidInput(f"{path.name} has two columns named {repeated[0]!r}; rename one of them")
    return names, _rows(reader, names, path, source)


def _rows(reader: Any, header: list[str], path: Path, source: ImportSource) -> Iterator[Row]:
    while True:
        begins = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            reason = "a quoted cell is never closed; the rest of the file was not read"
            unclosed = str(error) == "unexpected end of data"
            source.skipped.append(
                (f"{path.name} line {begins}", reason if unclosed else f"not a row of a table: {error}")
            )
            continue
        where = f"{path.name} line {reader.line_num}"
        if len(row) > len(header):
            source.skipped.append((where, f"has {len(row)} cells, the header has {len(header)}"))
        elif any(cell.strip() for cell in row):
            yield where, dict(zip(header, row, strict=False))


def _delimiter(text: str) -> str:
    first = text.partition("\n")[0]
    return max(",;\t", key=first.count)


_TEXTS = ("statement", "type", "scope", "situation", "context", "rationale", "domain", "source", "session")
_TIMES = ("created", "updated", "occurred_at", "valid_from", "valid_until", "last_verified")
_NUMBERS = ("confidence", "importance")
_LIST_FIELDS = ("tags", "cues", "entities")
_PHRASES = ("cues",)
"""Lists whose entries may contain commas, so that only semicolons separate them in a text."""
FIELDS = ("id", *_TEXTS, *_TIMES, *_NUMBERS, *_LIST_FIELDS)
"""The fields that a mapping may fill."""
_USUAL = {
    "statement": ("statement", "content", "fact", "text", "memory", "note"),
    "id": ("id", "uuid"),
    "type": ("type", "kind", "category"),
    "created": ("created", "created_at", "date", "timestamp"),
    "tags": ("tags",),
}
"""The usual column names of a table without a mapping."""
_EARLIEST_EPOCH = 1e9
"""Minimum number read as seconds since 1970; a smaller one is a date such as 20250301, or nothing."""
_MILLISECONDS = 1e11
"""Minimum number read as milliseconds since 1970."""


def parse_mapping(text: str) -> dict[str, str]:
    """`statement=text,created=when` as field → key. Raises `InvalidInput` for an unknown field."""
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
    """Read a file's records by a mapping, or a table by its usual column names. Raises `InvalidInput`."""
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
    """The memory of a record; unmapped keys become its metadata. Raises `InvalidInput` naming the key."""
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
    """The value of a key; `payload.text` is a key inside a block, unless a key has that name."""
    value: Any = record
    for part in (key,) if key in record else key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _make_id(record: Mapping[str, Any]) -> str:
    """A stable id for a record without one, derived from its contents."""
    text = json.dumps(record, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _value(field: str, key: str, value: Any) -> Any:
    if field in _TIMES:
        return parse_timestamp(key, value)
    if field in _NUMBERS:
        return unit_number(key, value)
    if field in _LIST_FIELDS:
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
    """A time: ISO 8601, or seconds or milliseconds since 1970, from 2001 on. Raises `InvalidInput` naming the key."""
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


STATED_FIELDS = frozenset({"statement", "tags", "created", "updated", "metadata"})
_KEYS = frozenset({"id", "memory", "text", "created_at", "updated_at", "metadata", "categories"})
_ENOUGH_TO_TELL = 64 * 1024
_SIGNS = (b'"memory"', b'"created_at"')


def is_mem0(path: Path) -> bool:
    """Whether a JSON file looks like an export of mem0."""
    if path.suffix.lower() != ".json" or not path.is_file():
        return False
    with path.open("rb") as file:
        start = file.read(_ENOUGH_TO_TELL)
    return all(sign in start for sign in _SIGNS) and (
        b'"user_id"' in start or b'"categories"' in start or b'"hash"' in start
    )


def read_mem0(path: Path) -> ImportSource:
    """Read an export; unusable records are named. Raises `InvalidInput` if it is not a JSON list."""
    if not path.is_file():
        raise InvalidInput(f"{path} is a folder; give the exported JSON file")
    tree = parse_record_json(read_text(path), where=str(path))
    source = ImportSource(
        origin=origin_of_path("import", path), whole=True, projection=Projection(STATED_FIELDS, lambda memory: memory)
    )
    if isinstance(tree, Mapping) and isinstance(graph := tree.get("relations"), list) and graph:
        source.not_read.append(f"{path.name}: {len(graph)} relations of its graph")
    for number, record in enumerate(list_in(tree, path), 1):
        where = f"{path.name} record {number}"
        try:
            source.add(where, _memory(record))
        except EngramError as error:
            source.skipped.append((record_label(record, where), str(error)))
    return source


def _memory(record: Any) -> Memory:
    if not isinstance(record, Mapping):
        raise InvalidInput(f"a record must be fields, is {record!r:.60}")
    statement, name = record.get("memory") or record.get("text"), record.get("id")
    if not isinstance(statement, str) or not statement.strip():
        raise InvalidInput("memory is empty")
    if not isinstance(name, str) or not name.strip():
        raise InvalidInput("id is missing")
    return Memory(
        id=name.strip(),
        statement=statement.strip(),
        type="fact",
        scope=_scope(record),
        tags=_categories(record.get("categories")),
        created=_time(record, "created_at"),
        updated=_time(record, "updated_at"),
        metadata=_metadata(record),
    )


def _scope(record: Mapping[str, Any]) -> str:
    """The scope of its owner: `agent:A/U`, `agent:A` or `user:U`, as `user_id` and `agent_id` name it in Engram."""
    agent, user = (_owner(record.get(key)) for key in ("agent_id", "user_id"))
    path = "/".join(filter(None, (agent, user)))
    return parse_scope(f"{'agent' if agent else 'user'}:{path}") if path else "global"


def _owner(value: Any) -> str:
    return value.strip().replace("%", "%25").replace("/", "%2F") if isinstance(value, str) else ""


def _time(record: Mapping[str, Any], key: str) -> Any:
    return parse_timestamp(key, record[key]) if record.get(key) else None


def _categories(value: Any) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) else value
    return tuple(item for item in items if isinstance(item, str) and item) if isinstance(items, list) else ()


def _metadata(record: Mapping[str, Any]) -> dict[str, Any]:
    """Its metadata, plus its owner and every other key."""
    given = record.get("metadata")
    rest = {key: value for key, value in record.items() if key not in _KEYS and value not in (None, "", [], {})}
    return plain_mapping({**(given if isinstance(given, Mapping) else {}), **rest})
