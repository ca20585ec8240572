"""Versions of a fact, and which of them is current; the same on every backend."""

from collections.abc import Iterable
from datetime import UTC, datetime

from engram.model.memory import Memory

CURRENT = ("active", "dormant")
"""The statuses of a current version."""


def heads_among(memories: Iterable[Memory | None], conflict_key: str, scope: str) -> list[Memory]:
    """The current memories with this conflict key in this scope."""
    return [
        m
        for m in memories
        if m is not None and m.conflict_key == conflict_key and m.scope == scope and m.status in CURRENT
    ]


def versions_among(memories: Iterable[Memory], lineage_id: str) -> list[Memory]:
    """The versions of a fact in the order they were true; of a memory given twice, the later counts."""
    newest = {memory.id: memory for memory in memories}
    members = (m for m in newest.values() if lineage_id and m.lineage == lineage_id)
    return sorted(members, key=lambda m: (start_of(m), m.revision, m.id))


def start_of(memory: Memory) -> datetime:
    """Since when a memory is true, if known."""
    return memory.valid_from or memory.when or datetime.min.replace(tzinfo=UTC)
