"""Reads and writes the two files of memory.v1: one record per memory in the frontmatter, and below it a summary for people."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from engram.dialects.fields import FieldError, plain_mapping, read_time, unit_number
from engram.dialects.source import ImportSource, origin_of_path, stated_source
from engram.dialects.yaml_writer import emit_list, is_bare, quoted_scalar
from engram.disk import read_bytes
from engram.model.errors import InvalidInput, NotFound, UnknownVersion, UnreadableData
from engram.model.lazy import dataclass, field
from engram.model.memory import Memory, Status
from engram.model.types import KINDS
from engram.readers.data import decode_text, read_text, split_frontmatter
from engram.readers.yaml_parser import parse_yaml
from engram.rules.labels import normalize_cues
from engram.text.display import without_comments

SCHEMA = "memory.v1"
CURATED, LOG = "memory.md", "memory-log.md"
LEARNED_BY = ("remember", "harvest", "manual", "import")
STATED_FIELDS = frozenset(
    {"statement", "type", "cues", "confidence", "created", "last_verified", "decay_days", "status"}
)
"""The fields of a memory that a record states."""
ID = re.compile(r"mem-[0-9]{1,9}")
LARGEST_NUMBER = 10**9 - 1
_EXTRA = SCHEMA
"""The key in a memory's `extra` for what only the file can express."""
_DECAY = re.compile(r"\s*([0-9]{1,7})\s*([hdwmy])\s*")
_DAYS = {"h": 1 / 24, "d": 1, "w": 7, "m": 30, "y": 365}
_NEVER = "99999d"
"""The horizon of a memory that has none, because the format cannot express that."""
_STATUSES: dict[str, Status] = {"pending": "candidate", "promoted": "active", "rejected": "rejected", "stale": "active"}
_SHOWN_STATUS = {"candidate": "pending", "active": "promoted", "dormant": "promoted", "rejected": "rejected"}
_SHOWN_LEARNED_BY = {"learn": "remember", "add": "manual"}
KEYS = ("id", "fact", "kind", "source", "confidence", "learned_by", "learned_at", "last_verified", "decay", "status",
        "risk_tier", "dest")  # fmt: skip
"""The keys of a record in the spec's order."""
_OPTIONAL = ("last_verified", "decay", "dest")
TEXT_KEYS = frozenset(KEYS) - {"confidence", "risk_tier"}
"""Keys whose value is text, whatever it looks like."""


@dataclass(frozen=True, slots=True)
class MemoryItem:
    """A memory about to be written, with the gates' results for it."""

    id: str
    memory: Memory
    kind: str
    tier: int
    stale: bool = False

    @property
    def shown_kind(self) -> str:
        """Its kind, if the format has it; custom types may have another."""
        return self.kind if self.kind in KINDS else "project"

    @property
    def risk_tier(self) -> int:
        """The highest of its own tier, that of its kind, and the one stated by the file it came from."""
        claimed = _kept_of(self.memory).get("risk_tier")
        return max(self.tier, KINDS[self.shown_kind], claimed if claimed in (1, 2, 3) else 1)

    @property
    def file(self) -> str:
        """The file it belongs in."""
        return CURATED if self.risk_tier >= 3 else LOG

    @property
    def number(self) -> int:
        """The number in its id."""
        return number_in(self.id)


def number_in(name: str) -> int:
    """The number in an id."""
    return int(name.removeprefix("mem-"))


# -- reading


def read_item(record: Any) -> Memory:
    """The memory described by a record, under its id. Raises `InvalidInput` naming the key.

    A record has other fields than a memory. Whatever a memory cannot store (how it was learned, an unusual spelling
    of its horizon, unknown keys) stays in `extra`, so that it is written back unchanged.
    """
    if not isinstance(record, Mapping):
        raise InvalidInput(f"an item must be a block of fields, is {record!r:.60}")
    if missing := [key for key in KEYS if key not in _OPTIONAL and record.get(key) is None]:
        raise InvalidInput(f"missing: {', '.join(missing)}")
    for key in TEXT_KEYS & record.keys():
        if not isinstance(record[key], str | None):
            raise InvalidInput(f"{key} must be text, is {record[key]!r:.60}")
    if not ID.fullmatch(record["id"]):
        raise InvalidInput(f"id must be mem- and a number, is {record['id']!r:.60}")
    verified = record.get("last_verified")
    return Memory(
        id=record["id"],
        statement=record["fact"],
        type=_choice(record, "kind", KINDS),
        status=_STATUSES[_choice(record, "status", _STATUSES)],
        source=record["source"],
        learned_by=_choice(record, "learned_by", LEARNED_BY),
        confidence=unit_number("confidence", record["confidence"]),
        created=_day(record, "learned_at"),
        last_verified=_day(record, "last_verified") if verified else None,
        verification="user_confirmed" if verified else "unverified",
        decay_days=_decay_days(record.get("decay") or "180d"),
        cues=_cues(record),
        extra={_EXTRA: _rest_of_record(record)},
    )


def _choice(record: Mapping[str, Any], key: str, known: Any) -> str:
    value = record[key]
    if value not in known:
        raise InvalidInput(f"Unknown {key} {value!r:.60}; choose {', '.join(known)}")
    return str(value)


def _day(record: Mapping[str, Any], key: str) -> datetime:
    try:
        return read_time(record[key])
    except FieldError:
        raise InvalidInput(f"{key} must be a date such as 2026-01-15, is {record[key]!r:.60}") from None


def _decay_days(text: str) -> float | None:
    found = _DECAY.fullmatch(text)
    if not found:
        raise InvalidInput(f"decay must be a number of h, d, w, m or y such as 180d, is {text!r:.60}")
    return None if text == _NEVER else int(found[1]) * _DAYS[found[2]]


def _cues(record: Mapping[str, Any]) -> tuple[str, ...]:
    """The cues of a record; () if another program uses the key for something else."""
    value = record.get("cues")
    is_texts = isinstance(value, list) and all(isinstance(cue, str) for cue in value)
    return normalize_cues(value) if is_texts and value else ()


def _rest_of_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a record without a field of their own."""
    tier, dest = record["risk_tier"], record.get("dest")
    if isinstance(tier, bool) or tier not in (1, 2, 3):
        raise InvalidInput(f"risk_tier must be 1, 2 or 3, is {tier!r:.60}")
    if dest not in (None, CURATED, LOG):
        raise InvalidInput(f"dest must be {CURATED}, {LOG} or null, is {dest!r:.60}")
    kept: dict[str, Any] = {"learned_by": record["learned_by"]}
    if tier > KINDS[record["kind"]]:
        kept["risk_tier"] = tier
    if (decay := record.get("decay")) and _decay(_decay_days(decay), None) != decay:
        kept["decay"] = decay
    if unknown := {
        key: value for key, value in record.items() if key not in KEYS and not (key == "cues" and _cues(record))
    }:
        kept["keys"] = plain_mapping(unknown)
    return kept


def _kept_of(memory: Memory) -> Mapping[str, Any]:
    kept = memory.extra.get(_EXTRA)
    return kept if isinstance(kept, Mapping) else {}


# -- writing


def has_status(memory: Memory) -> bool:
    """Whether the format has a status for a memory. It has none for superseded, archived and retired memories."""
    return memory.status in _SHOWN_STATUS


def as_exported(memory: Memory, kind_of: Callable[[Memory], str], tier_of: Callable[[Memory], int]) -> Memory:
    """A memory as a reader of the format sees it."""
    record = item_record(MemoryItem("mem-0", memory, kind_of(memory), tier_of(memory)), date.min)
    record["confidence"] = float(record["confidence"])
    return read_item(record).replace(id=memory.id)


def item_record(item: MemoryItem, generated: date) -> dict[str, Any]:
    """A record in the spec's order, with dates, numbers and durations as spelled in the file."""
    memory = item.memory
    kept = _kept_of(memory)
    status = _SHOWN_STATUS.get(memory.status, "rejected")
    status = "stale" if item.stale and status == "promoted" else status
    verified = memory.last_verified
    return {
        "id": item.id,
        "fact": memory.statement,
        "kind": item.shown_kind,
        "source": _source(memory),
        "confidence": _spell_confidence(memory.confidence),
        "learned_by": _learned_by(memory, kept),
        "learned_at": _format_day(memory.created) or generated.isoformat(),
        "last_verified": _format_day(verified) if verified else None,
        "decay": _decay(memory.decay_days, kept.get("decay")),
        "status": status,
        "risk_tier": item.risk_tier,
        "dest": item.file if status in ("promoted", "stale") else None,
        **_unknown_keys(kept),
        **({"cues": list(memory.cues)} if memory.cues else {}),
    }


def _unknown_keys(kept: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a file that the format does not define. Those it defines come from the memory."""
    keys = kept.get("keys")
    return {key: value for key, value in keys.items() if key not in KEYS} if isinstance(keys, Mapping) else {}


def _source(memory: Memory) -> str:
    if (stated := stated_source(memory)) != memory.source:
        return stated
    if not memory.source or memory.source.partition(":")[0] in ("human", "hand"):
        return "manual"
    return "tool:remember" if memory.source == "agent" else memory.source


def _learned_by(memory: Memory, kept: Mapping[str, Any]) -> str:
    if memory.learned_by in ("", "import") and kept.get("learned_by") in LEARNED_BY:
        return str(kept["learned_by"])
    learned_by = _SHOWN_LEARNED_BY.get(memory.learned_by, memory.learned_by)
    return learned_by if learned_by in LEARNED_BY else "manual"


def _spell_confidence(confidence: float) -> str:
    text = f"{min(max(confidence, 0.0), 1.0):.2f}"
    return text[:-1] if text.endswith("0") else text


def _format_day(moment: datetime | None) -> str:
    return moment.astimezone(UTC).date().isoformat() if moment else ""


def _decay(days: float | None, written: Any) -> str:
    """The horizon as the file spelled it while that is still correct, else in days, or hours if they are exact."""
    if isinstance(written, str) and _DECAY.fullmatch(written) and _decay_days(written) == days:
        return written
    if days is None:
        return _NEVER
    whole = min(max(round(days), 0), 99998)
    return f"{round(days * 24)}h" if 0 < days != whole and days < 30 else f"{whole}d"


_LONGEST_FILE = 256 * 1024 * 1024


@dataclass(slots=True)
class MemoryFile:
    """The contents of a file: each readable record with its position, and the others with the reason."""

    found: list[tuple[str, Memory]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)


def load(text: str, *, where: str) -> MemoryFile:
    """The records of a file; unusable records are named and skipped.

    Raises `UnreadableData` for a file not in memory.v1, `UnknownVersion` for another version of the schema.
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
    """A file's text: the records by number, and the summary below.

    Raises `InvalidInput` for text that no file can store.
    """
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
    # Below the id, whose line is already there, because a list of only numbers would be written on one line.
    return text + emit_list([{"id": "", **unknown}], "  ").partition("\n")[2] if unknown else text


def _scalar(key: str, value: Any) -> str:
    if value is None:
        return "null"
    if key == "fact":
        return quoted_scalar(value)
    return value if key != "source" or is_bare(value) else quoted_scalar(value)


def _none_promoted(records: Sequence[Mapping[str, Any]]) -> str:
    """The body if nothing is promoted: the records above it are pending, rejected or stale."""
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
    """The text on one line that neither opens nor closes a comment."""
    return without_comments(" ".join(text.split()))


_LOOKS_LIKE = re.compile(rb"(?:\xef\xbb\xbf)?---\s*\n(?:[^\n]*\n){0,20}?schema:\s*[\"']?memory\.v")
_ENOUGH_TO_TELL = 4096


def is_memory_v1(path: Path) -> bool:
    """Whether a path looks like a file of this format in some version, or a directory of them."""
    if path.is_dir():
        return any(is_memory_v1(path / name) for name in (CURATED, LOG) if (path / name).is_file())
    if path.suffix.lower() != ".md" or not path.is_file():
        return False
    with path.open("rb") as file:
        return _LOOKS_LIKE.match(file.read(_ENOUGH_TO_TELL)) is not None


def read_directory(path: Path) -> ImportSource:
    """Read both files of a directory, or one file.

    Raises `NotFound`, `InvalidInput` and `UnknownVersion`. A file is read completely or not at all.
    """
    root = path if path.is_dir() else path.parent
    files = [file for name in (CURATED, LOG) if (file := root / name).is_file()] if path.is_dir() else [path]
    if not files:
        raise NotFound(f"{path} has neither {CURATED} nor {LOG}")
    source = ImportSource(origin=origin_of_path("import", root), whole=True)
    for file in files:
        if path.is_dir() and not file.resolve().is_relative_to(root.resolve()):
            raise InvalidInput(f"{file} is a symbolic link out of the directory; name the file itself to read it")
        text = read_text(file)
        if file.name == LOG and len(files) > 1 and split_frontmatter(text) is None:
            source.not_read.append(f"{file}: a plain log; its records are in {CURATED}")
            continue
        reading = load(text, where=str(file))
        source.skipped += reading.skipped
        for place, memory in reading.found:
            source.add(place, memory)
    return source


def refuse_overwriting(directory: Path, *, force: bool) -> None:
    """Raise `InvalidInput` if a file is in the way that may not be replaced.

    Files in other formats are never replaced.
    """
    for file in (directory / CURATED, directory / LOG):
        if not file.exists() and not file.is_symlink():
            continue
        if not force:
            raise InvalidInput(f"{file} already exists; choose another directory, or add --force to replace it")
        try:
            load(decode_text(read_bytes(file), where=str(file)), where=str(file))
        except (UnreadableData, UnknownVersion, OSError) as error:
            raise InvalidInput(f"{error}. Not replaced; move the file elsewhere first") from None
