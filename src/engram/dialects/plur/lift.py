"""PLUR's entry → the plain data Engram reads: each value moved to the place spec 1 has for it.

Only what Engram has a field for is moved; everything else stays where it stood and ends up in the memory's `extra`.
"""

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

from engram.dialects.plur.vocabulary import DAY, OWN_KEY, RELATED_STRENGTH, RELATIONS, engram_type


def lifted(entry: Mapping[str, Any]) -> dict[str, Any]:
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
    """PLUR's relations between entries enter the graph, next to its associations."""
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
    """The day on which something that is true through `last` no longer is; "" for what is no plain date, or the last of all."""
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
