"""Converts one PLUR entry to one memory and back, without losing anything in either direction.

The two formats word some things differently, and each has fields the other lacks. So each direction writes what the
other side understands, reads its own output back, and stores exactly the parts that did not survive: Engram's remainder
in the entry under `x_engram`, PLUR's original wording in the memory's `extra` under `plur`. A remainder applies only
while it still fits the visible value. If the other program has since changed that value, its change wins.
"""

import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from engram.dialects.engram_yaml import FIELD_KEYS, MEMORY_KEYS, count_problem, from_mapping, to_mapping
from engram.dialects.fields import plain_data, write_number, write_time
from engram.dialects.source import CLAIMED_SOURCE, stated_source
from engram.model.errors import InvalidInput
from engram.model.memory import Activation, Anchor, Association, Memory
from engram.model.types import type_or_default
from engram.text.content_hash import content_hash

ID_GRAMMAR = re.compile(r"(ENG|ABS|META)-[A-Za-z0-9-]+")
EPISODE_ID = re.compile(r"EP-[A-Za-z0-9-]+")

ASSOCIATION_TYPES = frozenset({"semantic", "temporal", "causal", "co_accessed"})
RELATIONS = {"broader": "broader", "narrower": "narrower", "related": "related_to", "conflicts": "contradicts"}
"""PLUR's relations that are links here, and their type."""
RELATED_STRENGTH = 0.5
"""The weight of a relation where PLUR spreads activation over it."""
DAY = len("YYYY-MM-DD")
"""A date; PLUR's last day of validity is included."""
STRONGEST_ASSOCIATION = 0.95
MAX_SNIPPET_CHARS = 200

OWN_KEY = "x_engram"
"""The key of an entry for data without a place in PLUR. PLUR keeps unknown keys at the top of an entry only."""
ORIGINALS_KEY = "plur"
"""The key in a memory's `extra` for PLUR's own wording of fields that Engram words differently."""

# PLUR's type → Engram's. Both use `behavioral` and `procedural`.
_FROM_TYPE = {"terminological": "factual", "architectural": "convention"}
_TO_TYPE = {
    "convention": "architectural",
    "project": "architectural",
    "procedural": "procedural",
    "skill": "procedural",
    "decision": "architectural",
    "principle": "architectural",
}
_BEHAVIORAL_KINDS = frozenset({"preference", "tooling", "constraint"})
_TO_STATUS = {"superseded": "retired", "archived": "retired", "rejected": "retired"}


def engram_type(plur_type: str) -> str:
    """Engram's name for a PLUR type; unknown ones are kept."""
    return _FROM_TYPE.get(plur_type, plur_type)


def plur_type(type_name: str) -> str:
    """The PLUR type closest to one of Engram's: by its name, else by its kind."""
    behaves = type_or_default(type_name).kind in _BEHAVIORAL_KINDS
    return _TO_TYPE.get(type_name) or ("behavioral" if behaves else "terminological")


def plur_status(status: str) -> str:
    """The PLUR status. PLUR has four states, so superseded, archived and rejected memories are retired there."""
    return _TO_STATUS.get(status, status)


def plur_id(memory_id: str) -> str:
    """The id itself if PLUR's grammar allows it, else an id derived deterministically from it."""
    if ID_GRAMMAR.fullmatch(memory_id):
        return memory_id
    return f"ENG-X-{hashlib.sha256(memory_id.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


_MERGED = frozenset(
    {"activation", "episodic", "feedback_signals", "metadata", "relations", "temporal", ORIGINALS_KEY, CLAIMED_SOURCE}
)
_STATED = frozenset((
    "id", "version", "status", "consolidated", "type", "scope", "created_at", "updated_at", "statement", "rationale", "source",
    "derivation_count", "domain", "tags", "associations", "knowledge_anchors", "entities", "pinned", "content_hash", OWN_KEY,
))  # fmt: skip
_STATED_IN = {
    "activation": frozenset({"retrieval_strength", "storage_strength", "frequency", "last_accessed"}),
    "relations": frozenset({*RELATIONS, "supersedes", "superseded_by"}),
    "temporal": frozenset({"valid_from", "valid_until"}),
}
"""The fields of a memory that an entry and its blocks state, without `extra`."""


def build_entry(memory: Memory, today: str) -> dict[str, Any]:
    """The entry as PLUR sees it. `today` stands in for a date that PLUR requires and the memory lacks."""
    extra = plain_data(memory.extra)
    entry: dict[str, Any] = {
        "id": plur_id(memory.id),
        "version": memory.version,
        "status": plur_status(memory.status),
        "consolidated": memory.consolidated,
        "type": plur_type(memory.type),
        "scope": memory.scope,
    }
    _put(entry, "created_at", memory.created and instant(memory.created))
    _put(entry, "updated_at", memory.updated and instant(memory.updated))
    entry["statement"] = memory.statement
    _put(entry, "rationale", memory.rationale)
    _put(entry, "source", stated_source(memory))
    entry["derivation_count"] = memory.derivation_count
    _put(entry, "domain", memory.domain)
    entry["tags"] = list(memory.tags)
    _put(entry, "activation", _activation(memory, extra, today))
    _put(entry, "relations", _relations(memory, extra))
    entry["associations"] = [_association(item) for item in memory.associations if not _is_relation(item)]
    entry["knowledge_anchors"] = [_anchor(item) for item in memory.anchors]
    entry["feedback_signals"] = _feedback(memory, extra)
    _put(entry, "entities", _entities(memory, extra))
    _put(entry, "temporal", _temporal(memory, extra, today))
    _put(entry, "episodic", _episodic(memory, extra))
    _put(entry, "pinned", memory.pinned)
    _put(entry, "content_hash", content_hash(memory.statement))
    _put_extra(entry, extra)
    return entry


def instant(time: datetime) -> str:
    """An ISO instant as JavaScript writes it: in milliseconds, unless it is more precise."""
    precision = "microseconds" if time.microsecond % 1000 else "milliseconds"
    return time.astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")


def _put(entry: dict[str, Any], key: str, value: Any) -> None:
    if value:
        entry[key] = value


def _put_extra(entry: dict[str, Any], extra: Mapping[str, Any]) -> None:
    entry |= {key: value for key, value in extra.items() if key not in _MERGED | _STATED | FIELD_KEYS}
    metadata = {key: value for key, value in _block(extra, "metadata").items() if key != "feedback_signals"}
    _put(entry, "metadata", metadata)


def _block(extra: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = extra.get(key)
    stated = _STATED_IN.get(key, ())
    return {name: item for name, item in value.items() if name not in stated} if isinstance(value, dict) else {}


def _activation(memory: Memory, extra: Mapping[str, Any], today: str) -> dict[str, Any] | None:
    held = memory.activation
    rest = _block(extra, "activation")
    if held == Activation() and not rest:
        return None
    accessed = held.last_accessed or memory.updated or memory.created
    return {
        "retrieval_strength": write_number(held.retrieval_strength),
        "storage_strength": write_number(held.storage_strength),
        "frequency": held.frequency,
        "last_accessed": write_time(accessed) if accessed else today,
        **rest,
    }


def _relations(memory: Memory, extra: Mapping[str, Any]) -> dict[str, Any] | None:
    rest = _block(extra, "relations")
    links = {
        key: targets
        for key, kind in RELATIONS.items()
        if (targets := [plur_id(one.target) for one in memory.associations if one.type == kind and _is_relation(one)])
    }
    if not (rest or links or memory.supersedes or memory.superseded_by):
        return None
    later = [plur_id(memory.superseded_by)] if memory.superseded_by else []
    return {**links, "supersedes": [plur_id(earlier) for earlier in memory.supersedes], "superseded_by": later, **rest}


def _is_relation(link: Association) -> bool:
    """Whether PLUR has its own relation for a link between entries."""
    return link.type in RELATIONS.values() and link.extra.get("target_type", "engram") == "engram"


def _association(item: Association) -> dict[str, Any]:
    extra = plain_data(item.extra)
    to_engram = extra.get("target_type", "engram") == "engram"
    entry = {
        "target_type": "engram" if to_engram else "document",
        "target": plur_id(item.target) if to_engram else item.target,
        "strength": write_number(min(item.strength, STRONGEST_ASSOCIATION)),
        "type": item.type if item.type in ASSOCIATION_TYPES else "semantic",
    }
    _put(entry, "updated_at", item.last_reinforced and write_time(item.last_reinforced))
    return {**extra, **entry}


def _anchor(item: Anchor) -> dict[str, Any]:
    entry: dict[str, Any] = {"path": item.path}
    _put(entry, "snippet", item.snippet[:MAX_SNIPPET_CHARS])
    return {"relevance": "supporting", **plain_data(item.extra), **entry}


def _feedback(memory: Memory, extra: Mapping[str, Any]) -> dict[str, Any]:
    signals = memory.feedback
    counted = {"positive": signals.positive, "negative": signals.negative, "neutral": signals.neutral}
    return {**_block(extra, "feedback_signals"), **_block(_block(extra, "metadata"), "feedback_signals"), **counted}


def _entities(memory: Memory, extra: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Entities by name. PLUR's data about an entity (type, uri) is kept as long as the name is."""
    known = _block(extra, ORIGINALS_KEY).get("entities")
    details = {item["name"]: item for item in known or () if isinstance(item, dict) and "name" in item}
    return [details.get(name) or {"name": name, "type": "other"} for name in memory.entities]


def _temporal(memory: Memory, extra: Mapping[str, Any], today: str) -> dict[str, Any] | None:
    rest = _block(extra, "temporal")
    if not (rest or memory.valid_from or memory.valid_until):
        return None
    entry = {"learned_at": write_time(memory.created) if memory.created else today}
    _put(entry, "valid_from", memory.valid_from and write_time(memory.valid_from))
    _put(entry, "valid_until", memory.valid_until and _last_day(memory.valid_until))
    return {**entry, **rest}


def _last_day(end: datetime) -> str:
    """The last day before an end at midnight, because PLUR includes the last day. Other moments are unchanged."""
    written = write_time(end)
    if len(written) != DAY:
        return written
    try:
        return write_time(end - timedelta(days=1))
    except OverflowError:  # the first day of the calendar has no day before it
        return f"{written}T00:00:00.000Z"


def _episodic(memory: Memory, extra: Mapping[str, Any]) -> dict[str, Any] | None:
    rest = _block(extra, "episodic")
    weight, confidence = _one_to_ten(memory.emotional_weight), _one_to_ten(memory.confidence * 10)
    if not rest and memory.confidence == 0.5 and memory.emotional_weight == 5 and not memory.trigger_context:
        return None
    entry: dict[str, Any] = {"emotional_weight": weight, "confidence": confidence}
    _put(entry, "trigger_context", memory.trigger_context)
    return {**rest, **entry}


def _one_to_ten(value: float) -> int:
    return min(10, max(1, round(value)))


ABSENT: Final = object()


def remainder(seen: Mapping[str, Any], full: Mapping[str, Any]) -> dict[str, Any]:
    """The changes that turn `seen`, the value read back, into `full`; empty if there are none."""
    changed = {key: value for key, value in full.items() if seen.get(key, ABSENT) != value}
    surplus = [key for key in seen if key not in full]
    return {**({"set": changed} if changed else {}), **({"unset": surplus} if surplus else {})}


def changes_in(kept: Any) -> dict[str, Any]:
    """A remainder as changes by key; ABSENT removes the key. Anything but a remainder changes nothing."""
    if not isinstance(kept, Mapping):
        return {}
    changed, surplus = kept.get("set"), kept.get("unset")
    changes = dict(changed) if isinstance(changed, Mapping) else {}
    if isinstance(surplus, list):
        changes.update({key: ABSENT for key in surplus if isinstance(key, str)})
    return changes


def with_changes(base: Mapping[str, Any], changes: Mapping[str, Any]) -> Memory | None:
    """The memory after the changes, or None if the result is not a memory."""
    data = {key: value for key, value in {**base, **changes}.items() if value is not ABSENT}
    try:
        return from_mapping(data)
    except InvalidInput:
        return None


def lift_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A PLUR entry as data for `from_mapping`, without Engram's own remainder."""
    data = {key: value for key, value in entry.items() if key not in (OWN_KEY, "content_hash")}
    if isinstance(data.get("type"), str):
        data["type"] = engram_type(data["type"])
    metadata = data.pop("metadata", None)
    block = dict(metadata) if isinstance(metadata, Mapping) else {}
    _lift_times(data, block)
    _lift_episodic(data, block)
    _lift_relations(data)
    _lift_lists(data)
    if block or metadata is not None:
        data["metadata"] = block if isinstance(metadata, Mapping | None) else metadata
    return data


def _lift_times(data: dict[str, Any], metadata: dict[str, Any]) -> None:
    _move(data, "created_at", metadata, "created")
    _move(data, "updated_at", data, "updated")
    temporal = data.get("temporal")
    if isinstance(temporal, Mapping):
        rest = dict(temporal)
        _move(rest, "valid_from", data, "valid_from")
        if "valid_until" not in data and (end := _day_after(rest.get("valid_until"))):
            data["valid_until"] = end
            del rest["valid_until"]
        _move(rest, "valid_until", data, "valid_until")
        if isinstance(rest.get("learned_at"), str):
            metadata.setdefault("created", rest["learned_at"])
        _put_back(data, "temporal", rest)


def _lift_episodic(data: dict[str, Any], metadata: dict[str, Any]) -> None:
    episodic = data.get("episodic")
    if isinstance(episodic, Mapping):
        rest = dict(episodic)
        _move(rest, "confidence", data, "confidence")
        _move(rest, "emotional_weight", metadata, "emotional_weight")
        _move(rest, "trigger_context", metadata, "trigger_context")
        _put_back(data, "episodic", rest)


def _lift_relations(data: dict[str, Any]) -> None:
    relations = data.get("relations")
    if isinstance(relations, Mapping):
        rest = dict(relations)
        _move(rest, "supersedes", data, "supersedes")
        later = rest.get("superseded_by")
        if isinstance(later, list) and "superseded_by" not in data:
            del rest["superseded_by"]
            if later:
                data["superseded_by"] = later[0]
                if data.get("status") in (None, "active", "retired"):
                    data["status"] = "superseded"
        _lift_links(data, rest)
        _put_back(data, "relations", rest)


def _lift_links(data: dict[str, Any], relations: dict[str, Any]) -> None:
    """Add PLUR's relations between entries to the graph, next to its associations."""
    links = data.get("associations", [])
    if not isinstance(links, list):
        return
    for key, kind in RELATIONS.items():
        targets = relations.get(key)
        if isinstance(targets, list) and all(isinstance(target, str) for target in targets):
            del relations[key]
            links = [*links, *({"target": target, "type": kind, "strength": RELATED_STRENGTH} for target in targets)]
    if links:
        data["associations"] = links


def _day_after(last: Any) -> str:
    """The day after the last day of validity; "" for anything but a plain date, or for the last possible date."""
    try:
        return (date.fromisoformat(last) + timedelta(days=1)).isoformat() if len(last) == DAY else ""
    except (TypeError, ValueError, OverflowError):
        return ""


def _lift_lists(data: dict[str, Any]) -> None:
    entities = data.get("entities")
    if isinstance(entities, list):
        data["entities"] = [item["name"] if isinstance(item, Mapping) and "name" in item else item for item in entities]
    anchors = data.get("knowledge_anchors")
    if isinstance(anchors, list) and "anchors" not in data:
        data["anchors"] = [_without(item, "relevance", "supporting") for item in data.pop("knowledge_anchors")]
    associations = data.get("associations")
    if isinstance(associations, list):
        data["associations"] = [_lift_association(item) for item in associations]


def _lift_association(item: Any) -> Any:
    if not isinstance(item, Mapping):
        return item
    rest: dict[str, Any] = _without(item, "target_type", "engram")
    _move(rest, "updated_at", rest, "last_reinforced")
    return rest


def _without(item: Any, key: str, implied: str) -> Any:
    if isinstance(item, Mapping) and item.get(key) == implied:
        return {name: value for name, value in item.items() if name != key}
    return dict(item) if isinstance(item, Mapping) else item


def _move(source: dict[str, Any], key: str, target: dict[str, Any], name: str) -> None:
    """Move a value unless its new place is taken; then both stay."""
    if key in source and source[key] is not None and name not in target:
        target[name] = source.pop(key)


def _put_back(data: dict[str, Any], key: str, rest: dict[str, Any]) -> None:
    if rest:
        data[key] = rest
    else:
        del data[key]


_NO_DATE = "1970-01-01"
_SHARED = frozenset(
    {"id", "version", "status", "consolidated", "type", "scope", "statement", "rationale", "source", "derivation_count"}
) | frozenset({"domain", "tags", "activation", "associations", "feedback_signals", "entities", "pinned"})
_NOT_ORIGINAL = ((MEMORY_KEYS | {"metadata", "confidence"}) - _SHARED) | {OWN_KEY, "content_hash"}
"""Keys of an entry that are Engram's native ones (read as such), Engram's remainder, or derived."""


def from_plur(entry: Mapping[str, Any]) -> Memory:
    """The memory in a PLUR entry. Raises `InvalidInput` naming the field, `UnknownVersion` for a newer entry."""
    changes = changes_in(entry.get(OWN_KEY))
    if not changes:
        return _read(entry, _NO_DATE)
    visible = {key: value for key, value in entry.items() if key != OWN_KEY}
    dates = _dates_used(entry)
    for today in dates:
        whole = with_changes(to_mapping(_read(entry, today)), changes)
        if whole is not None and _write(whole, today) == visible:
            return whole
    return _apply_fitting_changes(_read(entry, dates[0]), changes, dates[0])


def to_plur(memory: Memory, *, today: str) -> dict[str, Any]:
    """The PLUR entry for a memory. `today` (YYYY-MM-DD) fills a date that PLUR requires and the memory lacks."""
    entry = _write(memory, today)
    kept = remainder(to_mapping(_read(entry, today)), to_mapping(memory))
    return {**entry, OWN_KEY: kept} if kept else entry


def _read(entry: Mapping[str, Any], today: str) -> Memory:
    """The memory without Engram's remainder. PLUR's original wording is kept if the conversion would change it."""
    memory = from_mapping(lift_entry(entry))
    if problem := count_problem(memory):
        raise InvalidInput(problem)
    back = build_entry(memory, today)
    originals = {
        key: value
        for key, value in entry.items()
        if key not in _NOT_ORIGINAL and back.get(key, ABSENT) != value and not (value is None and key not in back)
    }
    return memory.replace(extra={**memory.extra, ORIGINALS_KEY: originals}) if originals else memory


def _write(memory: Memory, today: str) -> dict[str, Any]:
    """The entry without Engram's remainder. PLUR's original wording is used if it still means the same."""
    entry = build_entry(memory, today)
    originals = memory.extra.get(ORIGINALS_KEY)
    if isinstance(originals, Mapping) and originals:
        meaning = _meaning(entry)
        for key, value in originals.items():
            worded = {**entry, key: value}
            if key not in _NOT_ORIGINAL and meaning is not None and _meaning(worded) == meaning:
                entry = worded
    return entry


def _meaning(entry: Mapping[str, Any]) -> dict[str, Any] | None:
    try:
        return to_mapping(from_mapping(lift_entry(entry)))
    except InvalidInput:
        return None


def _apply_fitting_changes(memory: Memory, changes: Mapping[str, Any], today: str) -> Memory:
    """The memory with the parts of the remainder that PLUR's values have not superseded."""
    base = to_mapping(memory)
    fitting = {key: value for key, value in changes.items() if _still_fits(base, key, value, today)}
    return with_changes(base, fitting) or memory


def _still_fits(base: Mapping[str, Any], key: str, value: Any, today: str) -> bool:
    """Whether PLUR would still show this value as it does now."""
    trial = with_changes(base, {key: value})
    if trial is None:
        return False
    shown = to_mapping(_read(_write(trial, today), today))
    return bool(shown.get(key, ABSENT) == base.get(key, ABSENT))


def _dates_used(entry: Mapping[str, Any]) -> list[str]:
    """The dates that may have filled a gap when this entry was written."""
    dates = []
    for block, key in (("activation", "last_accessed"), ("temporal", "learned_at")):
        value = entry.get(block)
        if isinstance(value, Mapping) and isinstance(value.get(key), str):
            dates.append(str(value[key]))
    return dates or [_NO_DATE]
