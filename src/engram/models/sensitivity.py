"""Whether a text speaks of someone's health, identity or money: what makes a memory tier 3, whatever its type (DESIGN §12).

A linear model over words, pairs of words and parts of words, in seven languages; it was shown what several writers say of people
and what only looks like it (health checks, identity providers, prices). Made by scripts/train_tiers.py.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from engram.models.linear import Linear

__all__ = ["MARGIN", "PLAIN", "SPOKEN", "features", "sentences", "subject_of"]

PLAIN = "plain"
SPOKEN = ("health", "identity", "fiscal")
"""What only a person decides about, each by the name of its type."""
SPEECH = Linear("engram.gates", "tiers.bin", (PLAIN, *SPOKEN), 1 << 15)
MARGIN = 0
"""By how much a sentence must speak for one of these rather than for none."""

_SENTENCE = re.compile(r"(?<=[.!?…])\s+|[\n;]+|(?<=[。！？])")
_WORD = re.compile(r"\w+(?:[.-]\d\w*)*|[%€$£+]")
_LONGEST = 40
_CODE, _LONG_NUMBER = 6, 7
"""From how many signs on letters with digits are somebody's or something's code, and digits alone a number of an account."""
_PART = 4


def subject_of(text: str) -> str:
    """What of `SPOKEN` a text speaks of; "" where it is nothing of the kind. Each sentence is weighed by itself."""
    best, found = MARGIN, ""
    for sentence in sentences(text):
        plain, *sums = _sums(sentence)
        likely = max(range(len(SPOKEN)), key=sums.__getitem__)
        if sums[likely] - plain > best:
            best, found = sums[likely] - plain, SPOKEN[likely]
    return found


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text, none of them empty."""
    return (part for part in _SENTENCE.split(text) if part.strip())


def features(sentence: str) -> Iterator[str]:
    """What the model looks at; for whoever makes it."""
    words = _words(sentence)
    yield "1"
    for word in words:
        yield from _of_word(word)
    yield from _pairs(words)


def _sums(sentence: str) -> list[int]:
    """The sums of `features`, those of a word remembered: most words come again."""
    words = _words(sentence)
    sums = SPEECH.sums(["1", *_pairs(words)])
    for word in words:
        for place, value in enumerate(_sums_of_word(word)):
            sums[place] += value
    return sums


@lru_cache(maxsize=4096)
def _sums_of_word(word: str) -> tuple[int, ...]:
    return tuple(SPEECH.sums(_of_word(word)))


def _words(sentence: str) -> list[str]:
    """Lower-case words without accents, each once; of numbers and codes only how they look."""
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
    """The word and its parts: what a disease is called has the same root in most languages, and hides in compounds."""
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
