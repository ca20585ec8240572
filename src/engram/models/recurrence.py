"""How likely a new statement says in other words what a person rejected or retired.

A logistic model over what the pair models (`engram.models.pairs`, `engram.models.paraphrases`) say of the two, the cosine, the words that
they share, and whether only one of them is negated: what says the opposite of a rejected statement is what the person wants. Trained by
training/train_recurrence.py on training/rejections.
"""

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from math import log
from pathlib import Path
from typing import Any

from engram.embedding.products import dot
from engram.models.pairs import Relation
from engram.models.paraphrases import likeness
from engram.text.polarity import normalize_statement
from engram.text.stems import stem

__all__ = ["FEATURES", "REFUSE_LOG_ODDS", "REVIEW_LOG_ODDS", "count_negatives", "features", "recurrence"]

REVIEW_LOG_ODDS = 0.0
"""The log odds from which a statement waits for review. Of the half of training/rejections that was not trained on, 63 of 70 rewordings
reach it, 5 of 35 opposites and 3 of 70 other statements about the topic, where the exact rules of `engram.gates.comparison` find no opposite."""
REFUSE_LOG_ODDS = 1.0
"""The log odds from which it is refused, if the pair model says the same: 51 of those rewordings, 2 of the opposites, none of the others."""
FILE = Path(__file__).with_name("recurrence.json")
FEATURES = (
    "cosine", "same", "log same", "log update", "log contradiction", "log different", "likeness", "shared words", "turned", "turned and close",
    "negated", "numbers", "names",
)  # fmt: skip
_CUES = FILE.with_name("recurrence_cues.txt")
_WORD = re.compile(r"[^\W\d_]+(?:'t)?")
_LEAST = 0.01
_LIKENESS = (-5.0, 3.0)


def recurrence(pairs: Sequence[tuple[str, str]], relations: Sequence[Relation]) -> list[float]:
    """The log odds that the second statement of each pair says the same as the first, which somebody took out of use.

    Their relations are given, as `engram.models.pairs` finds them.
    """
    model = _model()
    weights = model["features"]
    rows = features(pairs, relations)
    return [model["bias"] + sum(weight * row[name] for name, weight in weights.items()) for row in rows]


def features(pairs: Sequence[tuple[str, str]], relations: Sequence[Relation]) -> list[dict[str, float]]:
    """What the model reads of each pair: the values of `FEATURES`."""
    cosines = _cosines(pairs)
    likely = likeness(pairs, cosines, relations)
    return [
        dict(zip(FEATURES, _values(*each), strict=True)) for each in zip(pairs, cosines, relations, likely, strict=True)
    ]


def _values(pair: tuple[str, str], cosine: float, relation: Relation, likely: float) -> tuple[float, ...]:
    older, newer = normalize_statement(pair[0]), normalize_statement(pair[1])
    shared, union = older.content & newer.content, older.content | newer.content
    old, new = set(older.numbers), set(newer.numbers)
    is_turned = (count_negatives(pair[0]) - count_negatives(pair[1])) % 2
    return (
        cosine,
        relation.same,
        *(
            log(value + _LEAST)
            for value in (relation.same, relation.update, relation.contradiction, relation.different)
        ),
        min(max(likely, _LIKENESS[0]), _LIKENESS[1]),
        len(shared) / max(1, len(union)),
        is_turned,
        is_turned * cosine,
        (older.negations - newer.negations) % 2,
        bool(old - new and new - old),
        bool(older.names - newer.names and newer.names - older.names),
    )


def _cosines(pairs: Sequence[tuple[str, str]]) -> list[float]:
    """By the bundled embedder, whichever one a store has: the model was trained with its cosines."""
    from engram.embedding.static import StaticEmbedder

    vectors = StaticEmbedder().embed([text for pair in pairs for text in pair])
    return [float(dot(vectors[at], vectors[at + 1])) for at in range(0, len(vectors), 2)]


def count_negatives(text: str) -> int:
    """How many words of a text negate or say to leave something."""
    words = _WORD.findall(text.lower().replace("’", "'"))
    return sum(word.endswith("n't") or stem(word) in _negative_stems() for word in words)


@lru_cache(maxsize=1)
def _negative_stems() -> frozenset[str]:
    lines = _CUES.read_text("utf-8").splitlines()
    return frozenset(stem(word) for line in lines if not line.startswith("#") for word in line.split())


@lru_cache(maxsize=1)
def _model() -> dict[str, Any]:
    model: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
    return model
