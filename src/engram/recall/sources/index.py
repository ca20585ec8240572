"""The index of sources: one disposable SQLite file per user, with redacted text, FTS5 terms and the bundled embedder's vectors."""

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Self

from engram.model.errors import StoreBusy, StoreReadOnly
from engram.model.lazy import dataclass
from engram.recall.sources.source import Source, SourceContent, SourcePassage
from engram.store.files.index.connection import connect, immediate, split_statements
from engram.store.files.index.search import document_frequencies, lexical
from engram.store.protocol import Candidates, DocumentPosition, Filters, IndexedPassage, PassageRange
from engram.store.sql import named_statements
from engram.text.tokens import marked_terms, prune, tokens

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors

VERSION = 1
"""Of the schema, of how sources are cut, redacted and tokenized: a change of any of them is a new file."""
EMBEDDED = 500
"""Characters of a passage that are embedded: its subject is at its beginning, and the words of the rest are searched."""
_SCHEMA = Path(__file__).with_name("schema.sql")
_WANTED = "CREATE TEMP TABLE wanted (source INTEGER PRIMARY KEY, kind TEXT NOT NULL)"
_OF_KINDS = "d.source IN (SELECT source FROM wanted WHERE kind IN (SELECT value FROM json_each(?)))"


@cache
def _statements() -> dict[str, str]:
    return named_statements(Path(__file__).with_name("statements.sql").read_text("utf-8"))


@dataclass(frozen=True, slots=True)
class IndexedSource:
    """What the index knows about a source."""

    number: int
    stamp: str
    directory: str
    loaded: bool
    title: str


class SourceIndex:
    """The passages of sources, to be searched. `wanted` are the sources that searches use."""

    def __init__(self, connection: sqlite3.Connection, warning: str = "") -> None:
        self._db = connection
        self.warning = warning
        """Why the index is not kept; "" where it is."""
        self._wanted: dict[int, Source] = {}
        connection.execute("PRAGMA query_only = OFF")
        connection.execute(_WANTED)

    @classmethod
    def open(cls, cache_folder: Path) -> Self:
        """The user's index; one in memory, for this call alone, where it cannot be kept on disk."""
        path = cache_folder / "sources" / f"v{VERSION}" / "index.db"
        try:
            return cls(connect(path, _SCHEMA)[0])
        except (StoreReadOnly, StoreBusy, OSError, sqlite3.Error) as error:
            return cls.in_memory(f"The index of sources is not kept: {error}")

    @classmethod
    def in_memory(cls, warning: str = "") -> Self:
        """An index that ends with the process."""
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        for statement in split_statements(_SCHEMA.read_text("utf-8")):
            connection.execute(statement)
        return cls(connection, warning)

    @property
    def is_kept(self) -> bool:
        """Whether the next call finds what this one has read."""
        return not self.warning

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def known(self, sources: Collection[Source]) -> dict[str, IndexedSource]:
        """What is known about these sources, by name."""
        rows = self._rows("known", json.dumps([source.name for source in sources]))
        return {
            name: IndexedSource(number, stamp, directory, bool(loaded), title)
            for number, name, stamp, directory, loaded, title in rows
        }

    def put(self, contents: Sequence[tuple[Source, SourceContent, bool]], at: datetime) -> None:
        """Replace what is known about sources, in one transaction; the flag says whether their passages were read."""
        passages = [passage for _, content, _ in contents for passage in content.passages]
        vectors = iter(_vectors(passages))
        with self._writing():
            for source, content, is_loaded in contents:
                for number, _, _ in self._db.execute(
                    "SELECT source, name, path FROM sources WHERE name = ?", (source.name,)
                ).fetchall():
                    self._drop(number)
                title = content.title or source.title
                row = (
                    source.name,
                    source.kind,
                    str(source.path),
                    title,
                    stamp_of(source),
                    content.directory,
                    is_loaded,
                )
                made = self._db.execute(_statements()["put_source"], (*row, at.timestamp()))
                assert made.lastrowid is not None
                for position, passage in enumerate(content.passages):
                    self._put_passage(made.lastrowid, position, passage, next(vectors))

    def _put_passage(self, source: int, position: int, passage: SourcePassage, vector: bytes | None) -> None:
        moment = passage.time.timestamp() if passage.time is not None else None
        row = (source, position, passage.section, passage.text, moment, vector)
        n = self._db.execute(_statements()["put_doc"], row).lastrowid
        fields = (marked_terms(passage.text), " ".join(tokens(passage.about)) if passage.about else "", "")
        self._db.execute(_statements()["put_texts"], (n, *fields))
        self._db.execute(_statements()["put_words"], (n, *fields))

    def forget(self, numbers: Iterable[int]) -> None:
        """Remove sources that are gone."""
        with self._writing():
            for number in numbers:
                self._drop(number)

    def _drop(self, number: int) -> None:
        for row in self._rows("texts_of", number):
            self._db.execute(_statements()["drop_words"], row)
        for name in ("drop_texts", "drop_docs", "drop_source"):
            self._db.execute(_statements()[name], (number,))

    def unchecked(self, before: datetime, most: int) -> list[tuple[int, str]]:
        """Some sources that nobody has asked for since then, with their paths."""
        return [(number, path) for number, _, path in self._rows("unchecked", before.timestamp(), most)]

    def note_checked(self, numbers: Iterable[int], at: datetime) -> None:
        """Remember that sources were looked at."""
        with self._writing():
            self._db.execute(_statements()["checked"], (at.timestamp(), json.dumps(list(numbers))))

    def want(self, sources: Mapping[int, Source]) -> None:
        """Choose the sources that searches use, by their numbers."""
        self._wanted = dict(sources)
        self._db.execute("DELETE FROM wanted")
        self._db.executemany("INSERT INTO wanted VALUES (?, ?)", [(n, one.kind) for n, one in sources.items()])

    # -- retrieval

    def candidates(self, terms: Sequence[str], vector: "Vectors", kinds: Sequence[str], limit: int) -> Candidates:
        """What each retriever finds among the wanted sources of some kinds."""
        listed = json.dumps(list(kinds))
        total = int(next(self._rows("total"))[0])
        frequency = document_frequencies(self._db, terms, total)
        kept = prune(frequency)
        return Candidates(
            lexical(self._db, kept, (_OF_KINDS, [listed]), limit),
            self._semantic(vector, listed, limit),
            total,
            frequency,
            tuple(term for term in frequency if term not in kept),
        )

    def _semantic(self, vector: "Vectors", kinds: str, limit: int) -> list[tuple[int, float]]:
        import numpy as np

        from engram.embedding.products import scores

        rows = list(self._rows("vectors", kinds))
        if not rows:
            return []
        numbers = [n for n, _ in rows]
        matrix = np.frombuffer(b"".join(blob for _, blob in rows), dtype=np.float16).astype(np.float32)
        found = scores(matrix.reshape(len(rows), -1), vector)
        best = np.lexsort((numbers, -found))[:limit]
        return [(numbers[i], float(found[i])) for i in best.tolist() if found[i] > 0]

    def found(self, numbers: Sequence[int]) -> dict[int, tuple[Source, SourcePassage]]:
        """Passages by their numbers, each with its source."""
        made = {}
        for n, source, section, text, moment in self._rows("found", json.dumps(list(numbers))):
            at = datetime.fromtimestamp(moment, UTC) if moment is not None else None
            made[n] = (self._wanted[source], SourcePassage(text, section, at))
        return made

    # -- what the ranking reads

    def document_positions(self, numbers: Sequence[int]) -> dict[int, DocumentPosition]:
        """None: every passage is ranked by itself, since it was cut to be one thing."""
        return {}

    def passages(
        self, numbers: Sequence[int], ranges: Sequence[PassageRange], filters: Filters
    ) -> "tuple[list[IndexedPassage], Vectors | None]":
        """These passages and their vectors."""
        import numpy as np

        rows = list(self._rows("passages", json.dumps(list(numbers))))
        from engram.embedding.static import DIMENSIONS

        vectors = np.zeros((len(rows), DIMENSIONS), dtype=np.float32)
        placed = []
        for place, (n, statement, about, support, moment, blob) in enumerate(rows):
            placed.append(IndexedPassage(n, (statement, about, support), "", 0, moment, True))
            if blob is not None:
                vectors[place] = np.frombuffer(blob, dtype=np.float16)
        return placed, vectors

    def embed(self, texts: Sequence[str]) -> "Vectors | None":
        """Vectors by the bundled embedder."""
        return _embedder().embed(texts)

    def embedder_name(self) -> str:
        """The bundled embedder's name."""
        return _embedder().name

    def _rows(self, name: str, *values: object) -> "sqlite3.Cursor":
        return self._db.execute(_statements()[name], values)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with immediate(self._db):
            yield


def stamp_of(source: Source) -> str:
    """A source's stamp as it is stored."""
    return json.dumps(source.stamp)


@cache
def _embedder() -> "StaticEmbedder":
    from engram.embedding.static import StaticEmbedder

    return StaticEmbedder()


def _vectors(passages: Sequence[SourcePassage]) -> list[bytes | None]:
    """The vectors of passages, with their sections, as they are stored."""
    if not passages:
        return []
    from engram.store.files.index.writer import to_blob

    texts = [f"{passage.section}\n{passage.text}"[:EMBEDDED] for passage in passages]
    made = _embedder().embed(texts)
    return [to_blob(row) if row.any() else None for row in made]


if TYPE_CHECKING:
    from engram.embedding.static import StaticEmbedder
