"""Reads what can become memories from a path: PLUR directories, engram YAML, JSON. Bad records are named, not fatal."""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from engram.dialects.engram_yaml import decode, from_mapping, load_mappings
from engram.dialects.json_records import strict_json
from engram.model.errors import EngramError, InvalidInput, NotFound
from engram.model.lazy import dataclass, field
from engram.model.memory import Memory

FORMATS = ("", "plur", "engram", "json")
_ORIGIN = re.compile(r"(?:plur|import)-[0-9a-f]{12}/")
_LISTS = ("engrams", "memories", "records", "items")
_PLURS_OWN = frozenset({"knowledge_anchors", "commitment", "write_count", "injection_count", "x_engram"})
"""Keys that only PLUR writes."""


@dataclass(slots=True)
class ImportSource:
    """What was read from a path: memories or drafts, each with its place, and what could not be read."""

    found: list[tuple[str, "Memory | Mapping[str, Any]"]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    not_read: list[str] = field(default_factory=list)
    origin: str = ""
    """What the store it was read from is called here: ids mean something only within it."""
    whole: bool = False
    """Whether ids there say nothing about ids here, as PLUR's do not, so that every record is known by its origin."""

    def name_of(self, record_id: str) -> str:
        """The alias under which a record of this origin is found again."""
        return f"{self.origin}/{record_id}"


def is_origin(alias: str) -> bool:
    """Whether an alias says which record of another store a memory came from."""
    return _ORIGIN.match(alias) is not None


def without_origin(name: str) -> str:
    """The id that a record has in the store it came from, where a name says so."""
    return _ORIGIN.sub("", name, count=1).partition("@")[0] if is_origin(name) else name


def read(path: Path, *, packs: bool = False, format_: str = "") -> ImportSource:
    """Read a path; single bad records and files are named, not fatal. Raises `NotFound` and `InvalidInput`."""
    if format_ not in FORMATS:
        raise InvalidInput(f"Unknown format {format_!r}; choose {', '.join(FORMATS[1:])}, or leave it out")
    if not path.exists():
        raise NotFound(f"{path} does not exist")
    is_plur = (path / "engrams.yaml").is_file() or path.name == "engrams.yaml"
    if format_ == "plur" or (is_plur and not format_):
        return _plur(path, packs)
    reading = ImportSource(origin=_origin("import", path))
    files = [path] if path.is_file() else sorted(_files(path))
    if not files:
        raise InvalidInput(
            f"{path} contains no YAML or JSON files; `engram import` reads ~/.plur, engram YAML and JSON"
        )
    for file in files:
        try:
            _read_file(file, reading)
        except EngramError as error:
            if file == path:
                raise
            reading.skipped.append((str(file), str(error)))
    return reading


def _plur(path: Path, packs: bool) -> ImportSource:
    from engram.dialects.plur import read_plur

    found = read_plur(path, packs=packs)
    return ImportSource(
        list(found.memories.items()),
        found.quarantined,
        found.not_read,
        _origin("plur", path.parent if path.is_file() else path),
        whole=True,
    )


def _origin(kind: str, path: Path) -> str:
    """A store is known by where it is: two of them at different places share no ids, whatever their records say."""
    return f"{kind}-{hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:12]}"


def _files(folder: Path) -> Iterator[Path]:
    root = folder / "engrams" if (folder / "store.json").is_file() else folder
    for file in root.rglob("*"):
        hidden = any(part.startswith(".") for part in file.relative_to(root).parts)
        if file.suffix in (".yaml", ".yml", ".json", ".jsonl") and file.is_file() and not hidden:
            yield file


def _read_file(file: Path, reading: ImportSource) -> None:
    text = decode(file.read_bytes(), where=str(file))
    if file.suffix == ".jsonl":
        records = list(_lines(text, file, reading))
    elif file.suffix == ".json":
        records = _numbered(_list_in(_json(text, str(file)), file), file)
    elif file.suffix in (".yaml", ".yml"):
        records = _numbered(load_mappings(text, where=str(file)), file)
    else:
        raise InvalidInput(f"{file} is neither YAML nor JSON; `engram import` reads ~/.plur, engram YAML and JSON")
    for where, record in records:
        try:
            reading.found.append((where, _record(record)))
        except EngramError as error:
            reading.skipped.append((called(record, where), str(error)))


def _numbered(records: list[Any], file: Path) -> list[tuple[str, Any]]:
    return [(f"{file.name} record {number}", record) for number, record in enumerate(records, 1)]


def _lines(text: str, file: Path, reading: ImportSource) -> Iterator[tuple[str, Any]]:
    """One record per line; a line that is torn costs that line."""
    for number, line in enumerate(text.split("\n"), 1):
        where = f"{file.name} line {number}"
        if line.strip():
            try:
                yield where, _json(line, where)
            except InvalidInput as error:
                reading.skipped.append((where, str(error)))


def _json(text: str, where: str) -> Any:
    try:
        return strict_json(text)
    except ValueError as error:
        raise InvalidInput(f"{where} is not JSON: {error}") from None


def _list_in(tree: Any, file: Path) -> list[Any]:
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
        return from_mapping({**record, "id": "this record"}).but(id="")
    if not _PLURS_OWN.isdisjoint(record):
        from engram.dialects.plur import from_plur

        return from_plur(record)
    return from_mapping(record)


def called(record: Any, where: str) -> str:
    """How to name a record: its place, and its id if it has one."""
    name = record.get("id") if isinstance(record, Mapping) else None
    return f"{where} ({name})" if isinstance(name, str) and name else where
