"""Classifies a statement: its type, whether forgetting it could do harm, and whether it is sensitive.

Sensitive statements are about somebody's health, identity, money, whereabouts or private life.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from engram.embedding.vectors import dot
from engram.models.weights import SCALE, Linear
from engram.text.confusables import fold_text
from engram.text.tokens import split_sentences

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from engram.embedding.static import StaticEmbedder

__all__ = [
    "CRITICAL",
    "FRAGMENT_MARGIN",
    "PLAIN",
    "SENSITIVE",
    "SLOTS",
    "SUBJECT_MARGIN",
    "TYPES",
    "critical_slot",
    "slot_probabilities",
    "subject_features",
    "subject_of",
    "type_features",
    "type_of",
    "vectors",
]

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
"""The probability from which a statement counts as critical. On held-out writers, nine of ten that reach it are
critical.
"""
_VECTOR_SCALE = 4.0
"""The length of a statement's vector, relative to hashed features, which count one each."""
_TYPE_WORD = re.compile(r"[^\W\d_]+(?:'[a-z]+)?|\d[\d.,:/]*|[?!:;%€$£]")
_ENDING_LETTERS, _MAX_SHOWN_DIGITS = 4, 5
_READ = 600
"""The number of characters read; the first sentences show what kind of statement it is."""


def type_of(statement: str) -> tuple[str, float]:
    """The most likely type of a statement, and its probability.

    Linear models over words, their endings, word pairs and the bundled vectors, trained by training/train_types.py on
    memories of several writers and evaluated on held-out writers. The types are those that need no review; `subject_of`
    decides whether a statement is sensitive.
    """
    chances = _chances(statement)[0]
    best = max(range(len(chances)), key=chances.__getitem__)
    return TYPES.classes[best], chances[best]


def critical_slot(statement: str) -> str:
    """The critical slot that a statement fills, by its meaning; "" if there is none."""
    chances = slot_probabilities(statement)
    if 1 - chances[0] < CRITICAL or statement.rstrip().endswith("?"):
        return ""
    return SLOTS.classes[max(range(1, len(chances)), key=chances.__getitem__)]


def slot_probabilities(statement: str) -> tuple[float, ...]:
    """The probability of each of `SLOTS`, the one for no slot first."""
    return _chances(statement)[1]


def type_features(statement: str) -> Iterator[str]:
    """The hashed features of a statement: its words, their beginnings and endings, and its pairs of words; also used
    for training.
    """
    words = [_mask_number(word) for word in _TYPE_WORD.findall(statement[:_READ].casefold().replace("’", "'"))]
    for word in dict.fromkeys(words):
        yield word
        if len(word) > _ENDING_LETTERS:
            yield f"{word[:_ENDING_LETTERS]}-"
            yield f"-{word[-_ENDING_LETTERS:]}"
    for one, two in pairwise(["^", *words, "$"]):
        yield f"{one} {two}"


def _mask_number(word: str) -> str:
    """A number as its length; a word unchanged."""
    return f"<{min(len(word), _MAX_SHOWN_DIGITS)}>" if word[0].isdigit() else word


def vectors(statements: Sequence[str]) -> npt.NDArray[np.float32]:
    """The vectors of statements and a constant, as the models take them; also used for training.

    The constant serves as the bias of each class, which may be larger than a hashed weight can be.
    """
    import numpy as np

    found = _embedder().embed([statement[:_READ] for statement in statements])
    constant = np.ones((len(statements), 1), dtype=np.float32)
    return (np.hstack([found, constant]) * _VECTOR_SCALE).astype(np.float32)


@lru_cache(maxsize=256)
def _chances(statement: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The probability of each type and of each slot."""
    import numpy as np

    buckets = np.fromiter(map(TYPES.bucket_of, type_features(statement)), dtype=np.intp)
    vector = vectors([statement])[0]
    return _softmax(TYPES, buckets, vector), _softmax(SLOTS, buckets, vector)


def _softmax(model: Linear, buckets: npt.NDArray[np.intp], vector: npt.NDArray[np.float32]) -> tuple[float, ...]:
    hashed, dense = _weights(model.file, len(model.classes))
    scores = (hashed[buckets].sum(axis=0, dtype=int) / SCALE + dot(vector, dense)).tolist()
    raised = [math.exp(score - max(scores)) for score in scores]
    return tuple(one / sum(raised) for one in raised)


@cache
def _weights(file: str, classes: int) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """The weights of the hashed features as signed bytes, followed by those of the vector as half floats."""
    import numpy as np

    data, size = Path(__file__).with_name(file).read_bytes(), BUCKETS * classes
    dense = np.frombuffer(data, "<f2", offset=size).reshape(-1, classes).astype(np.float32)
    return np.frombuffer(data, np.int8, count=size).reshape(-1, classes), dense


@cache
def _embedder() -> StaticEmbedder:
    from engram.embedding.static import StaticEmbedder

    return StaticEmbedder()


PLAIN = "plain"
SENSITIVE = ("health", "identity", "fiscal", "location", "people")
"""The subjects that only a person may approve, each named after its type."""
SUBJECTS = Linear("sensitivity.bin", (PLAIN, *SENSITIVE), 1 << 15)
SUBJECT_MARGIN = 16
"""A subject must beat `PLAIN` by more than this, in stored weights. At this margin one in twenty plain statements is a
false alarm.
"""
FRAGMENT_MARGIN = 100
"""The margin for a text that is not a statement, such as the situation "while waiting for CI" or a part of feedback.
The model was trained on statements, and with their margin one in ten of 125 situations is a false alarm; of 15
sensitive fragments 14 reach this one.
"""

_SUBJECT_WORD = re.compile(r"\w+(?:[.-]\d\w*)*|[%€$£+]")
_MAX_WORD_CHARACTERS = 40
_MIN_CODE_CHARACTERS, _MIN_ACCOUNT_DIGITS = 6, 7
"""The minimum length of mixed letters and digits that count as a code, and of digits that count as an account
number.
"""
_MIN_GRAM_LETTERS = 4
_NAME = "<name>"


def subject_of(text: str, margin: int = SUBJECT_MARGIN) -> str:
    """The sensitive subject of a text, one of `SENSITIVE`; "" if there is none. Each sentence is scored by itself.

    A linear model over words, word pairs and character n-grams in seven languages, trained by training/train_tiers.py
    on sentences by several writers and on near misses (health checks, identity providers, prices, data centres, who
    reviews what).
    """
    best, found = margin, ""
    for sentence in split_sentences(fold_text(text).replace(";", "\n")):
        plain, *sums = _sums(sentence)
        likely = max(range(len(SENSITIVE)), key=sums.__getitem__)
        if sums[likely] - plain > best:
            best, found = sums[likely] - plain, SENSITIVE[likely]
    return found


def subject_features(sentence: str) -> Iterator[str]:
    """The features of a sentence; also used for training."""
    read = _read_words(sentence)
    yield from _around(read)
    for word in dict.fromkeys(word for word, _ in read):
        yield from _of_word(word)


def _sums(sentence: str) -> list[int]:
    """The class scores of a sentence. Scores per word are cached, because most words recur."""
    read = _read_words(sentence)
    sums = SUBJECTS.sums(_around(read))
    for word in dict.fromkeys(word for word, _ in read):
        for place, value in enumerate(_sums_of_word(word)):
            sums[place] += value
    return sums


@lru_cache(maxsize=4096)
def _sums_of_word(word: str) -> tuple[int, ...]:
    return tuple(SUBJECTS.sums(_of_word(word)))


def _read_words(sentence: str) -> list[tuple[str, bool]]:
    """The words in lower case and without accents, each with whether it looks like a name: capitalised and not the
    first.

    Numbers and codes are replaced by their shape.
    """
    if not sentence.isascii():
        spelled = unicodedata.normalize("NFKD", sentence)
        sentence = "".join(sign for sign in spelled if not unicodedata.combining(sign))
    found = _SUBJECT_WORD.findall(sentence)
    return [
        (_mask_code(word.casefold()), at > 0 and word[0].isupper() and not word.isupper())
        for at, word in enumerate(found)
    ]


def _mask_code(word: str) -> str:
    if not any(sign.isdigit() for sign in word):
        return word[:_MAX_WORD_CHARACTERS]
    signs = sum(sign.isalnum() for sign in word)
    if any(sign.isalpha() for sign in word):
        return "<code>" if signs >= _MIN_CODE_CHARACTERS else "<mixed>"
    return "<long>" if signs >= _MIN_ACCOUNT_DIGITS else f"<{signs}>"


def _of_word(word: str) -> Iterator[str]:
    """The word and its character n-grams, because names of diseases share roots across languages and occur in
    compounds.
    """
    yield word
    if word[0] == "<" or len(word) < _MIN_GRAM_LETTERS:
        return
    whole = f"^{word}$"
    for size in (_MIN_GRAM_LETTERS, _MIN_GRAM_LETTERS + 1):
        for start in range(len(whole) - size + 1):
            yield f"~{whole[start : start + size]}"


def _around(read: list[tuple[str, bool]]) -> Iterator[str]:
    """The features of more than one word: each pair of consecutive words, and the words next to a name.

    Most names of people and places are unknown to the model, so every name counts as the same word here.
    """
    yield "1"
    for one, two in pairwise(["^", *dict.fromkeys(word for word, _ in read), "$"]):
        yield f"{one} {two}"
    named = ["^", *(_NAME if is_name else word for word, is_name in read), "$"]
    if _NAME in named:
        yield f"#{_NAME}"
    for one, two in pairwise(named):
        if _NAME in (one, two):
            yield f"#{one} {two}"
