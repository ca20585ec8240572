"""Likeness: compares retrieved memories with the question by their task vectors (`engram.models.task_vectors`).

The vectors were trained on prompts and the memories that help with them, so they distinguish an answer from a statement that only shares
words with the question. A cue counts as a situation because both describe when the memory is needed.
"""

import math
from collections.abc import Mapping, Sequence

from engram.model.memory import Memory
from engram.recall.ranking import Ranked, scaled_to_best
from engram.recall.relevance import log_odds
from engram.recall.situated import LIKENESS, Considered, likenesses_to_each

__all__ = ["add_likeness"]

MATCH_WEIGHT = 15.0
"""The weight of likeness in a match; the evidence of words is on a scale of ten."""
MAX_COMPARED = 20
"""First memories of a ranking whose mean likeness is the usual one for the question."""
DEFAULT_LIKENESS = 0.17
"""The usual likeness in other stores, which fills up the mean if fewer memories are found."""
WORDS_WEIGHT, LIKENESS_WEIGHT, USUAL_WEIGHT, LENGTH_WEIGHT, BIAS = 0.8, 10.3, 9.7, 0.7, 3.6
"""The weights of a logistic regression on the questions of six stores: the log odds by words, the likeness, the usual likeness, and the question's length."""
MAX_LOSS, MAX_GAIN = 0.5, 1.5
"""How far likeness may lower and raise the log odds by words. The vectors miss some wordings and cannot distinguish names."""


def add_likeness(asked: Sequence[tuple[str, Sequence[Considered]]]) -> list[list[Ranked]]:
    """For a question and each of its wordings, add each memory's likeness to its match and relevance, and sort best first. Other records get
    the usual likeness.
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
    usual, words = _usual_likeness(known[:MAX_COMPARED]), len(question.split())
    shares = [{**place.shares, LIKENESS: MATCH_WEIGHT * max(likes.get(place.n, usual), 0.0)} for place in ranking]
    compared = [
        Ranked(
            place.n, sum(own.values()), own, place.found_by, place.raw,
            _relevance(place, likes[place.n], usual, words) if place.n in likes else place.relevance, place.wording,
        )
        for place, own in zip(ranking, scaled_to_best(shares), strict=True)
    ]  # fmt: skip
    return sorted(compared, key=lambda place: (-place.match, place.n))


def _usual_likeness(likes: Sequence[float]) -> float:
    return (sum(likes) + DEFAULT_LIKENESS * (MAX_COMPARED - len(likes))) / MAX_COMPARED


def _relevance(place: Ranked, like: float, usual: float, words: int) -> float:
    by_words = log_odds(place.relevance)
    odds = (
        WORDS_WEIGHT * by_words
        + LIKENESS_WEIGHT * like
        - USUAL_WEIGHT * usual
        + LENGTH_WEIGHT * math.log1p(words)
        - BIAS
    )
    return 1 / (1 + math.exp(-min(max(odds, by_words - MAX_LOSS), by_words + MAX_GAIN)))
