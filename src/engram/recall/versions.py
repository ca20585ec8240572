"""The versions of facts in time: which held when, which came of an event, and in which order they answer."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from engram.model.hit import Hit
from engram.model.memory import Memory
from engram.store.lineages import start_of
from engram.store.protocol import LIVE, Store
from engram.text.time_phrases import Window

__all__ = ["INSTANT", "before_outcome", "by_lineage", "is_over", "overlaps", "shown", "versions_of"]

INSTANT = timedelta(microseconds=1)
_OUT = ("retired", "rejected")


def is_over(memory: Memory | None, now: datetime) -> bool:
    """Whether it came to its end by itself."""
    return memory is not None and memory.valid_until is not None and memory.valid_until <= now


def overlaps(memory: Memory | None, window: Window, now: datetime) -> bool:
    """Whether it was true at some moment of the window."""
    if memory is None:
        return False
    until = memory.valid_until or now + INSTANT
    return (window.until is None or start_of(memory) < window.until) and (window.since is None or until > window.since)


def versions_of(memory: Memory, store: Store) -> list[Memory]:
    """The versions of a fact that were ever so, in the order in which they were."""
    if not memory.lineage:
        return [memory]
    return [version for version in store.lineage(memory.lineage) if version.status not in _OUT]


def by_lineage(hits: Sequence[Hit]) -> list[list[Hit]]:
    """The hits of each fact together, the fact with the best hit first."""
    groups: dict[str, list[Hit]] = {}
    for hit in hits:
        if hit.memory is not None:
            groups.setdefault(hit.memory.lineage or hit.id, []).append(hit)
    return list(groups.values())


def before_outcome(memory: Memory, event: datetime, store: Store) -> Memory:
    """What held before an event: where the fact began on the event's own day, and nothing later that day did, it came of it."""
    versions = versions_of(memory, store)
    day = event.replace(hour=0, minute=0, second=0, microsecond=0)
    of_the_day = [version for version in versions if day <= start_of(version) < day + timedelta(days=1)]
    earlier = [version for version in versions if start_of(version) < start_of(memory)]
    came_of_it = bool(of_the_day) and of_the_day[-1].id == memory.id
    return earlier[-1] if came_of_it and earlier else memory


def shown(memory: Memory, hit: Hit) -> Hit:
    """A version as a hit of the search that found the fact by another one."""
    note = "" if memory.status in LIVE else memory.status
    return Hit(memory.id, "memory", hit.score, memory.statement, memory, metadata=memory.metadata, trace=hit.trace,
               relevance=hit.relevance, note=note)  # fmt: skip
