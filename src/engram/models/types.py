"""The type of a statement, and whether forgetting it could do harm.

Linear models over words, their ends, word pairs and the bundled vectors, trained by training/train_types.py on memories
of several writers and judged on writers they have never seen. The types are those that need no review; whether a statement is
sensitive is decided by `sensitivity`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from engram.embedding.products import dot
from engram.models.linear import SCALE, Linear

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from engram.embedding.static import StaticEmbedder

__all__ = ["CRITICAL", "SLOTS", "TYPES", "critical_slot", "features", "slot_probabilities", "type_of", "vectors"]

BUCKETS = 1 << 14
TYPES = Linear(
    "types.bin",
    (
        "fact",
        "preference",
        "constraint",
        "commitment",
        "decision",
        "convention",
        "procedural",
        "episodic",
        "behavioral",
    ),
    BUCKETS,
)
SLOTS = Linear(
    "slots.bin",
    ("", "allergy", "medication", "medical_condition", "dietary_restriction", "safety", "hard_constraint"),
    BUCKETS,
)
CRITICAL = 0.65
"""The probability from which a statement counts as critical: nine of ten that do are, on writers left out."""
_VECTOR_SCALE = 4.0
"""The length of a statement's vector; each hashed feature counts one."""
_WORD = re.compile(r"[^\W\d_]+(?:'[a-z]+)?|\d[\d.,:/]*|[?!:;%€$£]")
_PART, _LONG_NUMBER = 4, 5
_READ = 600
"""Characters read: a statement says what it is in its first sentences."""


def type_of(statement: str) -> tuple[str, float]:
    """The likeliest type of a statement, and its probability."""
    chances = _chances(statement)[0]
    best = max(range(len(chances)), key=chances.__getitem__)
    return TYPES.classes[best], chances[best]


def critical_slot(statement: str) -> str:
    """The critical slot that a statement fills, by its meaning; "" for none."""
    chances = slot_probabilities(statement)
    if 1 - chances[0] < CRITICAL or statement.rstrip().endswith("?"):
        return ""
    return SLOTS.classes[max(range(1, len(chances)), key=chances.__getitem__)]


def slot_probabilities(statement: str) -> tuple[float, ...]:
    """The probability of each of `SLOTS`, none first."""
    return _chances(statement)[1]


def features(statement: str) -> Iterator[str]:
    """The hashed features of a statement: its words, their beginnings and ends, and its pairs of words; used for training."""
    words = [_shape(word) for word in _WORD.findall(statement[:_READ].casefold().replace("’", "'"))]
    for word in dict.fromkeys(words):
        yield word
        if len(word) > _PART:
            yield f"{word[:_PART]}-"
            yield f"-{word[-_PART:]}"
    for one, two in pairwise(["^", *words, "$"]):
        yield f"{one} {two}"


def _shape(word: str) -> str:
    """A number by how long it is; a word as it is."""
    return f"<{min(len(word), _LONG_NUMBER)}>" if word[0].isdigit() else word


def vectors(statements: Sequence[str]) -> npt.NDArray[np.float32]:
    """The vectors of statements and a constant, as the models take them; used for training.

    The constant is here because the weight of a class as such may be larger than a hashed weight can be.
    """
    import numpy as np

    found = _embedder().embed([statement[:_READ] for statement in statements])
    constant = np.ones((len(statements), 1), dtype=np.float32)
    return (np.hstack([found, constant]) * _VECTOR_SCALE).astype(np.float32)


@lru_cache(maxsize=256)
def _chances(statement: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The probability of each type and of each slot."""
    import numpy as np

    buckets = np.fromiter(map(TYPES.bucket_of, features(statement)), dtype=np.intp)
    vector = vectors([statement])[0]
    return _softmax(TYPES, buckets, vector), _softmax(SLOTS, buckets, vector)


def _softmax(model: Linear, buckets: npt.NDArray[np.intp], vector: npt.NDArray[np.float32]) -> tuple[float, ...]:
    hashed, dense = _weights(model.file, len(model.classes))
    scores = (hashed[buckets].sum(axis=0, dtype=int) / SCALE + dot(vector, dense)).tolist()
    raised = [math.exp(score - max(scores)) for score in scores]
    return tuple(one / sum(raised) for one in raised)


@cache
def _weights(file: str, classes: int) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """The weights of the hashed features, signed bytes, and after them those of the vector, half floats."""
    import numpy as np

    data, size = Path(__file__).with_name(file).read_bytes(), BUCKETS * classes
    dense = np.frombuffer(data, "<f2", offset=size).reshape(-1, classes).astype(np.float32)
    return np.frombuffer(data, np.int8, count=size).reshape(-1, classes), dense


@cache
def _embedder() -> StaticEmbedder:
    from engram.embedding.static import StaticEmbedder

    return StaticEmbedder()
