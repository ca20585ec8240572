"""Unconfirmed statements, and the proof from the ledger that they are the user's own words.

Proven statements may be quoted, marked as unconfirmed. Others are shown by id only because anybody may have proposed them.
"""

from collections.abc import Iterator, Sequence

from engram.model.event import Event
from engram.model.hit import USER_WORDS, WAITS_NOTE, Hit
from engram.model.lazy import dataclass, replace
from engram.model.memory import Memory
from engram.recall.cutoff import MIN_KNOWN, NEAREST_FLOOR
from engram.recall.query import SearchQuery
from engram.recall.search import Searcher
from engram.recall.situated import is_question
from engram.rules.sources import Rank, trust_rank
from engram.store.protocol import Filters, Store
from engram.text.polarity import normalize_statement
from engram.text.sentences import split_sentences
from engram.text.tokens import query_terms, tokens

__all__ = ["ProofFinder", "quotes_user", "unconfirmed_floor"]

PROOF_PURPOSE = "what waits for review"
_MAX_EVENTS = 5
"""Events to search for the words of a statement."""
_USERS = ("user", "human")
_SPEAKER = frozenset(tokens("the user's"))
"""How a statement names the person who says "I" in the event."""


def unconfirmed_floor(floor: float) -> float:
    """The floor of unconfirmed matches for a given floor of hits; lower than the usual floor because they are only mentioned."""
    return min(floor, NEAREST_FLOOR) if floor <= MIN_KNOWN else floor


@dataclass(slots=True)
class ProofFinder:
    """Checks statements against the user's turns in the ledger."""

    searcher: Searcher
    store: Store

    def mark(self, hit: Hit, filters: Filters) -> Hit:
        """Note `USER_WORDS` on a candidate if the ledger proves it, else `WAITS_NOTE`."""
        assert hit.memory is not None
        return replace(hit, note=USER_WORDS if self._is_proved(hit.memory, filters) else WAITS_NOTE)

    def _is_proved(self, memory: Memory, filters: Filters) -> bool:
        evidence = [event for one in memory.evidence if (event := self.store.event(one.event)) is not None]
        return quotes_user(evidence, memory) or any(
            quotes_user([event], memory) for event in self._find_user_events(memory, filters)
        )

    def _find_user_events(self, memory: Memory, filters: Filters) -> Sequence[Event]:
        """User turns that resemble the statement; none for content from elsewhere."""
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
    """Whether a candidate says nothing but what the user states in these events, each of its sentences in one of theirs.

    A candidate that merely names an event of the user's may say anything, e.g. what an agent read on a web page; words from several
    sentences, or from a report of what others say, can be put together to what the user never said.
    """
    said = [sentence for event in events if event.role in _USERS for sentence in _find_stated_sentences(event.content)]
    parts = [part for part in split_sentences(memory.statement) if query_terms(part)]
    return bool(parts) and all(any(_covers(sentence, part) for sentence in said) for part in parts)


def _find_stated_sentences(content: str) -> Iterator[str]:
    """The sentences of a turn that state something in its author's own name: no questions, reports, guesses, or jokes."""
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
