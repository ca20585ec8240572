"""In which documents each term occurs, as one process keeps it in memory: BM25 as FTS5 computes it, in a tenth of the time.

FTS5 looks up the length of every document that has one of the terms. A process that searches again and again reads the index terms of all documents
once, some with each search, and then ranks by itself; until then, and in a large index, FTS5 ranks.
"""

import sqlite3
from array import array
from collections.abc import Sequence
from math import log
from typing import TYPE_CHECKING

from engram.rules.numbers import FIELD_WEIGHTS
from engram.text.tokens import ASKED

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Found = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]

__all__ = ["Postings"]

SATURATION, LENGTH = 1.2, 0.75
"""FTS5's k1 and b, which cannot be set."""
_LEAST_RARITY = 1e-6
"""What FTS5 takes for a term that more than half of the documents have."""
MOST_DOCUMENTS = 50_000
"""Documents that are kept: some 2 MB for ten thousand short ones."""
READ_AT_ONCE = 150_000
"""Characters of index terms that one search reads, in some ten milliseconds; the next searches read the rest."""
_CHANGED_DOCUMENTS = """
SELECT t.n, t.statement, t.about, t.support FROM docs d JOIN texts t ON t.n = d.n WHERE d.change > ? AND d.n <= ?
"""
_NEW_DOCUMENTS = "SELECT n, statement, about, support FROM texts WHERE n > ? ORDER BY n"


class Postings:
    """The postings of one connection's index. Documents are read in the order of their numbers, which are never used twice."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._state: tuple[int, int] | None = None
        self._change = self._last = self._total = 0
        self._digests: dict[int, int] = {}
        self._postings: dict[str, tuple[array[int], array[float]]] = {}
        self._arrays: dict[str, Found] = {}
        self._lengths: array[float] = array("d")
        self._room: npt.NDArray[np.float64] | None = None
        self._is_whole = False

    def ranked(self, db: sqlite3.Connection, terms: Sequence[str], limit: int) -> list[tuple[int, float]] | None:
        """The best documents with any of the terms, best first; None as long as not all have been read, and inside a transaction, whose changes
        have no number yet.
        """
        if db.in_transaction or not self._refreshed(db):
            return None
        import numpy as np

        room = self._rooms()
        scores = np.zeros(len(room))
        for term in terms:
            numbers, counts = self._found(term)
            scores[numbers] += self._rarity(len(numbers)) * (counts * (SATURATION + 1) / (counts + room[numbers]))
        found = np.flatnonzero(scores)
        best = found[np.lexsort((found, -scores[found]))[:limit]]
        return list(zip(best.tolist(), scores[best].tolist(), strict=True))

    def _rooms(self) -> "npt.NDArray[np.float64]":
        """What the length of each document adds below the line."""
        import numpy as np

        if self._room is None:
            mean = self._total / max(len(self._digests), 1) or 1.0
            self._room = SATURATION * (1 - LENGTH + LENGTH * np.array(self._lengths) / mean)
        return self._room

    def _rarity(self, frequency: int) -> float:
        rarity = log((len(self._digests) - frequency + 0.5) / (frequency + 0.5))
        return rarity if rarity > 0 else _LEAST_RARITY

    def _found(self, term: str) -> "Found":
        """The documents with a term, and how often each has it, by the weights of its fields."""
        import numpy as np

        if term not in self._arrays:
            numbers, counts = self._postings.get(term, (array("q"), array("d")))
            self._arrays[term] = np.array(numbers, dtype=np.int64), np.array(counts, dtype=np.float64)
        return self._arrays[term]

    def _refreshed(self, db: sqlite3.Connection) -> bool:
        """Read on, and whether all documents have been read. What was changed or removed since is not taken out: all are read again."""
        state = db.execute("PRAGMA data_version").fetchone()[0], db.total_changes
        if state != self._state:
            if self._has_changed(db):
                self._forget()
            (self._change,) = db.execute("SELECT coalesce(max(change), 0) FROM docs").fetchone()
            self._state, self._is_whole = state, False
        if not self._is_whole:
            self._read(db)
        return self._is_whole

    def _has_changed(self, db: sqlite3.Connection) -> bool:
        """Whether a document that was read says something else now, or is gone."""
        rows = db.execute(_CHANGED_DOCUMENTS, (self._change, self._last))
        if any(self._digests.get(n) != hash(tuple(fields)) for n, *fields in rows):
            return True
        (left,) = db.execute("SELECT count(*) FROM texts WHERE n <= ?", (self._last,)).fetchone()
        return bool(left != len(self._digests))

    def _read(self, db: sqlite3.Connection) -> None:
        read = 0
        for n, *fields in db.execute(_NEW_DOCUMENTS, (self._last,)):
            if read > READ_AT_ONCE or len(self._digests) >= MOST_DOCUMENTS:
                return
            self._add(n, fields)
            read += sum(map(len, fields))
        self._is_whole = True

    def _add(self, n: int, fields: Sequence[str]) -> None:
        counts: dict[str, float] = {}
        length = 0
        for text, weight in zip(fields, FIELD_WEIGHTS, strict=True):
            for term in text.split():
                if term != ASKED:
                    counts[term] = counts.get(term, 0.0) + weight
                    length += 1
        for term, count in counts.items():
            numbers, each = self._postings.setdefault(term, (array("q"), array("d")))
            numbers.append(n)
            each.append(count)
            self._arrays.pop(term, None)
        self._lengths.extend([0.0] * (n + 1 - len(self._lengths)))
        self._lengths[n] = length
        self._total += length
        self._room = None
        self._digests[n] = hash(tuple(fields))
        self._last = n
