"""The versions of facts in time: which held when, which came of an event, and in which order they answer."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

from engram.model.hit import Hit, HitTrace
from engram.model.memory import Memory
from engram.rules.scopes import shows
from engram.store.lineages import start_of
from engram.store.protocol import LIVE, Store
from engram.text.entities import entities
from engram.text.time.windows import Window
from engram.text.tokens import query_terms, tokens

__all__ = ["INSTANT", "before_outcome", "by_lineage", "changes_within", "is_over", "is_past_version", "of_that_value", "overlaps",
           "shown", "time_of", "versions_of"]  # fmt: skip

INSTANT = timedelta(microseconds=1)
_OUT = ("retired", "rejected", "candidate")


def is_over(memory: Memory | None, now: datetime) -> bool:
    """Whether it came to its end by itself."""
    return memory is not None and memory.valid_until is not None and memory.valid_until <= now


def is_past_version(memory: Memory, now: datetime) -> bool:
    """Whether it is no longer so: replaced, put away, or come to its end."""
    return memory.status not in LIVE or is_over(memory, now)


def overlaps(memory: Memory | None, window: Window, now: datetime) -> bool:
    """Whether it was true at some moment of the window."""
    if memory is None:
        return False
    until = memory.valid_until or now + INSTANT
    return (window.until is None or start_of(memory) < window.until) and (window.since is None or until > window.since)


def changes_within(versions: Sequence[Memory], window: Window | None) -> list[Memory]:
    """The versions on either side of every change that falls into the window, each once, in order."""
    sides = [pair for pair in pairwise(versions) if window is None or _holds(window, start_of(pair[1]))]
    return list({version.id: version for pair in sides for version in pair}.values())


def _holds(window: Window, moment: datetime) -> bool:
    return (window.since is None or moment >= window.since) and (window.until is None or moment < window.until)


def versions_of(memory: Memory, store: Store, scopes: Collection[str] | None) -> list[Memory]:
    """The versions of a fact that were ever so, in the order in which they were; of these scopes, if any are given."""
    if not memory.lineage:
        return [memory]
    found = store.lineage(memory.lineage)
    return [version for version in found if version.status not in _OUT and shows(scopes, version.scope)]


def of_that_value(versions: Sequence[Memory], question: str) -> list[Memory]:
    """The versions whose own value the question names ("how long did I live in Rome"); none where it names no one's in particular."""
    named = {term for name in entities(question) for term in query_terms(name)}
    said = [named & set(tokens(version.statement)) for version in versions]
    return [version for version, terms in zip(versions, said, strict=True) if any(terms - other for other in said)]


def by_lineage(hits: Sequence[Hit]) -> list[list[Hit]]:
    """The hits of each fact together, the fact with the best hit first."""
    groups: dict[str, list[Hit]] = {}
    for hit in hits:
        if hit.memory is not None:
            groups.setdefault(hit.memory.lineage or hit.id, []).append(hit)
    return list(groups.values())


def before_outcome(memory: Memory, event: datetime, versions: Sequence[Memory]) -> Memory:
    """What held before an event: where the fact began on the event's own day, and nothing later that day did, it came of it."""
    day = event.replace(hour=0, minute=0, second=0, microsecond=0)
    of_the_day = [version for version in versions if day <= start_of(version) < day + timedelta(days=1)]
    earlier = [version for version in versions if start_of(version) < start_of(memory)]
    came_of_it = bool(of_the_day) and of_the_day[-1].id == memory.id
    return earlier[-1] if came_of_it and earlier else memory


def shown(memory: Memory, hit: Hit) -> Hit:
    """A version as a hit of the search that found the fact by another one."""
    note = "" if memory.status in LIVE else memory.status
    trace = hit.trace if memory.id == hit.id else replace(hit.trace or HitTrace(), version_of=hit.id)
    return Hit(memory.id, "memory", hit.score, memory.statement, memory, metadata=memory.metadata, trace=trace,
               relevance=hit.relevance, note=note)  # fmt: skip


def time_of(hit: Hit) -> str:
    """When a hit was so, or happened, as days; "" where nothing is known of that."""
    if hit.memory is None:
        return f"{hit.event.at:%Y-%m-%d}" if hit.event is not None else ""
    memory = hit.memory
    if memory.valid_from is None and memory.valid_until is None:
        return f"{memory.when:%Y-%m-%d}" if memory.when is not None else ""
    start = f"{start_of(memory):%Y-%m-%d}"
    return f"since {start}" if memory.valid_until is None else f"{start} to {memory.valid_until:%Y-%m-%d}"
