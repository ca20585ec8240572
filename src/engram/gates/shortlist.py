"""Which neighbours of a proposal the pair model reads: those with enough in common with it, and of many the nearest.

The model takes most of the time of a write, and nine of ten neighbours in a store of thousands are about something else. Of 16,193 pairs of a
statement and a neighbour among 5,000 memories, the shortlist leaves a third; it has all 196 that the model finds to be a repetition or a
likely change, and 113 of the 114 that are only mentioned.
"""

from collections.abc import Sequence
from functools import lru_cache

from engram.gates.comparison import token_overlap
from engram.gates.proposal import Neighbour, Proposal
from engram.text.tokens import query_terms

__all__ = ["shortlist"]

MIN_COSINE, MIN_OVERLAP = 0.2, 0.1
"""Of 1,675 labelled updates and contradictions, 6 % have a lower cosine and share fewer index terms."""
MIN_NEAR_COSINE, MIN_SHARED_WORDS = 0.3, 0.07
"""What a neighbour that is not among the nearest has in common with a proposal: the cosine, and the part of all their words that both have."""
MAX_NEAREST, MAX_COMPARED = 2, 8
"""Of the nearest by meaning, this many are read whatever their words; and of all, so many by meaning and words."""


def shortlist(proposal: Proposal, near: Sequence[Neighbour]) -> list[Neighbour]:
    """The neighbours to read, in their order. Those without a cosine, in a form as the proposal is, or taken out of use by a person all stay."""
    worth = [one for one in near if _is_worth_comparing(proposal, one)]
    terms = _terms(proposal.memory.statement)
    ranked = sorted((one for one in worth if _is_measured(proposal, one)), key=lambda one: one.cosine, reverse=True)
    shared = {one.memory.id: _shared_part(terms, _terms(one.memory.statement)) for one in ranked}
    left = [
        one
        for place, one in enumerate(ranked)
        if place < MAX_NEAREST or (one.cosine >= MIN_NEAR_COSINE and shared[one.memory.id] >= MIN_SHARED_WORDS)
    ]
    left.sort(key=lambda one: one.cosine + shared[one.memory.id], reverse=True)
    read = {one.memory.id for one in left[:MAX_COMPARED]}
    return [one for one in worth if one.memory.id in read or one.memory.id not in shared]


def _is_worth_comparing(proposal: Proposal, near: Neighbour) -> bool:
    """Whether a memory shares meaning or words with a proposal, or both are in a form."""
    if not 0 <= near.cosine < MIN_COSINE or (proposal.memory.form and near.memory.form):
        return True
    return token_overlap(frozenset(proposal.tokens), near.memory) >= MIN_OVERLAP


def _is_measured(proposal: Proposal, near: Neighbour) -> bool:
    """Whether a neighbour is left out where it has too little in common with a proposal."""
    return near.cosine >= 0 and not near.decided and not (proposal.memory.form and near.memory.form)


def _shared_part(terms: frozenset[str], others: frozenset[str]) -> float:
    """Shared words over all (Jaccard)."""
    union = len(terms | others)
    return len(terms & others) / union if union else 0.0


@lru_cache(maxsize=4096)
def _terms(statement: str) -> frozenset[str]:
    return frozenset(query_terms(statement))
