"""The catalog of a directory's sources: finds them, keeps their index current by file stat, and searches it.

The index is one disposable SQLite file for each user.
"""

import json
import sqlite3
import time
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Self

from engram.agents.agent import all_agents
from engram.agents.sources.documents import Documents, Source, SourceHit, SourcePassage, find_instructions
from engram.agents.sources.places import SourcePlaces, real_folder
from engram.agents.transcripts.session import Problems
from engram.disk import boot_id
from engram.model.errors import StoreBusy, StoreReadOnly
from engram.model.lazy import cached_property, dataclass, field, replace
from engram.recall.sources.sessions import find_sessions, is_here
from engram.rules.numbers import FIELD_WEIGHTS
from engram.store.protocol import Candidates, DocumentPosition, Filters, IndexedPassage, PassageRange, Progress
from engram.store.sql import named_statements
from engram.store.sqlite.connection import connect, split_statements, write_transaction
from engram.store.sqlite.search import best_rows, document_frequencies
from engram.store.sqlite.writer import Matrix
from engram.text.time.zone import SYSTEM
from engram.text.tokens import prune_terms

if TYPE_CHECKING:
    from engram.embedding.static import StaticEmbedder
    from engram.embedding.vectors import Vectors
    from engram.recall.query import SearchQuery
    from engram.recall.sources.reader import PassageRow, ReadSource

INDEX_VERSION = 4
"""The version of the schema and of how sources are cut, redacted, tokenized and embedded. A change to any of them
creates a new file.
"""
_SCHEMA = Path(__file__).with_name("schema.sql")
_NEAREST = 256
"""The number of nearest passages read first, of any kind; they usually include enough of each kind."""


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


class WantedPassages:
    """The passages of the wanted sources: for each source, its contiguous range of numbers and its kind, in order."""

    def __init__(self, ranges: Sequence[tuple[int, int, str]] = ()) -> None:
        self._ranges = ranges
        self._begins = [first for first, _, _ in ranges]

    def kind(self, number: int) -> str:
        """The kind of a passage; "" if it is not wanted."""
        at = bisect_right(self._begins, number) - 1
        return self._ranges[at][2] if at >= 0 and number < self._ranges[at][1] else ""

    def numbers(self, kinds: Sequence[str]) -> list[int]:
        """Every passage of these kinds."""
        return [n for first, end, kind in self._ranges if kind in kinds for n in range(first, end)]

    def first(
        self, found: Iterable[tuple[int, float]], groups: Sequence[Sequence[str]], limit: int
    ) -> Iterator[tuple[int, float]]:
        """The first passages of each group of kinds, up to the limit."""
        known = {kind for _, _, kind in self._ranges}
        left = {tuple(kinds): limit for kinds in groups if not known.isdisjoint(kinds)}
        for number, score in found:
            if not left:
                return
            kind = self.kind(number)
            for kinds in [kinds for kinds in left if kind in kinds]:
                yield number, score
                left[kinds] -= 1
                if not left[kinds]:
                    del left[kinds]


class SourceIndex:
    """The searchable passages of sources. `wanted` are the sources that searches use."""

    def __init__(self, connection: sqlite3.Connection, vectors: Path | None = None, warning: str = "") -> None:
        self._db = connection
        self._vector_file = vectors
        """The vectors as one mapped file, a cache of those in the database; None if nothing is kept on disk."""
        self._matrix = Matrix(vectors, _embedder().dim) if vectors is not None else None
        self.warning = warning
        """Why the index is not kept; "" if it is."""
        self._wanted: dict[int, Source] = {}

    @classmethod
    def open(cls, cache_folder: Path) -> Self:
        """The user's index, or one in memory for this call if it cannot be kept on disk."""
        path = cache_folder / "sources" / f"v{INDEX_VERSION}" / "index.db"
        try:
            if not path.exists():
                _remove_older(path.parent.parent)
            connection, _ = connect(path, _SCHEMA)
            name = connection.execute("SELECT value FROM meta WHERE key = 'name'").fetchone()[0]
            # After a power loss the file may lack pages that the database has, so each boot creates its own file.
            return cls(connection, path.with_name(f"vectors-{name}-{boot_id()[:8]}.f32"))
        except (StoreReadOnly, StoreBusy, OSError, sqlite3.Error) as error:
            return cls.in_memory(f"The index of sources is not kept: {error}")

    @classmethod
    def in_memory(cls, warning: str = "") -> Self:
        """An index that ends with the process."""
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        for statement in split_statements(_SCHEMA.read_text("utf-8")):
            connection.execute(statement)
        return cls(connection, None, warning)

    @property
    def is_kept(self) -> bool:
        """Whether the next call can use what this one reads."""
        return not self.warning

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def indexed_sources(self, keys: Collection[str]) -> dict[str, IndexedSource]:
        """The index entries of the sources with these names, by name."""
        rows = self._rows("known", json.dumps(list(keys)))
        return {
            name: IndexedSource(number, stamp, directory, bool(loaded), title)
            for number, name, stamp, directory, loaded, title in rows
        }

    def put(self, sources: "Sequence[ReadSource]", at: datetime) -> None:
        """Replace the index entries of sources in one transaction."""
        with self._writing():
            for read in sources:
                self._put_passages(self._put_source(read, at), read.rows)

    def _put_source(self, read: "ReadSource", at: datetime) -> int:
        source = read.source
        for (number,) in self._rows("number", key_of(source)).fetchall():
            self._drop(number)
        made = self._rows(
            "put_source", key_of(source), source.kind, _storable(str(source.path)), read.title or source.title,
            stamp_of(source), read.directory, read.is_loaded, at.timestamp(),
        )  # fmt: skip
        assert made.lastrowid is not None
        return made.lastrowid

    def _put_passages(self, source: int, rows: "Sequence[PassageRow]") -> None:
        if not rows:
            return
        begin = int(next(self._rows("following"))[0])
        numbered = list(enumerate(rows, begin))
        terms = [(n, row.statement, row.about, "") for n, row in numbered]
        self._run_many(
            "put_doc",
            [(n, source, n - begin, row.section, row.text, row.moment, row.vector) for n, row in numbered],
        )
        self._run_many("put_texts", terms)
        self._run_many("put_words", terms)
        if self._matrix is not None and self._matrix.exists:
            self._matrix.write([n for n, _ in numbered], _vectors([row.vector for row in rows]))

    def forget(self, numbers: Iterable[int]) -> None:
        """Remove deleted sources."""
        with self._writing():
            for number in numbers:
                self._drop(number)

    def _drop(self, number: int) -> None:
        for row in self._rows("texts_of", number):
            self._db.execute(_statements()["drop_words"], row)
        for name in ("drop_texts", "drop_docs", "drop_source"):
            self._db.execute(_statements()[name], (number,))

    def unchecked_sources(self, before: datetime, most: int) -> list[tuple[int, str]]:
        """Some sources that were not checked since then, with their paths."""
        return [(number, path) for number, _, path in self._rows("unchecked", before.timestamp(), most)]

    def note_checked(self, numbers: Iterable[int], at: datetime) -> None:
        """Record that sources were checked."""
        with self._writing():
            self._db.execute(_statements()["checked"], (at.timestamp(), json.dumps(list(numbers))))

    def want(self, sources: Mapping[int, Source]) -> None:
        """Choose the sources that searches use, by their numbers."""
        self._wanted = dict(sources)

    # -- retrieval

    def candidates(
        self, terms: Sequence[str], vector: "Vectors", groups: Sequence[Sequence[str]], limit: int
    ) -> Candidates:
        """The candidates of each retriever among the wanted sources, the best of each group of kinds."""
        total = int(next(self._rows("total"))[0])
        frequency = document_frequencies(self._db, terms, total)
        kept = prune_terms(frequency)
        passages = self._wanted_passages()
        by_words = self._lexical(kept) if kept else []
        return Candidates(
            sorted(passages.first(by_words, groups, limit), key=_by_score),
            sorted(self._semantic(passages, vector, groups, limit), key=_by_score),
            total=total,
            frequency=frequency,
            pruned=tuple(term for term in frequency if term not in kept),
        )

    def _wanted_passages(self) -> WantedPassages:
        ranges = self._rows("ranges", json.dumps(list(self._wanted)))
        return WantedPassages([(first, end, self._wanted[source].kind) for source, first, end in ranges])

    def _lexical(self, terms: Sequence[str]) -> "Iterable[tuple[int, float]]":
        """Every passage with one of the terms, by BM25. The terms' postings are bounded, so one pass serves all kinds."""
        match = " OR ".join(f'"{term}"' for term in terms)
        weights = ", ".join(map(str, FIELD_WEIGHTS[:3]))  # a source has no cues
        return self._db.execute(_statements()["lexical"].replace("WEIGHTS", weights), (match,))

    def _semantic(
        self, passages: WantedPassages, vector: "Vectors", groups: Sequence[Sequence[str]], limit: int
    ) -> Iterator[tuple[int, float]]:
        """The passages of each group that are nearest to a vector: an exact scan."""
        from engram.embedding.vectors import scores

        rows = self._vectors()
        of_all = scores(rows, vector)
        top = best_rows(of_all, _NEAREST)
        nearest = list(zip(top.tolist(), of_all[top].tolist(), strict=True))
        for kinds in groups:
            found = list(passages.first(nearest, [kinds], limit))
            if len(found) < limit and len(nearest) < len(rows):
                numbers = [n for n in passages.numbers(kinds) if n < len(rows)]
                of_kinds = scores(rows[numbers], vector)
                found = [(numbers[at], float(of_kinds[at])) for at in best_rows(of_kinds, limit)]
            yield from ((n, score) for n, score in found if score != 0)

    def _vectors(self) -> "Vectors":
        """The vectors of all passages, row n of passage n."""
        import numpy as np

        from engram.embedding.static import DIMENSIONS

        count = int(next(self._rows("last"))[0] or 0) + 1
        if self._matrix is not None:
            with suppress(OSError):
                if not self._matrix.exists:
                    self._fill(self._matrix, count)
                return self._matrix.rows(count)
        rows = np.zeros((count, DIMENSIONS), dtype=np.float32)
        for numbers, vectors in self._stored_vectors():
            rows[numbers] = vectors
        return rows

    def _fill(self, matrix: Matrix, count: int) -> None:
        """Write the file of vectors. The lock keeps others from adding passages, whose vectors would be missing in
        it.
        """
        with self._writing():
            matrix.fill(self._stored_vectors(), count)
        assert self._vector_file is not None
        for old in self._vector_file.parent.glob("vectors-*.f32"):
            if old != self._vector_file:
                old.unlink(missing_ok=True)

    def _stored_vectors(self) -> "Iterator[tuple[list[int], Vectors]]":
        import numpy as np

        rows = self._rows("vectors")
        while some := rows.fetchmany(4096):
            flat = np.frombuffer(b"".join(blob for _, blob in some), dtype=np.float16).astype(np.float32)
            yield [n for n, _ in some], flat.reshape(len(some), -1)

    def passages_by_number(self, numbers: Sequence[int]) -> dict[int, tuple[Source, SourcePassage]]:
        """Passages by their numbers, each with its source."""
        made = {}
        for n, source, section, text, moment in self._rows("found", json.dumps(list(numbers))):
            at = datetime.fromtimestamp(moment, UTC) if moment is not None else None
            made[n] = (self._wanted[source], SourcePassage(text, section, at))
        return made

    # -- reads of the ranking

    def document_positions(self, numbers: Sequence[int]) -> dict[int, DocumentPosition]:
        """Always empty: a passage is cut to be one unit, so each is ranked by itself."""
        return {}

    def passages(
        self, numbers: Sequence[int], ranges: Sequence[PassageRange], filters: Filters
    ) -> "tuple[list[IndexedPassage], Vectors | None]":
        """These passages and their vectors."""
        rows = list(self._rows("passages", json.dumps(list(numbers))))
        placed = [IndexedPassage(n, (*terms,), "", 0, moment, True) for n, *terms, moment, _ in rows]
        return placed, _vectors([blob for *_, blob in rows])

    def embed(self, texts: Sequence[str]) -> "Vectors | None":
        """Vectors by the bundled embedder."""
        return _embedder().embed(texts)

    def embedder_name(self) -> str:
        """The bundled embedder's name."""
        return _embedder().name

    def _rows(self, name: str, *values: object) -> "sqlite3.Cursor":
        return self._db.execute(_statements()[name], values)

    def _run_many(self, name: str, rows: Sequence[tuple[object, ...]]) -> None:
        self._db.executemany(_statements()[name], rows)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with write_transaction(self._db):
            yield


def _remove_older(folder: Path) -> None:
    """Remove the unused indexes of earlier versions."""
    import shutil

    for version in range(1, INDEX_VERSION):
        shutil.rmtree(folder / f"v{version}", ignore_errors=True)


def key_of(source: Source) -> str:
    """A source's name as it is stored. A path may contain bytes that are not text."""
    return _storable(source.name)


def _storable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def stamp_of(source: Source) -> str:
    """A source's stamp as it is stored."""
    return f"[{', '.join(map(str, source.stamp))}]"


@cache
def _embedder() -> "StaticEmbedder":
    from engram.embedding.static import StaticEmbedder

    return StaticEmbedder()


def _vectors(blobs: Sequence[bytes | None]) -> "Vectors":
    """Vectors as they are stored; a missing one becomes zero."""
    import numpy as np

    from engram.embedding.static import DIMENSIONS

    rows = np.zeros((len(blobs), DIMENSIONS), dtype=np.float32)
    for row, blob in zip(rows, blobs, strict=True):
        if blob is not None:
            row[:] = np.frombuffer(blob, dtype=np.float16)
    return rows


def _by_score(pair: tuple[int, float]) -> tuple[float, int]:
    return -pair[1], pair[0]


MAX_READING_SECONDS = 17.0
"""How long one call may read new sources; the rest waits for the next call."""
MAX_SESSIONS_WITHOUT_INDEX = 40
"""The number of newest sessions read if the index cannot be kept, since every call reads them again."""
SOURCES_PER_TRANSACTION = 48
"""Sources that are indexed in one transaction. Each transaction adds a segment to the index of words, and segments have
to be merged.
"""
MAX_SWEPT_SOURCES = 100
"""The number of sources of other projects that one call checks, to drop deleted ones."""
RECHECK_AFTER = timedelta(hours=1)
"""How long a checked source is not checked again."""
PHASE_CANDIDATES = 8
"""Candidates per retriever and phase."""
Cancelled = Callable[[], bool]


@dataclass()
class SourceCatalog:
    """The sources with information about one directory."""

    places: SourcePlaces
    cache: Path
    clock: Callable[[], datetime]
    warnings: list[str] = field(default_factory=list)
    seconds: float = MAX_READING_SECONDS

    @cached_property
    def documents(self) -> list[Source]:
        """The files: instructions, rules, auto memory and skills."""
        real_folder.cache_clear()  # links may have changed since
        documents = Documents(self.places)
        finders = [agent.load_finders() for agent in all_agents()]
        # A file gets the kind under which it is found first.
        found_in_order = (*(one.memory for one in finders), find_instructions, *(one.rules for one in finders))
        for find in filter(None, (*found_in_order, *(one.skills for one in finders))):
            find(documents)
        return documents.found

    @cached_property
    def sessions(self) -> list[Source]:
        """The sessions that may belong to the project, newest first."""
        problems = Problems()
        found = find_sessions(self.places, problems)
        self.warnings += problems.found[:3]
        return found

    @cached_property
    def index(self) -> SourceIndex:
        """The index, as far as it is filled."""
        found = SourceIndex.open(self.cache)
        if found.warning:
            self.warnings.append(found.warning)
        return found

    @property
    def has_sources(self) -> bool:
        """Whether there is anything to search."""
        return bool(self.documents or self.sessions)

    def close(self) -> None:
        """Close the index, if it was opened."""
        if "index" in vars(self):
            self.index.close()

    def refresh(self, progress: Progress, cancelled: Cancelled) -> None:
        """Read new and changed sources within the time limit, and choose those that searches use."""
        sources = [*self.documents, *self.sessions]
        if not sources:
            return
        try:
            self._refresh(sources, progress, cancelled)
        except (sqlite3.Error, OSError) as error:
            # The disk is full, or another program removed the index: this call continues without it.
            self.close()
            vars(self)["index"] = SourceIndex.in_memory(f"The index of sources is not kept: {error}")
            self.warnings.append(self.index.warning)
            self._refresh(sources, progress, cancelled)

    def _refresh(self, sources: list[Source], progress: Progress, cancelled: Cancelled) -> None:
        if not self.index.is_kept and len(self.sessions) > MAX_SESSIONS_WITHOUT_INDEX:
            sources = [*self.documents, *self.sessions[:MAX_SESSIONS_WITHOUT_INDEX]]
        keys = {key_of(source): source for source in sources}
        known = self.index.indexed_sources(keys)
        unread = [source for key, source in keys.items() if self._is_unread(source, known.get(key))]
        if unread:
            left = self._read(unread, progress, cancelled)
            known = self.index.indexed_sources(keys)
            if left:
                self.warnings.append(
                    f"{left} of {len(sources)} sources are not read yet; the next recall goes on with them"
                )
        wanted = {
            found.number: _with_title(source, found)
            for key, source in keys.items()
            if (found := known.get(key)) is not None and self._has(source, found)
        }
        self.index.want(wanted)
        self._sweep(wanted)

    def _is_unread(self, source: Source, known: IndexedSource | None) -> bool:
        if known is None or known.stamp != stamp_of(source):
            return True
        return not known.loaded and source.session is not None and is_here(source, known.directory, self.places)

    def _has(self, source: Source, found: IndexedSource) -> bool:
        return found.loaded and (source.session is None or is_here(source, found.directory, self.places))

    def _read(self, unread: Sequence[Source], progress: Progress, cancelled: Cancelled) -> int:
        """Read and index sources; returns how many were left unread when time ran out."""
        from engram.recall.sources.reader import read_in_order

        started = time.monotonic()
        deadline, slowest = started + self.seconds, 0.0

        def is_stopped() -> bool:
            # The next source may take as long as the slowest so far.
            return cancelled() or time.monotonic() + slowest > deadline

        progress("Reading sources", 0, len(unread))
        batch: list[ReadSource] = []
        done = 0
        with closing(read_in_order(unread, self.places, is_stopped)) as sources:
            for done, read in enumerate(sources, 1):
                slowest, started = max(slowest, time.monotonic() - started), time.monotonic()
                self.warnings += read.problems
                batch.append(read)
                if len(batch) >= SOURCES_PER_TRANSACTION:
                    self.index.put(batch, self.clock())
                    batch = []
                progress("Reading sources", done, len(unread))
        self.index.put(batch, self.clock())
        return len(unread) - done

    def _sweep(self, wanted: Mapping[int, Source]) -> None:
        """Drop some of the deleted sources of other projects."""
        if not self.index.is_kept:
            return
        now = self.clock()
        old = self.index.unchecked_sources(now - RECHECK_AFTER, MAX_SWEPT_SOURCES)
        if not old:
            return
        if gone := [number for number, path in old if number not in wanted and not Path(path).exists()]:
            self.index.forget(gone)
        self.index.note_checked((number for number, _ in old), now)

    # -- search

    def search(self, query: "SearchQuery", phases: Sequence[Sequence[str]]) -> list[SourceHit]:
        """The passages about a question from each of these groups of kinds, best first."""
        from engram.recall.ranking import fuse_wordings, rank
        from engram.recall.search import with_terms

        queries = [query, *(with_terms(each, SYSTEM) for each in query.alternatives)]
        vectors = self.index.embed([each.text for each in queries])
        assert vectors is not None
        asked = [
            (self.index.candidates(each.terms, vector, phases, PHASE_CANDIDATES), replace(each, vector=vector))
            for each, vector in zip(queries, vectors, strict=True)
        ]
        numbers = {n for found, _ in asked for n, _ in (*found.lexical, *found.semantic)}
        if not numbers:
            return []
        rankings = rank(self.index, [(found, replace(each, limit=len(numbers))) for found, each in asked])
        ranked = fuse_wordings(rankings, [each.text for each in queries])
        records = self.index.passages_by_number([place.n for place in ranked])
        return [
            SourceHit(place.n, *records[place.n], place.match, place.relevance)
            for place in ranked
            if place.n in records
        ]


def _with_title(source: Source, known: IndexedSource) -> Source:
    """The source under its own title."""
    return replace(source, title=known.title) if known.title != source.title else source
