"""Vectors that came with a move, by the text they were made of: an embedder that need not make them again."""

import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engram.model.errors import EmbedderError
from engram.store.documents import meaning_digest
from engram.store.files.index.writing import from_blob, to_blob

if TYPE_CHECKING:
    from engram.embedding.protocol import Embedder, Vectors


class CarriedVectors:
    """Answers from what was kept, and asks the embedder for the rest. One file, gone when the index is made."""

    def __init__(self, path: Path, embedder: "Embedder | None") -> None:
        self._embedder = embedder
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.executescript(
            "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; "
            "CREATE TABLE IF NOT EXISTS vectors (meaning BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID"
        )

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def keep(self, carried: "Iterable[tuple[bytes, Vectors]]") -> None:
        """Keep vectors with the digests of their texts."""
        rows = [(meaning, to_blob(vector)) for meaning, vector in carried]
        if rows:
            self._connection.execute("BEGIN")
            self._connection.executemany("INSERT OR REPLACE INTO vectors (meaning, vector) VALUES (?, ?)", rows)
            self._connection.execute("COMMIT")

    @property
    def name(self) -> str:
        """The embedder's."""
        return self._made_by.name

    @property
    def dim(self) -> int:
        """The embedder's."""
        return self._made_by.dim

    def embed(self, texts: Sequence[str]) -> "Vectors":
        """Vectors of texts: those that were kept, and new ones for the rest."""
        import numpy as np

        kept = [self._kept(text) for text in texts]
        missing = [text for text, vector in zip(texts, kept, strict=True) if vector is None]
        made = iter(self._made_by.embed(missing)) if missing else iter(())
        rows = [vector if vector is not None else next(made) for vector in kept]
        return np.stack(rows) if rows else np.empty((0, self.dim), dtype=np.float32)

    def _kept(self, text: str) -> "Vectors | None":
        row = self._connection.execute(
            "SELECT vector FROM vectors WHERE meaning = ?", (meaning_digest(text),)
        ).fetchone()
        return from_blob(row[0]) if row else None

    @property
    def _made_by(self) -> "Embedder":
        if self._embedder is None:
            raise EmbedderError("this process has no embedder")
        return self._embedder
