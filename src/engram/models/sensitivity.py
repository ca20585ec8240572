"""Detects statements about somebody's health, identity or money: they are tier 3, whatever their type (DESIGN §12).

A linear model over words, word pairs and character n-grams in seven languages, trained on sentences by several writers and on
near misses (health checks, identity providers, prices) by training/train_tiers.py.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from engram.models.linear import Linear
from engram.text.sentences import split_sentences

__all__ = ["MARGIN", "PLAIN", "SENSITIVE", "features", "subject_of"]

PLAIN = "plain"
SENSITIVE = ("health", "identity", "fiscal")
"""The subjects that only a person may approve, each by the name of its type."""
MODEL = Linear("sensitivity.bin", (PLAIN, *SENSITIVE), 1 << 15)
MARGIN = 0
"""A subject must beat `PLAIN` by more than this."""

_WORD = re.compile(r"\w+(?:[.-]\d\w*)*|[%€$£+]")
_LONGEST = 40
_CODE, _LONG_NUMBER = 6, 7
"""The lengths from which mixed letters and digits count as a code, and digits alone as an account number."""
_PART = 4


def subject_of(text: str) -> str:
    """The sensitive subject of a text, one of `SPOKEN`; "" for none. Each sentence is scored by itself."""
    best, found = MARGIN, ""
    for sentence in split_sentences(text.replace(";", "\n")):
        plain, *sums = _sums(sentence)
        likely = max(range(len(SENSITIVE)), key=sums.__getitem__)
        if sums[likely] - plain > best:
            best, found = sums[likely] - plain, SENSITIVE[likely]
    return found


def features(sentence: str) -> Iterator[str]:
    """The features of a sentence; used for training."""
    words = _words(sentence)
    yield "1"
    for word in words:
        yield from _of_word(word)
    yield from _pairs(words)


def _sums(sentence: str) -> list[int]:
    """The class scores of a sentence. Scores per word are cached, because most words recur."""
    words = _words(sentence)
    sums = MODEL.sums(["1", *_pairs(words)])
    for word in words:
        for place, value in enumerate(_sums_of_word(word)):
            sums[place] += value
    return sums


@lru_cache(maxsize=4096)
def _sums_of_word(word: str) -> tuple[int, ...]:
    return tuple(MODEL.sums(_of_word(word)))


def _words(sentence: str) -> list[str]:
    """The distinct lower-case words without accents; numbers and codes are replaced by their shape."""
    text = sentence.casefold()
    if not text.isascii():
        spelled = unicodedata.normalize("NFKD", text)
        text = "".join(sign for sign in spelled if not unicodedata.combining(sign))
    return list(dict.fromkeys(_shape(word) for word in _WORD.findall(text)))


def _shape(word: str) -> str:
    if not any(sign.isdigit() for sign in word):
        return word[:_LONGEST]
    signs = sum(sign.isalnum() for sign in word)
    if any(sign.isalpha() for sign in word):
        return "<code>" if signs >= _CODE else "<mixed>"
    return "<long>" if signs >= _LONG_NUMBER else f"<{signs}>"


def _of_word(word: str) -> Iterator[str]:
    """The word and its character n-grams: names of diseases share roots across languages and occur in compounds."""
    yield word
    if word[0] == "<" or len(word) < _PART:
        return
    whole = f"^{word}$"
    for size in (_PART, _PART + 1):
        for start in range(len(whole) - size + 1):
            yield f"~{whole[start : start + size]}"


def _pairs(words: list[str]) -> Iterator[str]:
    for one, two in pairwise(["^", *words, "$"]):
        yield f"{one} {two}"
