"""Likeness: compares retrieved memories with the question by their task vectors (`engram.models.task_vectors`), and judges whether they answer it.

The vectors were trained on prompts and the memories that help with them, so they distinguish an answer from a statement that only shares
words with the question. A cue counts as a situation because both describe when the memory is needed.
"""

from collections.abc import Mapping, Sequence

from engram.model.lazy import replace
from engram.model.memory import Memory
from engram.recall.answerability import Compared, answer_probabilities, answer_rows
from engram.recall.ranking import scale_matches
from engram.recall.relevance import log_odds
from engram.recall.similarity import Floats
from engram.recall.situated import LIKENESS, Considered, likenesses_to

__all__ = ["add_likeness", "compare_memories", "measure_likeness"]

MATCH_WEIGHT = 15.0
"""The weight of likeness in a match; the evidence of words is on a scale of ten."""
MAX_COMPARED = 20
"""First memories of a ranking whose mean likeness is the usual one for the question."""
DEFAULT_LIKENESS = 0.17
"""The usual likeness in other stores, which fills up the mean if fewer memories are found."""


def add_likeness(question: str, considered: Sequence[Considered]) -> list[Considered]:
    """Add each memory's likeness to its match, make its relevance the probability that it answers the question (`answerability`), and sort best
    first. Other records get the usual likeness.
    """
    known, usual = measure_likeness(question, considered)
    if not known:
        return list(considered)
    likes = [known.get(found.record.id, usual) for found, _ in considered]
    shares = [
        {**place.shares, LIKENESS: MATCH_WEIGHT * max(like, 0.0)}
        for (_, place), like in zip(considered, likes, strict=True)
    ]
    scaled = scale_matches([place for _, place in considered], shares)
    answering = _judge_memories(question, considered, known, usual)
    compared = [
        (found, replace(place, relevance=answering.get(found.record.id, place.relevance)))
        for (found, _), place in zip(considered, scaled, strict=True)
    ]
    return sorted(compared, key=lambda pair: (-pair[1].match, pair[1].n))


def measure_likeness(question: str, considered: Sequence[Considered]) -> tuple[dict[str, float], float]:
    """The likeness of each memory to the question, and the usual one for the question."""
    memories = [found.record for found, _ in considered if isinstance(found.record, Memory)]
    likes = likenesses_to(question, memories) if memories else []
    return dict(zip((memory.id for memory in memories), likes, strict=True)), _usual_likeness(likes[:MAX_COMPARED])


def _usual_likeness(likes: Sequence[float]) -> float:
    return (sum(likes) + DEFAULT_LIKENESS * (MAX_COMPARED - len(likes))) / MAX_COMPARED


def _judge_memories(
    question: str, considered: Sequence[Considered], likes: Mapping[str, float], usual: float
) -> dict[str, float]:
    """How likely each memory with evidence answers the question."""
    ids, rows = compare_memories(question, considered, likes, usual)
    return dict(zip(ids, answer_probabilities(rows), strict=True)) if ids else {}


def compare_memories(
    question: str, considered: Sequence[Considered], likes: Mapping[str, float], usual: float
) -> tuple[list[str], Floats]:
    """The ids of the memories with evidence, and the input of the model of answerability for each."""
    found = [
        (record.record.id, Compared(place.evidence, log_odds(place.relevance), likes[record.record.id]))
        for record, place in considered
        if record.record.id in likes and place.evidence is not None
    ]
    return [memory_id for memory_id, _ in found], answer_rows(question, [each for _, each in found], usual)
