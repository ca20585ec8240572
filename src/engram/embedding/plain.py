"""The bundled model without numpy, for programs that start at every prompt: a few words and sentences in a few milliseconds.

The table is read where a word needs it. A vector's code is the sign of each of its 256 numbers as one integer: two codes are
compared with one XOR, and the share of equal bits tells the angle between the vectors.
"""

import mmap
import os
from array import array
from collections.abc import Iterable, Sequence
from math import sqrt
from operator import mul

from engram.embedding.tokenizer import DATA, word_rows, words
from engram.model.lazy import cached_property
from engram.text.translation import translate

__all__ = [
    "BITS",
    "PlainTable",
    "code_of_bytes",
    "code_of_values",
    "unit",
]

BITS = 256
_HEADER = 128
"""Bytes before the numbers in numpy's files; `distill_embedder.py` writes them so, and a test compares."""
_SIGNS = bytes(0x31 if value >= 128 else 0x30 for value in range(256))


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


class PlainTable:
    """The bundled table, read row by row."""

    @cached_property
    def _vectors(self) -> mmap.mmap:
        return _map_file("vectors.npy")

    @cached_property
    def _scales(self) -> "memoryview[float]":
        return memoryview(_map_file("scales.npy"))[_HEADER:].cast("f")

    def embed(self, text: str, most: int = 400) -> "array[float]":
        """The unit vector of a text, as `StaticEmbedder.embed` computes it, of its first words."""
        return unit(self.sum_words(words(translate(text))[:most]))

    def sum_words(self, read: Iterable[str]) -> list[float]:
        """The sum of the vectors of words."""
        return self._sum_rows([row for word in read for row in word_rows[word]])

    def _sum_rows(self, rows: Iterable[int]) -> list[float]:
        total = [0.0] * BITS
        for row in rows:
            scale = self._scales[row]
            total = [value + scale * more for value, more in zip(total, array("b", self._bytes(row)), strict=True)]
        return total

    def _bytes(self, row: int) -> bytes:
        start = _HEADER + row * BITS
        return self._vectors[start : start + BITS]


def _map_file(name: str) -> mmap.mmap:
    descriptor = os.open(DATA / name, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
    finally:
        os.close(descriptor)
