"""The parts of an answer besides its hits: possibly related, older and unconfirmed matches, and matches in other
projects.

An unconfirmed statement is quoted only if the ledger proves that it is in the user's own words.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, tzinfo

from engram.model.hit import USER_WORDS, WAITS_NOTE, AnswerParts, Hit, Hits, ScopeMatches
from engram.model.lazy import dataclass, replace
from engram.model.memory import LIVE_STATUSES, Memory
from engram.model.records import Event
from engram.recall.cutoff import MIN_CHUNK_RELEVANCE, MIN_KNOWN, NEAREST_FLOOR, derive_hits, is_chunk
from engram.recall.query import SearchQuery, describe_end
from engram.recall.search import Searcher
from engram.recall.situated import is_question
from engram.recall.trace import OTHER_MATCHES
from engram.rules.sources import Rank, trust_rank
from engram.store.protocol import Filters, Store
from engram.text.statements import normalize_statement
from engram.text.tokens import query_terms, split_sentences, tokens

__all__ = ["MAX_PART", "PartFinder", "ProofFinder", "quotes_user", "unconfirmed_floor"]

PROOF_PURPOSE = "what waits for review"
_MAX_EVENTS = 5
"""The maximum number of events searched for the words of a statement."""
_USERS = ("user", "human")
_SPEAKER = frozenset(tokens("the user's"))
"""How a statement refers to the person who says "I" in the event."""


def unconfirmed_floor(floor: float) -> float:
    """The floor of unconfirmed matches for a given floor of hits. It is lower because they are only mentioned."""
    return min(floor, NEAREST_FLOOR) if floor <= MIN_KNOWN else floor


@dataclass(slots=True)
class ProofFinder:
    """Checks statements against the user's turns in the ledger.

    Proven statements may be quoted, marked as unconfirmed. Others are shown only by id because anybody may have
    proposed them.
    """

    searcher: Searcher
    store: Store

    def mark(self, hit: Hit, filters: Filters) -> Hit:
        """Note `USER_WORDS` on a candidate if the ledger proves it, otherwise `WAITS_NOTE`."""
        assert hit.memory is not None
        return replace(hit, note=USER_WORDS if self._is_proved(hit.memory, filters) else WAITS_NOTE)

    def _is_proved(self, memory: Memory, filters: Filters) -> bool:
        evidence = [event for one in memory.evidence if (event := self.store.event(one.event)) is not None]
        return quotes_user(evidence, memory) or any(
            quotes_user([event], memory) for event in self._find_user_events(memory, filters)
        )

    def _find_user_events(self, memory: Memory, filters: Filters) -> Sequence[Event]:
        """The user's turns that resemble the statement; none for content from other sources."""
        if trust_rank(memory) < Rank.HARVEST:
            return ()
        users = Filters(kinds=("event",), scopes=filters.scopes, roles=_USERS)
        hits = self.searcher.search(
            SearchQuery(memory.statement, _MAX_EVENTS, "keyword", filters=users, purpose=PROOF_PURPOSE)
        )
        return [hit.event for hit in hits if hit.event is not None and not _asks(hit.event.content)]


def _asks(text: str) -> bool:
    return is_question(text) or text.rstrip().endswith("?")


def quotes_user(events: Sequence[Event], memory: Memory) -> bool:
    """Whether each sentence of a candidate is contained in one sentence that the user states in these events.

    Citing one of the user's events is not enough: the candidate may still say anything, e.g. what an agent read on a
    web page. Words from several sentences, or from a report of what others say, could be combined into something the
    user never said.
    """
    said = [sentence for event in events if event.role in _USERS for sentence in _find_stated_sentences(event.content)]
    parts = [part for part in split_sentences(memory.statement) if query_terms(part)]
    return bool(parts) and all(any(_covers(sentence, part) for sentence in said) for part in parts)


def _find_stated_sentences(content: str) -> Iterator[str]:
    """The sentences of a turn that its author asserts: no questions, reports, guesses or jokes."""
    from engram.capture.extraction.clauses import GUESS, IRONY, QUESTION, doubts_about, is_reported, own_sentences

    for clause in own_sentences(content):
        is_open = "whether" in clause.text.lower().split() or is_reported(clause.text)
        if (
            not clause.unread
            and not is_open
            and doubts_about(clause.text, clause.sentence).isdisjoint((GUESS, IRONY, QUESTION))
        ):
            yield clause.text


def _covers(said: str, statement: str) -> bool:
    if not set(query_terms(statement)) <= {*tokens(said), *_SPEAKER}:
        return False
    stated = normalize_statement(statement)
    return stated.negated == stated.content & normalize_statement(said).negated


MAX_PART = 3
"""The maximum number of hits in one part."""
PARTS_SEARCH_LIMIT = 30
"""The number of hits that are sorted into the parts."""
ANSWERED_RELEVANCE = 0.5
"""If the best hit is at least this relevant, only hits at least a tenth as relevant are possibly related."""
_FAR = 0.1
MIN_POSSIBLE = 0.005
"""The floor of what is possibly related. It is low because a question and its answer in different languages may be no
closer.
"""
_ANY = (*LIVE_STATUSES, "candidate", "superseded", "archived")


@dataclass(slots=True)
class PartFinder:
    """Finds the parts of one answer. One search serves all parts except the matches in other projects.

    The reader, a model or a person, can judge a labelled hint but not one that was withheld.
    """

    searcher: Searcher
    store: Store
    clock: Callable[[], datetime]
    floor: float
    zone: tzinfo | None = None

    def find(self, query: SearchQuery, known: Hits) -> AnswerParts:
        """The parts for a question whose answer is `known`."""
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
        """How many memories match in each other project, highest count first. It is not traced because a trace would
        show their ids.
        """
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
    """What the answer already contains, by id and by fact, and the events its memories were extracted from."""

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
