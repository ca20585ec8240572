"""Likeness: compares retrieved memories with the question by their task vectors (`engram.models.task_vectors`), and judges whether they answer it.

The vectors were trained on prompts and the memories that help with them, so they distinguish an answer from a statement that only shares
words with the question. A cue counts as a situation because both describe when the memory is needed.
"""

import math
from collections.abc import Mapping, Sequence

from engram.model.memory import Memory
from engram.recall.answerability import ComparedMemory, answer_probabilities, answer_rows
from engram.recall.ranking import RankedDocument, scaled_to_best
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

WORDS_WEIGHT, LIKENESS_WEIGHT, USUAL_SHARE, LENGTH_WEIGHT, BIAS = 0.8, 10.3, 0.94, 0.7, 3.6
"""The weights of a logistic regression on the questions of six stores: the log odds by words, the likeness beyond this share of the usual one,
and the question's length."""
MAX_SHARE, MANY = 0.5, 50
"""The weight of answerability, and from how many found memories on it is full: in a small store nothing is known of how rare words are."""
MAX_LOSS, MAX_GAIN = 0.5, 1.5
"""How far likeness may lower and raise the log odds by words. The vectors miss some wordings and cannot distinguish names."""


def add_likeness(asked: Sequence[tuple[str, Sequence[Considered]]]) -> list[list[RankedDocument]]:
    """For a question and each of its wordings, add each memory's likeness to its match, judge again whether it answers the question, and sort
    best first. Other records get the usual likeness.
    """
    records = {place.n: found.record for _, considered in asked for found, place in considered}
    memories = {n: record for n, record in records.items() if isinstance(record, Memory)}
    compared = likenesses_to_each([question for question, _ in asked], list(memories.values()))
    return [
        _add_likeness(question, [place for _, place in considered], dict(zip(memories, likes, strict=True)))
        for (question, considered), likes in zip(asked, compared, strict=True)
    ]


def _add_likeness(question: str, ranking: Sequence[RankedDocument], likes: Mapping[int, float]) -> list[RankedDocument]:
    known = [likes[place.n] for place in ranking if place.n in likes]
    if not known:
        return list(ranking)
    usual = _usual_likeness(known[:MAX_COMPARED])
    numbers, rows = compare_memories(question, ranking, likes, usual)
    answering = dict(zip(numbers, answer_probabilities(rows), strict=True)) if numbers else {}
    words, share = len(question.split()), MAX_SHARE * min(len(known) / MANY, 1.0)
    shares = [{**place.shares, LIKENESS: MATCH_WEIGHT * max(likes.get(place.n, usual), 0.0)} for place in ranking]
    compared = [
        RankedDocument(
            place.n, sum(own.values()), own, place.found_by, place.raw,
            _join_judgments(place.relevance, answering[place.n], likes[place.n] - USUAL_SHARE * usual, words, share)
            if place.n in answering else place.relevance,
            place.wording,
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
    question: str, ranking: Sequence[RankedDocument], likes: Mapping[int, float], usual: float
) -> tuple[list[int], Floats]:
    """The document numbers of the memories with evidence, and the input of the model of answerability for each."""
    found = [
        (place.n, ComparedMemory(place.evidence, log_odds(place.relevance), likes[place.n]))
        for place in ranking
        if place.n in likes and place.evidence is not None
    ]
    return [n for n, _ in found], answer_rows(question, [each for _, each in found], usual)


def _join_judgments(relevance: float, answering: float, like: float, words: int, share: float) -> float:
    """The weighted mean of two log odds: that a memory answers the question, and that it is about it, by its words and its likeness.

    The first tells a missing detail, the second knows memories that were found by their cues. Together they leave out more than either
    at the same share of answers.
    """
    by_words = log_odds(relevance)
    odds = WORDS_WEIGHT * by_words + LIKENESS_WEIGHT * like + LENGTH_WEIGHT * math.log1p(words) - BIAS
    about = min(max(odds, by_words - MAX_LOSS), by_words + MAX_GAIN)
    return 1 / (1 + math.exp(-((1 - share) * about + share * log_odds(answering))))


def _usual_likeness(likes: Sequence[float]) -> float:
    return (sum(likes) + DEFAULT_LIKENESS * (MAX_COMPARED - len(likes))) / MAX_COMPARED
