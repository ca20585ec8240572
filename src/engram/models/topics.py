"""What a text is about, by its words: a few of two hundred topics, such as testing, deploying, payments or travel.

The words of each topic are in training/situations/topics.txt; training/train_situations.py writes their stems to topics.json.
"""

import json
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise
from math import sqrt
from pathlib import Path

TopicVector = dict[int, float]
"""How much a text says of each topic."""


class Topics:
    """The topics of words, and of pairs of words."""

    def __init__(self, weights: Sequence[float], words: dict[str, list[int]]) -> None:
        self.weights, self.words = weights, words

    def vector(self, terms: Sequence[str]) -> TopicVector:
        """The topics of stemmed terms in order. A word of many topics says less of each."""
        found: TopicVector = {}
        known = self.words
        for key in {*terms, *map(" ".join, pairwise(terms))}:
            topics = known.get(key, ())
            for topic in topics:
                found[topic] = found.get(topic, 0.0) + self.weights[topic] / sqrt(len(topics))
        return found

    def mask(self, terms: Iterable[str]) -> int:
        """A bit for each topic of single terms; for comparing very many texts coarsely."""
        found = 0
        known = self.masks
        for term in terms:
            found |= known.get(term, 0)
        return found

    @property
    def masks(self) -> dict[str, int]:
        """The topics of each word as bits."""
        return _masks()


@cache
def table() -> Topics:
    """The bundled table."""
    loaded = json.loads(Path(__file__).with_name("topics.json").read_bytes())
    return Topics(loaded["weights"], loaded["words"])


@cache
def _masks() -> dict[str, int]:
    return {word: sum(1 << topic for topic in topics) for word, topics in table().words.items() if " " not in word}


def topics_of(terms: Sequence[str]) -> TopicVector:
    """The topics of stemmed terms by the bundled table."""
    return table().vector(terms)


def alike(one: TopicVector, other: TopicVector) -> float:
    """The cosine of two vectors; 0 where one is empty."""
    if not one or not other:
        return 0.0
    shared = sum(weight * other[topic] for topic, weight in one.items() if topic in other)
    return shared / sqrt(sum(w * w for w in one.values()) * sum(w * w for w in other.values()))
