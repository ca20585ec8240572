"""Likeness: compares retrieved memories with the question by their task vectors (`engram.models.task_vectors`), and judges whether they answer it.

The vectors were trained on prompts and the memories that help with them, so they distinguish an answer from a statement that only shares
words with the question. A cue counts as a situation because both describe when the memory is needed.
"""

from collections.abc import Mapping, Sequence

from engram.model.memory import Memory
from engram.recall.answerability import Compared, answer_probabilities, answer_rows
from engram.recall.ranking import Ranked, scaled_to_best
from engram.recall.relevance import log_odds
from engram.recall.similarity import Floats
from engram.recall.situated import LIKENESS, Considered, likenesses_to_each

__all__ = ["add_likeness", "compare_memories", "measure_likeness"]

MATCH_WEIGHT = 15.0
"""The weight of likeness in a match; the evidence of words is on a scale of ten."""
MAX_COMPARED = 20
"""First memories of a ranking whose mean likeness is the usual one for the question."""
DEFAULT_LIKENESS = 0.17
"""The usual likeness in other stores, which fills up the mean if fewer memories are found."""


def add_likeness(asked: Sequence[tuple[str, Sequence[Considered]]]) -> list[list[Ranked]]:
    """For a question and each of its wordings, add each memory's likeness to its match, make its relevance the probability that it answers the
    question (`answerability`), and sort best first. Other records get the usual likeness.
    """
    records = {place.n: found.record for _, considered in asked for found, place in considered}
    memories = {n: record for n, record in records.items() if isinstance(record, Memory)}
    compared = likenesses_to_each([question for question, _ in asked], list(memories.values()))
    return [
        _add_likeness(question, [place for _, place in considered], dict(zip(memories, likes, strict=True)))
        for (question, considered), likes in zip(asked, compared, strict=True)
    ]


def _add_likeness(question: str, ranking: Sequence[Ranked], likes: Mapping[int, float]) -> list[Ranked]:
    known = [likes[place.n] for place in ranking if place.n in likes]
    if not known:
        return list(ranking)
    usual = _usual_likeness(known[:MAX_COMPARED])
    numbers, rows = compare_memories(question, ranking, likes, usual)
    answering = dict(zip(numbers, answer_probabilities(rows), strict=True)) if numbers else {}
    shares = [{**place.shares, LIKENESS: MATCH_WEIGHT * max(likes.get(place.n, usual), 0.0)} for place in ranking]
    compared = [
        Ranked(
            place.n, sum(own.values()), own, place.found_by, place.raw, answering.get(place.n, place.relevance), place.wording
        )
        for place, own in zip(ranking, scaled_to_best(shares), strict=True)
    ]  # fmt: skip
    return sorted(compared, key=lambda place: (-place.match, place.n))


def measure_likeness(question: str, considered: Sequence[Considered]) -> tuple[dict[int, float], float]:
    """The likeness of each memory to the question, by the number of its document, and the usual one for the question."""
    memories = {place.n: found.record for found, place in considered if isinstance(found.record, Memory)}
    likes = likenesses_to_each([question], list(memories.values()))[0]
    return dict(zip(memories, likes, strict=True)), _usual_likeness(likes[:MAX_COMPARED])


def compare_memories(
    question: str, ranking: Sequence[Ranked], likes: Mapping[int, float], usual: float
) -> tuple[list[int], Floats]:
    """The document numbers of the memories with evidence, and the input of the model of answerability for each."""
    found = [
        (place.n, Compared(place.evidence, log_odds(place.relevance), likes[place.n]))
        for place in ranking
        if place.n in likes and place.evidence is not None
    ]
    return [n for n, _ in found], answer_rows(question, [each for _, each in found], usual)


def _usual_likeness(likes: Sequence[float]) -> float:
    return (sum(likes) + DEFAULT_LIKENESS * (MAX_COMPARED - len(likes))) / MAX_COMPARED
