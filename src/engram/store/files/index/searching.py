"""The two retrievers: FTS5 by BM25, and an exact scan of the vectors. Both filter before the cut."""

import json
import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING

from engram.rules.numbers import FIELD_WEIGHTS

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from engram.embedding.protocol import Vectors
    from engram.store.files.index.filters import Clause

Ranking = list[tuple[int, float]]

_SLACK, _LEAST = 3, 256
"""How many times the wanted number is looked at before the filter, and how many at least; most queries filter little."""


def document_frequencies(connection: sqlite3.Connection, terms: Sequence[str]) -> dict[str, int]:
    """In how many documents each term occurs; terms that occur nowhere are left out."""
    found = {}
    for term in dict.fromkeys(terms):
        row = connection.execute("SELECT doc FROM vocabulary WHERE term = ?", (term,)).fetchone()
        if row is not None:
            found[term] = row[0]
    return found


def lexical(connection: sqlite3.Connection, terms: Sequence[str], clause: "Clause", limit: int) -> Ranking:
    """Documents holding any of the terms, by BM25 over the weighted fields."""
    if not terms:
        return []
    match = " OR ".join(f'"{term}"' for term in terms)
    weights = ", ".join(str(weight) for weight in FIELD_WEIGHTS)
    wide = max(limit * _SLACK, _LEAST)
    rows = connection.execute(
        f"SELECT rowid, -bm25(words, {weights}) FROM words WHERE words MATCH ? ORDER BY 2 DESC LIMIT ?", (match, wide)
    ).fetchall()
    passing = allowed_among(connection, [n for n, _ in rows], clause)
    kept = [(n, score) for n, score in rows if n in passing]
    if len(kept) >= limit or len(rows) < wide:
        return kept[:limit]
    return _lexical_joined(connection, match, weights, clause, limit)


def _lexical_joined(connection: sqlite3.Connection, match: str, weights: str, clause: "Clause", limit: int) -> Ranking:
    condition, values = clause
    return connection.execute(
        f"SELECT words.rowid, -bm25(words, {weights}) FROM words JOIN docs d ON d.n = words.rowid "
        f"WHERE words MATCH ? AND {condition} ORDER BY 2 DESC LIMIT ?",
        (match, *values, limit),
    ).fetchall()


def allowed_among(connection: sqlite3.Connection, numbers: Sequence[int], clause: "Clause") -> set[int]:
    """Which of these documents pass the filter."""
    condition, values = clause
    rows = connection.execute(
        f"SELECT d.n FROM json_each(?) j CROSS JOIN docs d ON d.n = j.value WHERE {condition}",
        (json.dumps(numbers), *values),
    )
    return {n for (n,) in rows}


def semantic(
    connection: sqlite3.Connection, matrix: "Vectors", vector: "Vectors", clause: "Clause", limit: int
) -> Ranking:
    """Documents by likeness to a vector: an exact scan of all, best first."""
    import numpy as np

    scores, count = matrix @ vector, len(matrix)
    wide = max(limit * _SLACK, _LEAST)
    top = _best(scores, wide)
    passing = allowed_among(connection, top.tolist(), clause)
    kept = [int(n) for n in top if int(n) in passing]
    if len(kept) < limit and len(top) < count:
        allowed = np.array(sorted(all_allowed(connection, clause)), dtype=np.int64)
        allowed = allowed[allowed < count]
        kept = allowed[_best(scores[allowed], limit)].tolist()
    return [(n, float(scores[n])) for n in kept[:limit] if scores[n] > 0]


def all_allowed(connection: sqlite3.Connection, clause: "Clause") -> list[int]:
    """Every document that passes the filter."""
    condition, values = clause
    return [n for (n,) in connection.execute(f"SELECT d.n FROM docs d WHERE {condition}", values)]


def _best(scores: "npt.NDArray[np.float32]", count: int) -> "npt.NDArray[np.int64]":
    import numpy as np

    if len(scores) > count:
        best = np.argpartition(-scores, count)[:count]
    else:
        best = np.arange(len(scores))
    return best[np.lexsort((best, -scores[best]))]
