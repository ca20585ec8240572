"""Answers about events, from the session log and from memories of events, whichever match best."""

from itertools import pairwise

from engram.model.hit import Hit, Hits
from engram.model.lazy import dataclass, replace
from engram.model.memory import LIVE_STATUSES, Memory
from engram.model.types import type_or_default
from engram.recall.answer.history import (
    CROWDED_OUT_PURPOSE,
    EVERY_VERSION,
    VERSION_SEARCH_LIMIT,
    FactFinder,
    select_by_value,
    versions_of,
)
from engram.recall.cutoff import (
    MIN_SHARE_OF_BEST,
    NEAREST_FLOOR,
    best_relevance,
    derive_hits,
    is_about,
    keep_relevant,
    mark_looked_up,
)
from engram.recall.query import SearchQuery
from engram.recall.trace import TracedAnswer, drop_hits, first_hits
from engram.text.entities import entities
from engram.text.time.windows import Window
from engram.text.time.words import words
from engram.text.tokens import query_terms, tokens
from engram.text.words import is_act, is_past, kind_of, word_class

__all__ = [
    "AS_GOOD_SHARE",
    "BEST_FIRST",
    "MEMORIES_INSTEAD",
    "EventAnswerer",
    "asks_for_all",
    "is_event_memory",
    "names_only_acts",
    "restrict_to_window",
]

FROM_MEMORIES = "Nothing in the session log; answered from memories."
NOT_THEN = "Something is known about this, but not from that time."
NOTHING_THEN = "Nothing is known about that time."
IN_TIME = "everything from that time, in order"
BEST_FIRST = "what was said and done, the most relevant first"
MEMORIES_INSTEAD = "memories, since no event matches"
AS_GOOD_SHARE = 0.8
"""The share of the best version's relevance from which another version matches about as well."""
MAX_EVENTS_IN_WINDOW = 200
"""The maximum number of events read if a question asks for everything from a time."""
_DOING = frozenset(("work", "accomplish", "achieve", "spend", "busy"))
"""Verbs that do not say what was done."""
_NO_SUBJECTS = frozenset(
    ("is", "are", "am", "be", "been", "being", "get", "gets", "a", "an", "the", "to", "of", "and", "not")
)
"""Words after which a past form describes no event: "invoices are kept", "the broken lamp"."""


_SPEAKERS = frozenset(("i", "we", "you"))


@dataclass(slots=True)
class EventAnswerer:
    """Answers questions about statements and actions in the past."""

    facts: FactFinder

    def answer(self, query: SearchQuery, window: Window | None, but: str = "") -> TracedAnswer:
        """The events the question asks about. `but` is the id of the event that anchors its time, which is left out."""
        if window is not None and asks_for_all(query.text):
            every, _ = self._events(
                restrict_to_window(
                    replace(query, limit=max(MAX_EVENTS_IN_WINDOW, query.limit), everything=True), window
                )
            )
            every = drop_hits(every, lambda hit: hit.id == but, "the event that anchors the time")
            if asks_what_was_said(query.text):
                every = drop_hits(every, lambda hit: hit.memory is not None, "a memory, not something said")
            if every:
                hits, notes = _sort_and_limit(every, query.limit)
                return TracedAnswer(hits, window, notes, IN_TIME)
        query = replace(query, text=_topic(query.text))
        found, beaten = self._events(restrict_to_window(query, window))
        relevant = keep_relevant(found, query.text)
        if relevant and not beaten:
            return TracedAnswer(
                found, window, () if any(hit.event for hit in relevant) else (FROM_MEMORIES,), BEST_FIRST
            )
        remembered = self._find_memories(query, window)
        if any(map(is_about, remembered)):
            return TracedAnswer(remembered, window, (FROM_MEMORIES,), MEMORIES_INSTEAD)
        if relevant or window is None:
            return TracedAnswer(found, window, (), BEST_FIRST)
        then = any(map(is_about, self._events(query, "what happened at any time")[0]))
        return TracedAnswer(found, window, (NOT_THEN if then else NOTHING_THEN,), BEST_FIRST)

    def _events(self, query: SearchQuery, purpose: str = "what happened") -> tuple[Hits, bool]:
        """Logged events and memories of events, best first, and whether a memory of a state matches clearly better.

        "When did I start at Google" means the state if a memory says that I work there.
        """
        both = replace(query.filters, kinds=("event", "memory"), statuses=EVERY_VERSION, valid_at=None, as_of=False)
        wide = replace(query, filters=both, limit=max(VERSION_SEARCH_LIMIT, query.limit), purpose=purpose)
        found = self._drop_superseded(self._add_crowded_out(self.facts.search(wide), wide), query)
        hits = drop_hits(found, lambda hit: hit.memory is not None and not is_event_memory(hit.memory), "not an event")
        rivals = (
            []
            if asks_what_was_said(query.text)
            else [hit for hit in found if hit.memory is not None and not is_event_memory(hit.memory)]
        )
        return hits, best_relevance(hits) < MIN_SHARE_OF_BEST * best_relevance(filter(is_about, rivals))

    def _add_crowded_out(self, found: Hits, query: SearchQuery) -> Hits:
        """Add the current memories that superseded versions crowded out of a search among all versions."""
        if len(found) < query.limit or all(hit.memory is None or hit.memory.status in LIVE_STATUSES for hit in found):
            return found
        live = self.facts.search(
            replace(query, filters=replace(query.filters, statuses=LIVE_STATUSES), purpose=CROWDED_OUT_PURPOSE)
        )
        known = {hit.id for hit in found}
        return derive_hits(found, [*found, *(hit for hit in live if hit.id not in known)])

    def _drop_superseded(self, found: Hits, query: SearchQuery) -> Hits:
        """Drop superseded memories, except those from the time asked about and events the question names.

        The move to Oslo took place even if another move followed, and then the later one is not meant.
        """
        if _is_timed(query):
            return found
        gone = [hit.memory for hit in found if hit.memory is not None and hit.memory.status not in LIVE_STATUSES]
        lineages = {memory.lineage: memory for memory in gone if is_event_memory(memory)}
        versions = {
            lineage: versions_of(memory, self.facts.store, query.filters) for lineage, memory in lineages.items()
        }
        named = {
            lineage: {version.id for version in select_by_value(versions[lineage], query.text)}
            or _clearly_best(found, lineage)
            for lineage in versions
        }

        def is_not_meant(hit: Hit) -> bool:
            ids = named.get(hit.memory.lineage, set()) if hit.memory is not None else set()
            return hit.memory is not None and (hit.id not in ids if ids else hit.memory.status not in LIVE_STATUSES)

        return drop_hits(found, is_not_meant, "a version that is not the one asked about")

    def _find_memories(self, query: SearchQuery, window: Window | None) -> Hits:
        """Memories that are not events: the versions of a fact whose value is named, or the results of a search."""
        found, histories = self.facts.find_histories(query, NEAREST_FLOOR)
        named = [
            history.version_hit(version)
            for history in histories
            for version in select_by_value(history.versions, query.text)
        ]
        told = [mark_looked_up(hit, "value") for hit in named if _name_terms(query.text) <= set(tokens(hit.text))]
        if window is None and told:
            return derive_hits(found, told[: query.limit])
        then = query.filters
        if window is not None and then.statuses == LIVE_STATUSES and not then.as_of:
            # A statement from that time is an answer, even if it was replaced later.
            then = replace(then, statuses=EVERY_VERSION, valid_at=None)
        timed = restrict_to_window(replace(query, filters=then, purpose="memories that are not events"), window)
        return self.facts.search(timed)


def _is_timed(query: SearchQuery) -> bool:
    return query.filters.since is not None or query.filters.until is not None


def _clearly_best(found: Hits, lineage: str) -> set[str]:
    """The version of a fact that matches the question better than any other: the decision, not its reversal."""
    versions = [hit for hit in found if hit.memory is not None and hit.memory.lineage == lineage]
    best = max(versions, key=lambda hit: hit.relevance)
    others = [hit.relevance for hit in versions if hit.id != best.id]
    return {best.id} if is_about(best) and max(others, default=0.0) < AS_GOOD_SHARE * best.relevance else set()


def _topic(question: str) -> str:
    """The topic of a question about something said: "what did I say about the lease" without "say", which the log does not contain."""
    keys = words(question)
    if not asks_what_was_said(question) or _SPEAKERS.isdisjoint(word.key for word in keys):
        return question
    return " ".join(question[word.start : word.end] for word in keys if kind_of(word.key) != "say")


def _name_terms(question: str) -> set[str]:
    return {term for name in entities(question) for term in query_terms(name)}


def is_event_memory(memory: Memory) -> bool:
    """Whether a memory describes an event, not a state."""
    if memory.occurred_at is not None or _is_episode(memory):
        return True
    keys = [word.key for word in words(memory.statement)]
    return any(is_past(key) and before not in _NO_SUBJECTS for before, key in pairwise(keys))


def _is_episode(memory: Memory) -> bool:
    return type_or_default(memory.type).nature == "episode"


def asks_for_all(question: str) -> bool:
    """Whether a question has no topic of its own: "what happened", "summarize", "what did I ask for"."""
    bare = {term for word in word_class("asking", "bare") | _DOING for term in query_terms(word)}
    said = {term for word in words(question) if kind_of(word.key) == "say" for term in query_terms(word.key)}
    return set(query_terms(question)) <= bare | said


def names_only_acts(question: str) -> bool:
    """Whether a question has no topic besides the act: "what did we decide"."""
    topic = [word.key for word in words(question) if query_terms(f"x {word.key}")[1:]]
    return bool(topic) and all(is_act(key) or kind_of(key) for key in topic)


def asks_what_was_said(question: str) -> bool:
    """Whether the question asks for somebody's words, which only the session log has."""
    return any(kind_of(word.key) == "say" for word in words(question))


def _sort_and_limit(every: Hits, limit: int) -> tuple[Hits, tuple[str, ...]]:
    left = len(every) - limit
    notes = (f"{left} more from that time were cut by the limit of {limit}.",) if left > 0 else ()
    return sort_by_time(first_hits(every, limit)), notes


def sort_by_time(hits: Hits) -> Hits:
    """Hits in the order they happened."""
    hits.sort(key=_moment)
    return hits


def _moment(hit: Hit) -> tuple[float, int]:
    if hit.event is not None:
        return hit.event.at.timestamp(), hit.event.seq
    when = hit.memory.when if hit.memory is not None else None
    return (when.timestamp() if when is not None else 0.0), 0


def restrict_to_window(query: SearchQuery, window: Window | None) -> SearchQuery:
    """The search restricted to the question's window, unless the caller gave one."""
    if window is None:
        return query
    given = query.filters
    return replace(query, filters=replace(given, since=given.since or window.since, until=given.until or window.until))
