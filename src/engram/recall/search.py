"""Search: candidates from the store, fused into relevance, weighed into a score."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from engram.model.errors import InvalidInput
from engram.model.event import Event
from engram.model.hit import Hit, Hits, HitTrace, Part
from engram.model.memory import Memory
from engram.recall import schema
from engram.recall.relevance import Ranked, rank
from engram.recall.weigh import weigh
from engram.rules.eligibility import eligibility
from engram.store.documents import matches_metadata
from engram.store.protocol import LIVE, Filters, Found, Query, Store
from engram.text.tokens import query_terms

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors

MODES = ("hybrid", "semantic", "keyword")
FUSIONS = (None, "best", "rrf")
POOL = 100
"""Candidates per retriever; enough that the cut loses nothing that could still reach the first ten."""
WEIGHED = 3
"""How many times the limit is weighed: state, feedback and confidence can lift a hit past this many others."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One search, as the caller means it."""

    text: str
    limit: int = 10
    mode: str = "hybrid"
    fusion: str | None = None
    filters: Filters = field(default_factory=Filters)
    explain: bool = False

    def checked(self) -> "Ask":
        """The ask, or `InvalidInput` for what cannot be asked."""
        if self.mode not in MODES:
            raise InvalidInput(f"{self.mode!r} is no mode; one of {', '.join(MODES)}")
        if self.fusion not in FUSIONS:
            raise InvalidInput(f"{self.fusion!r} is no fusion; 'rrf', or leave it out for the best")
        if not 1 <= self.limit <= 1000:
            raise InvalidInput(f"limit {self.limit} must lie between 1 and 1000")
        return self


@dataclass(slots=True)
class Searcher:
    """Runs searches on one store."""

    store: Store
    clock: Callable[[], datetime]

    def search(self, ask: Ask) -> Hits:
        """The best documents, best first. Archived memories answer only when nothing in force does."""
        ask = ask.checked()
        hits = self._search(ask)
        if not hits and ask.filters.statuses == LIVE and "memory" in ask.filters.kinds and not ask.filters.as_of:
            archived = self._search(replace(ask, filters=replace(ask.filters, statuses=("archived",))))
            hits.extend(replace(hit, note="archived") for hit in archived)
        return hits

    def _search(self, ask: Ask) -> Hits:
        terms = tuple(query_terms(ask.text[:10_000]))
        vector = self._vector(ask)
        pool = max(POOL, ask.limit * WEIGHED)
        query = Query(terms if ask.mode != "semantic" else (), vector, pool)
        candidates = self.store.candidates(query, ask.filters)
        ranked = rank(self.store, candidates, query, ask.mode, ask.fusion, ask.filters)
        hits = self._weighed(ask, terms, ranked)
        hits.mode = ask.mode if vector is not None or ask.mode == "keyword" else "keyword"
        hits.warnings += candidates.warnings
        hits.terms, hits.pruned_terms = terms, candidates.pruned
        return hits

    def _vector(self, ask: Ask) -> "Vectors | None":
        if ask.mode == "keyword" or not ask.text.strip():
            return None
        vectors = self.store.embed([ask.text[:10_000]])
        return vectors[0] if vectors is not None else None

    def _weighed(self, ask: Ask, terms: Sequence[str], ranked: Sequence[Ranked]) -> Hits:
        considered = self._records(ask, ranked)
        now = self.clock()
        moment = ask.filters.valid_at or now
        boosts = self._schema_boosts([f for f, _ in considered], now)
        hits = [self._hit(ask, found, place, terms, moment, boosts) for found, place in considered]
        hits.sort(key=lambda hit: (-hit.score, hit.id))
        return Hits(hits[: ask.limit])

    def _records(self, ask: Ask, ranked: Sequence[Ranked]) -> list[tuple[Found, Ranked]]:
        """Records of the best ranked; metadata filters apply here, before the cut."""
        wanted = len(ranked) if ask.filters.metadata else ask.limit * WEIGHED
        best = list(ranked[:wanted])
        found = {f.n: f for f in self.store.get_many([place.n for place in best])}
        pairs = [(found[place.n], place) for place in best if place.n in found]
        return [(f, p) for f, p in pairs if self._passes(f, ask.filters)]

    def _passes(self, found: Found, filters: Filters) -> bool:
        if filters.metadata and not matches_metadata(found.record.metadata, filters.metadata):
            return False
        # A hand edit picked up on the way may have taken a memory out of what was asked for.
        return (
            isinstance(found.record, Event)
            or filters.statuses is None
            or filters.as_of
            or found.record.status in filters.statuses
        )

    def _schema_boosts(self, found: Iterable[Found], now: datetime) -> dict[str, float]:
        memories = [f.record for f in found if isinstance(f.record, Memory)]
        return schema.boosts(memories, [memory.id for memory in memories], now)

    def _hit(
        self, ask: Ask, found: Found, place: Ranked, terms: Sequence[str], now: datetime, boosts: dict[str, float]
    ) -> Hit:
        record = found.record
        if isinstance(record, Memory):
            state = eligibility(record, now)
            parts: tuple[Part, ...] = (Part("relevance", place.relevance),)
            if ask.mode == "hybrid":
                weight = state if not ask.filters.as_of else replace(state, weight=1.0)
                parts = weigh(place.relevance, record, weight, terms, now, boosts.get(record.id, 0.0))
            text, memory, event, note = record.statement, record, None, "" if state.state == "active" else state.state
        else:
            parts = (Part("relevance", place.relevance),)
            text, memory, event, note = record.content, None, record, ""
        trace = HitTrace(parts, place.found_by, place.raw)
        score = trace.replay()
        return Hit(
            record.id, found.kind, score, text, memory, event, record.metadata, self._trace(ask, trace, place), note
        )

    def _trace(self, ask: Ask, trace: HitTrace, place: Ranked) -> HitTrace:
        """The whole account when asked for: relevance taken apart into what each retriever gave."""
        if not ask.explain or not place.parts:
            return trace
        rest = trace.parts[1:]
        return HitTrace(place.parts + rest, trace.found_by, trace.raw)
