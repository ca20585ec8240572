"""The bundled model without numpy, for programs that start at every prompt: a few words and sentences in a few milliseconds.

The table is read where a word needs it. A word's code is the sign of each of its 256 numbers as one integer: two codes are
compared with one XOR, and the share of equal bits tells the angle between the vectors.
"""

import mmap
import os
import struct
from array import array
from collections.abc import Iterable, Sequence
from math import cos, pi, sqrt
from operator import mul

from engram.embedding.tokenizer import DATA, word_rows, words
from engram.model.lazy import cached_property

__all__ = [
    "BITS",
    "HALF",
    "PlainTable",
    "Word",
    "code_of_bytes",
    "code_of_values",
    "cosine",
    "similarity",
    "unit",
]

BITS = 256
HALF = struct.Struct(f"<{BITS}e")
"""A vector as the index stores it: half precision."""
_HEADER = 128
"""Bytes before the numbers in numpy's files; `distill_embedder.py` writes them so, and a test compares."""
_SIGNS = bytes(0x31 if value >= 128 else 0x30 for value in range(256))

Word = tuple[int, float]
"""A word's code and its weight: how much it says, from about .2 for "the" to 4 for a rare name."""
_WEIGHT_UNIT = 1000.0
NO_WORD: Word = (0, 0.0)


def similarity(code: int, other: int) -> float:
    """The cosine that two codes tell."""
    return _COSINES[(code ^ other).bit_count()]


_COSINES = tuple(cos(pi * differing / BITS) for differing in range(BITS + 1))


def code_of_bytes(vector: bytes) -> int:
    """The code of a vector of signed bytes."""
    return int(vector.translate(_SIGNS), 2)


def code_of_values(vector: Iterable[float]) -> int:
    """The code of a vector of numbers."""
    return int("".join(["1" if value < 0 else "0" for value in vector]), 2)


def unit(vector: Sequence[float]) -> "array[float]":
    """The vector at length one; zero stays zero."""
    length = sqrt(sum(map(mul, vector, vector)))
    return array("f", [value / length for value in vector] if length else vector)


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """The product of two unit vectors."""
    return float(sum(map(mul, one, other)))


class PlainTable:
    """The bundled table, read row by row."""

    def __init__(self) -> None:
        self._words: dict[str, Word] = {}

    @cached_property
    def _vectors(self) -> mmap.mmap:
        return _mapped("vectors.npy")

    @cached_property
    def _scales(self) -> "memoryview[float]":
        return memoryview(_mapped("scales.npy"))[_HEADER:].cast("f")

    def word(self, word: str) -> Word:
        """A word's code and weight; (0, 0) for one that the vocabulary cannot spell."""
        found = self._words.get(word)
        if found is None:
            found = self._words[word] = self._read(word_rows[word])
        return found

    def _read(self, rows: tuple[int, ...]) -> Word:
        if not rows:
            return NO_WORD
        if len(rows) == 1:
            return code_of_bytes(self._bytes(rows[0])), self._scales[rows[0]] * _WEIGHT_UNIT
        return code_of_values(self._summed(rows)), max(self._scales[row] for row in rows) * _WEIGHT_UNIT

    def embed(self, text: str, most: int = 400) -> "array[float]":
        """The unit vector of a text, as `StaticEmbedder.embed` computes it, of its first words."""
        return unit(self.summed(words(text)[:most]))

    def summed(self, read: Iterable[str]) -> list[float]:
        """The sum of the vectors of words."""
        return self._summed([row for word in read for row in word_rows[word]])

    def _summed(self, rows: Iterable[int]) -> list[float]:
        total = [0.0] * BITS
        for row in rows:
            scale = self._scales[row]
            total = [value + scale * more for value, more in zip(total, array("b", self._bytes(row)), strict=True)]
        return total

    def _bytes(self, row: int) -> bytes:
        start = _HEADER + row * BITS
        return self._vectors[start : start + BITS]


def _mapped(name: str) -> mmap.mmap:
    descriptor = os.open(DATA / name, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
    finally:
        os.close(descriptor)
