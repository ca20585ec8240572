"""Selects the neighbours of a proposal that the pair model reads: those that share enough with it, and the nearest of these.

The model takes most of the time of a write, and nine of ten neighbours in a store of thousands are unrelated. Of 16,193
pairs of a statement and a neighbour among 5,000 memories, half are read, including all 321 in which the model finds a
relevant repetition or change. Of 2,400 calls in stores of 600 memories, all have the same outcome as with all neighbours
read. Four have other links: three wrong links less, and one wrong link instead of another.
"""

from collections.abc import Sequence
from functools import lru_cache

from engram.gates.comparison import token_overlap
from engram.gates.proposal import Neighbour, Proposal
from engram.text.tokens import query_terms

__all__ = ["shortlist"]

MIN_COSINE, MIN_OVERLAP = 0.2, 0.1
"""Of 1,675 labelled updates and contradictions, 6 % have a lower cosine and share fewer index terms."""
MIN_SHARED_WORDS, MIN_FEW_SHARED_WORDS, MIN_NEAR_COSINE = 0.1, 0.07, 0.3
"""What a neighbour outside the nearest must share with a proposal: the first share of all their words, or the second
share and at least this cosine."""
MAX_NEAREST, MAX_COMPARED = 3, 8
"""How many of the nearest by meaning are read whatever their words, and how many are read at most, by meaning and
words."""


def shortlist(proposal: Proposal, near: Sequence[Neighbour]) -> list[Neighbour]:
    """The neighbours to read, in order.

    Those without a cosine, in the same form, or removed by a person are always kept.
    """
    worth = [one for one in near if _is_worth_comparing(proposal, one)]
    ranked = sorted((one for one in worth if _is_measured(proposal, one)), key=lambda one: one.cosine, reverse=True)
    terms = _terms(proposal.memory.statement)
    shared = {one.memory.id: _shared_part(terms, _terms(one.memory.statement)) for one in ranked}
    left = ranked[:MAX_NEAREST]
    left += [one for one in ranked[MAX_NEAREST:] if _has_words_in_common(shared[one.memory.id], one.cosine)]
    left.sort(key=lambda one: one.cosine + shared[one.memory.id], reverse=True)
    read = {one.memory.id for one in left[:MAX_COMPARED]}
    return [one for one in worth if one.memory.id in read or one.memory.id not in shared]


def _has_words_in_common(shared: float, cosine: float) -> bool:
    return shared >= MIN_SHARED_WORDS or (shared >= MIN_FEW_SHARED_WORDS and cosine >= MIN_NEAR_COSINE)


def _is_worth_comparing(proposal: Proposal, near: Neighbour) -> bool:
    """Whether a memory shares meaning or words with a proposal, or both are in a form."""
    if not 0 <= near.cosine < MIN_COSINE or (proposal.memory.form and near.memory.form):
        return True
    return token_overlap(frozenset(proposal.tokens), near.memory) >= MIN_OVERLAP


def _is_measured(proposal: Proposal, near: Neighbour) -> bool:
    """Whether a neighbour is left out if it shares too little with a proposal."""
    return near.cosine >= 0 and not near.decided and not (proposal.memory.form and near.memory.form)


def _shared_part(terms: frozenset[str], others: frozenset[str]) -> float:
    """Shared words divided by all words (Jaccard)."""
    union = len(terms | others)
    return len(terms & others) / union if union else 0.0


@lru_cache(maxsize=4096)
def _terms(statement: str) -> frozenset[str]:
    return frozenset(query_terms(statement))
