"""Detects statements about somebody's health, identity, money, whereabouts or private life: they are tier 3, whatever their type (DESIGN §12).

A linear model over words, word pairs and character n-grams in seven languages, trained on sentences by several writers and on
near misses (health checks, identity providers, prices, data centres, who reviews what) by training/train_tiers.py.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from engram.models.linear import Linear
from engram.text.confusables import fold_text
from engram.text.sentences import split_sentences

__all__ = ["FRAGMENT_MARGIN", "MARGIN", "PLAIN", "SENSITIVE", "features", "subject_of"]

PLAIN = "plain"
SENSITIVE = ("health", "identity", "fiscal", "location", "people")
"""The subjects that only a person may approve, each by the name of its type."""
MODEL = Linear("sensitivity.bin", (PLAIN, *SENSITIVE), 1 << 15)
MARGIN = 16
"""A subject must beat `PLAIN` by more than this, in stored weights: so one in twenty plain statements is a false alarm."""
FRAGMENT_MARGIN = 100
"""The same for what is no statement: a situation such as "while waiting for CI", or a part of feedback. It was trained on statements, and with their
margin one in ten of 125 situations is a false alarm; of 15 sensitive fragments 14 have this one."""

_WORD = re.compile(r"\w+(?:[.-]\d\w*)*|[%€$£+]")
_MAX_WORD_CHARACTERS = 40
_CODE, _LONG_NUMBER = 6, 7
"""The lengths from which mixed letters and digits count as a code, and digits alone as an account number."""
_PART = 4
_NAME = "<name>"


def subject_of(text: str, margin: int = MARGIN) -> str:
    """The sensitive subject of a text, one of `SENSITIVE`; "" for none. Each sentence is scored by itself."""
    best, found = margin, ""
    for sentence in split_sentences(fold_text(text).replace(";", "\n")):
        plain, *sums = _sums(sentence)
        likely = max(range(len(SENSITIVE)), key=sums.__getitem__)
        if sums[likely] - plain > best:
            best, found = sums[likely] - plain, SENSITIVE[likely]
    return found


def features(sentence: str) -> Iterator[str]:
    """The features of a sentence; used for training."""
    read = _read(sentence)
    yield from _around(read)
    for word in dict.fromkeys(word for word, _ in read):
        yield from _of_word(word)


def _sums(sentence: str) -> list[int]:
    """The class scores of a sentence. Scores per word are cached, because most words recur."""
    read = _read(sentence)
    sums = MODEL.sums(_around(read))
    for word in dict.fromkeys(word for word, _ in read):
        for place, value in enumerate(_sums_of_word(word)):
            sums[place] += value
    return sums


@lru_cache(maxsize=4096)
def _sums_of_word(word: str) -> tuple[int, ...]:
    return tuple(MODEL.sums(_of_word(word)))


def _read(sentence: str) -> list[tuple[str, bool]]:
    """The words in lower case and without accents, each with whether it looks like a name: it is capitalised and not the first.

    Numbers and codes are replaced by their shape.
    """
    if not sentence.isascii():
        spelled = unicodedata.normalize("NFKD", sentence)
        sentence = "".join(sign for sign in spelled if not unicodedata.combining(sign))
    found = _WORD.findall(sentence)
    return [
        (_shape(word.casefold()), at > 0 and word[0].isupper() and not word.isupper()) for at, word in enumerate(found)
    ]


def _shape(word: str) -> str:
    if not any(sign.isdigit() for sign in word):
        return word[:_MAX_WORD_CHARACTERS]
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


def _around(read: list[tuple[str, bool]]) -> Iterator[str]:
    """What is read from more than one word: each pair of words that follow each other, and the words next to a name.

    Most names of people and places are unknown to the model, so any name counts as the same word there.
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
