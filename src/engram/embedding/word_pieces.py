"""The bundled vocabulary and its vectors without numpy: splits a text into word pieces and embeds a few words in
milliseconds.

It is for programs that start at every prompt, and replaces the `tokenizers` package because cold starts matter:
importing that package and loading its 30,000-entry JSON took 92 ms, this module and its first sentence 49 ms, most of
which are standard-library imports (medians of 20 fresh processes each, alternating on a busy machine).
"""

from __future__ import annotations

import mmap
import os
import re
import unicodedata
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from math import sqrt
from operator import mul
from pathlib import Path

from engram.model.lazy import cached_property
from engram.text.translation import translate

__all__ = ["BITS", "PlainTable", "code_of_bytes", "code_of_values", "count_tokens", "unit", "vocabulary", "words"]

DATA = Path(__file__).parent / "data"

# The teacher's own limit: a longer run of letters is a key or a blob, without a meaning to embed.
LONGEST_WORD = 100
# Keys and blobs take about one token for three characters in the tokenizers of language models.
BLOB_CHARACTERS_PER_TOKEN = 3
# Words stay cached until there are this many; a store of 100,000 memories has fewer.
CACHED_WORDS = 200_000
# A search of the file takes about 7 µs: up to this many cost less than splitting the file into lines.
SEARCHED_PIECES = 200

_PUNCTUATION = r"!-/:-@\[-`{-~"
_WORD = re.compile(rf"[^\s{_PUNCTUATION}]+")
_PUNCTUATION_MARK = re.compile(rf"[{_PUNCTUATION}]")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f]")
_HAN = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)


class _Characters(dict[int, str | None]):
    """The replacement of each character, computed on first use (for `str.translate`)."""

    def __missing__(self, code: int) -> str | None:
        character = chr(code)
        self[code] = shown = _plain(character, unicodedata.category(character))
        return shown


def _plain(character: str, category: str) -> str | None:
    """Marks and controls are removed; Han, punctuation and symbols become separate words; the rest is unchanged."""
    if character.isspace():
        return " "
    if category == "Mn" or category[0] == "C":
        return None
    alone = category[0] in "PS" or any(first <= ord(character) <= last for first, last in _HAN)
    return f" {character} " if alone else character


_characters = _Characters()


def words(text: str) -> list[str]:
    """The words of a text as the vocabulary spells them: lower case, no accents, no ASCII punctuation."""
    return _WORD.findall(_normalise(text))


def _normalise(text: str) -> str:
    if not text.isascii() or _CONTROL.search(text):
        text = unicodedata.normalize("NFD", text).translate(_characters)
    return text.lower()


class Vocabulary:
    """Every known piece and its row in the bundled matrix.

    A cold start looks up a dozen words, so the sorted file is searched in place; it is split into lines, which takes 2
    ms, only after many lookups.
    """

    def __init__(self, file: Path) -> None:
        self._bytes = file.read_bytes()
        self._step = self._bytes.index(b"\n") + 1
        self.width = self._step - 1
        self._asked = 0

    def __len__(self) -> int:
        return len(self._bytes) // self._step

    def row(self, piece: str) -> int | None:
        """The row of a piece; None if it is unknown."""
        wanted = piece.encode().ljust(self.width)
        if len(wanted) > self.width:
            return None
        self._asked += 1
        if self._asked > SEARCHED_PIECES:
            row = bisect_left(self._lines, wanted)
            return row if row < len(self._lines) and self._lines[row] == wanted else None
        row = bisect_left(range(len(self)), wanted, key=self._line)
        return row if row < len(self) and self._line(row) == wanted else None

    def _line(self, row: int) -> bytes:
        start = row * self._step
        return self._bytes[start : start + self.width]

    @cached_property
    def _lines(self) -> list[bytes]:
        return self._bytes.split(b"\n")[: len(self)]


@cache
def vocabulary() -> Vocabulary:
    """The bundled vocabulary, read once."""
    return Vocabulary(DATA / "vocabulary.txt")


def _pieces(word: str) -> Iterator[int]:
    """The rows of the longest known pieces from left to right; ends with -1 if none fits."""
    known = vocabulary()
    start, size = 0, len(word)
    while start < size:
        lead = "##" if start else ""
        for end in range(min(size, start + known.width), start, -1):
            row = known.row(lead + word[start:end])
            if row is not None:
                yield row
                start = end
                break
        else:
            yield -1
            return


class WordRows(dict[str, tuple[int, ...]]):
    """Word → its rows, computed on first use; empty for a word the vocabulary cannot spell."""

    def __missing__(self, word: str) -> tuple[int, ...]:
        row = vocabulary().row(word)
        found = (row,) if row is not None else self._spell_word(word)
        if len(self) >= CACHED_WORDS:
            self.clear()
        self[word] = found
        return found

    @staticmethod
    def _spell_word(word: str) -> tuple[int, ...]:
        if len(word) > LONGEST_WORD:
            return ()
        rows = tuple(_pieces(word))
        return () if -1 in rows else rows


word_rows = WordRows()


def count_tokens(text: str) -> int:
    """The number of tokens of the text; text that the vocabulary cannot spell counts by its characters."""
    text = _normalise(text)
    total = len(_PUNCTUATION_MARK.findall(text))
    for word, times in Counter(_WORD.findall(text)).items():
        total += times * (len(word_rows[word]) or _count_pieces(word))
    return total


def _count_pieces(word: str) -> int:
    if len(word) > LONGEST_WORD:
        return -(-len(word) // BLOB_CHARACTERS_PER_TOKEN)
    return len(word)


BITS = 256
_HEADER = 128
"""The number of header bytes in numpy's files as `distill_embedder.py` writes them; a test checks it."""
_SIGNS = bytes(0x31 if value >= 128 else 0x30 for value in range(256))


def code_of_bytes(vector: bytes) -> int:
    """The code of a vector of signed bytes."""
    return int(vector.translate(_SIGNS), 2)


def code_of_values(vector: Iterable[float]) -> int:
    """The code of a vector of numbers."""
    return int("".join(["1" if value < 0 else "0" for value in vector]), 2)


def unit(vector: Sequence[float]) -> array[float]:
    """The vector scaled to length one; zero stays zero."""
    length = sqrt(sum(map(mul, vector, vector)))
    return array("f", [value / length for value in vector] if length else vector)


class PlainTable:
    """The bundled table, read row by row as words need it.

    A vector's code is the sign of each of its 256 numbers as one integer: two codes are compared with one XOR, and the
    share of equal bits gives the angle between the vectors.
    """

    @cached_property
    def _vectors(self) -> mmap.mmap:
        return _map_file("vectors.npy")

    @cached_property
    def _scales(self) -> memoryview[float]:
        return memoryview(_map_file("scales.npy"))[_HEADER:].cast("f")

    def embed(self, text: str, most: int = 400) -> array[float]:
        """The unit vector of the first words of a text, as `StaticEmbedder.embed` computes it."""
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
