"""PLUR's episodes ↔ episodic memories."""

from collections.abc import Mapping
from typing import Any

from engram.dialects.fields import plain_data
from engram.dialects.plur.project import instant
from engram.dialects.plur.remainder import changes_in, remainder, with_changes
from engram.dialects.plur.vocabulary import EPISODE_ID, OWN_KEY
from engram.dialects.record import from_mapping, to_mapping
from engram.model.memory import Memory

_MOVED = {"summary": "statement", "timestamp": "occurred_at", "session_id": "session"}


def from_episode(entry: Mapping[str, Any], *, where: str = "") -> Memory:
    """The memory an episode holds; agent and channel stay in `extra`. Raises `InvalidInput` naming the field."""
    data = {_MOVED.get(key, key): value for key, value in entry.items()}
    moment = data.get("occurred_at")
    kind = {"type": "episodic", "memory_kind": "episode", "metadata": {"created": moment} if moment else None}
    changes = changes_in(data.pop(OWN_KEY, None))
    memory = from_mapping({**data, **kind}, where=where)
    return (with_changes(to_mapping(memory), changes) or memory) if changes else memory


def is_episode(memory: Memory) -> bool:
    """Whether a memory is one of PLUR's episodes, or would be one there."""
    return memory.type == "episodic" and EPISODE_ID.fullmatch(memory.id) is not None


def to_episode(memory: Memory) -> dict[str, Any]:
    """The episode for a memory that came from one."""
    entry: dict[str, Any] = {"id": memory.id, "summary": memory.statement, **plain_data(memory.extra)}
    if memory.session:
        entry["session_id"] = memory.session
    if memory.tags:
        entry["tags"] = list(memory.tags)
    if memory.when:
        entry["timestamp"] = instant(memory.when)
    kept = remainder(to_mapping(from_episode(entry)), to_mapping(memory))
    return {**entry, OWN_KEY: kept} if kept else entry
