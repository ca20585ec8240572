"""Search: candidates from the store are fused into a relevance and weighed into a score that the trace can replay.

Records that several searches of one recall need are read once.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, NamedTuple

from engram.model.arguments import VERBATIM
from engram.model.hit import Filtered, Hit, Hits, HitTrace, Part, SearchTrace
from engram.model.lazy import dataclass, replace
from engram.model.logs import Log
from engram.model.memory import CONTRADICTS, LIVE_STATUSES, Memory
from engram.model.records import Event
from engram.recall.cutoff import LOOKED_UP_RELEVANCE, filtered_below, fold_events, is_manifest
from engram.recall.query import (
    RetrievedQuery,
    SearchQuery,
    combine_with_outdated,
    is_unanswered,
    outdated_query,
    was_current,
)
from engram.recall.ranking import (
    MAX_JUDGED_DOCUMENTS,
    RankedDocument,
    fuse_wordings,
    join_readings,
    rank,
    with_excerpts,
)
from engram.recall.typos import correct_spelling, describe_corrections, find_corrections
from engram.rules import numbers as n
from engram.rules.lifecycle import (
    Eligibility,
    anchor_boost,
    confidence_weight,
    derivation_weight,
    eligibility,
    feedback_weight,
    importance_boost,
    is_speculative,
    link_strength,
    recency_boost,
    schema_boost,
)
from engram.rules.numbers import RELEVANCE_SCALE
from engram.store.documents import matches_metadata
from engram.store.protocol import NEVER_TRUE_STATUSES, Candidates, Filters, Query, Store, StoredRecord
from engram.text.time.dates import date_spans, without_dates
from engram.text.time.zone import SYSTEM
from engram.text.tokens import query_terms, tokens

if TYPE_CHECKING:
    from array import array

    from engram.embedding.vectors import Vectors


class SharedReads:
    """Reads shared by the searches of one recall. They are not kept longer, so that the next recall sees new writes.

    It grows by at most a few hundred records for each search.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._vectors: dict[str, Vectors | None] = {}
        self._candidates: list[tuple[Query, Filters, Candidates]] = []
        self._records: dict[int, StoredRecord] = {}
        self._has_situations: bool | None = None
        self._corrections: dict[str, Mapping[str, str]] = {}
        self._rankings: dict[object, tuple[int, list[list[RankedDocument]]]] = {}
        self._fused: dict[object, list[RankedDocument]] = {}

    def may_have_situations(self) -> bool:
        """Whether any memory may have a situation."""
        if self._has_situations is None:
            self._has_situations = self._store.may_have_situations()
        return self._has_situations

    def vector(self, text: str) -> "Vectors | None":
        """The vector of a text; None without an embedder."""
        self.embed([text])
        return self._vectors[text]

    def embed(self, texts: Sequence[str]) -> None:
        """Embed several texts at once."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if missing:
            found = self._store.embed(missing)
            self._vectors.update(zip(missing, [None] * len(missing) if found is None else found, strict=True))

    def corrections(self, text: str, filters: Filters) -> Mapping[str, str]:
        """Corrections of misspelled words by stored ones."""
        if text not in self._corrections:
            self._corrections[text] = find_corrections(self._store, text, filters)
        return self._corrections[text]

    def candidates(self, query: Query, filters: Filters) -> Candidates:
        """The candidates of each retriever."""
        return self.candidates_of_each([query], filters)[0]

    def candidates_of_each(self, queries: Sequence[Query], filters: Filters) -> list[Candidates]:
        """The candidates of each retriever for a question and its wordings."""
        known = [self._find_candidates(query, filters) for query in queries]
        missing = [query for query, found in zip(queries, known, strict=True) if found is None]
        new = self._store.candidates_of_each(missing, filters) if missing else []
        self._candidates += [(query, filters, found) for query, found in zip(missing, new, strict=True)]
        rest = iter(new)
        return [next(rest) if found is None else found for found in known]

    def _find_candidates(self, query: Query, filters: Filters) -> Candidates | None:
        for asked, given, found in self._candidates:
            if _is_same(asked, query) and given == filters:
                return found
        return None

    def rank(self, asked: Sequence[RetrievedQuery]) -> list[list[RankedDocument]]:
        """The documents ranked for each wording. Searches that differ only in filters and find the same share one
        ranking.
        """
        places, key = asked[0][1].rank_limit, ranking_key(asked)
        known, rankings = self._rankings.get(key, (0, []))
        if known < places:
            known, rankings = self._rankings[key] = places, rank(self._store, asked)
        return [ranking[:places] for ranking in rankings] if known > places else rankings

    def fuse(self, key: object, fuse: Callable[[], list[RankedDocument]]) -> list[RankedDocument]:
        """The fused rankings of a key, computed by `fuse` on first use."""
        if key not in self._fused:
            self._fused[key] = fuse()
        return self._fused[key]

    def records(self, numbers: Sequence[int]) -> dict[int, StoredRecord]:
        """Records by document number, without deleted ones."""
        missing = [n for n in numbers if n not in self._records]
        self._records.update((found.n, found) for found in (self._store.get_many(missing) if missing else ()))
        return {n: self._records[n] for n in numbers if n in self._records}


def ranking_key(asked: Sequence[RetrievedQuery]) -> object:
    """The values that a ranking depends on."""
    query = asked[0][1]
    # A session is read with turns that need not pass the filters.
    has_sessions = any(stand.parent for candidates, _ in asked for stand in candidates.positions.values())
    filters = (
        repr(_filters_of_turns(query.filters)) if has_sessions or query.known_then or not query.is_in_context else ""
    )
    wordings = tuple(
        (each.text, each.terms, tuple(each.windows), found.total, tuple(found.lexical), tuple(found.semantic))
        for found, each in asked
    )
    return query.mode, query.fusion, max(query.rank_limit, MAX_JUDGED_DOCUMENTS), filters, wordings


def _filters_of_turns(filters: Filters) -> Filters:
    """The filters without those that every turn passes, since a turn is always active and valid."""
    passes = filters.statuses is None or set(LIVE_STATUSES) <= set(filters.statuses)
    return replace(filters, statuses=None, valid_at=None) if passes and not filters.as_of else filters


def _is_same(one: Query, other: Query) -> bool:
    """Whether two queries are the same. Queries with the same text share their vector."""
    return (one.terms, one.limit, one.task) == (other.terms, other.limit, other.task) and one.vector is other.vector


def weigh(
    match: float,
    memory: Memory,
    state: Eligibility,
    terms: Collection[str],
    now: datetime,
    schema: float = 0.0,
) -> tuple[Part, ...]:
    """The parts of a memory's score. `match` runs from 0 to 10."""
    # Ratings and confidence from a document are its own claim: they may lower its score but not raise it.
    most = 1.0 if state.evidence else math.inf
    anchors = anchor_boost(terms, [tokens(anchor.snippet) for anchor in memory.anchors]) if memory.anchors else 0.0
    added = (
        ("match", match),
        ("anchors", anchors),
        ("schema", schema),
        ("recency", recency_boost(memory.when, now)),
        ("importance", min(most - 1, importance_boost(memory.importance))),
    )
    factors = (
        ("feedback", min(most, feedback_weight(memory.feedback))),
        ("derived", min(most, derivation_weight(memory.derivation_count))),
        ("confidence", min(most, confidence_weight(memory.confidence))),
        (state.state, state.weight),
    )
    parts = [Part(name, value) for name, value in added if value]
    return *parts, *(Part(name, value, "×") for name, value in factors if value != 1)


def find_schemas(memories: Sequence[Memory], now: datetime) -> list[frozenset[str]]:
    """Groups of at least three memories, linked at .4 or more, that share at least two anchors."""
    known = {memory.id: memory for memory in memories if memory.anchors}
    neighbours: dict[str, set[str]] = {memory_id: set() for memory_id in known}
    for memory in known.values():
        for link in memory.associations:
            if link.target in known and link_strength(link, now) >= n.SCHEMA_LINK:
                neighbours[memory.id].add(link.target)
                neighbours[link.target].add(memory.id)
    return [group for group in _components(neighbours) if _is_schema(group, known)]


def _components(neighbours: Mapping[str, set[str]]) -> Iterable[frozenset[str]]:
    left = {memory_id for memory_id, linked in neighbours.items() if linked}
    while left:
        group, frontier = set(), [left.pop()]
        while frontier:
            member = frontier.pop()
            group.add(member)
            frontier += [other for other in neighbours[member] if other not in group]
        left -= group
        yield frozenset(group)


def _is_schema(group: frozenset[str], known: Mapping[str, Memory]) -> bool:
    if len(group) < n.SCHEMA_MEMBERS:
        return False
    places = Counter(path for member in group for path in {anchor.path for anchor in known[member].anchors})
    return sum(1 for count in places.values() if count > 1) >= n.SCHEMA_SHARED_ANCHORS


def schema_boosts(memories: Sequence[Memory], activated: Iterable[str], now: datetime) -> dict[str, float]:
    """The gain of each memory from other activated members of its schema."""
    active = set(activated)
    gains: dict[str, float] = {}
    for group in find_schemas(memories, now):
        for member in group:
            gains[member] = schema_boost(len((group & active) - {member}), len(group))
    return gains


_LOG = Log("recall")
SHORT_TEXT = 500
"""The maximum length in characters of a text that is shown whole."""
MAX_QUESTION = 10_000
"""The maximum number of characters of a question that are read."""


@dataclass(slots=True)
class Searcher:
    """Runs searches on one store."""

    store: Store
    clock: Callable[[], datetime]
    zone: tzinfo = SYSTEM
    """The zone of the dates in a question."""
    log: list[SearchTrace] | None = None
    """Collects a trace of each search, if given."""
    reads: SharedReads | None = None
    """The reads shared by the searches of one recall; None if each search reads for itself."""

    def for_recall(self, *, explain: bool) -> "Searcher":
        """A searcher for all searches of one recall."""
        return replace(self, log=[] if explain else None, reads=SharedReads(self.store))

    def search(self, query: SearchQuery) -> Hits:
        """The best documents, best first. Archived and stale memories answer only if no current one does."""
        if self.reads is None:
            return replace(self, reads=SharedReads(self.store)).search(query)
        query, reads = query.validate().in_english(), self.reads
        is_exact = query.everything or query.original
        corrections = {} if is_exact else reads.corrections(query.text, query.filters)
        query = correct_spelling(query, corrections)
        with _LOG.measure("search", wordings=len(query.wordings), limit=query.limit) as facts:
            hits = self._search(query, reads)
            if is_unanswered(query, hits):
                found = self._search(outdated_query(query), reads)
                hits = combine_with_outdated(query, hits, found, self.clock(), self.zone)
            facts["hits"] = len(hits)
        hits.warnings += describe_corrections(corrections)
        return hits

    def _search(self, query: SearchQuery, reads: SharedReads) -> Hits:
        without_embedder = False
        query = replace(query, task_vector=_task_vector(query, reads))
        if query.mode == "semantic" and _vector(query, reads) is None:
            without_embedder, query = True, replace(query, mode="keyword")
        # With `known_at`, past versions are embedded here, which may be slow, so no read transaction stays open.
        with self.store.reading() if query.filters.known_at is None else nullcontext():
            asked = self._retrieve_each([query, *query.alternatives], reads)
            candidates, query = asked[0]
            considered, filtered = self._rank_records(query, asked, reads)
            if query.task_vector is not None and not query.everything:
                considered = self._add_by_situation(query, candidates, considered, reads)
            weighed = self._score_records(query, considered)
        if query.folding:
            weighed = fold_events(weighed, lambda scored: scored.found.record)
        relevant = [scored for scored in weighed if scored.place.relevance >= query.min_relevance]
        hits = Hits([self._hit(query, scored) for scored in relevant[: query.limit]])
        hits.filtered = [
            filtered_below(scored.found.record.id, scored.place.relevance, query.min_relevance)
            for scored in weighed
            if scored.place.relevance < query.min_relevance
        ]
        if any(len(hit.text) > SHORT_TEXT for hit in hits):
            with_excerpts(hits, list(dict.fromkeys(term for _, each in asked for term in each.terms)))
        hits.mode = query.mode if query.vector is not None or query.mode == "keyword" else "keyword"
        hits.warnings += candidates.warnings
        stale = [one.id for one in filtered if one.reason.startswith("stale")]
        if stale and not hits:
            hits.warnings.append(
                f"{stale[0]} may answer this, but is past its horizon: `engram verify {stale[0]}` if it still holds."
            )
        if without_embedder and not candidates.warnings:
            hits.warnings.append("Searched by keyword: this store has no embedder (`engram config embedder static`).")
        hits.terms, hits.pruned_terms = query.terms, candidates.pruned
        if self.log is not None:
            beyond = tuple(scored.found.record.id for scored in relevant[query.limit :])
            self.log.append(_search_trace(query, hits, candidates, beyond, [*filtered, *hits.filtered]))
        return hits

    def retrieve(self, query: SearchQuery) -> tuple[Candidates, SearchQuery]:
        """The candidates and the completed query before ranking; also used by the training scripts."""
        return self._retrieve_each([query.validate()], self.reads or SharedReads(self.store))[0]

    def _retrieve_each(self, queries: Sequence[SearchQuery], reads: SharedReads) -> list[RetrievedQuery]:
        reads.embed([each.text[:MAX_QUESTION] for each in queries if _is_embedded(each)])
        completed = [with_terms(replace(each, vector=_vector(each, reads)), self.zone) for each in queries]
        found = reads.candidates_of_each([each.store_query for each in completed], completed[0].store_filters)
        known_then = self._known_then(completed[0].filters.known_at)
        if known_then:
            completed = [replace(each, known_then=known_then) for each in completed]
        return list(zip(found, completed, strict=True))

    def _known_then(self, known_at: datetime | None) -> dict[int, Memory | None]:
        """For `known_at`: by number, the memories that changed since, as they were then."""
        if known_at is None:
            return {}
        images = self.store.known_at(known_at)
        numbers = self.store.numbers(list(images))
        return {numbers[memory_id]: memory for memory_id, memory in images.items() if memory_id in numbers}

    def _score_records(
        self, query: SearchQuery, considered: Sequence[tuple[StoredRecord, RankedDocument]]
    ) -> "list[ScoredRecord]":
        now = self.clock()
        moment = query.filters.valid_at or now
        memories = [found.record for found, _ in considered if isinstance(found.record, Memory)]
        boosts = schema_boosts(memories, [memory.id for memory in memories], now)
        scored = [_score_record(query, found, place, moment, boosts) for found, place in considered]
        scored.sort(key=lambda one: (-one.score, one.found.record.id))
        return scored

    def _rank_records(
        self, query: SearchQuery, asked: Sequence[RetrievedQuery], reads: SharedReads
    ) -> tuple[list[tuple[StoredRecord, RankedDocument]], list[Filtered]]:
        """The ranked records, best first, after memories were compared with each wording; and the records that fail a
        filter.
        """
        rankings = [_list_candidates(asked[0][0])] if query.everything else reads.rank(asked)
        union = {place.n: place for ranking in rankings for place in ranking}
        pairs, filtered = self._records(query, list(union.values()), reads)
        if query.filters.known_at is None and not query.filters.as_of:
            pairs = self._mark_disputed(pairs)
        found = {place.n: record for record, place in pairs}
        if query.everything:
            fused = rankings[0]
        else:
            key = ranking_key(asked), query.rank_limit, query.question, query.original, tuple(found)
            fused = reads.fuse(key, lambda: _fuse_rankings(asked, rankings, found))
        return [(found[place.n], place) for place in fused[: query.rank_limit] if place.n in found], filtered

    def _records(
        self, query: SearchQuery, ranked: Sequence[RankedDocument], reads: SharedReads
    ) -> tuple[list[tuple[StoredRecord, RankedDocument]], list[Filtered]]:
        """The records of the ranked documents, now or at `known_at`, and those that fail a filter on the record."""
        found = reads.records([place.n for place in ranked])
        pairs = [(found[place.n], place) for place in ranked if place.n in found]
        if query.filters.known_at is not None:
            pairs = list(_as_known(pairs, query.known_then))
        now = self.clock()
        reasons = [_failed_filter(found, query, now) for found, _ in pairs]
        failed = [Filtered(f.record.id, why) for (f, _), why in zip(pairs, reasons, strict=True) if why]
        return [pair for pair, why in zip(pairs, reasons, strict=True) if not why], failed

    def _add_by_situation(
        self,
        query: SearchQuery,
        candidates: Candidates,
        considered: list[tuple[StoredRecord, RankedDocument]],
        reads: SharedReads,
    ) -> list[tuple[StoredRecord, RankedDocument]]:
        """Add the memories whose situation is close to the task, and judge all by it."""
        from engram.recall.situated import SITUATION, judge_by_situation

        # If no task vector passes the filters, or the store has none, the other retrievers' results are compared.
        near = candidates.by_task or [*candidates.lexical, *candidates.semantic]
        seen = {found.n for found, _ in considered}
        more = [
            RankedDocument(n, 0.0, found_by={SITUATION: place})
            for place, n in enumerate(dict.fromkeys(n for n, _ in near), 1)
            if n not in seen
        ]
        added, _ = self._records(query, more, reads)
        if query.filters.known_at is None and not query.filters.as_of:
            added = self._mark_disputed(added)
        return judge_by_situation(query, considered, added, candidates.tasks_compared or candidates.total)

    def _mark_disputed(
        self, considered: list[tuple[StoredRecord, RankedDocument]]
    ) -> list[tuple[StoredRecord, RankedDocument]]:
        """Mark the memories that a waiting memory contradicts."""
        memories = [found.record for found, _ in considered if isinstance(found.record, Memory)]
        links = self.store.links_to([memory.id for memory in memories]) if memories else []
        if not any(kind == CONTRADICTS for _, _, kind, _ in links):
            return considered
        from engram.decisions.versions import with_disputes  # most answers have no contradiction

        marked = {memory.id: memory for memory in with_disputes(self.store, memories)}
        return [
            (replace(found, record=marked.get(found.record.id, found.record)), place) for found, place in considered
        ]

    def _hit(self, query: SearchQuery, scored: "ScoredRecord") -> Hit:
        record, place, parts = scored.found.record, scored.place, scored.parts
        if isinstance(record, Memory):
            text, memory, event = record.statement, record, None
        else:
            text, memory, event = record.content, None, record
        if query.explain and place.shares:
            # In full: the match split by kind of evidence.
            parts = place.parts + parts[1:]
        trace = HitTrace(parts, place.found_by, place.raw, place.wording)
        return Hit(
            record.id, scored.found.kind, scored.score, text, memory, event, record.metadata, trace, place.relevance, scored.note
        )  # fmt: skip


def _fuse_rankings(
    asked: Sequence[RetrievedQuery], rankings: list[list[RankedDocument]], found: Mapping[int, StoredRecord]
) -> list[RankedDocument]:
    """Join the rankings of a question and its wordings, after comparing the memories found with each of them."""
    query = asked[0][1]
    if query.is_in_context:
        from engram.recall.situated import add_likeness

        known = [[(found[place.n], place) for place in ranking if place.n in found] for ranking in rankings]
        questions = [each.question or each.text for _, each in asked]
        rankings = add_likeness(list(zip(questions, known, strict=True)))
    texts = [each.text for _, each in asked]
    if query.original:
        rankings, texts = [join_readings(*rankings[:2]), *rankings[2:]], [texts[0], *texts[2:]]
    return fuse_wordings(rankings, texts)


def _is_embedded(query: SearchQuery) -> bool:
    return query.mode != "keyword" and bool(query.text.strip())


def _vector(query: SearchQuery, reads: SharedReads) -> "Vectors | None":
    return reads.vector(query.text[:MAX_QUESTION]) if _is_embedded(query) else None


def _task_vector(query: SearchQuery, reads: SharedReads) -> "array[float] | None":
    if not query.task.strip() or query.mode != "hybrid" or query.fusion == "rrf":
        return None
    # Only memories with a situation are judged by it; with `known_at` a memory may have had one then.
    if query.filters.known_at is None and not reads.may_have_situations():
        return None
    from engram.recall.situated import task_vector

    return task_vector(query.task)


def with_terms(query: SearchQuery, zone: tzinfo) -> SearchQuery:
    """The query with its index terms and the times that its dates name."""
    question = query.text[:MAX_QUESTION]
    dates = date_spans(question, zone)
    terms = tuple(query_terms(without_dates(question, dates))) or tuple(query_terms(question))
    return replace(query, text=question, terms=terms, windows=[(date.since, date.until) for date in dates])


class ScoredRecord(NamedTuple):
    """A candidate with its score, the parts of the score, and its state if that is a caveat."""

    found: StoredRecord
    place: RankedDocument
    score: float
    parts: tuple[Part, ...]
    note: str = ""


def _score_record(
    query: SearchQuery, found: StoredRecord, place: RankedDocument, now: datetime, boosts: Mapping[str, float]
) -> ScoredRecord:
    record, parts = found.record, (Part("match", place.match),)
    if not isinstance(record, Memory):
        return ScoredRecord(found, place, place.match, parts)
    state = eligibility(record, now)
    note = "" if state.state == "active" else state.state
    if query.mode != "hybrid":
        return ScoredRecord(found, place, place.match, parts, note)
    # The caller asked for outdated memories: by status, as of a past time, or together with current ones.
    asked_for = query.filters.as_of or query.outdated or not state.weight
    weight = replace(state, weight=1.0) if asked_for and state.weight != 1 else state
    weighed = weigh(place.match, record, weight, query.terms, now, boosts.get(record.id, 0.0))
    return ScoredRecord(found, place, HitTrace(weighed).replay(), weighed, note)


def _list_candidates(candidates: Candidates) -> list[RankedDocument]:
    """Everything that passed the filters, in the order it was found."""
    numbers = dict.fromkeys(n for found in (candidates.lexical, candidates.semantic) for n, _ in found)
    return [RankedDocument(n, RELEVANCE_SCALE, found_by={"filters": 1}, relevance=LOOKED_UP_RELEVANCE) for n in numbers]


def _failed_filter(found: StoredRecord, query: SearchQuery, now: datetime) -> str:
    """Why a record does not pass the filters; "" if it does."""
    record, filters = found.record, query.filters
    if isinstance(record, Memory) and filters.known_at is not None and not was_current(record, filters):
        return "not current at the time of known_at"
    if filters.metadata and not matches_metadata(record.metadata, filters.metadata):
        return "other metadata"
    if isinstance(record, Event) and VERBATIM in record.metadata and "artifact" not in (filters.types or ()):
        return "the exact words of a memory: a search for artifacts finds them"
    if isinstance(record, Event) and is_manifest(record) and "observation" not in (filters.types or ()):
        return "records that a document was read, not its content"
    # A hand edit picked up during this search may have changed the status.
    if isinstance(record, Event):
        return ""
    if filters.as_of:
        return f"status {record.status}" if record.status in NEVER_TRUE_STATUSES else ""
    if filters.statuses is None:
        return ""
    if record.status not in filters.statuses:
        return f"status {record.status}"
    is_dated = record.status in LIVE_STATUSES and filters.known_at is None and not query.outdated
    return _expiry_reason(record, now) if is_dated else ""


def _expiry_reason(memory: Memory, now: datetime) -> str:
    """Why a current memory no longer answers until it is verified or repeated; "" if it still answers."""
    if memory.decay_days is None and not is_speculative(memory):
        return ""
    state = eligibility(memory, now)
    return f"{state.state}: {state.reason}" if state.state in ("stale", "expired") and not state.found else ""


def _search_trace(
    query: SearchQuery, hits: Hits, candidates: Candidates, beyond: tuple[str, ...], filtered: Sequence[Filtered]
) -> SearchTrace:
    from engram.recall.trace import describe_filters

    found = tuple(hit.id for hit in hits)
    counts = {"keyword": len(candidates.lexical), "semantic": len(candidates.semantic)}
    return SearchTrace(query.purpose, query.text, describe_filters(query.filters), hits.mode, hits.terms, hits.pruned_terms,
                       counts, found, query.limit, beyond, tuple(filtered))  # fmt: skip


def _as_known(
    pairs: Sequence[tuple[StoredRecord, RankedDocument]], known_then: Mapping[int, Memory | None]
) -> Iterator[tuple[StoredRecord, RankedDocument]]:
    """The records as they were at `known_at`, without those not yet known."""
    for found, place in pairs:
        record = known_then.get(found.n, found.record)
        if record is not None:
            yield replace(found, record=record), place
