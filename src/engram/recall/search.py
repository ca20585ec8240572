"""Search: candidates from the store, fused into relevance, weighed into a score."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from engram.model.errors import InvalidInput
from engram.model.event import Event
from engram.model.hit import Filtered, Hit, Hits, HitTrace, Part, SearchTrace
from engram.model.memory import Memory
from engram.recall import score as schema
from engram.recall.cutoff import LOOKED_UP, below, checked_relevance
from engram.recall.known_at import ever, was_in_force
from engram.recall.ranking import Ranked, RankingContext, rank, show_stretches
from engram.recall.score import weigh
from engram.rules.eligibility import eligibility
from engram.rules.numbers import RELEVANCE_SCALE
from engram.store.documents import matches_metadata
from engram.store.protocol import LIVE, Candidates, Filters, Query, Store, StoredRecord
from engram.text.time.dates import spans, without
from engram.text.tokens import query_terms

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors

MODES = ("hybrid", "semantic", "keyword")
FUSIONS = (None, "best", "rrf")
SHORT_TEXT = 500
"""Characters of a text that is shown whole."""
POOL = 60
"""Candidates per retriever; enough that the cut loses nothing that could still reach the first ten."""
MAX_QUESTION = 10_000
"""Characters of a question that are read."""
Then = dict[int, Memory | None]
WEIGHED = 2
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
    narrowed: bool = False
    """Whether the caller's filters say where to look; then a question's intent does not."""
    min_relevance: float = 0.0
    """Hits less likely about the question are left out before the limit cuts."""
    everything: bool = False
    """Whether all that passes the filters is wanted, whatever it says: each such hit has relevance 1."""
    purpose: str = "the question"
    """What a search is for, as a trace tells it."""

    def checked(self) -> "Ask":
        """The ask, or `InvalidInput` for what cannot be asked."""
        if self.mode not in MODES:
            raise InvalidInput(f"{self.mode!r} is no mode; one of {', '.join(MODES)}")
        if self.fusion not in FUSIONS:
            raise InvalidInput(f"{self.fusion!r} is no fusion; 'rrf', or leave it out for the best")
        if not isinstance(self.text, str):
            raise InvalidInput(f"a question is text, not {type(self.text).__name__}")
        if type(self.limit) is not int or not 1 <= self.limit <= 1000:
            raise InvalidInput(f"limit {self.limit} must lie between 1 and 1000")
        checked_relevance(self.min_relevance)
        return self


@dataclass(slots=True)
class Searcher:
    """Runs searches on one store."""

    store: Store
    clock: Callable[[], datetime]
    log: list[SearchTrace] | None = None
    """Where each search is told of, if anywhere."""

    def search(self, ask: Ask) -> Hits:
        """The best documents, best first. Archived memories answer only when nothing current does."""
        ask = ask.checked()
        hits = self._search(ask)
        if not hits and ask.filters.statuses == LIVE and "memory" in ask.filters.kinds and not ask.filters.as_of:
            archived = self._search(replace(ask, filters=replace(ask.filters, statuses=("archived",))))
            hits.extend(replace(hit, note="archived") for hit in archived)
        return hits

    def _search(self, ask: Ask) -> Hits:
        vector = self._vector(ask)
        without_meaning = ask.mode == "semantic" and vector is None
        if without_meaning:
            ask = replace(ask, mode="keyword")
        # What was known then is embedded anew on the way, and that may take its time.
        with self.store.reading() if ask.filters.known_at is None else nullcontext():
            candidates, retrieval, then = self._retrieved(ask, vector)
            ranked = _listed(candidates) if ask.everything else rank(self.store, candidates, retrieval)
            considered, filtered = self._records(ask, ranked, then)
            weighed = self._weighed(ask, retrieval.terms, considered)
        likely = [scored for scored in weighed if scored.place.relevance >= ask.min_relevance]
        hits = Hits([self._hit(ask, scored) for scored in likely[: ask.limit]])
        hits.filtered = [
            below(scored.found.record.id, scored.place.relevance, ask.min_relevance)
            for scored in weighed
            if scored.place.relevance < ask.min_relevance
        ]
        if any(len(hit.text) > SHORT_TEXT for hit in hits):
            show_stretches(hits, retrieval.terms)
        hits.mode = ask.mode if vector is not None or ask.mode == "keyword" else "keyword"
        hits.warnings += candidates.warnings
        if without_meaning and not candidates.warnings:
            hits.warnings.append("searched by keyword: this store has no embedder (`engram config embedder static`)")
        hits.terms, hits.pruned_terms = retrieval.terms, candidates.pruned
        if self.log is not None:
            counts = {"keyword": len(candidates.lexical), "semantic": len(candidates.semantic)}
            beyond = tuple(scored.found.record.id for scored in likely[ask.limit :])
            self.log.append(_told(ask, hits, counts, beyond, [*filtered, *hits.filtered]))
        return hits

    def retrieved(self, ask: Ask) -> tuple[Candidates, RankingContext]:
        """What a search is about to rank: for whoever learns the ranking."""
        candidates, retrieval, _ = self._retrieved(ask.checked(), self._vector(ask))
        return candidates, retrieval

    def _retrieved(self, ask: Ask, vector: "Vectors | None") -> tuple[Candidates, RankingContext, Then]:
        question = ask.text[:MAX_QUESTION]
        dated = spans(question)
        terms = tuple(query_terms(without(question, dated))) or tuple(query_terms(question))
        query = Query(terms if ask.mode != "semantic" else (), vector, max(POOL, ask.limit * WEIGHED))
        filters = ask.filters if ask.filters.known_at is None else ever(ask.filters)
        candidates = self.store.candidates(query, filters)
        then = self._then(ask)
        retrieval = RankingContext(
            query,
            ask.mode,
            ask.fusion,
            filters,
            wanted=query.limit * 2 if then else ask.limit * WEIGHED,
            windows=[(span.since, span.until) for span in dated],
            then=_by_number(then),
            text=question,
            terms=terms,
        )
        return candidates, retrieval, then

    def _then(self, ask: Ask) -> "Then":
        """For `known_at`: what was known of the memories decided about since, with their numbers."""
        if ask.filters.known_at is None:
            return {}
        held = self.store.known_at(ask.filters.known_at)
        numbers = self.store.numbers(list(held))
        return {numbers[memory_id]: memory for memory_id, memory in held.items() if memory_id in numbers}

    def _vector(self, ask: Ask) -> "Vectors | None":
        if ask.mode == "keyword" or not ask.text.strip():
            return None
        vectors = self.store.embed([ask.text[:MAX_QUESTION]])
        return vectors[0] if vectors is not None else None

    def _weighed(
        self, ask: Ask, terms: Sequence[str], considered: Sequence[tuple[StoredRecord, Ranked]]
    ) -> "list[Scored]":
        now = self.clock()
        moment = ask.filters.valid_at or now
        boosts = self._schema_boosts([f for f, _ in considered], now)
        scored = [_scored(ask, found, place, terms, moment, boosts) for found, place in considered]
        scored.sort(key=lambda one: (-one.score, one.found.record.id))
        return scored

    def _records(
        self, ask: Ask, ranked: Sequence[Ranked], then: Then
    ) -> tuple[list[tuple[StoredRecord, Ranked]], list[Filtered]]:
        """Records of the best ranked, as they are or were; filters on the record itself apply here, before the cut."""
        found = {f.n: f for f in self.store.get_many([place.n for place in ranked])}
        pairs = [(found[place.n], place) for place in ranked if place.n in found]
        if ask.filters.known_at is not None:
            pairs = list(_as_held(pairs, then))
        reasons = [_fails(found, ask.filters) for found, _ in pairs]
        failed = [Filtered(f.record.id, why) for (f, _), why in zip(pairs, reasons, strict=True) if why]
        return [pair for pair, why in zip(pairs, reasons, strict=True) if not why], failed

    def _schema_boosts(self, found: Iterable[StoredRecord], now: datetime) -> dict[str, float]:
        memories = [f.record for f in found if isinstance(f.record, Memory)]
        return schema.boosts(memories, [memory.id for memory in memories], now)

    def _hit(self, ask: Ask, scored: "Scored") -> Hit:
        record, place, parts = scored.found.record, scored.place, scored.parts
        if isinstance(record, Memory):
            text, memory, event = record.statement, record, None
        else:
            text, memory, event = record.content, None, record
        if ask.explain and place.shares:
            # The whole account: the match taken apart into what each kind of evidence gave.
            parts = place.parts + parts[1:]
        trace = HitTrace(parts, place.found_by, place.raw)
        return Hit(
            record.id, scored.found.kind, scored.score, text, memory, event, record.metadata, trace, place.relevance, scored.note
        )  # fmt: skip


class Scored(NamedTuple):
    """A candidate with its score, the parts of it, and its state where that is a caveat."""

    found: StoredRecord
    place: Ranked
    score: float
    parts: tuple[Part, ...]
    note: str = ""


def _scored(
    ask: Ask, found: StoredRecord, place: Ranked, terms: Sequence[str], now: datetime, boosts: Mapping[str, float]
) -> Scored:
    record, parts = found.record, (Part("match", place.match),)
    if not isinstance(record, Memory):
        return Scored(found, place, place.match, parts)
    state = eligibility(record, now)
    note = "" if state.state == "active" else state.state
    if ask.mode != "hybrid":
        return Scored(found, place, place.match, parts, note)
    # What is out of force was asked for by its status, or as of a time when it was in force.
    weight = replace(state, weight=1.0) if ask.filters.as_of or not state.weight else state
    weighed = weigh(place.match, record, weight, terms, now, boosts.get(record.id, 0.0))
    return Scored(found, place, HitTrace(weighed).replay(), weighed, note)


def _listed(candidates: Candidates) -> list[Ranked]:
    """Everything that passed the filters, as it was found."""
    numbers = dict.fromkeys(n for found in (candidates.lexical, candidates.semantic) for n, _ in found)
    return [Ranked(n, RELEVANCE_SCALE, found_by={"filters": 1}, relevance=LOOKED_UP) for n in numbers]


def _by_number(then: Then) -> dict[int, Memory]:
    return {n: memory for n, memory in then.items() if memory is not None}


def _fails(found: StoredRecord, filters: Filters) -> str:
    """Why a record does not pass the filters, "" where it does."""
    record = found.record
    if isinstance(record, Memory) and filters.known_at is not None and not was_in_force(record, filters):
        return "not current at the time of known_at"
    if filters.metadata and not matches_metadata(record.metadata, filters.metadata):
        return "other metadata"
    # A hand edit picked up on the way may have taken a memory out of what was asked for.
    if isinstance(record, Event) or filters.statuses is None or filters.as_of:
        return ""
    return "" if record.status in filters.statuses else f"status {record.status}"


def _told(
    ask: Ask, hits: Hits, candidates: dict[str, int], beyond: tuple[str, ...], filtered: Sequence[Filtered]
) -> SearchTrace:
    from engram.recall.trace import in_words

    found = tuple(hit.id for hit in hits)
    return SearchTrace(ask.purpose, ask.text, in_words(ask.filters), hits.mode, hits.terms, hits.pruned_terms,
                       candidates, found, ask.limit, beyond, tuple(filtered))  # fmt: skip


def _as_held(pairs: Sequence[tuple[StoredRecord, Ranked]], then: Then) -> Iterator[tuple[StoredRecord, Ranked]]:
    """The records as they were; what Engram knew nothing of is left out."""
    for found, place in pairs:
        record = then.get(found.n, found.record)
        if record is not None:
            yield replace(found, record=record), place
