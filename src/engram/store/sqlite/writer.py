"""Adds documents to the index and removes them, inside one write transaction.

Vectors are also written to a memory-mapped matrix whose row n belongs to document n.
"""

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram.disk import FILE_MODE, to_json
from engram.model.memory import Memory
from engram.store.documents import Document, meaning_digest
from engram.store.sqlite.connection import statements

if TYPE_CHECKING:
    from engram.embedding.vectors import Vectors

_NEW_ROWS = (
    "put_doc", "put_record", "put_texts", "put_words", "put_tag", "put_name", "put_link", "put_anchor",
)  # fmt: skip
"""Statements that write a new document, in order."""


class DocumentWriter:
    """Writes documents. New ones are collected and written together: one database call for many rows.

    It also collects which documents have or lack a vector, for the matrix and the embedder.
    """

    def __init__(self, connection: sqlite3.Connection, generation: int, change: int) -> None:
        self._run, self._run_many = connection.execute, connection.executemany
        self._sql = statements()
        self._generation = generation
        self._change = change
        self._new: dict[str, list[tuple[Any, ...]]] = {name: [] for name in _NEW_ROWS}
        self._new_ids: set[str] = set()
        self._absent: set[str] = set()
        self._last: int | None = None
        self.embedded: dict[int, Vectors] = {}
        self.cleared: list[int] = []
        self.dropped = False
        self.lacking = False
        """Whether a document was added without a vector."""

    def start_generation(self, generation: int) -> None:
        """Use this generation for subsequent vectors."""
        self._generation = generation

    def look_up(self, ids: Sequence[str]) -> None:
        """Look up together which of these ids are new, before the documents are put."""
        known = self._run(self._sql["known_ids"], (json.dumps(ids),)).fetchall()
        # SQLite reads text in JSON only up to the first NUL.
        self._absent = {i for i in ids if "\0" not in i}.difference(i for (i,) in known)

    def put(self, document: Document, record: Mapping[str, Any] | str, vector: "Vectors | None" = None) -> bool:
        """Insert or update a document with its record, or its JSON; unchanged parts are left alone. Returns whether it is new."""
        if document.id in self._new_ids:
            self.write_new()
        old = None if document.id in self._absent else self._old(document.id)
        self._absent.discard(document.id)
        text = record if isinstance(record, str) else to_json(record)
        if old is None:
            self._collect(document, text, vector)
            return True
        n: int = old[0]
        self._run(self._sql["put_doc"], _doc_values(None, document, self._change))
        self._run(self._sql["put_record"], (n, text))
        self._run("DELETE FROM tags WHERE n = ?", (n,))
        self._run_many(self._sql["put_tag"], _tags(n, document))
        self._update_texts(n, document, old, vector)
        return False

    def _old(self, document_id: str) -> Any:
        return self._run(self._sql["old_texts"], (document_id,)).fetchone()

    def _collect(self, document: Document, record: str, vector: "Vectors | None") -> None:
        n, new = self._next_number(), self._new
        texts = (n, *_fields(document))
        new["put_doc"].append(_doc_values(n, document, self._change))
        new["put_record"].append((n, record))
        new["put_texts"].append((*texts, meaning_digest(document.meaning)))
        new["put_words"].append(texts)
        new["put_tag"].extend(_tags(n, document))
        self._new_ids.add(document.id)
        if vector is not None:
            self.put_vector(n, vector)
        else:
            # The matrix may have a row that a killed transaction wrote for this number.
            self.cleared.append(n)
            self.lacking = True

    def _next_number(self) -> int:
        if self._last is None:
            row = self._run("SELECT seq FROM sqlite_sequence WHERE name = 'docs'").fetchone()
            self._last = row[0] if row else 0
        self._last += 1
        return self._last

    def write_new(self) -> None:
        """Write the new documents collected so far."""
        for name, rows in self._new.items():
            if rows:
                self._run_many(self._sql[name], rows)
        self._new = {name: [] for name in _NEW_ROWS}
        self._new_ids.clear()

    def _update_texts(self, n: int, document: Document, old: tuple[Any, ...], vector: "Vectors | None") -> None:
        """Replace the changed parts of a known document: its terms, and a vector that no longer matches its text."""
        texts = _fields(document)
        meaning = meaning_digest(document.meaning)
        if (old[1:5], old[5]) != (texts, meaning):
            self._run(self._sql["drop_words"], old[:5])
            self._run(self._sql["put_texts"], (n, *texts, meaning))
            self._run(self._sql["put_words"], (n, *texts))
        if old[5] != meaning:
            # Of every generation, including one in progress.
            self._run("DELETE FROM vectors WHERE n = ?", (n,))
            if vector is None:
                self.cleared.append(n)
                self.lacking = True
        if vector is not None:
            self.put_vector(n, vector)

    def put_vector(self, n: int, vector: "Vectors") -> None:
        """Set a document's vector; it is written with the others at the end."""
        self.embedded[n] = vector

    def write_vectors(self) -> "tuple[list[int], Vectors] | None":
        """Write the BLOBs; returns numbers and rounded vectors for the matrix."""
        if not self.embedded:
            return None
        import numpy as np

        numbers = sorted(self.embedded)
        halves = np.stack([self.embedded[n] for n in numbers]).astype(np.float16)
        blobs = ((self._generation, n, half.tobytes()) for n, half in zip(numbers, halves, strict=True))
        self._run_many(self._sql["put_vector"], blobs)
        self.embedded = {}
        return numbers, halves.astype(np.float32)

    def put_memory_relations(self, memory: Memory, *, fresh: bool) -> None:
        """Names, links and anchors of a memory."""
        names = [(name, memory.id, memory.scope) for name in dict.fromkeys((memory.name, *memory.aliases)) if name]
        links = [
            (memory.id, link.target, link.type, link.strength, link.weight, seconds(link.last_reinforced))
            for link in memory.associations
        ]
        anchors = [(path, memory.id) for path in dict.fromkeys(anchor.path for anchor in memory.anchors)]
        if not fresh:
            for table, column in (("names", "id"), ("links", "source"), ("anchors", "id")):
                self._run(f"DELETE FROM {table} WHERE {column} = ?", (memory.id,))
        for name, rows in (("put_name", names), ("put_link", links), ("put_anchor", anchors)):
            if fresh:
                self._new[name].extend(rows)
            else:
                self._run_many(self._sql[name], rows)

    def delete(self, document_id: str) -> None:
        """Remove a document with everything derived from it."""
        self.write_new()
        old = self._old(document_id)
        if old is None:
            return
        n = old[0]
        self._run(self._sql["drop_words"], old[:5])
        for table in ("texts", "records", "tags", "vectors", "docs"):
            self._run(f"DELETE FROM {table} WHERE n = ?", (n,))
        for table, column in (
            ("names", "id"),
            ("links", "source"),
            ("anchors", "id"),
        ):
            self._run(f"DELETE FROM {table} WHERE {column} = ?", (document_id,))
        self.cleared.append(n)
        self.dropped = True


def _doc_values(n: int | None, d: Document, change: int) -> tuple[Any, ...]:
    return (
        n, d.id, d.kind, d.scope, d.status, d.type, d.domain, d.parent, d.position,
        seconds(d.time), seconds(d.known), seconds(d.valid_from), seconds(d.valid_until),
        d.pinned, d.hash, change, d.lineage, d.conflict_key, d.critical_slot, d.role,
    )  # fmt: skip


def _fields(document: Document) -> tuple[str, ...]:
    """The searched words of a document, in the order of the columns of `texts` and `words`."""
    return document.statement, document.about, document.support, document.cues


def _tags(n: int, document: Document) -> list[tuple[str, int]]:
    return [(tag, n) for tag in dict.fromkeys(document.tags)]


def seconds(moment: datetime | None) -> float | None:
    """A time as the index stores it."""
    return moment.timestamp() if moment is not None else None


def to_blob(vector: "Vectors") -> bytes:
    """Convert to half precision: half the bytes, and no measurable loss in ranking."""
    import numpy as np

    return vector.astype(np.float16).tobytes()


def from_blob(blob: bytes) -> "Vectors":
    """The vector of a BLOB."""
    import numpy as np

    return np.frombuffer(blob, dtype=np.float16).astype(np.float32)


if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Matrix32 = npt.NDArray[np.float32]


UNFINISHED_PREFIX = ".vectors-"
_GROWTH_ROWS = 4096


class Matrix:
    """Rows for an exact scan; written under the writer lock before the index commits.

    Reading and writing raise `FileNotFoundError` if the file is missing.

    The matrix is a cache of the BLOBs in SQLite. Its file is created complete, filled from the BLOBs, or not at all: a
    process that finds it missing recreates it, and never starts an empty one without the rows of others.
    """

    def __init__(self, path: Path, dim: int) -> None:
        self._path = path
        self.dim = dim
        self._view: Matrix32 | None = None
        self._inode = 0

    @property
    def exists(self) -> bool:
        """Whether the file is there."""
        return self._path.exists()

    def rows(self, count: int) -> "Matrix32":
        """The first `count` rows, without a copy."""
        inode = self._path.stat().st_ino
        if self._view is None or len(self._view) < count or self._inode != inode:
            self._view, self._inode = self._map(count), inode
        return self._view[:count]

    def _map(self, count: int) -> "Matrix32":
        import numpy as np

        with self._open_file() as descriptor:
            self._reserve(descriptor, count)
        rows = self._path.stat().st_size // (4 * self.dim)
        # A plain array, because every operation on the memmap subclass is slower.
        return np.asarray(np.memmap(self._path, dtype=np.float32, mode="r", shape=(rows, self.dim)))

    @contextlib.contextmanager
    def _open_file(self) -> Iterator[int]:
        descriptor = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _reserve(self, descriptor: int, count: int) -> None:
        size = 4 * self.dim * count
        if os.fstat(descriptor).st_size < size:
            os.ftruncate(descriptor, size + 4 * self.dim * max(_GROWTH_ROWS, count // 4))

    def fill(self, batches: "Iterable[tuple[Sequence[int], Matrix32]]", count: int) -> None:
        """Create the file from these rows; if another process was faster, its file is kept."""
        import tempfile  # Slow to import.

        descriptor, name = tempfile.mkstemp(prefix=UNFINISHED_PREFIX, dir=self._path.parent)
        try:
            os.fchmod(descriptor, FILE_MODE)
            self._reserve(descriptor, count)
            for numbers, vectors in batches:
                self._put(descriptor, numbers, vectors)
            with contextlib.suppress(FileExistsError):
                os.link(name, self._path)
        finally:
            os.close(descriptor)
            Path(name).unlink(missing_ok=True)

    def write(self, numbers: Sequence[int], vectors: "Matrix32") -> None:
        """Put rows in place."""
        if len(numbers):
            with self._open_file() as descriptor:
                self._put(descriptor, numbers, vectors)

    def _put(self, descriptor: int, numbers: Sequence[int], vectors: "Matrix32") -> None:
        """Runs of consecutive numbers, the usual case, are one write each."""
        self._reserve(descriptor, max(numbers) + 1)
        for start, end in _runs(numbers):
            os.pwrite(descriptor, vectors[start:end].tobytes(), numbers[start] * 4 * self.dim)

    def clear(self, numbers: Iterable[int]) -> None:
        """Zero some rows."""
        import numpy as np

        wanted = sorted(numbers)
        self.write(wanted, np.zeros((len(wanted), self.dim), dtype=np.float32))

    def remove(self) -> None:
        """Delete the file; it is recreated from the BLOBs."""
        self._view = None
        self._path.unlink(missing_ok=True)


def _runs(numbers: Sequence[int]) -> Iterable[tuple[int, int]]:
    start = 0
    for i in range(1, len(numbers) + 1):
        if i == len(numbers) or numbers[i] != numbers[i - 1] + 1:
            yield start, i
            start = i
