"""Memory → PLUR's entry, as PLUR's schema demands it.

Optional means absent, never null; every date is text; ranges and lengths are PLUR's. What does not fit is cut down here
and kept whole by `entry`, which compares the two.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from engram.dialects.fields import plain_data, write_number, write_time
from engram.dialects.plur.vocabulary import (
    ASSOCIATION_TYPES,
    DAY,
    LONGEST_SNIPPET,
    ORIGINALS_KEY,
    RELATIONS,
    STRONGEST_ASSOCIATION,
    plur_id,
    plur_status,
    plur_type,
)
from engram.model.memory import Activation, Anchor, Association, Memory
from engram.text.content_hash import content_hash

_MERGED = frozenset({"activation", "episodic", "feedback_signals", "metadata", "relations", "temporal", ORIGINALS_KEY})


def projected(memory: Memory, today: str) -> dict[str, Any]:
    """The entry PLUR sees. `today` stands in for a date PLUR demands and the memory lacks."""
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
    _put(entry, "source", memory.source)
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
    """An ISO instant as JavaScript writes it: milliseconds, unless there is more."""
    precision = "microseconds" if time.microsecond % 1000 else "milliseconds"
    return time.astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")


def _put(entry: dict[str, Any], key: str, value: Any) -> None:
    if value:
        entry[key] = value


def _put_extra(entry: dict[str, Any], extra: Mapping[str, Any]) -> None:
    for key, value in extra.items():
        if key not in _MERGED:
            entry.setdefault(key, value)
    metadata = {key: value for key, value in _block(extra, "metadata").items() if key != "feedback_signals"}
    _put(entry, "metadata", metadata)


def _block(extra: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = extra.get(key)
    return value if isinstance(value, dict) else {}


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
    """Whether PLUR has a relation of its own for a link between entries."""
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
    entry: dict[str, Any] = {"path": item.path, "relevance": "supporting"}
    _put(entry, "snippet", item.snippet[:LONGEST_SNIPPET])
    return {**entry, **plain_data(item.extra)}


def _feedback(memory: Memory, extra: Mapping[str, Any]) -> dict[str, Any]:
    signals = memory.feedback
    counted = {"positive": signals.positive, "negative": signals.negative, "neutral": signals.neutral}
    return {**_block(extra, "feedback_signals"), **_block(_block(extra, "metadata"), "feedback_signals"), **counted}


def _entities(memory: Memory, extra: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Entities by name; what PLUR said of one (type, uri) is kept as long as the name is."""
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
    """The last day of what ends at a midnight; PLUR includes it. Any other moment as it is."""
    written = write_time(end)
    if len(written) != DAY:
        return written
    try:
        return write_time(end - timedelta(days=1))
    except OverflowError:  # the first day of the calendar has none before it
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
