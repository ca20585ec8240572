"""From relevance to score: every factor named, so that the trace replays to the number (DESIGN §10)."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from engram.model.hit import Part
from engram.model.memory import Memory
from engram.rules import numbers as n
from engram.rules.eligibility import Eligibility
from engram.rules.strength import (
    anchor_boost,
    confidence_weight,
    derivation_weight,
    feedback_weight,
    importance_boost,
    link_strength,
    recency_boost,
    schema_boost,
)
from engram.text.tokens import tokens


def weigh(
    match: float,
    memory: Memory,
    state: Eligibility,
    terms: Collection[str],
    now: datetime,
    schema: float = 0.0,
) -> tuple[Part, ...]:
    """The parts of a memory's score. `match` runs from 0 to 10."""
    # Ratings and confidence that came with a document are its own claim: they may lower its score, never raise it.
    most = 1.0 if state.evidence else math.inf
    anchors = anchor_boost(terms, [tokens(anchor.snippet) for anchor in memory.anchors]) if memory.anchors else 0.0
    added = (
        ("match", match),
        ("anchors", anchors),
        ("schema", schema),
        ("recency", recency_boost(memory.when, now)),
        ("importance", min(most - 1, importance_boost(memory.importance))),
    )
    factors = (
        ("feedback", min(most, feedback_weight(memory.feedback))),
        ("derived", min(most, derivation_weight(memory.derivation_count))),
        ("confidence", min(most, confidence_weight(memory.confidence))),
        (state.state, state.weight),
    )
    parts = [Part(name, value) for name, value in added if value]
    return *parts, *(Part(name, value, "×") for name, value in factors if value != 1)


def emerged(memories: Sequence[Memory], now: datetime) -> list[frozenset[str]]:
    """Groups of at least three memories, linked at .4 or more, that share at least two anchors."""
    known = {memory.id: memory for memory in memories if memory.anchors}
    neighbours: dict[str, set[str]] = {memory_id: set() for memory_id in known}
    for memory in known.values():
        for link in memory.associations:
            if link.target in known and link_strength(link, now) >= n.SCHEMA_LINK:
                neighbours[memory.id].add(link.target)
                neighbours[link.target].add(memory.id)
    return [group for group in _components(neighbours) if _is_schema(group, known)]


def _components(neighbours: Mapping[str, set[str]]) -> Iterable[frozenset[str]]:
    left = {memory_id for memory_id, linked in neighbours.items() if linked}
    while left:
        group, frontier = set(), [left.pop()]
        while frontier:
            member = frontier.pop()
            group.add(member)
            frontier += [other for other in neighbours[member] if other not in group]
        left -= group
        yield frozenset(group)


def _is_schema(group: frozenset[str], known: Mapping[str, Memory]) -> bool:
    if len(group) < n.SCHEMA_MEMBERS:
        return False
    places = Counter(path for member in group for path in {anchor.path for anchor in known[member].anchors})
    return sum(1 for count in places.values() if count > 1) >= n.SCHEMA_SHARED_ANCHORS


def boosts(memories: Sequence[Memory], activated: Iterable[str], now: datetime) -> dict[str, float]:
    """What each memory gains because other members of its schema were activated too."""
    active = set(activated)
    gains: dict[str, float] = {}
    for group in emerged(memories, now):
        for member in group:
            gains[member] = schema_boost(len((group & active) - {member}), len(group))
    return gains
