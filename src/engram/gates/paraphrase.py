"""Paraphrase: another wording of something known. Never dropped; named, so that the two can be merged."""

from collections.abc import Sequence

from engram.gates.comparison import relation
from engram.gates.near import same_situation
from engram.gates.proposal import Neighbour, Proposal
from engram.model.memory import Memory

__all__ = ["paraphrased"]


def paraphrased(proposal: Proposal, neighbours: Sequence[Neighbour]) -> Memory | None:
    """The memory that says much the same: the same names, numbers and polarity, and most of the words."""
    memory = proposal.memory
    for neighbour in neighbours:
        other = neighbour.memory
        if other.scope != memory.scope or other.id in memory.supersedes or not same_situation(memory, other):
            continue
        if relation(memory.statement, other.statement).relation in ("paraphrase", "same"):
            return other
    return None
