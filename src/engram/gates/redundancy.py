"""Redundancy, the fifth quality gate: does an active memory say this already?"""

from collections.abc import Sequence

from engram.gates.near import same_situation
from engram.gates.proposal import Neighbour, Proposal
from engram.model.memory import Memory
from engram.text.polarity import Reading, read
from engram.text.sentences import split_sentences

__all__ = ["covering"]

_MOST_SENTENCES = 20


def covering(proposal: Proposal, neighbours: Sequence[Neighbour]) -> Memory | None:
    """The active memory that says this already, as a whole or in one of its sentences.

    Only what adds nothing is caught: the same words with the same numbers and negations. Other wordings of the same
    thing are never dropped; they pass as paraphrases to be merged.
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


def _says(one: Reading, other: Reading) -> bool:
    return one.sequence == other.sequence and one.past == other.past
