"""Contradiction: two memories that cannot both hold.

Either they give one subject and predicate two objects, or they say the same with another number, a negation, an
opposite or a rival word, or with two parts swapped.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from engram.gates.claims import claim_of, competing
from engram.gates.comparison import relation
from engram.gates.near import same_situation, token_overlap
from engram.gates.proposal import Neighbour, Proposal
from engram.model.memory import Memory
from engram.model.types import type_or_default

__all__ = ["Conflict", "contradiction"]

# A neighbour that shares fewer index terms than this cannot be about the same thing.
_MIN_SHARED = 0.1
# Cosine of statements about one thing; few others reach it.
_MIN_COSINE = 0.5
# Documents are not claims.
_LONGEST_CLAIM = 2_000


@dataclass(frozen=True, slots=True)
class Conflict:
    """The memory contradicted, and by what."""

    other: Memory
    why: str


def contradiction(proposal: Proposal, neighbours: Sequence[Neighbour]) -> Conflict | None:
    """The first neighbour the proposal contradicts."""
    memory = proposal.memory
    if not _is_claim(memory):
        return None
    terms = frozenset(proposal.tokens)
    for neighbour in neighbours:
        other = neighbour.memory
        if not _comparable(memory, other) or not (_near_enough(neighbour, terms) or memory.form):
            continue
        if why := _conflict(memory, other):
            return Conflict(other, why)
    return None


def _is_claim(memory: Memory) -> bool:
    """Questions assert nothing, episodes happen more than once, documents say many things."""
    if memory.statement.rstrip().endswith(("?", "？", "؟")):
        return False
    return len(memory.statement) <= _LONGEST_CLAIM and type_or_default(memory.type).nature != "episode"


def _comparable(memory: Memory, other: Memory) -> bool:
    return (
        memory.scope == other.scope
        and other.id not in memory.supersedes
        and _is_claim(other)
        and same_situation(memory, other)
        and _overlap_in_time(memory, other)
    )


def _overlap_in_time(one: Memory, other: Memory) -> bool:
    """What held until May does not contradict what holds since June."""
    return not (_ended(one.valid_until, other.valid_from) or _ended(other.valid_until, one.valid_from))


def _ended(until: datetime | None, since: datetime | None) -> bool:
    return until is not None and since is not None and until <= since


def _near_enough(neighbour: Neighbour, terms: frozenset[str]) -> bool:
    if not math.isnan(neighbour.cosine) and neighbour.cosine >= _MIN_COSINE:
        return True
    return token_overlap(terms, neighbour.memory) >= _MIN_SHARED


def _conflict(memory: Memory, other: Memory) -> str:
    mine, theirs = claim_of(memory), claim_of(other)
    if mine and theirs and (why := competing(mine, theirs)):
        return why
    comparison = relation(memory.statement, other.statement)
    return comparison.why if comparison.relation == "opposite" else ""
