"""Memories that wait only because they contradict a current one, and their release once that one is gone."""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime

from engram.decisions.versions import contradiction_target, outranking_head, place_version, replaced_memories
from engram.model.errors import Refused
from engram.model.lazy import replace
from engram.model.memory import CONTRADICTS, MAY_SUPERSEDE, Association, Memory
from engram.rules.sources import CONFIRMED, DISPUTED, is_evidence, may_replace
from engram.store.protocol import MAX_VERSIONS, Store, Transaction
from engram.store.records import CURRENT_STATUSES

WAITS_KEY = "waits"
"""The mark on a link to the one memory, or the ones, that keep a candidate from being active."""


def conflict_link(other: Memory, now: datetime, *, waits_alone: bool = False) -> Association:
    """The link from a candidate to the memory it contradicts; `waits_alone` where nothing else keeps it from being active."""
    return Association(other.id, CONTRADICTS, 0.5, last_reinforced=now, extra={WAITS_KEY: True} if waits_alone else {})


def remove_wait_mark(link: Association) -> Association:
    """The link without that mark."""
    return replace(link, extra={key: value for key, value in link.extra.items() if key != WAITS_KEY})


def change_link(other: Memory, probability: float, now: datetime) -> Association:
    """The link from a current memory to the older one that it probably replaces."""
    return Association(other.id, MAY_SUPERSEDE, 0.5, confidence=round(probability, 3), last_reinforced=now)


def contradicting_candidates(store: Store, ids: Collection[str]) -> list[Memory]:
    """The candidates that contradict one of these memories."""
    return [memory for memory in contradicting_memories(store, ids) if memory.status == "candidate"]


def contradicting_memories(store: Store, ids: Collection[str]) -> list[Memory]:
    """The memories that contradict one of these, or did when they were stored."""
    links = store.links_to(list(ids)) if ids else []
    sources = dict.fromkeys(source for source, _, kind, _ in links if kind == CONTRADICTS and source not in ids)
    return [memory for memory in map(store.get, sources) if memory is not None]


def with_disputes(store: Store, memories: Sequence[Memory]) -> list[Memory]:
    """The memories, those marked as disputed that a waiting candidate contradicts whose source could have replaced them.

    It is computed: nothing has to be taken back when the contradiction is settled, in whatever way. What a person confirmed is
    not in dispute.
    """
    current = {
        memory.id: memory
        for memory in memories
        if memory.status in CURRENT_STATUSES and memory.verification != CONFIRMED
    }
    links = store.links_to(list(current)) if current else []
    pairs = [(source, target) for source, target, kind, _ in links if kind == CONTRADICTS]
    against = {source: store.get(source) for source in dict.fromkeys(source for source, _ in pairs)}
    open_ = {
        target
        for source, target in pairs
        if (other := against[source]) is not None
        and other.status == "candidate"
        and may_replace(other.source, current[target])
    }
    return [memory.replace(verification=DISPUTED) if memory.id in open_ else memory for memory in memories]


def update_target(get: Callable[[str], Memory | None], memory: Memory) -> Memory | None:
    """The current memory that this one may supersede, until somebody decides."""
    linked = (get(link.target) for link in memory.associations if link.type == MAY_SUPERSEDE)
    return next((other for other in linked if other is not None and other.status in CURRENT_STATUSES), None)


def release_waiting(deciding: Transaction, waiting: Sequence[Memory], now: datetime) -> list[Memory]:
    """Make active each candidate that waited only for memories which this decision has retired or replaced; newest first.

    One that also contradicts the successor waits for that one instead.
    """
    released: list[Memory] = []
    for seen in sorted(waiting, key=lambda memory: memory.id, reverse=True):
        memory = deciding.get(seen.id)
        if memory is None or memory.status != "candidate" or not waits_alone(memory):
            continue
        moved = _move_links(deciding, memory)
        blocked = contradiction_target(deciding.get, moved) or any(_is_rival(moved, other) for other in released)
        freed = None if blocked else _try_activate(deciding, moved, now)
        if freed is not None:
            released.append(freed)
        if (changed := freed or moved) != memory:
            deciding.put(changed.replace(updated=now))
    return released


def waits_alone(memory: Memory) -> bool:
    """Whether only a conflict keeps a candidate from being active. What is mere evidence never becomes active by itself."""
    marked = any(link.extra.get(WAITS_KEY) is True for link in memory.associations if link.type == CONTRADICTS)
    return marked and not is_evidence(memory)


def _move_links(deciding: Transaction, memory: Memory) -> Memory:
    """The candidate, its links moved from superseded memories to the successors that it contradicts as well."""
    from engram.gates.neighbourhood import in_conflict

    links = []
    for link in memory.associations:
        heir = _successor(deciding, link.target) if link.type == CONTRADICTS else None
        if heir is not None and heir.id != memory.id and in_conflict(memory, heir):
            link = replace(link, target=heir.id)
        links.append(link)
    return memory.replace(associations=tuple(links))


def _successor(deciding: Transaction, memory_id: str) -> Memory | None:
    """The current memory that has replaced a superseded one."""
    found = deciding.get(memory_id)
    for _ in range(MAX_VERSIONS):
        if found is None or found.status != "superseded":
            break
        found = deciding.get(found.superseded_by) if found.superseded_by else None
    return found if found is not None and found.id != memory_id and found.status in CURRENT_STATUSES else None


def _is_rival(memory: Memory, other: Memory) -> bool:
    """Whether two memories that waited for the same one contradict each other."""
    from engram.gates.neighbourhood import in_conflict

    return in_conflict(memory, other)


def _try_activate(deciding: Transaction, memory: Memory, now: datetime) -> Memory | None:
    """The candidate as an active memory; None where it would replace what a more trusted source said."""
    from engram.gates.proposal import GateSettings
    from engram.gates.trust import trust

    # A program's own decision needs no trust.
    if memory.learned_by != "add" and trust(memory, False, GateSettings()).status != "active":
        return None
    active = memory.replace(status="active")
    try:
        deciding.check(active)
    except Refused:
        return None
    heads = replaced_memories(deciding, active)
    if outranking_head(heads, active.source):
        return None
    return place_version(deciding, active, heads, now) if heads else active
