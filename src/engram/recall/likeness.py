"""Likeness: compares retrieved memories with the question by their task vectors (`engram.models.task_vectors`).

The vectors were trained on prompts and the memories that help with them, so they distinguish an answer from a statement that only shares
words with the question. A cue counts as a situation because both describe when the memory is needed.
"""

import math
from collections.abc import Sequence

from engram.model.lazy import replace
from engram.model.memory import Memory
from engram.recall.ranking import Ranked, scale_matches
from engram.recall.relevance import log_odds
from engram.recall.situated import LIKENESS, Considered, likenesses_to
from engram.store.protocol import StoredRecord

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


def add_likeness(question: str, considered: Sequence[Considered]) -> list[Considered]:
    """Add each memory's likeness to its match and relevance, and sort best first. Other records get the usual likeness."""
    memories = [found.record for found, _ in considered if isinstance(found.record, Memory)]
    if not memories:
        return list(considered)
    known = dict(zip((memory.id for memory in memories), likenesses_to(question, memories), strict=True))
    usual = _usual_likeness(list(known.values())[:MAX_COMPARED])
    likes = [known.get(found.record.id, usual) for found, _ in considered]
    words = len(question.split())
    shares = [
        {**place.shares, LIKENESS: MATCH_WEIGHT * max(like, 0.0)}
        for (_, place), like in zip(considered, likes, strict=True)
    ]
    scaled = scale_matches([place for _, place in considered], shares)
    compared = [
        (found, replace(place, relevance=_relevance(found, place, like, usual, words)))
        for (found, _), place, like in zip(considered, scaled, likes, strict=True)
    ]
    return sorted(compared, key=lambda pair: (-pair[1].match, pair[1].n))


def _usual_likeness(likes: Sequence[float]) -> float:
    return (sum(likes) + DEFAULT_LIKENESS * (MAX_COMPARED - len(likes))) / MAX_COMPARED


def _relevance(found: StoredRecord, place: Ranked, like: float, usual: float, words: int) -> float:
    if not isinstance(found.record, Memory):
        return place.relevance
    by_words = log_odds(place.relevance)
    odds = (
        WORDS_WEIGHT * by_words
        + LIKENESS_WEIGHT * like
        - USUAL_WEIGHT * usual
        + LENGTH_WEIGHT * math.log1p(words)
        - BIAS
    )
    return 1 / (1 + math.exp(-min(max(odds, by_words - MAX_LOSS), by_words + MAX_GAIN)))
