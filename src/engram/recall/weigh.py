"""From relevance to score: every factor named, so that the trace replays to the number (DESIGN §10)."""

import math
from collections.abc import Collection
from datetime import datetime

from engram.model.hit import Part
from engram.model.memory import Memory
from engram.rules.eligibility import Eligibility
from engram.rules.weights import (
    anchor_boost,
    confidence_weight,
    derivation_weight,
    feedback_weight,
    importance_boost,
    recency_boost,
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
    # Praise and certainty that came with a file are its own claim: they may lower it, never lift it above what was said.
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
