"""The catalog of a directory's sources: finds them, keeps their index up to date by stat, and searches it."""

import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from engram.agents.registry import all_agents
from engram.agents.sources.documents import Documents
from engram.agents.sources.instructions import find_instructions
from engram.agents.sources.places import SourcePlaces, real_folder
from engram.agents.sources.source import Source, SourceHit
from engram.agents.transcripts.session import Problems
from engram.model.lazy import cached_property, dataclass, field, replace
from engram.recall.sources.index import IndexedSource, SourceIndex, key_of, stamp_of
from engram.recall.sources.sessions import find_sessions, is_here
from engram.store.protocol import Progress
from engram.text.time.zone import SYSTEM

if TYPE_CHECKING:
    from engram.recall.query import SearchQuery
    from engram.recall.sources.reader import ReadSource

MAX_READING_SECONDS = 17.0
"""How long one call may read sources that are new; the rest waits for the next call."""
MAX_SESSIONS_WITHOUT_INDEX = 40
"""Sessions that are read where the index cannot be kept, since every call reads them again: the newest."""
SOURCES_PER_TRANSACTION = 48
"""Sources that are indexed in one transaction: each one adds a segment to the index of words, and segments have to be merged."""
MAX_SWEPT_SOURCES = 100
"""Sources of other projects that one call looks for, to drop those that are gone."""
RECHECK_AFTER = timedelta(hours=1)
"""How long a source that was looked for is not looked for again."""
PHASE_CANDIDATES = 8
"""Candidates per retriever and phase."""
Cancelled = Callable[[], bool]


@dataclass()
class SourceCatalog:
    """The sources that say something about one directory."""

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
        # A file is of the kind by which it is found first.
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
        """The index, as far as it was filled."""
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
        """Read what is new or changed, within the time for it, and choose what searches use."""
        sources = [*self.documents, *self.sessions]
        if not sources:
            return
        try:
            self._refresh(sources, progress, cancelled)
        except (sqlite3.Error, OSError) as error:
            # A full disk, or an index that another program took away: this call goes on without it.
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
        """Read and index sources; returns how many there was no time for."""
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
        """Drop some of the sources of other projects that are gone."""
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
        """The passages that are about a question, best first, from each of these groups of kinds."""
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
    """The source under the name that it gives itself."""
    return replace(source, title=known.title) if known.title != source.title else source
