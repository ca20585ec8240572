"""In which documents each term occurs, as one process keeps it in memory: BM25 as FTS5 computes it, in a tenth of the time.

FTS5 looks up the length of every document that has one of the terms. A process that searches again and again reads the index terms of all documents
once, some with each search, and then ranks by itself; until then, and in a large index, FTS5 ranks.
"""

import sqlite3
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from math import log
from typing import TYPE_CHECKING

from engram.rules.numbers import FIELD_WEIGHTS
from engram.text.tokens import QUESTION_MARKER

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Found = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]

__all__ = ["Postings"]

SATURATION, LENGTH = 1.2, 0.75
"""FTS5's k1 and b, which cannot be set."""
_LEAST_RARITY = 1e-6
"""What FTS5 takes for a term that more than half of the documents have."""
MAX_DOCUMENTS = 50_000
"""Documents that are kept: some 2 MB for ten thousand short ones."""
CHARACTERS_PER_SEARCH = 150_000
"""Characters of index terms that one search reads, in some ten milliseconds; the next searches read the rest."""
_CHANGED_DOCUMENTS = """
SELECT t.n, t.statement, t.about, t.support, t.cues FROM docs d JOIN texts t ON t.n = d.n WHERE d.change > ? AND d.n <= ?
"""
_MAX_CHANGED_DOCUMENTS = 2_000
"""Documents that are taken out one by one; where more changed, all are read again."""
_ENDS = "SELECT coalesce((SELECT max(change) FROM docs), 0), coalesce((SELECT max(n) FROM docs), 0)"
_NEW_DOCUMENTS = "SELECT n, statement, about, support, cues FROM texts WHERE n > ? ORDER BY n"


class _Term:
    """The documents with a term, in the order of their numbers, and how often each has it, by the weights of its fields."""

    __slots__ = ("_arrays", "_counts", "_numbers")

    def __init__(self) -> None:
        self._numbers: array[int] = array("q")
        self._counts: array[float] = array("d")
        self._arrays: Found | None = None

    def put(self, n: int, count: float) -> None:
        """Add a document that is not there."""
        at = bisect_left(self._numbers, n) if self._numbers and n < self._numbers[-1] else len(self._numbers)
        self._numbers.insert(at, n)
        self._counts.insert(at, count)
        self._arrays = None

    def drop(self, n: int) -> None:
        """Take a document out that is there."""
        at = bisect_left(self._numbers, n)
        del self._numbers[at], self._counts[at]
        self._arrays = None

    def as_arrays(self) -> "Found":
        """Both as arrays."""
        import numpy as np

        if self._arrays is None:
            self._arrays = np.array(self._numbers, dtype=np.int64), np.array(self._counts, dtype=np.float64)
        return self._arrays


class Postings:
    """The postings of one connection's index. Documents are read in the order of their numbers, which are never used twice."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._state: tuple[int, int] | None = None
        self._change = self._last = self._total = 0
        self._digests: dict[int, int] = {}
        self._terms: dict[str, _Term] = {}
        self._terms_of: dict[int, tuple[_Term, ...]] = {}
        self._lengths: array[float] = array("d")
        self._room: npt.NDArray[np.float64] | None = None
        self._is_whole = self._is_large = False

    def rank(
        self, db: sqlite3.Connection, terms: Sequence[str], limit: int, allowed: Sequence[int] | None = None
    ) -> list[tuple[int, float]] | None:
        """The best documents with any of the terms, of the `allowed` ones if given, best first; None as long as not all have been read, and
        inside a transaction, whose changes have no number yet.
        """
        if db.in_transaction or not self._refresh(db):
            return None
        import numpy as np

        room = self._rooms()
        scores = np.zeros(len(room))
        for term in filter(None, map(self._terms.get, terms)):
            numbers, counts = term.as_arrays()
            scores[numbers] += self._rarity(len(numbers)) * (counts * (SATURATION + 1) / (counts + room[numbers]))
        if allowed is not None:
            numbers = np.asarray(allowed, dtype=np.int64)
            is_allowed = np.zeros(len(room), dtype=bool)
            is_allowed[numbers[numbers < len(room)]] = True
            scores[~is_allowed] = 0
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

    def _refresh(self, db: sqlite3.Connection) -> bool:
        """Follow what changed, read on, and say whether all documents have been read."""
        state = db.execute("PRAGMA data_version").fetchone()[0], db.total_changes
        if state != self._state:
            # First the number of the last change: what another process commits meanwhile has a higher one, and is read again.
            change, last = db.execute(_ENDS).fetchone()
            self._follow(db)
            self._state, self._change, self._is_whole, self._is_large = state, change, False, last > MAX_DOCUMENTS
        if not self._is_whole and not self._is_large:
            self._read(db)
        return self._is_whole

    def _follow(self, db: sqlite3.Connection) -> None:
        """Take in what became of the documents that were read."""
        rows = db.execute(_CHANGED_DOCUMENTS, (self._change, self._last)).fetchmany(_MAX_CHANGED_DOCUMENTS + 1)
        changed = {n: fields for n, *fields in rows if self._digests.get(n) != hash(tuple(fields))}
        (left,) = db.execute("SELECT count(*) FROM texts WHERE n <= ?", (self._last,)).fetchone()
        known = len(self._digests.keys() | changed.keys())
        there = {n for (n,) in db.execute("SELECT n FROM texts WHERE n <= ?", (self._last,))} if left < known else None
        gone = [n for n in self._digests if n not in there] if there is not None else []
        if len(rows) + len(gone) > _MAX_CHANGED_DOCUMENTS or left > known:
            self._forget()
            return
        for n in (*gone, *(n for n in changed if n in self._digests)):
            self._drop(n)
        for n, fields in changed.items():
            self._add(n, fields)

    def _read(self, db: sqlite3.Connection) -> None:
        read = 0
        for n, *fields in db.execute(_NEW_DOCUMENTS, (self._last,)):
            if read > CHARACTERS_PER_SEARCH:
                return
            self._add(n, fields)
            read += sum(map(len, fields))
        self._is_whole = True

    def _add(self, n: int, fields: Sequence[str]) -> None:
        counts: dict[str, float] = {}
        length = 0
        for text, weight in zip(fields, FIELD_WEIGHTS, strict=True):
            for term in text.split():
                if term != QUESTION_MARKER:
                    counts[term] = counts.get(term, 0.0) + weight
                    length += 1
        for term, count in counts.items():
            self._terms.setdefault(term, _Term()).put(n, count)
        self._terms_of[n] = tuple(map(self._terms.__getitem__, counts))
        self._lengths.extend([0.0] * (n + 1 - len(self._lengths)))
        self._lengths[n] = length
        self._total += length
        self._room = None
        self._digests[n] = hash(tuple(fields))
        self._last = max(n, self._last)

    def _drop(self, n: int) -> None:
        for term in self._terms_of.pop(n):
            term.drop(n)
        self._total -= int(self._lengths[n])
        self._lengths[n] = 0.0
        self._room = None
        del self._digests[n]
