"""The memories that concern a task, and those that count for any.

A task says what will be done, not what is asked: "write the invoice for Mrs Novak" needs "Invoices above 500 euros need a deposit", which answers no
question. A memory concerns a task if it is like it (`engram.models.task_vectors`) and shares rare words with it. What could harm somebody, and what is
pinned, counts for every task; other critical memories count only for tasks that they concern.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import exp, log

from engram.model.hit import Filtered, Hit, Hits, HitTrace
from engram.model.lazy import dataclass, field, replace
from engram.model.memory import Memory
from engram.models.task_vectors import least_likeness, task_relevance
from engram.recall.cutoff import HELPFUL
from engram.recall.query import SearchQuery
from engram.recall.search import Searcher, with_terms
from engram.recall.situated import BY_ITS_WORDS, KEPT, SITUATION, compare_task, is_situated
from engram.rules.numbers import RELEVANCE_SCALE
from engram.rules.sources import is_evidence
from engram.store.protocol import Filters, Query, Store
from engram.text.tokens import query_terms

__all__ = ["TASK", "TaskMemoryFinder", "concern", "may_harm_somebody"]

TASK = "task"
"""In a trace: found because it concerns the task."""
SEARCHED = 48
"""Hits of the search that are judged."""
MAX_CRITICAL = 10
"""Critical memories that concern a task, the most relevant ones."""
MAX_HEALTH = 5
"""Memories about health and safety that count for any task."""
MAX_PINNED = 100
"""Pinned memories offered to an injection; those its limits cut are named."""
WORD_WEIGHT, MARGIN, STEEPNESS = 0.2, 0.18, 13.0
"""How much likeness a shared word is worth that no other memory has; how much more than `least_likeness` a memory without a situation needs; and how
fast the probability grows with it. Fitted on 54 tasks about two stores of 64 memories, each half judged by the other: a margin of .22 has a precision
of .74 instead of .66, and finds .73 instead of .79."""
UNLIKELY = 0.02
"""Below this relevance to the task a memory is about something else, unless its words alone say otherwise."""
HEALTH_SLOTS = frozenset(
    ("allergy", "medication", "medical_condition", "dietary_restriction", "accessibility_need", "emergency_contact")
)
_SAFETY = "safety"
_DANGER = 0.35
"""The probability from which a memory in the slot `safety` is about danger to people. The rules put risky actions there, too: "never delete rows"."""
_COMMON_STORE = 100
"""In a smaller store a word is as rare as in one of this size."""


def concern(likeness: float, shared: float, count: int) -> float:
    """How likely a memory without a situation, one of so many, concerns a task. `shared` is the rarity of the words that both have."""
    odds = STEEPNESS * (likeness + WORD_WEIGHT * shared - least_likeness(count) - MARGIN) + log(HELPFUL / (1 - HELPFUL))
    return 1 / (1 + exp(-odds))


def may_harm_somebody(memory: Memory) -> bool:
    """Whether somebody's health or safety depends on a memory."""
    slot = memory.critical_slot.partition(":")[0]
    if slot != _SAFETY:
        return slot in HEALTH_SLOTS
    from engram.models.types import slot_probabilities

    return 1 - slot_probabilities(memory.statement)[0] >= _DANGER


@dataclass(frozen=True, slots=True)
class TaskTerms:
    """The words of a task and how rare each is in the store, from 0 to 1."""

    rarity: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def counted(cls, terms: Iterable[str], frequency: Mapping[str, int], total: int) -> "TaskTerms":
        """The terms of a task, by how many of the documents have each."""
        size = max(total, _COMMON_STORE)
        rarity = {term: log((size + 1) / (frequency.get(term, 0) + 0.5)) / log(size + 1) for term in terms}
        return cls({term: min(1.0, max(0.0, value)) for term, value in rarity.items()})

    def shared_with(self, memory: Memory) -> float:
        """The rarity of the words that a memory shares with the task."""
        said = _terms_of(" ".join((memory.statement, memory.situation, *memory.cues)))
        return sum(value for term, value in self.rarity.items() if term in said)


@lru_cache(maxsize=KEPT)
def _terms_of(text: str) -> frozenset[str]:
    """The index terms of a memory; the critical ones are judged for every task."""
    return frozenset(query_terms(text))


@dataclass(frozen=True, slots=True)
class _Judge:
    """Judges how likely memories concern one task."""

    task: str
    terms: TaskTerms
    count: int
    """How many memories there are."""

    def judged(self, hits: Sequence[Hit]) -> list[Hit]:
        """The hits with their relevance to the task, the most relevant first."""
        memories = [hit.memory for hit in hits if hit.memory is not None]
        likes = compare_task(self.task).likenesses(memories)
        found = [self._judged(hit, like) for hit, like in zip(hits, likes, strict=True)]
        return sorted(found, key=lambda hit: (-hit.relevance, -hit.score, hit.id))

    def _judged(self, hit: Hit, like: float) -> Hit:
        assert hit.memory is not None
        if is_situated(hit):
            relevance = max(hit.relevance, task_relevance(like, self.count))
        else:
            relevance = concern(like, self.terms.shared_with(hit.memory), self.count)
            if hit.relevance >= BY_ITS_WORDS or relevance >= UNLIKELY:
                relevance = max(hit.relevance, relevance)
        if relevance <= hit.relevance:
            return replace(hit, relevance=relevance)
        trace = hit.trace or HitTrace()
        found_by = trace.found_by if SITUATION in trace.found_by else {TASK: 1, **trace.found_by}
        score = hit.score or RELEVANCE_SCALE * relevance
        return replace(hit, relevance=relevance, score=score, trace=replace(trace, found_by=found_by))


@dataclass(slots=True)
class TaskMemoryFinder:
    """Finds the memories for one task."""

    searcher: Searcher
    store: Store

    def find(self, query: SearchQuery) -> Hits:
        """The memories for a task, the most relevant first; `filtered` names the others that were considered, with the reason."""
        always = self._always(query.filters)
        if not query.text.strip():
            return _choose(Hits([_hit(memory) for memory in always]), query.min_relevance)
        hits = self.searcher.search(replace(query, limit=SEARCHED, min_relevance=0.0))
        judge, near = self._judge(query)
        known = {hit.id for hit in hits}
        added = {memory.id: memory for memory in (*near, *always) if memory.id not in known}
        hits[:] = judge.judged([*hits, *map(_hit, added.values())])
        return _choose(hits, query.min_relevance)

    def find_waiting(self, query: SearchQuery) -> Hits:
        """The candidates that concern a task, the most relevant first."""
        if not query.text.strip():
            return Hits()
        filters = replace(query.filters, statuses=("candidate",), valid_at=None)
        hits = self.searcher.search(replace(query, filters=filters, min_relevance=0.0))
        hits[:] = [hit for hit in self._judge(query)[0].judged(hits) if hit.relevance >= query.min_relevance]
        return hits

    def _judge(self, query: SearchQuery) -> tuple[_Judge, list[Memory]]:
        """What judges memories by the task, and the memories nearest to it."""
        terms = with_terms(query, self.searcher.zone).terms
        asked = Query(terms, None, SEARCHED, compare_task(query.task).vector)
        found = self.store.candidates(asked, query.filters)
        judge = _Judge(
            query.task, TaskTerms.counted(terms, found.frequency, found.total), found.tasks_compared or found.total
        )
        records = self.store.get_many([n for n, _ in found.by_task])
        return judge, [one.record for one in records if isinstance(one.record, Memory)]

    def _always(self, filters: Filters) -> list[Memory]:
        """All critical memories, and the newest pinned ones; a critical slot or a pin that came with a document does not count."""
        critical = self.store.listing(replace(filters, critical=True))
        pinned = self.store.listing(replace(filters, pinned=True))
        return [memory for memory in (*critical, *pinned[:MAX_PINNED]) if not is_evidence(memory)]


def _hit(memory: Memory) -> Hit:
    return Hit(memory.id, "memory", 0.0, memory.statement, memory)


def _choose(hits: Hits, floor: float) -> Hits:
    """The hits that concern the task, and those that count for any; `filtered` says why the others are left out."""
    chosen: list[Hit] = []
    health = _most_important(hits)
    critical = 0
    for hit in hits:
        assert hit.memory is not None
        is_critical = bool(hit.memory.critical_slot) and not is_evidence(hit.memory)
        if hit.id in health or (hit.memory.pinned and not is_evidence(hit.memory)):
            chosen.append(hit)
        elif hit.relevance < floor:
            reason = f"not about the task: relevance {hit.relevance:.2f}, below {floor:.2f}"
            hits.filtered.append(Filtered(hit.id, reason))
        elif is_critical and critical == MAX_CRITICAL:
            hits.filtered.append(Filtered(hit.id, f"critical: limited to {MAX_CRITICAL}, and others are more relevant"))
        else:
            critical += is_critical
            chosen.append(hit)
    hits[:] = chosen
    return hits


def _most_important(hits: Sequence[Hit]) -> frozenset[str]:
    """The ids of what counts for any task because somebody's health or safety depends on it."""
    found = [hit for hit in hits if hit.memory is not None and hit.memory.critical_slot and not is_evidence(hit.memory)]
    vital = [hit for hit in found if hit.memory is not None and may_harm_somebody(hit.memory)]
    vital.sort(key=lambda hit: (-hit.relevance, -(hit.memory.importance if hit.memory else 0), hit.id))
    return frozenset(hit.id for hit in vital[:MAX_HEALTH])
