"""Statements that wait for review: which of them match, and whether the ledger proves that they are the user's own words.

A prompt quotes those that are, marked as unconfirmed; of the others it names the ids alone, since anybody may have proposed them.
"""

from collections.abc import Callable, Sequence

from engram.gates.instructions import find_injections
from engram.model.event import Event
from engram.model.hit import USER_WORDS, WAITS, Hit, Hits, Injection
from engram.model.lazy import dataclass, replace
from engram.model.memory import Memory
from engram.recall.cutoff import MIN_KNOWN, NEAREST, among
from engram.recall.prompt.inject import HEADER
from engram.recall.query import SearchQuery
from engram.recall.search import Searcher
from engram.recall.situated import is_question
from engram.rules.sources import Rank, said_by
from engram.store.protocol import Filters, Store
from engram.text.display import quoted, word
from engram.text.polarity import read
from engram.text.tokens import query_terms, tokens

__all__ = ["UnconfirmedFinder", "least_unconfirmed", "phrase_unconfirmed", "quotes_user", "with_unconfirmed"]

MAX_UNCONFIRMED = 3
MAX_SHARE = 0.25
"""The share of an injection's budget that unconfirmed statements may take."""
TITLE = "## Unconfirmed: these wait for review and are no directions"
PURPOSE = "what waits for review"
_MAX_SAID = 5
"""Events in which the words of a statement are looked for."""
_USERS = ("user", "human")
_SPEAKER = frozenset(tokens("the user's"))
"""How a statement names the person who says "I" in the event."""


def least_unconfirmed(floor: float) -> float:
    """The floor of unconfirmed matches for a floor of hits. A rule that waits is mentioned for a task that it only touches."""
    return min(floor, NEAREST) if floor <= MIN_KNOWN else floor


@dataclass(slots=True)
class UnconfirmedFinder:
    """Finds the statements that wait for review."""

    searcher: Searcher
    store: Store

    def find(self, query: SearchQuery) -> Hits:
        """The best ones that match a task, each marked with `USER_WORDS` or `WAITS`."""
        waiting = replace(query.filters, kinds=("memory",), statuses=("candidate",), valid_at=None)
        least = least_unconfirmed(query.min_relevance)
        asked = replace(query, filters=waiting, limit=MAX_UNCONFIRMED, min_relevance=least, purpose=PURPOSE)
        found = self.searcher.search(asked) if query.text.strip() else Hits()
        return among(found, [self.mark(hit, query.filters) for hit in found])

    def mark(self, hit: Hit, filters: Filters) -> Hit:
        """A candidate with `USER_WORDS` as its note if the ledger proves it, else `WAITS`."""
        assert hit.memory is not None
        return replace(hit, note=USER_WORDS if self._is_proved(hit.memory, filters) else WAITS)

    def _is_proved(self, memory: Memory, filters: Filters) -> bool:
        evidence = [event for one in memory.evidence if (event := self.store.event(one.event)) is not None]
        return quotes_user(evidence, memory) or any(
            quotes_user([event], memory) for event in self._said(memory, filters)
        )

    def _said(self, memory: Memory, filters: Filters) -> Sequence[Event]:
        """What the user said that is like the statement; of content from elsewhere nothing is looked for."""
        if said_by(memory) < Rank.HARVEST:
            return ()
        said = Filters(kinds=("event",), scopes=filters.scopes, roles=_USERS)
        hits = self.searcher.search(SearchQuery(memory.statement, _MAX_SAID, "keyword", filters=said, purpose=PURPOSE))
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


def phrase_unconfirmed(hits: Hits, budget: int, count: Callable[[str], int]) -> str:
    """The section of a prompt with the unconfirmed statements, as many as fit into their share of the budget; "" for none."""
    lines = [f"- [{word(hit.id)}] {quoted(hit.text)} ({USER_WORDS})" for hit in hits if _is_quotable(hit)]
    if others := [word(hit.id) for hit in hits if not _is_quotable(hit)]:
        lines.append(f"- {len(others)} not shown before review: {', '.join(others)}")
    section = ""
    for line in lines:
        longer = f"{section or TITLE}\n{line}"
        if count(longer) <= budget * MAX_SHARE:
            section = longer
    return section


def _is_quotable(hit: Hit) -> bool:
    return hit.note == USER_WORDS and not find_injections(hit.text)


def with_unconfirmed(
    injection: Injection, hits: Hits, section: str, budget: int, count: Callable[[str], int]
) -> Injection:
    """The injection with the unconfirmed statements, and their section at the end of its text."""
    if not section:
        return replace(injection, unconfirmed=hits, budget=budget)
    text = f"{injection.text.rstrip() or HEADER}\n\n{section}\n"
    return replace(injection, unconfirmed=hits, text=text, tokens=count(text), budget=budget)
