"""The index as the store uses it: opened, queried, and changed in one transaction."""

import contextlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from engram.disk import boot_id
from engram.model.memory import LIVE_STATUSES
from engram.rules.numbers import NEAREST_TO_TASK
from engram.store.protocol import Candidates, DocumentPosition, Filters, IndexedPassage, PassageRange, Query
from engram.store.sqlite import search
from engram.store.sqlite.connection import (
    connect,
    discard,
    hold_shared_lock,
    is_damaged,
    name_index,
    release_shared_lock,
    statements,
    write_transaction,
)
from engram.store.sqlite.search import where
from engram.store.sqlite.stored_tasks import TasksState, index_number
from engram.store.sqlite.writer import UNFINISHED_PREFIX, DocumentWriter, Matrix, from_blob
from engram.text.tokens import POSTINGS_BUDGET, prune_terms

if TYPE_CHECKING:
    from array import array

    from engram.embedding.vectors import Vectors
    from engram.store.sqlite.task_neighbours import TaskNeighbours

MAX_DOCUMENTS_READ = 50_000
"""Maximum documents whose records are read, at some 15 ms per ten thousand; a larger index is assumed to have situations."""
_CHANGED = """
SELECT 1 FROM docs d JOIN records r ON r.n = d.n WHERE d.change > ? AND instr(r.record, '"situation":') LIMIT 1
"""
_ANY = """
SELECT 1 FROM records WHERE instr(record, '"situation":') LIMIT 1
"""


class Situations:
    """Whether the index has situations, as far as this process knows. A yes may be wrong, a no is always right."""

    def __init__(self) -> None:
        self._read_to: int | None = None
        self._found = False

    def may_exist(self, db: sqlite3.Connection, change: int, count: int) -> bool:
        """Whether the index may have a situation.

        `change` is the index's last change, `count` the number of its documents.
        """
        if self._found or count > MAX_DOCUMENTS_READ:
            return True
        if self._read_to != change:
            known = self._read_to is not None and self._read_to < change
            row = db.execute(_CHANGED, (self._read_to,)) if known else db.execute(_ANY)
            self._found, self._read_to = row.fetchone() is not None, change
        return self._found


_Result = TypeVar("_Result")
_RECOUNT = 1.05
_MIN_SCAN_RATIO = 4
"""Looking up the documents of a kind beats a full scan if there are this many times more documents."""
_MAX_CHANGED_LOOKUPS = 256
"""Up to this many changed documents are looked up one by one; for more, all documents are compared with all vectors."""
_MAX_UNKNOWN_TERMS = 10_000
"""Maximum terms cached as occurring nowhere."""
_NO_POSITION = DocumentPosition("", 0, 0)
TABLES = (
    "docs", "records", "texts", "tags", "names", "links", "anchors", "vectors", "files", "places", "folders", "ledgers",
    "ends", "images", "numbers", "tombstones", "uses", "keys",
)  # fmt: skip


class _Retrieval(NamedTuple):
    """The data that the retrieval of several queries shares."""

    filters: Filters
    clause: search.Clause
    places: int
    by: str
    """The SQL index to use if so few documents pass that a full scan is slower; "" for a scan."""
    is_possible: bool
    """Whether any document can pass."""
    of_sessions: tuple[int, int] | None
    matrix: "Vectors | None"
    """None without an embedder."""


class Index:
    """One process's connection to the index. `fresh` means that the index was never filled."""

    def __init__(self, folder: Path, embedder_name: str, dim: int) -> None:
        self._path = folder / "index.db"
        self._embedder_name, self._dim = embedder_name, dim
        self._sql = statements()
        self._open()

    def _open(self) -> None:
        self._pid = os.getpid()
        self._connection, made = connect(self._path)
        self._presence = hold_shared_lock(self._path)
        self._inode = self._path.stat().st_ino
        self._name = self.get("name") or name_index(self._connection)
        self.fresh = made or self.get("filled") is None
        self._matrices: dict[int, Matrix] = {}
        self._frequency: dict[str, int] = {}
        self._unknown_terms: set[str] = set()
        self._unknown_at = 0
        self._counted = self._counted_at = 0
        self._kinds: dict[str, int] = {}
        self._kinds_counted = 0
        self._last = search.LastRankings()
        self._tasks: TaskNeighbours | None = None
        self._situations = Situations()

    @property
    def db(self) -> sqlite3.Connection:
        """The connection; reopened after a fork, and when another process replaced a damaged file."""
        if self._pid != os.getpid():
            self._open()
        return self._connection

    def reopen_if_replaced(self) -> bool:
        """Reopen if another process replaced the index; returns whether it did."""
        try:
            same = self._path.stat().st_ino == self._inode
        except FileNotFoundError:
            same = False
        if not same:
            self.close()
            self._open()
        return not same

    def is_whole(self) -> bool:
        """Whether the index has all its tables; an index without some of them is damaged."""
        try:
            return {name for (name,) in self.db.execute("SELECT name FROM sqlite_master")}.issuperset(TABLES)
        except sqlite3.Error as error:
            return not is_damaged(error)

    def discard(self) -> None:
        """Delete the index and start an empty one."""
        self.close()
        discard(self._path)
        self._open()

    def close(self) -> None:
        """Close the connection, and release the mapped vectors, which would keep a file system from being unmounted."""
        release_shared_lock(self._presence)
        self._matrices = {}
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()
        if self._presence is not None:
            os.close(self._presence)
            self._presence = None

    # -- metadata

    def get(self, key: str) -> Any:
        """A value of the index's metadata, or None."""
        row = self.db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def set(self, key: str, value: Any) -> None:
        """Set a metadata value; inside a transaction."""
        self.db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, value))

    @property
    def change(self) -> int:
        """The number of the last change."""
        return int(self.get("change") or 0)

    @property
    def generation(self) -> int:
        """The current generation of vectors."""
        return int(self.get("generation") or 1)

    def can_embed(self) -> bool:
        """Whether the current vectors come from this process's embedder."""
        return bool(self._embedder_name) and self.get("embedder") == self._embedder_name

    @property
    def count(self) -> int:
        """One more than the highest document number; the matrix has this many rows."""
        return int(self.db.execute("SELECT max(n) FROM docs").fetchone()[0] or 0) + 1

    # -- writing

    @contextlib.contextmanager
    def writing(self) -> Iterator[DocumentWriter]:
        """One transaction; the matrix is written before it commits."""
        with write_transaction(self.db):
            change = self.change + 1
            writer = DocumentWriter(self.db, self.generation, change)
            yield writer
            self.set("change", change)
            if writer.lacking and not self.get("lacking"):
                self.set("lacking", change)
            self.flush(writer)

    def flush(self, writer: DocumentWriter) -> None:
        """Write the collected data: new documents, vectors, and the matrix."""
        writer.write_new()
        if writer.dropped:
            # Data derived from the memories and stored next to the index; it is recreated.
            for name in (search.TASKS, search.FORMER_TASKS):
                self._path.with_name(name).unlink(missing_ok=True)
        if writer.cleared and self.get("dim"):
            self._kept_matrix(lambda matrix: matrix.clear(writer.cleared))
        writer.cleared = []
        written = writer.write_vectors()
        if written is not None:
            self._kept_matrix(lambda matrix: matrix.write(*written))

    def claim_embedder(self, generation: int | None = None) -> None:
        """Record this process's embedder for a generation of vectors; inside a transaction."""
        self.set("generation", generation or self.generation)
        self.set("embedder", self._embedder_name)
        self.set("dim", self._dim)
        self.set("boot", boot_id())

    def clear(self) -> None:
        """Empty every table, inside a transaction, and start a new generation of vectors."""
        generation = self.generation + 1
        self.db.execute("INSERT INTO words (words) VALUES ('delete-all')")
        for table in TABLES:
            self.db.execute(f"DELETE FROM {table}")
        self.db.execute("DELETE FROM sqlite_sequence WHERE name = 'docs'")
        self.db.execute("DELETE FROM meta WHERE key NOT IN ('schema', 'name', 'change')")
        # A killed rebuild may have left rows of other documents.
        Matrix(self._matrix_path(generation), self._dim).remove()
        self._matrices = {}
        self.claim_embedder(generation)

    def drop_stale_matrices(self) -> None:
        """Delete the matrices of old generations, and unfinished ones of killed processes."""
        current = self._matrix_path(self.generation)
        for path in (*self._path.parent.glob("vectors-*.f32"), *self._path.parent.glob(f"{UNFINISHED_PREFIX}*")):
            if path != current:
                path.unlink(missing_ok=True)

    # -- vectors

    def _matrix_path(self, generation: int) -> Path:
        return self._path.with_name(f"vectors-{self._name}-{generation}.f32")

    def matrix_rows(self, count: int | None = None) -> "Vectors":
        """One row per document number, from 0; `count` of them if given."""
        rows = self.count if count is None else count
        return self._kept_matrix(lambda matrix: matrix.rows(rows))

    def _kept_matrix(self, use: Callable[[Matrix], _Result]) -> _Result:
        """Read or write the matrix, and retry if another process deletes it in the meantime."""
        try:
            return use(self._matrix())
        except FileNotFoundError:
            return use(self._matrix())

    def _matrix(self) -> Matrix:
        """The current matrix, filled from the BLOBs if it is missing or older than the last boot."""
        generation = self.generation
        matrix = self._matrices.get(generation)
        if matrix is None:
            matrix = Matrix(self._matrix_path(generation), int(self.get("dim") or self._dim))
            if self.get("boot") != boot_id():
                matrix.remove()
            self._matrices = {generation: matrix}
        if not matrix.exists:
            self._fill(matrix, generation)
        return matrix

    def _fill(self, matrix: Matrix, generation: int) -> None:
        """Fill the file from the BLOBs in a write transaction, so that no row is added meanwhile."""
        import numpy as np

        with contextlib.nullcontext() if self.db.in_transaction else write_transaction(self.db):
            rows = self.db.execute("SELECT n, vector FROM vectors WHERE generation = ? ORDER BY n", (generation,))
            batches = iter(lambda: rows.fetchmany(4096), [])
            filled = (([n for n, _ in batch], np.stack([from_blob(blob) for _, blob in batch])) for batch in batches)
            matrix.fill(filled, self.count)
            self.db.execute("UPDATE meta SET value = ? WHERE key = 'boot'", (boot_id(),))

    def vectors(self, numbers: Sequence[int]) -> "Vectors | None":
        """Vectors by document number; None if they come from another embedder."""
        if not self.can_embed():
            return None
        rows = self.matrix_rows()
        # A rebuilt index may have fewer rows than when the numbers were found.
        return rows[list(numbers)] if max(numbers, default=0) < len(rows) else None

    def without_vector(self, after: int, limit: int) -> list[tuple[int, str, str]]:
        """Documents without a current vector: number, kind, record."""
        since = int(self.get("lacking") or 0)
        counted = "SELECT count(*) FROM (SELECT 1 FROM docs WHERE change >= ? LIMIT ?)"
        if self.db.execute(counted, (since, _MAX_CHANGED_LOOKUPS + 1)).fetchone()[0] <= _MAX_CHANGED_LOOKUPS:
            return self.all("changed_without_vector", self.generation, after, limit, since)
        return self.all("without_vector", self.generation, after, limit)

    # -- reading

    def candidates_of_each(self, queries: Sequence[Query], filters: Filters) -> list[Candidates]:
        """What the retrievers find for each query."""
        retrieval = self._retrieval(filters, is_semantic=any(query.vector is not None for query in queries))
        self._frequencies(list(dict.fromkeys(term for query in queries for term in query.terms)), retrieval.places)
        if retrieval.is_possible and not retrieval.by:
            self._check_rankings(queries, retrieval)
        found = [self._candidates(query, retrieval) for query in queries]
        # A memory belongs to no session.
        alone = filters.kinds == ("memory",)
        numbers = list(dict.fromkeys(n for each in found for n, _ in (*each.lexical, *each.semantic)))
        positions = {} if alone or not numbers else self.document_positions(numbers)
        for each in found:
            own = [n for n, _ in (*each.lexical, *each.semantic)]
            each.positions = (
                dict.fromkeys(own, _NO_POSITION) if alone else {n: positions[n] for n in own if n in positions}
            )
        return found

    def _check_rankings(self, queries: Sequence[Query], retrieval: "_Retrieval") -> None:
        """Rank the documents for each query, and look up together which of the first ones pass the filter."""
        matrix, rankings, limit = retrieval.matrix, list[search.Ranking](), queries[0].limit
        vectors = [query.vector for query in queries if query.vector is not None]
        if matrix is not None and len(vectors) > 1:
            search.scan_all(self.db, self._last, matrix, vectors, limit, retrieval.of_sessions)
        if matrix is not None:
            rankings += [
                search.rank_vector(self.db, self._last, matrix, vector, limit, retrieval.of_sessions)
                for vector in vectors
            ]
        for query in queries:
            frequency = self._frequencies(query.terms, retrieval.places)
            kept = prune_terms(frequency)
            if kept and self._newest_range(kept, frequency) is None:
                rankings.append(search.rank_terms(self.db, self._last, kept, limit))
        search.check_first(self.db, self._last, rankings, retrieval.clause, limit)

    def _retrieval(self, filters: Filters, *, is_semantic: bool) -> "_Retrieval":
        count = self.count
        by = self._selective_index(filters, count)
        is_possible = (not by or self._has_any(filters.kinds)) and self._may_pass(filters)
        matrix = self.matrix_rows(count) if is_semantic and is_possible and self.can_embed() else None
        return _Retrieval(filters, where(filters), count, by, is_possible, self._parent_range(filters), matrix)

    def _candidates(self, query: Query, retrieval: "_Retrieval") -> Candidates:
        filters, clause, count, of_sessions = (
            retrieval.filters,
            retrieval.clause,
            retrieval.places,
            retrieval.of_sessions,
        )
        found = Candidates(total=count - 1)
        if query.terms:
            found.frequency = self._frequencies(query.terms, count)
            kept = prune_terms(found.frequency)
            found.pruned = tuple(term for term in found.frequency if term not in kept)
        if not retrieval.is_possible:
            return found
        if query.terms:
            between = of_sessions or self._newest_range(kept, found.frequency)
            found.lexical = search.lexical(self.db, self._last, kept, clause, query.limit, between)
            if between is not None and filters.parents is None and len(found.lexical) < query.limit:
                found.lexical = search.lexical(self.db, self._last, kept, clause, query.limit)
        if query.vector is not None and retrieval.matrix is not None:
            found.semantic = search.semantic(
                self.db, self._last, retrieval.matrix, query.vector, clause, query.limit, retrieval.by, of_sessions
            )
        if query.task is not None and "memory" in filters.kinds:
            found.by_task, found.tasks_compared = self._by_task(query.task, clause)
        return found

    def _by_task(self, task: "array[float]", clause: search.Clause) -> tuple[search.Ranking, int]:
        """The memories nearest to a task, and the number of memories compared."""
        if self._tasks is None:
            from engram.store.sqlite.task_neighbours import TaskNeighbours

            self._tasks = TaskNeighbours(self._path.parent)
        tasks = self._tasks
        state = TasksState(index_number(self._name), self.generation, self.change, tasks.model)
        found = search.by_task(
            self.db,
            self._last,
            task.tobytes(),
            clause,
            NEAREST_TO_TASK,
            lambda count: tasks.nearest(self.db, state, task, count),
        )
        return found, len(tasks)

    def may_have_situations(self) -> bool:
        """Whether a memory may have a situation.

        Yes as long as some task vectors are missing, because the searches by task compute them. This also spares the
        reading in a process that searches once.
        """
        if self._tasks is None or not self._tasks.is_whole:
            return True
        return self._situations.may_exist(self.db, self.change, self.count)

    def _has_any(self, kinds: Sequence[str]) -> bool:
        """Whether there is a document of one of these kinds."""
        return self.one("of_kinds", json.dumps(list(kinds))) is not None

    def _may_pass(self, filters: Filters) -> bool:
        """Whether a document can pass a filter that most stores have nothing for: other projects, or no current status."""
        kinds = json.dumps(filters.kinds)
        if filters.outside and self.one("in_other_projects", kinds, json.dumps(filters.outside)) is None:
            return False
        statuses = None if filters.as_of else filters.statuses
        if statuses is None or not set(statuses).isdisjoint(LIVE_STATUSES):
            return True
        return self.one("with_status", kinds, json.dumps(statuses)) is not None

    def document_positions(self, numbers: Sequence[int]) -> dict[int, DocumentPosition]:
        """The position of each document."""
        rows = self.all("stands", json.dumps(list(numbers)))
        return {
            n: DocumentPosition(parent, position, last) if parent or position else _NO_POSITION
            for n, parent, position, last in rows
        }

    def _newest_range(self, kept: Sequence[str], frequency: Mapping[str, int]) -> tuple[int, int] | None:
        """The range of newest documents to search if the only useful term is very common."""
        if len(kept) != 1 or frequency[kept[0]] <= POSTINGS_BUDGET * 2:
            return None
        last = self.count
        return int(last * (1 - POSTINGS_BUDGET / frequency[kept[0]])), last

    def _selective_index(self, filters: Filters, total: int) -> str:
        """The SQL index to use if so few documents pass that a full scan is slower; "" for a scan."""
        if filters.parents is not None:
            return "docs_parent"
        if not self._kinds_counted <= total <= self._kinds_counted * _RECOUNT:
            self._kinds_counted = total
            self._kinds = dict(self.db.execute("SELECT kind, count(*) FROM docs GROUP BY kind").fetchall())
        return "docs_scope" if sum(self._kinds.get(kind, 0) for kind in filters.kinds) * _MIN_SCAN_RATIO < total else ""

    def _parent_range(self, filters: Filters) -> tuple[int, int] | None:
        """The range of document numbers of the requested sessions; numbers are assigned in order."""
        if filters.parents is None:
            return None
        first, last = self.one("between", json.dumps(filters.parents))
        return (first or 0, last or 0)

    def passages(
        self, numbers: Sequence[int], ranges: Sequence[PassageRange], filters: Filters
    ) -> "tuple[list[IndexedPassage], Vectors | None]":
        """Documents by number, all of which passed the filters, then every document in these ranges, with their vectors."""
        found = [_build_passage(row, True) for row in self.all("alone", json.dumps(numbers))]
        if ranges:
            rows = self.all("together", json.dumps([(s.parent, s.first, s.last) for s in ranges]))
            passing = search.allowed_among(self.db, [row[0] for row in rows], where(filters))
            found += [_build_passage(row, row[0] in passing) for row in rows]
        return found, self.vectors([place.n for place in found])

    def frequencies(self, terms: Sequence[str]) -> Mapping[str, int]:
        """Document frequencies, cached until a twentieth of the index has changed."""
        return self._frequencies(terms, self.count)

    def _frequencies(self, terms: Sequence[str], total: int) -> dict[str, int]:
        change = self.change
        if not self._counted <= total <= self._counted * _RECOUNT or self._has_changed(change, total):
            self._frequency, self._counted, self._counted_at = {}, total, change
        missing = [term for term in terms if term not in self._frequency and not self._is_unknown(term, change)]
        if missing:
            found = search.document_frequencies(self.db, missing, total)
            self._frequency.update(found)
            if not self.db.in_transaction:
                self._unknown_terms.update(term for term in missing if term not in found)
        return {term: self._frequency[term] for term in terms if term in self._frequency}

    def _is_unknown(self, term: str, change: int) -> bool:
        """Whether a term is cached as occurring nowhere.

        The cache ends with the next change, since a new memory may contain the term.
        """
        # Inside a transaction, documents are written before the change gets its number.
        is_outdated = change != self._unknown_at or self.db.in_transaction
        if is_outdated or len(self._unknown_terms) > _MAX_UNKNOWN_TERMS:
            self._unknown_terms, self._unknown_at = set(), change
        return term in self._unknown_terms

    def _has_changed(self, change: int, total: int) -> bool:
        """Whether more than a twentieth of the documents were changed since they were counted."""
        if change == self._counted_at:
            return False
        most = int(total * (_RECOUNT - 1))
        sql = "SELECT count(*) FROM (SELECT 1 FROM docs WHERE change > ? LIMIT ?)"
        return bool(self.db.execute(sql, (self._counted_at, most + 1)).fetchone()[0] > most)

    def records(self, numbers: Sequence[int]) -> dict[int, tuple[str, str]]:
        """Kind and stored record by document number."""
        rows = self.db.execute(
            "SELECT d.n, d.kind, r.record FROM json_each(?) j CROSS JOIN docs d ON d.n = j.value JOIN records r ON r.n = d.n",
            (json.dumps(list(numbers)),),
        )
        return {n: (kind, record) for n, kind, record in rows}

    def statement(self, name: str) -> str:
        """A named statement, for use inside a transaction."""
        return self._sql[name]

    def one(self, name: str, *values: Any) -> Any:
        """The first row of a named statement."""
        return self.db.execute(self._sql[name], values).fetchone()

    def all(self, name: str, *values: Any) -> list[Any]:
        """All rows of a named statement."""
        return self.db.execute(self._sql[name], values).fetchall()

    def select_records(self, filters: Filters, limit: int | None, offset: int, *, most_used: bool = False) -> list[str]:
        """Records that pass the filters, newest first or most used first."""
        condition, values = where(filters)
        few = "INDEXED BY docs_pinned" if filters.pinned else "INDEXED BY docs_critical" if filters.critical else ""
        uses = "coalesce(json_extract(r.record, '$.activation.frequency'), 0) DESC, " if most_used else ""
        rows = self.db.execute(
            f"SELECT r.record FROM docs d {few} JOIN records r ON r.n = d.n WHERE {condition} "
            f"ORDER BY {uses}d.time DESC, d.n DESC LIMIT ? OFFSET ?",
            (*values, -1 if limit is None else limit, offset),
        )
        return [record for (record,) in rows]

    def count_matching(self, filters: Filters) -> int:
        """How many documents pass the filters."""
        condition, values = where(filters)

        def count_rows() -> int:
            return int(self.db.execute(f"SELECT count(*) FROM docs d WHERE {condition}", values).fetchone()[0])

        return self._last.get(self.db, "count", (condition, *values), count_rows)

    def facts(self) -> Mapping[str, Any]:
        """The figures of the index that `status` and `doctor` show."""
        kinds = dict(self.db.execute("SELECT kind, count(*) FROM docs GROUP BY kind").fetchall())
        vectors = self.db.execute("SELECT count(*) FROM vectors WHERE generation = ?", (self.generation,)).fetchone()[0]
        return {
            "path": str(self._path),
            "documents": kinds,
            "vectors": vectors,
            "embedder": self.get("embedder"),
            "generation": self.generation,
        }


def _build_passage(row: tuple[Any, ...], eligible: bool) -> IndexedPassage:
    n, statement, about, support, cues, parent, position, time = row
    return IndexedPassage(n, (statement, about, support, cues), parent, position, time, eligible)
