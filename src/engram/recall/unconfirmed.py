"""Unconfirmed statements, and the proof from the ledger that they are the user's own words.

Proven statements may be quoted, marked as unconfirmed. Others are shown by id only because anybody may have proposed them.
"""

from collections.abc import Sequence

from engram.model.event import Event
from engram.model.hit import USER_WORDS, WAITS, Hit
from engram.model.lazy import dataclass, replace
from engram.model.memory import Memory
from engram.recall.cutoff import MIN_KNOWN, NEAREST
from engram.recall.query import SearchQuery
from engram.recall.search import Searcher
from engram.recall.situated import is_question
from engram.rules.sources import Rank, said_by
from engram.store.protocol import Filters, Store
from engram.text.polarity import read
from engram.text.tokens import query_terms, tokens

__all__ = ["ProofFinder", "quotes_user", "unconfirmed_floor"]

PURPOSE = "what waits for review"
_MAX_EVENTS = 5
"""Events to search for the words of a statement."""
_USERS = ("user", "human")
_SPEAKER = frozenset(tokens("the user's"))
"""How a statement names the person who says "I" in the event."""


def unconfirmed_floor(floor: float) -> float:
    """The floor of unconfirmed matches for a given floor of hits; lower than the usual floor because they are only mentioned."""
    return min(floor, NEAREST) if floor <= MIN_KNOWN else floor


@dataclass(slots=True)
class ProofFinder:
    """Checks statements against the user's turns in the ledger."""

    searcher: Searcher
    store: Store

    def mark(self, hit: Hit, filters: Filters) -> Hit:
        """Note `USER_WORDS` on a candidate if the ledger proves it, else `WAITS`."""
        assert hit.memory is not None
        return replace(hit, note=USER_WORDS if self._is_proved(hit.memory, filters) else WAITS)

    def _is_proved(self, memory: Memory, filters: Filters) -> bool:
        evidence = [event for one in memory.evidence if (event := self.store.event(one.event)) is not None]
        return quotes_user(evidence, memory) or any(
            quotes_user([event], memory) for event in self._find_user_events(memory, filters)
        )

    def _find_user_events(self, memory: Memory, filters: Filters) -> Sequence[Event]:
        """User turns that resemble the statement; none for content from elsewhere."""
        if said_by(memory) < Rank.HARVEST:
            return ()
        users = Filters(kinds=("event",), scopes=filters.scopes, roles=_USERS)
        hits = self.searcher.search(
            SearchQuery(memory.statement, _MAX_EVENTS, "keyword", filters=users, purpose=PURPOSE)
        )
        return [hit.event for hit in hits if hit.event is not None and not _asks(hit.event.content)]


def _asks(text: str) -> bool:
    return is_question(text) or text.rstrip().endswith("?")


def quotes_user(events: Sequence[Event], memory: Memory) -> bool:
    """Whether a candidate says nothing but what the user says in these events.

    A candidate that merely names an event of the user's may say anything, e.g. what an agent read on a web page.
    """
    users = [event for event in events if event.role in _USERS]
    own_terms = {term for event in users for term in tokens(event.content)}
    if not users or not set(query_terms(memory.statement)) <= own_terms | _SPEAKER:
        return False
    stated, denied = read(memory.statement), {term for event in users for term in read(event.content).negated}
    return stated.negated == stated.content & denied
