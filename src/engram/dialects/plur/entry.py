"""One PLUR entry ↔ one memory, with nothing lost in either direction.

The two formats word some things differently, and each has fields the other lacks. So each direction writes what the other
side understands, reads its own writing back, and keeps beside it exactly what did not come through: Engram's remainder in the
entry under `x_engram`, PLUR's original wording in the memory's `extra` under `plur`. A remainder counts only while it still
fits the visible value; when the other program has since changed that value, the change stands.
"""

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

from engram.dialects.plur.project import projected
from engram.dialects.plur.remainder import ABSENT, changes_in, remainder, with_changes
from engram.dialects.plur.vocabulary import DAY, ORIGINALS_KEY, OWN_KEY, RELATED_STRENGTH, RELATIONS, engram_type
from engram.dialects.record import MEMORY_KEYS, count_problem, from_mapping, to_mapping
from engram.model.errors import InvalidInput
from engram.model.memory import Memory


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


_NO_DATE = "1970-01-01"
_SHARED = frozenset(
    {"id", "version", "status", "consolidated", "type", "scope", "statement", "rationale", "source", "derivation_count"}
) | frozenset({"domain", "tags", "activation", "associations", "feedback_signals", "entities", "pinned"})
_NOT_ORIGINAL = ((MEMORY_KEYS | {"metadata", "confidence"}) - _SHARED) | {OWN_KEY, "content_hash"}
"""Keys of an entry that are Engram's native ones (they are read as such), Engram's remainder, or derived."""


def from_plur(entry: Mapping[str, Any], *, where: str = "") -> Memory:
    """The memory a PLUR entry holds. Raises `InvalidInput` naming the field, `UnknownVersion` for a newer entry."""
    changes = changes_in(entry.get(OWN_KEY))
    if not changes:
        return _read(entry, _NO_DATE, where)
    visible = {key: value for key, value in entry.items() if key != OWN_KEY}
    dates = _dates_used(entry)
    for today in dates:
        whole = with_changes(to_mapping(_read(entry, today, where)), changes)
        if whole is not None and _write(whole, today) == visible:
            return whole
    return _with_what_fits(_read(entry, dates[0], where), changes, dates[0])


def to_plur(memory: Memory, *, today: str) -> dict[str, Any]:
    """The PLUR entry for a memory. `today` (YYYY-MM-DD) fills a date PLUR demands and the memory lacks."""
    entry = _write(memory, today)
    kept = remainder(to_mapping(_read(entry, today)), to_mapping(memory))
    return {**entry, OWN_KEY: kept} if kept else entry


def _read(entry: Mapping[str, Any], today: str, where: str = "") -> Memory:
    """The memory without Engram's remainder, PLUR's original wording kept where projecting would change it."""
    memory = from_mapping(lifted(entry), where=where)
    if problem := count_problem(memory):
        raise InvalidInput(f"{where}: {problem}" if where else problem)
    back = projected(memory, today)
    originals = {
        key: value
        for key, value in entry.items()
        if key not in _NOT_ORIGINAL and back.get(key, ABSENT) != value and not (value is None and key not in back)
    }
    return memory.but(extra={**memory.extra, ORIGINALS_KEY: originals}) if originals else memory


def _write(memory: Memory, today: str) -> dict[str, Any]:
    """The entry without Engram's remainder, PLUR's original wording used where it still says the same."""
    entry = projected(memory, today)
    originals = memory.extra.get(ORIGINALS_KEY)
    if isinstance(originals, Mapping) and originals:
        meaning = _meaning(entry)
        for key, value in originals.items():
            worded = {**entry, key: value}
            if key not in _NOT_ORIGINAL and _meaning(worded) == meaning:
                entry = worded
    return entry


def _meaning(entry: Mapping[str, Any]) -> dict[str, Any] | None:
    try:
        return to_mapping(from_mapping(lifted(entry)))
    except InvalidInput:
        return None


def _with_what_fits(memory: Memory, changes: Mapping[str, Any], today: str) -> Memory:
    """The memory with those parts of the remainder that PLUR's values have not overtaken."""
    base = to_mapping(memory)
    fitting = {key: value for key, value in changes.items() if _still_fits(base, key, value, today)}
    return with_changes(base, fitting) or memory


def _still_fits(base: Mapping[str, Any], key: str, value: Any, today: str) -> bool:
    """Whether PLUR would show, for this value, what it shows now."""
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
