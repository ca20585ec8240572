"""What a question matches besides what is known: what is possibly related, unconfirmed, older, or known in other projects.

The reader is a model or a person. Both can judge a labelled hint; neither can judge what was withheld.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, tzinfo

from engram.model.hit import AnswerParts, Hit, Hits, ScopeMatches
from engram.model.lazy import dataclass, replace
from engram.recall.cutoff import MIN_KNOWN, derive_hits
from engram.recall.outdated import describe_end
from engram.recall.query import SearchQuery
from engram.recall.search import Searcher
from engram.recall.source_events import MIN_CHUNK_RELEVANCE, is_chunk
from engram.recall.trace import OTHER_MATCHES
from engram.recall.unconfirmed import ProofFinder, unconfirmed_floor
from engram.store.protocol import LIVE_STATUSES, Store

__all__ = ["MAX_PART", "PartFinder"]

MAX_PART = 3
"""Hits of one part."""
PARTS_SEARCH_LIMIT = 30
"""Hits that are sorted into the parts."""
ANSWERED_RELEVANCE = 0.5
"""If the best hit is at least this relevant, only hits at least a tenth as relevant are possibly related."""
_FAR = 0.1
MIN_POSSIBLE = 0.005
"""The floor of what is possibly related: a question in another language than the memory that answers it may be no nearer."""
_ANY = (*LIVE_STATUSES, "candidate", "superseded", "archived")


@dataclass(slots=True)
class PartFinder:
    """Finds the parts of one answer, with one search for all but the matches elsewhere."""

    searcher: Searcher
    store: Store
    clock: Callable[[], datetime]
    floor: float
    zone: tzinfo | None = None

    def find(self, query: SearchQuery, known: Hits) -> AnswerParts:
        """The parts for a question of which `known` is the answer."""
        every = replace(query.filters, kinds=("memory", "event"), statuses=_ANY, valid_at=None, as_of=False)
        found = self.searcher.search(
            replace(
                query, filters=every, limit=max(PARTS_SEARCH_LIMIT, query.limit), outdated=True, purpose=OTHER_MATCHES
            )
        )
        taken, proof = _AnswerContents(known), ProofFinder(replace(self.searcher, log=None), self.store)
        possible: list[Hit] = []
        unconfirmed: list[Hit] = []
        older: list[Hit] = []
        for hit in found:
            if taken.has(hit):
                continue
            about = hit.relevance >= self.floor
            if hit.memory is not None and hit.memory.status == "candidate":
                if hit.relevance >= unconfirmed_floor(self.floor) and len(unconfirmed) < MAX_PART:
                    unconfirmed.append(proof.mark(hit, query.filters))
            elif hit.memory is not None and (ended := describe_end(hit.memory, self.clock(), self.zone)):
                older += [replace(hit, note=ended)] if about else []
            elif not (about and len(known) >= query.limit):  # beyond the caller's limit
                possible.append(hit)
        least = self._least(known)
        possible = sorted(
            (hit for hit in possible if hit.relevance >= max(least, _floor_of(hit))), key=lambda hit: -hit.relevance
        )[:MAX_PART]
        taken.add(possible)
        older = [hit for hit in older if not taken.has_newer(hit)]
        return AnswerParts(
            possible=derive_hits(found, possible),
            unconfirmed=derive_hits(found, unconfirmed),
            older=derive_hits(found, older[:MAX_PART]),
            elsewhere=self._elsewhere(query),
        )

    def _least(self, known: Hits) -> float:
        best = max((hit.relevance for hit in known), default=0.0)
        return max(MIN_POSSIBLE, _FAR * best) if best >= ANSWERED_RELEVANCE else MIN_POSSIBLE

    def _elsewhere(self, query: SearchQuery) -> tuple[ScopeMatches, ...]:
        """How many memories of each other project match, most matches first. The search is not traced because a trace would show their ids."""
        seen = query.filters.scopes
        if not query.elsewhere or seen is None:
            return ()
        others = replace(query.filters, kinds=("memory",), scopes=None, outside=seen)
        least = max(self.floor, MIN_KNOWN)
        found = replace(self.searcher, log=None).search(
            replace(query, filters=others, limit=PARTS_SEARCH_LIMIT, min_relevance=least)
        )
        counts = Counter(hit.memory.scope for hit in found if hit.memory is not None)
        return tuple(ScopeMatches(scope, count) for scope, count in counts.most_common())


def _floor_of(hit: Hit) -> float:
    return MIN_CHUNK_RELEVANCE if hit.event is not None and is_chunk(hit.event) else MIN_POSSIBLE


class _AnswerContents:
    """What the answer has already, by id, by fact, and the events its memories were extracted from."""

    def __init__(self, hits: Sequence[Hit]) -> None:
        self._ids: set[str] = set()
        self._facts: set[str] = set()
        self._events: set[str] = set()
        self.add(hits)

    def add(self, hits: Sequence[Hit]) -> None:
        for hit in hits:
            self._ids.add(hit.id)
            if hit.memory is not None:
                self._facts |= {hit.memory.lineage} - {""}
                self._events |= {evidence.event for evidence in hit.memory.evidence}

    def has(self, hit: Hit) -> bool:
        return hit.id in self._ids or hit.id in self._events

    def has_newer(self, hit: Hit) -> bool:
        """Whether the answer has another version of a memory, or what replaced it."""
        memory = hit.memory
        return memory is not None and (memory.lineage in self._facts or memory.superseded_by in self._ids)
