"""Putting documents into the index and taking them out. Everything here runs inside one write transaction."""

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from engram.model.memory import Memory
from engram.store.documents import Document
from engram.store.files.index.connection import statements

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors


@dataclass(frozen=True, slots=True)
class Row:
    """A document to be put, with its stored record and, where the caller has it, its vector."""

    document: Document
    record: Mapping[str, Any]
    vector: "Vectors | None" = None
    trusted: bool = True


@dataclass(frozen=True, slots=True)
class Put:
    """A document's number, and whether it is new."""

    n: int
    fresh: bool


class DocumentWriter:
    """Writes documents; collects which of them have or lack a vector, so that matrix and embedder can follow."""

    def __init__(self, connection: sqlite3.Connection, generation: int, change: int) -> None:
        self._run = connection.execute
        self._sql = statements()
        self._generation = generation
        self._change = change
        self.embedded: list[tuple[int, Vectors]] = []
        self.cleared: list[int] = []

    def start_generation(self, generation: int) -> None:
        """From here on vectors belong to this generation."""
        self._generation = generation

    def put(self, row: Row) -> Put:
        """Insert or update a document; what did not change is left alone."""
        document = row.document
        old = self._run(self._sql["old_texts"], (document.id,)).fetchone()
        n: int = self._run(self._sql["put_doc"], _doc_values(document, self._change, row.trusted)).fetchone()[0]
        self._run(self._sql["put_record"], (n, json.dumps(row.record, ensure_ascii=False, separators=(",", ":"))))
        self._put_texts(n, document, old)
        self._put_tags(n, document.tags, fresh=old is None)
        self._put_vector(n, row, old)
        return Put(n, old is None)

    def _put_texts(self, n: int, document: Document, old: tuple[Any, ...] | None) -> None:
        texts = (document.statement, document.about, document.support)
        meaning = meaning_digest(document.meaning)
        if old is not None:
            if (old[1:4], old[4]) == (texts, meaning):
                return
            self._run(self._sql["drop_words"], old[:4])
        self._run(self._sql["put_texts"], (n, *texts, meaning))
        self._run(self._sql["put_words"], (n, *texts))

    def _put_tags(self, n: int, tags: Iterable[str], *, fresh: bool) -> None:
        if not fresh:
            self._run("DELETE FROM tags WHERE n = ?", (n,))
        for tag in dict.fromkeys(tags):
            self._run("INSERT INTO tags (tag, n) VALUES (?, ?)", (tag, n))

    def put_vector(self, n: int, vector: "Vectors") -> None:
        """A document's vector, as the BLOB keeps it."""
        blob = to_blob(vector)
        self._run(self._sql["put_vector"], (self._generation, n, blob))
        self.embedded.append((n, from_blob(blob)))

    def _put_vector(self, n: int, row: Row, old: tuple[Any, ...] | None) -> None:
        if row.vector is not None:
            self.put_vector(n, row.vector)
        elif old is not None and old[4] != meaning_digest(row.document.meaning):
            self._run("DELETE FROM vectors WHERE n = ?", (n,))
            self.cleared.append(n)

    def put_memory_relations(self, memory: Memory, *, fresh: bool) -> None:
        """Names, links and anchors of a memory."""
        if not fresh:
            for table, column in (("names", "id"), ("links", "source"), ("anchors", "id")):
                self._run(f"DELETE FROM {table} WHERE {column} = ?", (memory.id,))
        for name in dict.fromkeys((memory.name, *memory.aliases)):
            if name:
                self._run(self._sql["put_name"], (name, memory.id, memory.scope))
        for link in memory.associations:
            values = (memory.id, link.target, link.type, link.strength, link.weight, seconds(link.last_reinforced))
            self._run(self._sql["put_link"], values)
        for path in dict.fromkeys(anchor.path for anchor in memory.anchors):
            self._run("INSERT INTO anchors (path, id) VALUES (?, ?)", (path, memory.id))

    def delete(self, document_id: str) -> None:
        """Take a document out, with everything that was derived from it."""
        old = self._run(self._sql["old_texts"], (document_id,)).fetchone()
        if old is None:
            return
        n = old[0]
        self._run(self._sql["drop_words"], old[:4])
        for table in ("texts", "records", "tags", "vectors", "docs"):
            self._run(f"DELETE FROM {table} WHERE n = ?", (n,))
        for table, column in (
            ("names", "id"),
            ("links", "source"),
            ("anchors", "id"),
        ):
            self._run(f"DELETE FROM {table} WHERE {column} = ?", (document_id,))
        self.cleared.append(n)


def _doc_values(d: Document, change: int, trusted: bool) -> tuple[Any, ...]:
    return (
        d.id, d.kind, d.scope, d.status, d.type, d.domain, d.parent, d.position,
        seconds(d.time), seconds(d.known), seconds(d.valid_from), seconds(d.valid_until),
        d.pinned, d.hash, change, trusted,
    )  # fmt: skip


def seconds(moment: datetime | None) -> float | None:
    """A time as the index keeps it."""
    return moment.timestamp() if moment is not None else None


def meaning_digest(text: str) -> bytes:
    """Tells whether the embedded text changed."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def to_blob(vector: "Vectors") -> bytes:
    """Half precision: half the bytes, and no measurable loss in ranking."""
    import numpy as np

    return vector.astype(np.float16).tobytes()


def from_blob(blob: bytes) -> "Vectors":
    """The vector of a BLOB."""
    import numpy as np

    return np.frombuffer(blob, dtype=np.float16).astype(np.float32)
