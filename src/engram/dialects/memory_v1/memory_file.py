"""The text of a memory.v1 file: records in the frontmatter, a summary for people below it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from engram.dialects.memory_v1.item import (
    CURATED,
    KEYS,
    SCHEMA,
    TEXT_KEYS,
    MemoryItem,
    item_record,
    number_in,
    read_item,
)
from engram.dialects.yaml_writer import emit_list, is_bare, quoted_scalar
from engram.model.errors import InvalidInput, UnknownVersion, UnreadableData
from engram.model.lazy import dataclass, field
from engram.model.memory import Memory
from engram.readers.frontmatter import split_frontmatter
from engram.readers.yaml_parser import parse_yaml
from engram.text.display import without_comments

_LONGEST_FILE = 256 * 1024 * 1024


@dataclass(slots=True)
class MemoryFile:
    """What a file holds: each readable record with its place, and the others with the reason."""

    found: list[tuple[str, Memory]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)


def load(text: str, *, where: str) -> MemoryFile:
    """The records of a file; a record that cannot be used is named and skipped.

    Raises `UnreadableData` for a file that is no memory.v1 file, `UnknownVersion` for another version of the schema.
    """
    tree, lines = _frontmatter(text, where)
    reading = MemoryFile()
    for index, record in enumerate(tree["items"] or ()):
        line = f" line {lines[index]}" if index < len(lines) else f" item {index + 1}"
        name = record.get("id") if isinstance(record, Mapping) else None
        place = f"{where}{line}" + (f" ({name})" if isinstance(name, str) else "")
        try:
            reading.found.append((place, read_item(record)))
        except InvalidInput as error:
            reading.skipped.append((place, str(error)))
    return reading


def _frontmatter(text: str, where: str) -> tuple[dict[str, Any], list[int]]:
    parts = split_frontmatter(text)
    if parts is None:
        raise UnreadableData(f"not a {SCHEMA} file: no frontmatter between two `---` lines", where=where, line=1)
    document = parse_yaml("\n" + parts.head, where=where, longest=_LONGEST_FILE, text_keys=TEXT_KEYS, list_key="items")
    tree = document.tree
    if not isinstance(tree, dict) or "schema" not in tree:
        raise UnreadableData(f"the frontmatter has no `schema: {SCHEMA}`", where=where, line=2)
    if tree["schema"] != SCHEMA:
        raise UnknownVersion(
            f"{where}: schema {str(tree['schema'])[:40]!r} is not known; this Engram reads {SCHEMA}. Update Engram, "
            f"or let the program that wrote the file export it as {SCHEMA}"
        )
    if "items" not in tree or not isinstance(tree["items"], list | None):
        raise UnreadableData("the frontmatter has no list `items:`", where=where, line=2)
    return tree, document.lines


def dump(items: Sequence[MemoryItem], generated: date, *, file: str) -> str:
    """A file's text: the records by number, and the summary below. Raises `InvalidInput` for what no file can store."""
    ordered = sorted(items, key=lambda item: item.number)
    records = [item_record(item, generated) for item in ordered]
    blocks = "\n".join(map(_block, records))
    head = f"---\nschema: {SCHEMA}\ngenerated: {generated.isoformat()}\n"
    listed = f"items:\n{blocks}" if blocks else "items: []\n"
    body = _curated_body if file == CURATED else _log_body
    promoted = [record for record in records if record["status"] == "promoted"]
    return f"{head}{listed}---\n\n{body(promoted, _none_promoted(records))}"


def _block(record: Mapping[str, Any]) -> str:
    lines = [f"    {key}: {_scalar(key, record[key])}" for key in KEYS]
    text = "\n".join(["  - " + lines[0].lstrip(), *lines[1:], ""])
    unknown = {key: value for key, value in record.items() if key not in KEYS}
    # Below the id, whose line is already there: a list of nothing but numbers would be written on one line.
    return text + emit_list([{"id": "", **unknown}], "  ").partition("\n")[2] if unknown else text


def _scalar(key: str, value: Any) -> str:
    if value is None:
        return "null"
    if key == "fact":
        return quoted_scalar(value)
    return value if key != "source" or is_bare(value) else quoted_scalar(value)


def _none_promoted(records: Sequence[Mapping[str, Any]]) -> str:
    """What the body says where nothing is promoted: the other records above it are pending, rejected or stale."""
    counts = Counter(record["status"] for record in records)
    listed = ", ".join(f"{number} {status}" for status, number in sorted(counts.items()))
    return f"_No promoted memories: {listed}._" if listed else "_No promoted memories yet._"


def _curated_body(promoted: Sequence[Mapping[str, Any]], none: str) -> str:
    lines = ["# Memory", ""]
    for kind in sorted({record["kind"] for record in promoted}):
        facts = [f"- {_inline(record['fact'])}" for record in promoted if record["kind"] == kind]
        lines += [f"## {kind}", "", *facts, ""]
    return "\n".join(lines if promoted else [*lines, none, ""])


def _log_body(promoted: Sequence[Mapping[str, Any]], none: str) -> str:
    newest = sorted(promoted, key=lambda record: (record["learned_at"], number_in(record["id"])), reverse=True)
    lines = [
        f"- {record['learned_at']} · [{record['kind']}] {_inline(record['fact'])} "
        f"(conf {float(record['confidence']):.2f}, src {_inline(record['source'])}, id {record['id']})"
        for record in newest
    ]
    return "\n".join(["# Memory log", "", *(lines or [none]), ""])


def _inline(text: str) -> str:
    """Text on one line that neither opens nor closes a comment."""
    return without_comments(" ".join(text.split()))
