"""Exact duplicate: the same text but for case, spacing and punctuation, in the same scope."""

from engram.gates.proposal import Known, Proposal
from engram.model.memory import Memory
from engram.text.content_hash import same_text

__all__ = ["exact_duplicate"]


def exact_duplicate(proposal: Proposal, known: Known) -> Memory | None:
    """The memory that already says exactly this.

    The hash leaves symbols out, so what it finds is looked at again ("Use C" is not "Use C++"); a text of symbols only
    has no hash. In both cases the neighbours may still hold the same text.
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
