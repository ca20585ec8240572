"""The two retrievers, by words and by vectors, and filters as a WHERE clause over `docs d`.

Words are ranked by BM25: by FTS5 or, in a process that searches often, by postings in memory. Vectors are scanned
exactly.
"""

import json
import sqlite3
from array import array
from bisect import bisect_left
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from math import log
from typing import TYPE_CHECKING, Any, TypeVar, cast

from engram.rules.numbers import FIELD_WEIGHTS
from engram.store.sql import FilterCondition
from engram.text.tokens import QUESTION_MARKER

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from engram.embedding.vectors import Vectors
    from engram.store.protocol import Filters

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Found = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]


SATURATION, LENGTH = 1.2, 0.75
"""The k1 and b of FTS5, which are fixed."""
_LEAST_RARITY = 1e-6
"""The value that FTS5 uses for a term in more than half of the documents."""
MAX_DOCUMENTS = 50_000
"""Maximum documents in memory: some 2 MB for ten thousand short ones."""
CHARACTERS_PER_SEARCH = 150_000
"""Characters of index terms that one search reads, in some 10 ms; the next searches read the rest."""
_CHANGED_DOCUMENTS = """
SELECT t.n, t.statement, t.about, t.support, t.cues FROM docs d JOIN texts t ON t.n = d.n WHERE d.change > ? AND d.n <= ?
"""
_MAX_CHANGED_DOCUMENTS = 2_000
"""Maximum changed documents that are removed one by one; if more changed, all are read again."""
_ENDS = "SELECT coalesce((SELECT max(change) FROM docs), 0), coalesce((SELECT max(n) FROM docs), 0)"
_NEW_DOCUMENTS = "SELECT n, statement, about, support, cues FROM texts WHERE n > ? ORDER BY n"


class _Term:
    """The documents with a term, in the order of their numbers, and the weighted count of the term in each."""

    __slots__ = ("_arrays", "_counts", "_numbers")

    def __init__(self) -> None:
        self._numbers: array[int] = array("q")
        self._counts: array[float] = array("d")
        self._arrays: Found | None = None

    def put(self, n: int, count: float) -> None:
        """Add a document that is not in the list."""
        at = bisect_left(self._numbers, n) if self._numbers and n < self._numbers[-1] else len(self._numbers)
        self._numbers.insert(at, n)
        self._counts.insert(at, count)
        self._arrays = None

    def drop(self, n: int) -> None:
        """Remove a document that is in the list."""
        at = bisect_left(self._numbers, n)
        del self._numbers[at], self._counts[at]
        self._arrays = None

    def as_arrays(self) -> "Found":
        """The document numbers and the counts, as arrays."""
        import numpy as np

        if self._arrays is None:
            self._arrays = np.array(self._numbers, dtype=np.int64), np.array(self._counts, dtype=np.float64)
        return self._arrays


class Postings:
    """The postings of one connection's index.

    Documents are read in the order of their numbers, which are never reused. FTS5 looks up the length of every document
    with a term; a process that searches often reads all of them once and computes the ranking itself.
    """

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
        """The best documents with any of the terms, best first, optionally only `allowed` ones.

        None until all documents have been read, and inside a transaction, whose changes have no number yet.
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
        """The length term in the denominator of BM25, for each document."""
        import numpy as np

        if self._room is None:
            mean = self._total / max(len(self._digests), 1) or 1.0
            self._room = SATURATION * (1 - LENGTH + LENGTH * np.array(self._lengths) / mean)
        return self._room

    def _rarity(self, frequency: int) -> float:
        rarity = log((len(self._digests) - frequency + 0.5) / (frequency + 0.5))
        return rarity if rarity > 0 else _LEAST_RARITY

    def _refresh(self, db: sqlite3.Connection) -> bool:
        """Apply changes and continue reading; returns whether all documents have been read."""
        state = db.execute("PRAGMA data_version").fetchone()[0], db.total_changes
        if state != self._state:
            # Get the number of the last change first: changes that another process commits after it have a higher
            # number, and are read again.
            change, last = db.execute(_ENDS).fetchone()
            self._follow(db)
            self._state, self._change, self._is_whole, self._is_large = state, change, False, last > MAX_DOCUMENTS
        if not self._is_whole and not self._is_large:
            self._read(db)
        return self._is_whole

    def _follow(self, db: sqlite3.Connection) -> None:
        """Apply the changes to documents that were already read."""
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


Clause = tuple[str, list[object]]
_Found = TypeVar("_Found")
TASKS, FORMER_TASKS = "tasks.bin", "marks.bin"
"""The file with the memories' task vectors, next to the index, and its former name."""
_LARGEST = 2**63 - 1


def where(filters: "Filters") -> Clause:
    """The condition and its parameters."""
    found = SqliteCondition(filters)
    return found.text, found.values


class SqliteCondition(FilterCondition):
    """A condition with `?` for each value."""

    EARLIEST = "0"

    def __init__(self, filters: "Filters") -> None:
        self.values: list[object] = []
        super().__init__(filters)

    def add(self, condition: str, *values: object) -> None:
        self.parts.append(condition.format(*"?" * len(values)))
        self.values.extend(values)

    def among(self, column: str, values: Sequence[str] | None) -> None:
        if values is not None:
            self.add(f"{column} IN ({', '.join(['{}'] * len(values))})", *values)
            if column == "d.parent":
                self.add("d.parent <> ''")  # This lets SQLite use the partial index.

    def not_among(self, column: str, values: Sequence[str]) -> None:
        self.add(f"{column} NOT IN ({', '.join(['{}'] * len(values))})", *values)

    def moment(self, at: datetime) -> float:
        return at.timestamp()

    def add_roles(self, roles: Sequence[str]) -> None:
        self.among("d.role", roles)

    def add_critical(self) -> None:
        self.add("d.critical <> ''")

    def add_without_cues(self) -> None:
        # Next to the cues, the index has the English words of a statement in another language.
        self.add(
            "EXISTS (SELECT 1 FROM texts t JOIN records w ON w.n = t.n WHERE t.n = d.n "
            "AND (t.cues = '' OR coalesce(json_array_length(w.record, '$.cues'), 0) = 0))"
        )
        # The files of team stores have absolute paths.
        self.add("NOT EXISTS (SELECT 1 FROM places p WHERE p.id = d.id AND substr(p.path, 1, 1) = '/')")

    def add_tags(self, tags: Sequence[str]) -> None:
        for tag in tags:
            self.add("EXISTS (SELECT 1 FROM tags t WHERE t.n = d.n AND t.tag = {})", tag)

    def add_domain(self, domain: str, below: str) -> None:
        self.add("(d.domain = {} OR substr(d.domain, 1, {}) = {})", domain, len(below), below)

    def add_metadata(self, key: str, value: object) -> None:
        """Texts and numbers are compared by SQLite, everything else by `record_matches`, which costs more."""
        whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST
        plain = isinstance(value, (str, float)) or whole
        if not plain or '"' in key:
            matched = "EXISTS (SELECT 1 FROM records r WHERE r.n = d.n AND record_matches(d.kind, r.record, {}))"
            self.add(matched, json.dumps({key: value}))
            return
        self.add(
            "EXISTS (SELECT 1 FROM (SELECT r.record, CASE d.kind WHEN 'event' THEN '$.metadata' ELSE '$.data' END || {} AS place "
            "FROM records r WHERE r.n = d.n) h, json_each(h.record, h.place) e "
            "WHERE e.value = {} AND e.type IN ('text', 'integer', 'real') AND json_type(h.record, h.place) <> 'object')",
            f'."{key}"',
            value,
        )


Ranking = list[tuple[int, float]]

_LARGE, _SAMPLE, _ENOUGH = 300_000, 50_000, 25
"""From this many documents on, the count of a term that is common enough is estimated from a sample of the newest documents."""
_MAX_SCANNED_VECTORS = 20_000
"""Up to this many consecutive vectors, comparing all is faster than looking up those that pass."""
_SLACK, _LEAST = 3, 256
"""How many candidates are ranked before the filter: a multiple of the limit, and a minimum. Most queries filter little."""


def document_frequencies(connection: sqlite3.Connection, terms: Sequence[str], total: int = 0) -> dict[str, int]:
    """In how many documents each term occurs; terms that occur nowhere are left out.

    FTS5 counts by walking all of a term's documents. Among very many, a common term is counted in the newest and
    extrapolated; a rare one is counted in all.
    """
    wanted = list(dict.fromkeys(terms))
    estimated = {term: _estimated_frequency(connection, term, total) for term in wanted} if total > _LARGE else {}
    # One statement, because a misspelled word has hundreds of possible corrections.
    sql = "SELECT v.term, v.doc FROM json_each(?) j CROSS JOIN vocabulary v ON v.term = j.value"
    counted = connection.execute(sql, (json.dumps([term for term in wanted if not estimated.get(term)]),))
    found = {term: count for term, count in estimated.items() if count} | dict(counted.fetchall())
    return {term: found[term] for term in wanted if found.get(term)}


def _estimated_frequency(connection: sqlite3.Connection, term: str, total: int) -> int:
    sql = "SELECT count(*) FROM words WHERE words MATCH ? AND rowid > ?"
    seen = int(connection.execute(sql, (f'"{term}"', total - _SAMPLE)).fetchone()[0])
    return seen * total // _SAMPLE if seen >= _ENOUGH else 0


_MAX_FTS_RANKINGS = 3
"""Rankings by FTS5 before reading all documents, which would not pay off in a process with one query, such as a CLI command."""
_FILTERS_KEPT, _PASSING_KEPT = 8, 50_000
"""How many filters are cached with the documents that pass them, and up to how many documents."""
_RANKINGS_KEPT = 64
"""How many rankings are cached: those of a question and its wordings by each retriever."""


class LastRankings:
    """Caches the results of recent searches: unfiltered rankings, and the documents that passed recent filters.

    The searches of one recall ask for the same rankings with different filters. The cache is valid until any connection
    writes to the index.
    """

    def __init__(self) -> None:
        self._state: tuple[int, int] | None = None
        self._found: dict[object, Any] = {}
        self._passing: dict[object, dict[int, bool]] = {}
        self._all_passing: dict[object, list[int]] = {}
        self.postings = Postings()
        self.rankings = 0
        """How often terms were ranked."""

    def get(self, connection: sqlite3.Connection, retriever: str, asked: object, rank: Callable[[], _Found]) -> _Found:
        """The ranking of a retriever for a query, computed by `rank` unless it is cached."""
        self._refresh(connection)
        key = retriever, asked
        if key not in self._found:
            found = rank()
            if len(self._found) >= _RANKINGS_KEPT:
                del self._found[next(iter(self._found))]
            self._found[key] = found
        return cast(_Found, self._found[key])

    def has(self, connection: sqlite3.Connection, retriever: str, asked: object) -> bool:
        """Whether the ranking of a retriever for a query is cached."""
        self._refresh(connection)
        return (retriever, asked) in self._found

    def find_allowed(self, connection: sqlite3.Connection, numbers: Sequence[int], clause: "Clause") -> set[int]:
        """Which of these documents pass the filter."""
        self._refresh(connection)
        key = clause[0], *clause[1]
        known = self._passing.pop(key, {})
        if len(known) > _PASSING_KEPT:
            known = {}
        missing = [n for n in numbers if n not in known]
        if missing:
            passing = allowed_among(connection, missing, clause)
            known.update((n, n in passing) for n in missing)
        self._passing[key] = known
        if len(self._passing) > _FILTERS_KEPT:
            del self._passing[next(iter(self._passing))]
        return {n for n in numbers if known[n]}

    def all_allowed(self, connection: sqlite3.Connection, clause: "Clause", by: str) -> list[int]:
        """Every document that passes the filter, in order."""
        self._refresh(connection)
        key = clause[0], *clause[1]
        if key not in self._all_passing:
            found = sorted(all_allowed(connection, clause, f"INDEXED BY {by}" if by else ""))
            if len(self._all_passing) >= _FILTERS_KEPT:
                del self._all_passing[next(iter(self._all_passing))]
            self._all_passing[key] = found
        return self._all_passing[key]

    def _refresh(self, connection: sqlite3.Connection) -> None:
        state = connection.execute("PRAGMA data_version").fetchone()[0], connection.total_changes
        if state != self._state:
            self._state, self._found, self._passing, self._all_passing = state, {}, {}, {}


def lexical(
    connection: sqlite3.Connection,
    last: LastRankings,
    terms: Sequence[str],
    clause: "Clause",
    limit: int,
    between: tuple[int, int] | None = None,
) -> Ranking:
    """Documents with any of the terms, by BM25 over the weighted fields. `between` limits the document numbers."""
    if not terms:
        return []
    if between is not None:
        return _lexical_joined(connection, terms, clause, limit, between)
    rows, wide = rank_terms(connection, last, terms, limit), _wide(limit)
    passing = _first_allowed(connection, last, [n for n, _ in rows], clause, limit)
    if len(passing) >= limit or len(rows) < wide:
        return [row for row in rows if row[0] in passing][:limit]
    allowed = last.all_allowed(connection, clause, "")
    if not allowed:
        return []
    known = last.postings.rank(connection, terms, limit, allowed) if last.rankings > _MAX_FTS_RANKINGS else None
    return _lexical_joined(connection, terms, clause, limit) if known is None else known


def rank_terms(connection: sqlite3.Connection, last: LastRankings, terms: Sequence[str], limit: int) -> Ranking:
    """The best documents with any of the terms, regardless of the filter."""
    wide, (match, weights) = _wide(limit), _match(terms)
    sql = f"SELECT rowid, -bm25(words, {weights}) FROM words WHERE words MATCH ? ORDER BY 2 DESC LIMIT ?"

    def rank() -> Ranking:
        last.rankings += 1
        found = last.postings.rank(connection, terms, wide) if last.rankings > _MAX_FTS_RANKINGS else None
        return connection.execute(sql, (match, wide)).fetchall() if found is None else found

    return last.get(connection, "lexical", (match, wide), rank)


def _match(terms: Sequence[str]) -> tuple[str, str]:
    """An FTS5 query for any of the terms, and the weights of its fields."""
    return " OR ".join(f'"{term}"' for term in terms), ", ".join(str(weight) for weight in FIELD_WEIGHTS)


def _wide(limit: int) -> int:
    """How many documents are ranked before the filter."""
    return max(limit * _SLACK, _LEAST)


def _lexical_joined(
    connection: sqlite3.Connection,
    terms: Sequence[str],
    clause: "Clause",
    limit: int,
    between: tuple[int, int] | None = None,
) -> Ranking:
    (match, weights), (condition, values) = _match(terms), clause
    bounds = "AND words.rowid BETWEEN ? AND ? " if between is not None else ""
    return connection.execute(
        f"SELECT words.rowid, -bm25(words, {weights}) FROM words JOIN docs d ON d.n = words.rowid "
        f"WHERE words MATCH ? {bounds}AND {condition} ORDER BY 2 DESC LIMIT ?",
        (match, *(between or ()), *values, limit),
    ).fetchall()


def _first_allowed(
    connection: sqlite3.Connection, last: LastRankings, numbers: Sequence[int], clause: "Clause", limit: int
) -> set[int]:
    """At least the first `limit` of these documents that pass the filter."""
    first = _first(limit)
    passing = last.find_allowed(connection, numbers[:first], clause)
    if len(passing) < limit and len(numbers) > first:
        passing |= last.find_allowed(connection, numbers[first:], clause)
    return passing


def check_first(
    connection: sqlite3.Connection, last: LastRankings, rankings: Sequence[Ranking], clause: "Clause", limit: int
) -> None:
    """Look up together which of the first documents of several rankings pass the filter, for `lexical` and `semantic`."""
    first = _first(limit)
    last.find_allowed(connection, list(dict.fromkeys(n for ranking in rankings for n, _ in ranking[:first])), clause)


def _first(limit: int) -> int:
    """How many documents of a ranking are checked first."""
    return limit + limit // 4


def allowed_among(connection: sqlite3.Connection, numbers: Sequence[int], clause: "Clause") -> set[int]:
    """Which of these documents pass the filter."""
    condition, values = clause
    rows = connection.execute(
        f"SELECT d.n FROM json_each(?) j CROSS JOIN docs d ON d.n = j.value WHERE {condition}",
        (json.dumps(numbers), *values),
    )
    return {n for (n,) in rows}


def semantic(
    connection: sqlite3.Connection,
    last: LastRankings,
    matrix: "Vectors",
    vector: "Vectors",
    clause: "Clause",
    limit: int,
    by: str = "",
    between: tuple[int, int] | None = None,
) -> Ranking:
    """Documents by similarity to a vector, best first: an exact scan.

    Scans all, or those `between` two numbers if no other can pass, or, if few pass, those found by the SQL index `by`.
    """
    begin, end = between or (0, len(matrix) - 1)
    if by and (between is None or end - begin > _MAX_SCANNED_VECTORS):
        return _scan_allowed(connection, last, matrix, vector, clause, limit, by)
    found = rank_vector(connection, last, matrix, vector, limit, between)
    passing = _first_allowed(connection, last, [n for n, _ in found], clause, limit)
    if len(passing) < limit and len(found) <= end - begin:
        return _scan_allowed(connection, last, matrix, vector, clause, limit, by)
    kept = [(n, score) for n, score in found if n in passing]
    return [(n, score) for n, score in kept[:limit] if score != 0]


def rank_vector(
    connection: sqlite3.Connection,
    last: LastRankings,
    matrix: "Vectors",
    vector: "Vectors",
    limit: int,
    between: tuple[int, int] | None,
) -> Ranking:
    """The documents most similar to a vector, regardless of the filter."""
    from engram.embedding import vectors as products

    (begin, end), wide = between or (0, len(matrix) - 1), _wide(limit)

    def scan_vectors() -> Ranking:
        return _best_scored(products.scores(matrix[begin : end + 1], vector), begin, wide)

    return last.get(connection, "semantic", (vector.tobytes(), begin, end, wide), scan_vectors)


def scan_all(
    connection: sqlite3.Connection,
    last: LastRankings,
    matrix: "Vectors",
    vectors: "Sequence[Vectors]",
    limit: int,
    between: tuple[int, int] | None,
) -> None:
    """Rank the documents for several vectors with one matrix product, and cache the rankings for `rank_vector`."""
    import numpy as np

    from engram.embedding import vectors as products

    (begin, end), wide = between or (0, len(matrix) - 1), _wide(limit)
    asked = {vector.tobytes(): vector for vector in vectors}
    new = [key for key in asked if not last.has(connection, "semantic", (key, begin, end, wide))]
    if not new:
        return
    scores = products.products(np.stack([asked[key] for key in new]), matrix[begin : end + 1])
    for key, own in zip(new, scores, strict=True):
        last.get(connection, "semantic", (key, begin, end, wide), partial(_best_scored, own, begin, wide))


def _best_scored(scores: "Vectors", begin: int, wide: int) -> Ranking:
    top = best_rows(scores, wide)
    return list(zip((top + begin).tolist(), scores[top].tolist(), strict=True))


def by_task(
    connection: sqlite3.Connection,
    last: LastRankings,
    task: object,
    clause: "Clause",
    limit: int,
    rank: Callable[[int], Ranking],
) -> Ranking:
    """Memories nearest to a task, of those that pass."""
    wide = _wide(limit)
    found = last.get(connection, "task", (task, wide), lambda: rank(wide))
    passing = _first_allowed(connection, last, [n for n, _ in found], clause, limit)
    return [one for one in found if one[0] in passing][:limit]


def _scan_allowed(
    connection: sqlite3.Connection,
    last: LastRankings,
    matrix: "Vectors",
    vector: "Vectors",
    clause: "Clause",
    limit: int,
    by: str,
) -> Ranking:
    """Memories nearest to a task, comparing only the documents that pass."""
    found = last.all_allowed(connection, clause, by)
    if not found:
        return []
    import numpy as np

    from engram.embedding import vectors as products

    allowed = np.array(found, dtype=np.int64)
    allowed = allowed[allowed < len(matrix)]
    scores = products.scores(matrix[allowed], vector)
    return [(int(allowed[i]), float(scores[i])) for i in best_rows(scores, limit) if scores[i] != 0]


def all_allowed(connection: sqlite3.Connection, clause: "Clause", by: str = "") -> list[int]:
    """Every document that passes the filter."""
    condition, values = clause
    return [n for (n,) in connection.execute(f"SELECT d.n FROM docs d {by} WHERE {condition}", values)]


def best_rows(scores: "npt.NDArray[np.float32]", count: int) -> "npt.NDArray[np.int64]":
    """The rows with the highest scores, best first."""
    import numpy as np

    if len(scores) > count:
        best = np.argpartition(-scores, count)[:count]
    else:
        best = np.arange(len(scores))
    return best[np.lexsort((best, -scores[best]))]
