"""Exports of mem0: a JSON list, or `{"results": […]}`, of `id`, `memory`, `user_id`, `created_at`, `updated_at`, `metadata`, `categories`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engram.dialects.fields import plain_mapping
from engram.dialects.mapped_records import parse_timestamp
from engram.dialects.record_files import list_in, parse_record_json
from engram.dialects.source import ImportSource, Projection, origin_of_path, record_label
from engram.model.errors import EngramError, InvalidInput
from engram.model.memory import Memory
from engram.readers.limits import read_text
from engram.rules.scopes import parse_scope

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
    """Read an export; a record that cannot be used is named. Raises `InvalidInput` if it is no JSON list."""
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
    """Its metadata, and next to it whose memory it was and every other key."""
    given = record.get("metadata")
    rest = {key: value for key, value in record.items() if key not in _KEYS and value not in (None, "", [], {})}
    return plain_mapping({**(given if isinstance(given, Mapping) else {}), **rest})
