"""Files of records in Engram's own words, or loose ones: YAML, JSON, JSON lines. Bad records are named, not fatal."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from engram.dialects.engram_yaml import from_mapping, load_mappings
from engram.dialects.source import ImportSource, origin_of_path, record_label
from engram.model.errors import EngramError, InvalidInput, UnreadableData
from engram.model.memory import Memory
from engram.readers.json_reader import parse_json
from engram.readers.limits import read_text

SUFFIXES = (".yaml", ".yml", ".json", ".jsonl")
_LISTS = ("engrams", "memories", "records", "items", "results")
_PLURS_OWN = frozenset({"knowledge_anchors", "commitment", "write_count", "injection_count", "x_engram"})
"""Keys that only PLUR writes."""


def read_record_files(path: Path) -> ImportSource:
    """Read a file, or every YAML and JSON file below a folder. Raises `InvalidInput` where there is none."""
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
    """The YAML and JSON files below a folder, hidden ones left out."""
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
    """The records of a YAML or JSON file, each with its place. Raises `InvalidInput`."""
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
    """One record per line; a line that is torn costs that line."""
    for number, line in enumerate(text.split("\n"), 1):
        where = f"{file.name} line {number}"
        if line.strip():
            try:
                yield where, parse_record_json(line, where=file.name, line=number)
            except UnreadableData as error:
                reading.skipped.append((where, error.reason))


def parse_record_json(text: str, *, where: str, line: int = 1) -> Any:
    """The value of a JSON text. Raises `UnreadableData`, also for a key that appears twice. Each record's characters are checked when it is read."""
    return parse_json(text, where=where, line=line, characters="any", unique_keys=True)


def list_in(tree: Any, file: Path) -> list[Any]:
    """The list of records in a JSON file: itself, under one of the usual keys, or the one record it is."""
    if isinstance(tree, dict):
        tree = next((tree[key] for key in _LISTS if isinstance(tree.get(key), list)), [tree])
    if isinstance(tree, list):
        return tree
    raise InvalidInput(f"{file} contains no list of records")


def _record(record: Any) -> "Memory | Mapping[str, Any]":
    """A record in Engram's or PLUR's own wording as a memory, without an id where it has none; anything else stays fields."""
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
