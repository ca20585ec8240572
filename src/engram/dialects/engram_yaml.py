"""Engram's own dialect: memories as plain data with the field names and order of spec 1, written and read as YAML or JSON."""

import json
from collections.abc import Callable, Mapping, Sequence
from math import inf, isfinite
from operator import attrgetter
from typing import Any

from engram.dialects import fields
from engram.dialects.fields import Block, Field, FieldError, add_unknown, quote_value
from engram.model import lazy
from engram.model.errors import InvalidInput, StoreCorrupt, UnknownVersion, UnreadableData
from engram.model.memory import (
    SCHEMA_VERSION,
    SIGNALS,
    STATUSES,
    Activation,
    Anchor,
    Association,
    Evidence,
    Feedback,
    Memory,
    Retelling,
)
from engram.readers.data import decode_text


def _text(key: str, attribute: str = "", default: str = "", always: bool = False) -> Field:
    return Field(key, attribute or key, fields.read_text, fields.write_text, default, always)


def _texts(key: str) -> Field:
    return Field(key, key, fields.read_texts, fields.write_texts, ())


def _time(key: str) -> Field:
    return Field(key, key, fields.read_time, fields.write_time, None)


def _flag(key: str) -> Field:
    return Field(key, key, fields.read_flag, bool, False)


def _count(key: str, default: int, always: bool = False) -> Field:
    return Field(key, key, fields.read_count, fields.read_count, default, always)


def _number(key: str, low: float, high: float, default: float | None, always: bool = False) -> Field:
    return Field(key, key, fields.number_between(low, high), fields.writer_between(low, high), default, always)


def _read_status(value: Any) -> str:
    if value in STATUSES:
        return str(value)
    raise FieldError(f"must be one of {', '.join(STATUSES)}, is {quote_value(value)}")


def _read_required(value: Any) -> str:
    text = fields.read_text(value)
    if not text:
        raise FieldError("must not be empty")
    return text


def _read_span(value: Any) -> tuple[int, int]:
    if isinstance(value, list | tuple) and len(value) == 2:
        return fields.read_count(value[0]), fields.read_count(value[1])
    raise FieldError(f"must be two whole numbers [from, to], is {quote_value(value)}")


class _Links(Block):
    """Reads the links of a memory, which may have thousands. Links as Engram writes them are read without the table."""

    def read_list(self, value: Any) -> tuple[Any, ...]:
        """A list of links. If one is not plain, the table reads them all, or names the one it refuses."""
        links = [_plain_link(item) for item in value] if type(value) is list else [None]
        return tuple(links) if all(links) else super().read_list(value)


_NEW = object.__new__
# Filled slot by slot, because a frozen record's own constructor takes three times as long.
_TARGET, _TYPE, _STRENGTH, _WEIGHT, _CONFIDENCE, _REINFORCED, _EXTRA = (
    vars(Association)[field.name].__set__ for field in lazy.fields(Association)
)


def _plain_link(item: Any) -> Association | None:
    try:
        target, kind, strength = item["target"], item["type"], item["strength"]
        weight = item["weight"] if len(item) == 4 else 1.0
    except (KeyError, TypeError):
        return None
    if len(item) > 4 or type(target) is not str or type(kind) is not str or type(strength) is not float:
        return None
    if not 0 <= strength <= 1 or (type(weight) is not float and type(weight) is not int) or not isfinite(weight):
        return None
    link = _NEW(Association)
    _TARGET(link, target)
    _TYPE(link, kind)
    _STRENGTH(link, strength)
    _WEIGHT(link, float(weight))
    _CONFIDENCE(link, 1.0)
    _REINFORCED(link, None)
    _EXTRA(link, {})
    return link


_BLANK = Memory(id="", statement="")
_ACTIVATION = Block(
    Activation,
    _number("retrieval_strength", 0, 1, 0.7, always=True),
    _number("storage_strength", 0, 1, 0.5, always=True),
    _count("frequency", 0, always=True),
    _time("last_accessed"),
    _count("seq", 0),
)
_FEEDBACK = Block(
    Feedback,
    _count("positive", 0, always=True),
    _count("negative", 0, always=True),
    _count("neutral", 0, always=True),
)
_ASSOCIATION = _Links(
    Association,
    _text("target", always=True),
    _number("strength", 0, 1, 0.5, always=True),
    _text("type", default="semantic", always=True),
    Field("weight", "weight", fields.read_number, fields.write_number, 1.0),
    _number("confidence", 0, 1, 1.0),
    _time("last_reinforced"),
)
_ANCHOR = Block(Anchor, _text("path", always=True), _text("snippet"))
_RETELLING = Block(
    Retelling,
    Field("event", "event", _read_required, fields.write_text, always=True),
    _text("scope", always=True),
    _text("type", always=True),
    _text("source"),
    Field("confidence", "confidence", fields.read_confidence, fields.write_confidence, 0.5),
)
_EVIDENCE = Block(
    Evidence,
    _text("event", always=True),
    Field("span", "span", _read_span, list, None),
    _text("quote_hash"),
    Field("retelling", "retelling", _RETELLING.read_item, _RETELLING.write_item, None),
)

_METADATA = Block(
    dict,
    _time("created"),
    _text("source"),
    Field("feedback_signals", "feedback", _FEEDBACK.read_pair, _FEEDBACK.write, _BLANK.feedback),
    _number("emotional_weight", 0, 10, 5),
    _text("trigger_context"),
    _count("derivation_count", 1),
)

_MEMORY = Block(
    Memory,
    Field("id", "id", _read_required, fields.write_text, always=True),
    Field("version", "version", fields.read_count, fields.read_count, always=True),
    Field("status", "status", _read_status, _read_status, always=True),
    _text("type", always=True),
    _text("scope", always=True),
    _text("name"),
    _texts("aliases"),
    _flag("pinned"),
    _text("statement", always=True),
    _text("situation"),
    Field("form", "form", fields.read_text_map, fields.plain_data, {}),
    _text("context"),
    _text("rationale"),
    Field("confidence", "confidence", fields.read_confidence, fields.write_confidence, 0.5),
    _number("importance", 0, 1, 0.5),
    Field("tags", "tags", fields.read_tags, fields.write_texts, ()),
    Field("cues", "cues", fields.read_cues, fields.write_texts, ()),
    _text("domain"),
    _texts("entities"),
    Field("anchors", "anchors", _ANCHOR.read_list, _ANCHOR.write_list, ()),
    Field("activation", "activation", _ACTIVATION.read_pair, _ACTIVATION.write, _BLANK.activation),
    Field("associations", "associations", _ASSOCIATION.read_list, _ASSOCIATION.write_list, ()),
    _flag("consolidated"),
    _time("occurred_at"),
    _time("valid_from"),
    _time("valid_until"),
    _text("lineage"),
    _count("revision", 1),
    _texts("supersedes"),
    _text("superseded_by"),
    _text("conflict_key"),
    _text("critical_slot"),
    _text("learned_by"),
    _time("updated"),
    _time("last_verified"),
    _time("imported_at"),
    Field("decay_days", "decay_days", fields.read_number, fields.write_number, None),
    _text("verification", default="unverified"),
    _text("policy_class"),
    Field("evidence", "evidence", _EVIDENCE.read_list, _EVIDENCE.write_list, ()),
    _text("box"),
    _text("trace"),
    _text("session"),
    _text("task"),
    _text("memory_kind"),
    Field("data", "metadata", fields.read_map, fields.plain_data, {}),
)
MEMORY_KEYS = _MEMORY.keys
"""Keys at the top of a record that are fields."""
FIELD_KEYS = _MEMORY.keys | _METADATA.keys
"""The same plus the keys of its metadata, which a record may also have at the top."""
TEXT_KEYS = _MEMORY.keys_read_by(
    fields.read_text, _read_required, fields.read_texts, fields.read_tags, fields.read_cues
)
"""Keys at the top of a record whose value is text or a list of texts."""


def from_mapping(data: Mapping[str, Any]) -> Memory:
    """The memory described by a mapping. Raises `InvalidInput` naming the field, `UnknownVersion` for a newer record.

    Two tables define which key holds which field, and how it is read and written. Keys missing from the tables are kept
    in `extra`, at their original depth, and written back there.
    """
    try:
        return _read_memory(data)
    except FieldError as error:
        name = data.get("id") if isinstance(data, dict) else None
        whose = f" of {name}" if isinstance(name, str) and name else ""
        raise InvalidInput(f"{error.path or 'the record'}{whose}: {error.what}") from None


_Ranges = tuple[tuple[str, Callable[[Memory], float | None], float, float], ...]
_COUNTS: _Ranges = (
    ("derivation_count", lambda m: m.derivation_count, 0, inf),
    *((f"feedback_signals.{signal}", attrgetter(f"feedback.{signal}"), 0, inf) for signal in SIGNALS),
    ("activation.frequency", lambda m: m.activation.frequency, 0, inf),
)
_BY_HAND: _Ranges = (
    ("confidence", lambda m: fields.write_number(float(fields.write_confidence(m.confidence))), 1, 10),
    ("emotional_weight", lambda m: m.emotional_weight, 1, 10),
    *_COUNTS,
    ("revision", lambda m: m.revision, 1, inf),
    ("decay_days", lambda m: m.decay_days, 0, inf),
)
"""The ranges of values that a person may write into a file, by key (see `docs/file-format.md`)."""


def hand_problem(memory: Memory, before: Memory | None = None) -> str:
    """The first value out of range in a record that a person wrote, or "". Values already in `before` do not count.

    Engram itself may store a confidence below .1 and reads whatever an earlier version wrote, so this is not checked
    for every record that is read.
    """
    return _out_of_range(_BY_HAND, memory, before)


def count_problem(memory: Memory) -> str:
    """The counter that is negative, or ""."""
    return _out_of_range(_COUNTS, memory)


def _out_of_range(ranges: _Ranges, memory: Memory, before: Memory | None = None) -> str:
    for key, value_of, low, high in ranges:
        value = value_of(memory)
        if value is not None and not low <= value <= high and (before is None or value_of(before) != value):
            wanted = f"between {low:g} and {high:g}" if high < inf else f"at least {low:g}"
            return f"{key} of {memory.id}: must be {wanted}, is {value:g}"
    return ""


def to_mapping(memory: Memory) -> dict[str, Any]:
    """A memory as plain data with spec 1's names and order, without defaults.

    Raises `InvalidInput` naming the field.
    """
    try:
        return _write_memory(memory)
    except FieldError as error:
        raise InvalidInput(f"{memory.id}: {error.path}: {error.what}") from None


def _read_memory(data: Mapping[str, Any]) -> Memory:
    _refuse_newer(data)
    known, extra = _MEMORY.read(data)
    for key in ("id", "statement"):
        if key not in known:
            raise FieldError("is missing", key)
    if "activation" in known:
        known["activation"], unknown = known["activation"]
        if unknown:
            extra["activation"] = unknown
    if extra:
        _read_metadata(known, extra)
        if extra:
            known["extra"] = extra
    return Memory(**known)


def _refuse_newer(data: Mapping[str, Any]) -> None:
    version = data.get("version") if isinstance(data, dict) else None
    if type(version) is int and version > SCHEMA_VERSION:
        raise UnknownVersion(
            f"{data.get('id', 'a record')} has version {version}, this Engram reads up to {SCHEMA_VERSION}; "
            "update Engram to read it"
        )


def _read_metadata(known: dict[str, Any], extra: dict[str, Any]) -> None:
    """Move spec 1's metadata block from `extra` to `known`; its keys may also stand at the top, as in PLUR."""
    block = extra.pop("metadata", None)
    found, unknown = ({}, {}) if block is None else _METADATA.read_at("metadata", block)
    _split_feedback(found, unknown)
    at_top = [key for key in _METADATA.keys.intersection(extra) if _METADATA.attribute(key) not in found]
    if at_top:
        top, _ = _METADATA.read({key: extra.pop(key) for key in at_top})
        _split_feedback(top, extra)
        known.update(top)
    if unknown:
        extra["metadata"] = unknown
    known.update(found)


def _split_feedback(found: dict[str, Any], extra: dict[str, Any]) -> None:
    """Move the unknown keys of the feedback block, which was read as a pair, into `extra`."""
    if "feedback" in found:
        found["feedback"], unknown = found["feedback"]
        if unknown:
            extra["feedback_signals"] = unknown


def _write_memory(memory: Memory) -> dict[str, Any]:
    out = _MEMORY.write(memory)
    metadata = _METADATA.write(memory)
    if memory.extra:
        _write_extra(memory, out, metadata)
    if metadata:
        out["metadata"] = metadata
    return out


def _write_extra(memory: Memory, out: dict[str, Any], metadata: dict[str, Any]) -> None:
    top = {}
    for key, value in fields.plain_data(memory.extra).items():
        if key == "metadata":
            _merge_metadata(memory, metadata, value)
        elif key == "activation":
            add_unknown(out.setdefault(key, {}), value, _ACTIVATION.keys)
        else:
            top[key] = value
            if key in _METADATA.keys and key not in metadata:
                metadata[key] = _METADATA.write_key(key, memory)
    add_unknown(out, top, _MEMORY.keys)


def _merge_metadata(memory: Memory, metadata: dict[str, Any], unknown: Any) -> None:
    if not isinstance(unknown, dict):
        raise FieldError(f"extra must be a mapping here, is {quote_value(unknown)}", "metadata")
    signals = unknown.pop("feedback_signals", None)
    if signals:
        block = metadata.setdefault("feedback_signals", _FEEDBACK.write(memory.feedback))
        add_unknown(block, signals, _FEEDBACK.keys)
    add_unknown(metadata, unknown, _METADATA.keys)


def dump(memories: Sequence[Memory]) -> str:
    """Memories as a YAML list. Raises `InvalidInput` for text that no file can store, such as half a surrogate pair."""
    return "".join(map(_dump_one, memories)) or "[]\n"


def _dump_one(memory: Memory) -> str:
    from engram.dialects.yaml_writer import emit_list

    try:
        return emit_list((to_mapping(memory),))
    except InvalidInput as error:
        text = str(error)
        raise InvalidInput(text if text.startswith(memory.id) else f"{memory.id}: {text}") from None


def load(source: str | bytes, *, where: str = "") -> list[Memory]:
    """The memories in a file: a list, a single record, or PLUR's `engrams:` list in PLUR's wording.

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
    """The records in a file as plain data: a list, PLUR's `engrams:` list, or a single record.

    Raises `UnreadableData`.
    """
    return _records(text, where)[0]


def _plur_reader() -> Callable[[Mapping[str, Any]], Memory]:
    from engram.dialects.plur import from_plur

    return from_plur


def _records(text: str, where: str) -> tuple[list[dict[str, Any]], list[int], str]:
    """The records, the line on which each begins, and the key that lists them."""
    from engram.readers.yaml_parser import parse_yaml

    document = parse_yaml(text, where=where, text_keys=TEXT_KEYS)
    tree = document.tree
    key = "engrams" if isinstance(tree, dict) and "engrams" in tree else ""
    records = tree[key] if key else [tree] if isinstance(tree, dict) else tree
    if not isinstance(records, list):
        problem = "is empty" if tree is None else "has no list of records"
        raise UnreadableData(f"the file {problem}; an empty list is written []", where=where or "YAML", line=1)
    # The list may be an alias of an earlier one, whose lines are unknown.
    lines = document.lines if len(document.lines) == len(records) else [1] * len(records)
    for line, record in zip(lines, records, strict=True):
        if not isinstance(record, dict):
            wrong = f"a record must be a block of fields, is {record!r:.60}"
            raise UnreadableData(wrong, where=where or "YAML", line=line)
    return records, lines, key


def dump_json(memories: Sequence[Memory]) -> str:
    """Memories as a JSON list, one record per line, so that a diff shows which one changed."""
    lines = [_line(to_mapping(memory)) for memory in memories]
    return "[\n" + ",\n".join(lines) + "\n]\n" if lines else "[]\n"


def _line(record: dict[str, Any]) -> str:
    text = json.dumps(record, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair
        return json.dumps(record)
    return text
