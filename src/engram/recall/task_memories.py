"""Finds the memories that concern a task, and those that matter for every task.

A task is not a question: "write the invoice for Mrs Novak" needs "Invoices above 500 euros need a deposit". A memory
concerns a task if their vectors are similar (`engram.models.task_vectors`) and they share rare words. Memories on which
somebody's health or safety depends, and pinned ones, matter for every task; other critical memories only for tasks that
they concern.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import exp, log

from engram.model.hit import USER_WORDS, Filtered, Hit, Hits
from engram.model.lazy import dataclass, field, replace
from engram.model.memory import Memory
from engram.models.task_vectors import least_likeness, task_relevance
from engram.recall.answer.parts import ProofFinder
from engram.recall.cutoff import INJECT_FLOOR, mark_found_by
from engram.recall.query import SearchQuery
from engram.recall.search import Searcher, with_terms
from engram.recall.situated import MAX_CACHED_VECTORS, MIN_WORD_RELEVANCE, SITUATION, compare_task, is_situated
from engram.rules.numbers import RELEVANCE_SCALE
from engram.rules.sources import is_evidence
from engram.store.protocol import Filters, Query, Store
from engram.text.tokens import query_terms

__all__ = ["FOUND_BY_TASK", "TaskMemoryFinder", "concern_probability", "is_vital"]

FOUND_BY_TASK = "task"
"""In a trace: found because it concerns the task."""
MAX_SEARCH_HITS = 48
"""Hits of the search to judge."""
MAX_CRITICAL = 10
"""The most relevant critical memories that concern a task."""
CRITICAL_SHARE = 0.4
"""The share of the floor that a critical memory must reach. It is below 1 because a missing critical memory costs more than an extra one: of 52 needed by 63
tasks in three stores, .90 are found instead of .79, with 53 unrelated ones instead of 21."""
MAX_HEALTH = 5
"""Memories about health and safety included for every task."""
MAX_PINNED = 100
"""Pinned memories considered for an injection; it names those that its limits cut."""
WORD_WEIGHT, MARGIN, STEEPNESS = 0.2, 0.18, 13.0
"""The likeness that a shared word unique to the memory is worth, the likeness above `least_likeness` that a memory without a situation needs, and how fast
the probability grows with it. Fitted on 48 tasks in two stores of 64 memories each; docs/benchmarks.md has the results for a third store."""
MIN_TASK_RELEVANCE = 0.02
"""A memory less relevant than this is not about the task, unless its words alone are relevant enough."""
HEALTH_SLOTS = frozenset(
    ("allergy", "medication", "medical_condition", "dietary_restriction", "accessibility_need", "emergency_contact")
)
_SAFETY = "safety"
_MIN_DANGER = 0.35
"""The probability from which a memory in the slot `safety` is about danger to people. The slot also has rules about data: "never delete rows"."""
_MIN_STORE_SIZE = 100
"""Smaller stores count as this large when the rarity of words is computed."""


def concern_probability(likeness: float, shared: float, count: int) -> float:
    """The probability that a memory without a situation concerns a task, among `count` memories. `shared` is the total rarity of their shared words."""
    odds = STEEPNESS * (likeness + WORD_WEIGHT * shared - least_likeness(count) - MARGIN) + log(
        INJECT_FLOOR / (1 - INJECT_FLOOR)
    )
    return 1 / (1 + exp(-odds))


def is_vital(memory: Memory) -> bool:
    """Whether somebody's health or safety depends on a memory."""
    slot = memory.critical_slot.partition(":")[0]
    if slot != _SAFETY:
        return slot in HEALTH_SLOTS
    from engram.models.statement_kinds import slot_probabilities

    return 1 - slot_probabilities(memory.statement)[0] >= _MIN_DANGER


@dataclass(frozen=True, slots=True)
class TaskTerms:
    """The words of a task and how rare each is in the store, from 0 to 1."""

    rarity: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def from_terms(cls, terms: Iterable[str], frequency: Mapping[str, int], total: int) -> "TaskTerms":
        """From a task's terms, the number of documents that have each, and the number of documents."""
        size = max(total, _MIN_STORE_SIZE)
        rarity = {term: log((size + 1) / (frequency.get(term, 0) + 0.5)) / log(size + 1) for term in terms}
        return cls({term: min(1.0, max(0.0, value)) for term, value in rarity.items()})

    def shared_with(self, memory: Memory) -> float:
        """The total rarity of the words that a memory shares with the task."""
        own = _terms_of(" ".join((memory.statement, memory.situation, *memory.cues)))
        return sum(value for term, value in self.rarity.items() if term in own)


@lru_cache(maxsize=MAX_CACHED_VECTORS)
def _terms_of(text: str) -> frozenset[str]:
    """The index terms of a memory's text, cached because critical memories are judged for every task."""
    return frozenset(query_terms(text))


@dataclass(frozen=True, slots=True)
class _Judge:
    """Judges how likely memories concern one task."""

    task: str
    terms: TaskTerms
    count: int
    """The number of memories."""

    def judge_hits(self, hits: Sequence[Hit]) -> list[Hit]:
        """The hits with their relevance to the task, the most relevant first."""
        memories = [hit.memory for hit in hits if hit.memory is not None]
        likes = compare_task(self.task).likenesses(memories)
        found = [self._judge_hit(hit, like) for hit, like in zip(hits, likes, strict=True)]
        return sorted(found, key=lambda hit: (-hit.relevance, -hit.score, hit.id))

    def _judge_hit(self, hit: Hit, like: float) -> Hit:
        assert hit.memory is not None
        if is_situated(hit):
            relevance = max(hit.relevance, task_relevance(like, self.count))
        else:
            relevance = concern_probability(like, self.terms.shared_with(hit.memory), self.count)
            if hit.relevance >= MIN_WORD_RELEVANCE or relevance >= MIN_TASK_RELEVANCE:
                relevance = max(hit.relevance, relevance)
        if relevance <= hit.relevance:
            return replace(hit, relevance=relevance)
        hit = replace(hit, relevance=relevance, score=hit.score or RELEVANCE_SCALE * relevance)
        is_marked = hit.trace is not None and SITUATION in hit.trace.found_by
        return hit if is_marked else mark_found_by(hit, FOUND_BY_TASK)


@dataclass(slots=True)
class TaskMemoryFinder:
    """Finds the memories for one task."""

    searcher: Searcher
    store: Store

    def find(self, query: SearchQuery) -> Hits:
        """Memories for a task, most relevant first; `filtered` has the reason for each other memory considered."""
        always = self._memories_for_any_task(query.filters)
        if not query.text.strip():
            return _select_hits(Hits([_hit(memory) for memory in always]), query.min_relevance)
        return _select_hits(self._search_and_judge(query, always), query.min_relevance)

    def find_about(self, query: SearchQuery) -> Hits:
        """Memories that concern a task, most relevant first, without those that matter for every task."""
        hits = self._search_and_judge(query)
        hits[:] = [hit for hit in hits if hit.relevance >= query.min_relevance][: query.limit]
        return hits

    def find_critical(self, query: SearchQuery) -> list[Memory]:
        """The critical memories about a task, and those about health and safety. Without a task, all critical memories."""
        if not query.text.strip():
            return self._critical_memories(query.filters)
        filters = replace(query.filters, critical=True, pinned=False)
        found = self.find(replace(query, filters=filters))
        return [hit.memory for hit in found if hit.memory is not None and not is_evidence(hit.memory)]

    def find_unconfirmed(self, query: SearchQuery) -> Hits:
        """Candidates that concern a task and are in the user's own words according to the ledger, most relevant first.

        `filtered` has the other candidates that concern it.
        """
        filters = replace(query.filters, statuses=("candidate",), valid_at=None)
        if not query.text.strip() or not self.store.count(filters):
            return Hits()
        hits = self.searcher.search(replace(query, filters=filters, min_relevance=0.0))
        near = [hit for hit in self._build_judge(query)[0].judge_hits(hits) if hit.relevance >= query.min_relevance]
        proof = ProofFinder(self.searcher, self.store)
        withheld = {hit.id: _reason_to_withhold(proof.mark(hit, query.filters)) for hit in near}
        hits.filtered = [Filtered(name, why) for name, why in withheld.items() if why]
        hits[:] = [replace(hit, note=USER_WORDS) for hit in near if not withheld[hit.id]]
        return hits

    def _search_and_judge(self, query: SearchQuery, always: Sequence[Memory] = ()) -> Hits:
        """The hits of a search, the memories nearest to the task, and `always`, with their relevance to the task."""
        hits = self.searcher.search(replace(query, limit=MAX_SEARCH_HITS, min_relevance=0.0))
        judge, near = self._build_judge(query)
        known = {hit.id for hit in hits}
        added = {memory.id: memory for memory in (*near, *always) if memory.id not in known}
        hits[:] = judge.judge_hits([*hits, *map(_hit, added.values())])
        return hits

    def _build_judge(self, query: SearchQuery) -> tuple[_Judge, list[Memory]]:
        """The judge for a task, and the memories nearest to the task."""
        terms = with_terms(query, self.searcher.zone).terms
        asked = Query(terms, None, MAX_SEARCH_HITS, compare_task(query.task).vector)
        found = self.store.candidates(asked, query.filters)
        judge = _Judge(
            query.task, TaskTerms.from_terms(terms, found.frequency, found.total), found.tasks_compared or found.total
        )
        records = self.store.get_many([n for n, _ in found.by_task])
        return judge, [one.record for one in records if isinstance(one.record, Memory)]

    def _memories_for_any_task(self, filters: Filters) -> list[Memory]:
        """All critical memories and the newest pinned ones, except evidence from documents."""
        pinned = self.store.listing(replace(filters, pinned=True))[:MAX_PINNED]
        return [*self._critical_memories(filters), *(memory for memory in pinned if not is_evidence(memory))]

    def _critical_memories(self, filters: Filters) -> list[Memory]:
        listed = self.store.listing(replace(filters, critical=True))
        return [memory for memory in listed if not is_evidence(memory)]


def _reason_to_withhold(hit: Hit) -> str:
    """Why a marked candidate may not be quoted before its review; "" if it may."""
    from engram.gates.instructions import find_injections
    from engram.gates.trust import sensitive_subject

    assert hit.memory is not None
    if hit.note != USER_WORDS:
        return "unconfirmed: waits for review, and is not in the user's own words"
    if sensitive_subject(hit.memory):
        return "private: waits for review"
    return "unconfirmed: reads like an instruction" if find_injections(hit.memory.statement) else ""


def _hit(memory: Memory) -> Hit:
    return Hit(memory.id, "memory", 0.0, memory.statement, memory)


def _select_hits(hits: Hits, floor: float) -> Hits:
    """Keep the hits that concern the task or matter for every task; `filtered` has the reason for each other hit."""
    chosen: list[Hit] = []
    health = _vital_ids(hits)
    critical = 0
    for hit in hits:
        assert hit.memory is not None
        is_critical = _is_critical(hit)
        if hit.id in health or (hit.memory.pinned and not is_evidence(hit.memory)):
            chosen.append(hit)
        elif hit.relevance < (least := floor * CRITICAL_SHARE if is_critical else floor):
            reason = f"not about the task: relevance {hit.relevance:.2f}, below {least:.2f}"
            hits.filtered.append(Filtered(hit.id, reason))
        elif is_critical and critical == MAX_CRITICAL:
            hits.filtered.append(Filtered(hit.id, f"critical: limited to {MAX_CRITICAL}, and others are more relevant"))
        else:
            critical += is_critical
            chosen.append(hit)
    hits[:] = chosen
    return hits


def _is_critical(hit: Hit) -> bool:
    """Whether a hit is a critical memory; a slot that came with a document does not count."""
    return hit.memory is not None and bool(hit.memory.critical_slot) and not is_evidence(hit.memory)


def _vital_ids(hits: Sequence[Hit]) -> frozenset[str]:
    """The ids of the memories that somebody's health or safety depends on."""
    vital = [hit for hit in hits if _is_critical(hit) and hit.memory is not None and is_vital(hit.memory)]
    vital.sort(key=lambda hit: (-hit.relevance, -(hit.memory.importance if hit.memory else 0), hit.id))
    return frozenset(hit.id for hit in vital[:MAX_HEALTH])
