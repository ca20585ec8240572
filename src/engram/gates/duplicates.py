"""Duplicates within a scope: exact (but for case, spacing and punctuation), near, paraphrased, or covered by a longer memory."""

from collections.abc import Sequence
from functools import lru_cache

from engram.gates.comparison import relation
from engram.gates.proposal import Known, Neighbour, Proposal
from engram.model.memory import Memory
from engram.text.content_hash import same_text
from engram.text.polarity import NormalizedStatement, read
from engram.text.sentences import split_sentences
from engram.text.tokens import tokens

__all__ = [
    "MIN_COSINE",
    "MIN_TOKEN_OVERLAP",
    "covering",
    "exact_duplicate",
    "near_duplicate",
    "paraphrased",
    "same_situation",
    "token_overlap",
]


def exact_duplicate(proposal: Proposal, known: Known) -> Memory | None:
    """The stored memory with exactly this text, if any.

    The content hash ignores symbols, so its match is compared again ("Use C" is not "Use C++"), and a text of symbols only
    has no hash. In both cases the neighbours may still include the same text.
    """
    memory = proposal.memory
    twin = known.exact(proposal.content_hash, memory.scope) if proposal.content_hash else None
    if twin is not None and _same(memory, twin):
        return twin
    if twin is None and proposal.content_hash:
        return None
    return next((near.memory for near in known.near(proposal) if _same(memory, near.memory)), None)


def _same(one: Memory, other: Memory) -> bool:
    return one.scope == other.scope and same_text(one.statement, other.statement)


# DESIGN §10 says .97, measured with another model; with the bundled one, four statements reworded by hand score .94 to .97.
MIN_COSINE = 0.94
MIN_TOKEN_OVERLAP = 0.85
# Situations that share less than this are different situations.
_SAME_SITUATION = 0.5


def near_duplicate(proposal: Proposal, neighbours: Sequence[Neighbour]) -> Memory | None:
    """The memory with the same words except for inflection, articles and fillers, if any."""
    terms = frozenset(proposal.tokens)
    for neighbour in neighbours:
        other = neighbour.memory
        if other.scope != proposal.memory.scope or not same_situation(proposal.memory, other):
            continue
        # Without an embedder the cosine is nan or negative, and only the words decide.
        if 0 <= neighbour.cosine < MIN_COSINE or token_overlap(terms, other) < MIN_TOKEN_OVERLAP:
            continue
        if relation(proposal.memory.statement, other.statement).relation == "same":
            return other
    return None


def token_overlap(terms: frozenset[str], other: Memory) -> float:
    """Shared index terms over all (Jaccard)."""
    theirs = _terms(other.statement)
    union = len(terms | theirs)
    return len(terms & theirs) / union if union else 0.0


@lru_cache(maxsize=4096)
def _terms(statement: str) -> frozenset[str]:
    return frozenset(tokens(statement))


def same_situation(one: Memory, other: Memory) -> bool:
    """Whether two memories may be about the same situation: one has none, or the two overlap."""
    if not one.situation or not other.situation or one.situation == other.situation:
        return True
    first, second = frozenset(tokens(one.situation)), frozenset(tokens(other.situation))
    return len(first & second) >= _SAME_SITUATION * len(first | second)


def paraphrased(proposal: Proposal, neighbours: Sequence[Neighbour]) -> Memory | None:
    """The memory with the same names, numbers and polarity and most of the same words, if any."""
    memory = proposal.memory
    for neighbour in neighbours:
        other = neighbour.memory
        if other.scope != memory.scope or other.id in memory.supersedes or not same_situation(memory, other):
            continue
        if relation(memory.statement, other.statement).relation in ("paraphrase", "same"):
            return other
    return None


_MOST_SENTENCES = 20


def covering(proposal: Proposal, neighbours: Sequence[Neighbour]) -> Memory | None:
    """The active memory that already says this, as a whole or in one of its sentences, if any.

    Only proposals that add nothing are caught: the same words, numbers and negations. Other wordings are never dropped;
    they pass as paraphrases to be merged.
    """
    memory = proposal.memory
    reading = read(memory.statement)
    for neighbour in neighbours:
        other = neighbour.memory
        if other.scope != memory.scope or other.status != "active" or not same_situation(memory, other):
            continue
        # A semicolon separates two statements as well as a full stop does.
        parts = split_sentences(other.statement.replace("; ", ". "), _MOST_SENTENCES)
        if any(_says(read(part), reading) for part in parts):
            return other
    return None


def _says(one: NormalizedStatement, other: NormalizedStatement) -> bool:
    return one.sequence == other.sequence and one.past == other.past
