"""Vectors of tasks, which place a prompt near its situation whatever the wording ("bump axios" and "upgrading a
dependency").

The vector of a text is the sum of its words' bundled vectors and of learned rows for words and pairs of words, one set
for prompts and one for notes (training/train_task_vectors.py). Rows are found by a checksum of their words; each number
takes four bits. Prompts are embedded with the standard library, for hooks; many notes at once with numpy.
"""

import mmap
import os
import struct
import sys
from array import array
from binascii import crc32
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from math import exp, log, log10, sqrt
from operator import mul
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram.embedding.vectors import dot
from engram.embedding.word_pieces import BITS, PlainTable, unit, word_rows, words
from engram.model.errors import EmbedderError
from engram.model.lazy import cached_property
from engram.text.translation import translate

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Matrix32 = npt.NDArray[np.float32]

__all__ = [
    "LEVELS",
    "WORDS_READ",
    "TaskTable",
    "least_likeness",
    "likeness",
    "packed_file",
    "task_relevance",
]

FILE = Path(__file__).with_name("task_vectors.bin")
LEVELS = 7
"""The largest number in a half byte; the smallest is its negative."""
WORDS_READ = 60
"""The number of words of a text that count."""
CHARACTERS_READ = 4_000
_MAGIC = b"engtask2"
_HEADER = struct.Struct("<8sIIff")
_ROW = BITS // 2
_HIGH = bytes((value >> 4) - 8 & 0xFF for value in range(256))
_LOW = bytes((value & 15) - 8 & 0xFF for value in range(256))
PROMPTS, NOTES = 0, 1
MAX_STORED_NUMBER = 127
"""The largest number of a stored vector."""
LEAST, FOR_TENFOLD = 0.22, 0.06
"""The likeness to a prompt from which a memory, among a hundred, is about it, so that 19 of 20 unrelated prompts find
none; and the increase for ten times as many memories, since the nearest of more is nearer by chance.
"""
STEEPNESS, AT_LEAST = 15.2, 0.08
"""How fast the probability grows with the likeness; and its value at the least likeness: the floor of `recall`."""


class TaskTable:
    """The learned rows and the bundled table, read as words need them. Raises `EmbedderError` if their file is
    damaged.
    """

    def __init__(self, table: PlainTable | None = None) -> None:
        self.table = table or PlainTable()

    @cached_property
    def _file(self) -> mmap.mmap:
        try:
            descriptor = os.open(FILE, os.O_RDONLY | os.O_CLOEXEC)
            try:
                return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
            finally:
                os.close(descriptor)
        except (OSError, ValueError) as error:
            raise EmbedderError(f"{FILE} cannot be read ({error}); reinstall engram") from None

    @cached_property
    def _header(self) -> tuple[int, int, float, float]:
        size = len(self._file)
        if size >= _HEADER.size and sys.byteorder == "little":
            magic, count, checksum, about, said = _HEADER.unpack_from(self._file)
            if magic == _MAGIC and size == _HEADER.size + count * (12 + 2 * _ROW):
                return count, checksum, about, said
        raise EmbedderError(f"{FILE} is damaged, or made for another version or kind of machine; reinstall engram")

    @property
    def number(self) -> int:
        """The version of these vectors. Vectors of different versions cannot be compared."""
        return self._header[1]

    @cached_property
    def _keys(self) -> "memoryview[int]":
        return memoryview(self._file)[_HEADER.size : _HEADER.size + 4 * self._header[0]].cast("I")

    def _scales(self, side: int) -> "memoryview[float]":
        count = self._header[0]
        start = _HEADER.size + 4 * count * (1 + side)
        return memoryview(self._file)[start : start + 4 * count].cast("f")

    def _row(self, side: int, place: int) -> bytes:
        count = self._header[0]
        start = _HEADER.size + 12 * count + _ROW * (side * count + place)
        return self._file[start : start + _ROW]

    def _places(self, read: Sequence[str]) -> list[int]:
        """The indexes of the learned rows for words and pairs of words."""
        known, found = self._keys, []
        for key in (*read, *map(" ".join, pairwise(read))):
            number = crc32(key.encode())
            place = bisect_left(known, number)
            if place < len(known) and known[place] == number:
                found.append(place)
        return found

    def prompt(self, text: str) -> "array[float]":
        """The unit vector of a prompt."""
        return unit(self._sum_vectors(text, PROMPTS))

    def prompt_with_numpy(self, text: str) -> "array[float]":
        """The same vector, bit for bit, for programs that have loaded numpy: in a tenth of the time."""
        import numpy as np

        from engram.embedding.static import StaticEmbedder

        read = words(translate(text[:CHARACTERS_READ]))[:WORDS_READ]
        places, scales = self._places(read), np.asarray(self._scales(PROMPTS))
        packed = np.frombuffer(b"".join(self._row(PROMPTS, place) for place in places), dtype=np.uint8)
        halves = np.concatenate([packed.reshape(-1, _ROW) >> 4, packed.reshape(-1, _ROW) & 15], axis=1)
        learned = scales[places].astype(np.float64)[:, None] * (halves.astype(np.float64) - 8)
        bundled = StaticEmbedder().scaled_rows([row for word in read for row in word_rows[word]])
        # The sum down the columns adds row by row, in the order of `_summed`.
        return unit(np.concatenate([bundled, learned]).sum(axis=0).tolist())

    def note(self, situation: str, statement: str) -> "array[float]":
        """The unit vector of a memory."""
        _, _, about, said = self._header
        whole = [said * value for value in unit(self._sum_vectors(statement, NOTES))]
        if situation:
            whole = [
                one + about * more for one, more in zip(whole, unit(self._sum_vectors(situation, NOTES)), strict=True)
            ]
        return unit(whole)

    def encode_note(self, situation: str, statement: str) -> bytes:
        """The vector of a memory, rounded as it is stored."""
        vector = self.note(situation, statement)
        largest = max(map(abs, vector)) or 1.0
        return array("b", [round(value / largest * MAX_STORED_NUMBER) for value in vector]).tobytes()

    def _sum_vectors(self, text: str, side: int) -> list[float]:
        read = words(translate(text[:CHARACTERS_READ]))[:WORDS_READ]
        total, scales = self.table.sum_words(read), self._scales(side)
        for place in self._places(read):
            row, scale = self._row(side, place), scales[place]
            halves = array("b", row.translate(_HIGH) + row.translate(_LOW))
            total = [value + scale * more for value, more in zip(total, halves, strict=True)]
        return total

    def encode_notes(self, notes: Sequence[tuple[str, str]]) -> list[bytes]:
        """The vectors of many memories (situation, statement), rounded as they are stored."""
        import numpy as np

        if not notes:
            return []
        _, _, about, said = self._header
        has = np.array([[1.0 if situation else 0.0] for situation, _ in notes], dtype=np.float32)
        whole = said * self._many([statement for _, statement in notes])
        whole += about * has * self._many([situation for situation, _ in notes])
        largest = np.abs(whole).max(axis=1, keepdims=True)
        rounded = np.rint(whole / np.where(largest, largest, 1) * MAX_STORED_NUMBER).astype(np.int8)
        return [row.tobytes() for row in rounded]

    def _many(self, texts: Sequence[str]) -> "Matrix32":
        """The unit vectors of parts of notes."""
        import numpy as np

        from engram.embedding.static import StaticEmbedder
        from engram.embedding.vectors import unit_rows

        read = [words(translate(text[:CHARACTERS_READ]))[:WORDS_READ] for text in texts]
        total = StaticEmbedder().sum_texts([" ".join(one) for one in read])
        rows, scales = self._matrix, np.asarray(self._scales(NOTES))
        for place, one in enumerate(read):
            own = self._places(one)
            if own:
                taken = rows[own]
                halves = np.concatenate([(taken >> 4).astype(np.int8), (taken & 15).astype(np.int8)], axis=1) - 8
                total[place] += dot(scales[own], halves.astype(np.float32))
        return unit_rows(total)

    @cached_property
    def _matrix(self) -> Any:
        import numpy as np

        count = self._header[0]
        start = _HEADER.size + 12 * count + _ROW * NOTES * count
        return np.frombuffer(self._file, dtype=np.uint8, count=_ROW * count, offset=start).reshape(count, _ROW)


def likeness(vector: Sequence[float], stored: bytes) -> float:
    """The cosine of a prompt's unit vector and a stored one; 0 if there is none."""
    values = array("b", stored)
    length = sqrt(sum(map(mul, values, values)))
    return sum(map(mul, vector, values)) / length if length else 0.0


def least_likeness(count: int) -> float:
    """The likeness to a prompt from which one of `count` memories is about it."""
    return LEAST + FOR_TENFOLD * max(0.0, log10(max(count, 1) / 100))


def task_relevance(like: float, count: int) -> float:
    """The probability that a memory, one of `count`, is about a prompt with this likeness to it."""
    odds = STEEPNESS * (like - least_likeness(count)) + log(AT_LEAST / (1 - AT_LEAST))
    return 1 / (1 + exp(-odds))


def packed_file(keys: "npt.NDArray[np.uint32]", rows: "Matrix32", shares: tuple[float, float]) -> bytes:
    """The file contents for these rows (prompts and notes x keys x numbers), with sorted keys."""
    import numpy as np

    scales = np.abs(rows).max(axis=-1) / LEVELS
    levels = np.rint(rows / np.where(scales, scales, 1)[..., None]).astype(np.int8) + 8
    high, low = levels[..., :_ROW].astype(np.uint8), levels[..., _ROW:].astype(np.uint8)
    packed = (high << 4 | low).astype(np.uint8)
    parts: list[bytes] = [keys.astype("<u4").tobytes(), scales.astype("<f4").tobytes(), packed.tobytes()]
    body = b"".join(parts)
    return _HEADER.pack(_MAGIC, len(keys), crc32(body), *shares) + body
