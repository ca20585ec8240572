"""What happened: the ledger, and the memories that tell of a happening. The best match wins, whichever of them it is."""

from dataclasses import dataclass, replace
from itertools import pairwise

from engram.model.hit import Hit, Hits
from engram.model.memory import Memory
from engram.model.types import type_or_default
from engram.recall.answer.anchors import EVERY_VERSION
from engram.recall.answer.history import WIDE, FactFinder, of_that_value, shown, versions_of
from engram.recall.cutoff import HALF, NEAREST, about, among, best_of, is_about, looked_up
from engram.recall.search import Ask
from engram.recall.trace import TracedAnswer, first, leaving_out
from engram.store.protocol import LIVE
from engram.text.entities import entities
from engram.text.time.windows import Window
from engram.text.time.words import words
from engram.text.tokens import query_terms, tokens
from engram.text.verbs import is_past, kind_of
from engram.text.word_tables import word_class

__all__ = ["EventAnswerer", "asks_for_all", "happened", "within"]

FROM_MEMORIES = "the ledger holds nothing of this; from memories"
NOT_THEN = "something tells of this, but not in that time"
NOTHING_THEN = "nothing is known of that time"
IN_TIME = "everything that happened in that time, in its order"
BEST_FIRST = "what was said and done, the most relevant first"
KNOWN = "what memories say of it, since nothing that happened does"
MOST_OF_A_TIME = 200
"""Happenings looked at where all of a time is asked for."""
_DOING = frozenset(("work", "accomplish", "achieve", "spend", "busy"))
"""Verbs that say no more of what was done than that it was."""
_NO_SUBJECTS = frozenset(
    ("is", "are", "am", "be", "been", "being", "get", "gets", "a", "an", "the", "to", "of", "and", "not")
)
"""Words behind which a past form tells no happening: "invoices are kept", "the broken lamp"."""


_SPEAKERS = frozenset(("i", "we", "you"))


@dataclass(slots=True)
class EventAnswerer:
    """Answers questions about what was said and done."""

    facts: FactFinder

    def answer(self, ask: Ask, window: Window | None, but: str = "") -> TracedAnswer:
        """What tells of it, and what there is to say of that. `but` is the event the time hangs on: it is not what came after it."""
        if window is not None and asks_for_all(ask.text):
            every, _ = self._told(within(replace(ask, limit=max(MOST_OF_A_TIME, ask.limit), everything=True), window))
            every = leaving_out(every, lambda hit: hit.id == but, "the event that the time hangs on")
            if says(ask.text):
                every = leaving_out(every, lambda hit: hit.memory is not None, "a memory, and not what was said")
            if every:
                hits, notes = _all_of_it(every, ask.limit)
                return TracedAnswer(hits, window, notes, IN_TIME)
        ask = replace(ask, text=_topic(ask.text))
        found, beaten = self._told(within(ask, window))
        told = about(found, ask.text)
        if told and not beaten:
            return TracedAnswer(found, window, () if any(hit.event for hit in told) else (FROM_MEMORIES,), BEST_FIRST)
        remembered = self._remembered(ask, window)
        if any(map(is_about, remembered)):
            return TracedAnswer(remembered, window, (FROM_MEMORIES,), KNOWN)
        if told or window is None:
            return TracedAnswer(found, window, (), BEST_FIRST)
        then = any(map(is_about, self._told(ask, "what happened at any time")[0]))
        return TracedAnswer(found, window, (NOT_THEN if then else NOTHING_THEN,), BEST_FIRST)

    def _told(self, ask: Ask, purpose: str = "what happened") -> tuple[Hits, bool]:
        """The ledger and what is remembered of happenings, by how well they match; and whether a memory of how things are matches
        so much better that it is what is meant: "when did I start at Google", where it is known that I work there.
        """
        both = replace(ask.filters, kinds=("event", "memory"), statuses=EVERY_VERSION, valid_at=None, as_of=False)
        found = self.facts.search(replace(ask, filters=both, limit=max(WIDE, ask.limit), purpose=purpose))
        found = self._of_the_value(found, ask)
        hits = leaving_out(found, lambda hit: hit.memory is not None and not happened(hit.memory), "no happening")
        rivals = [] if says(ask.text) else [hit for hit in found if hit.memory is not None and not happened(hit.memory)]
        return hits, best_of(hits) < HALF * best_of(filter(is_about, rivals))

    def _of_the_value(self, found: Hits, ask: Ask) -> Hits:
        """Without what was superseded, save a happening that the question names: having moved to Oslo took place, wherever one
        moved after that; then the later move is not meant.
        """
        gone = [hit.memory for hit in found if hit.memory is not None and hit.memory.status not in LIVE]
        lineages = {memory.lineage: memory for memory in gone if happened(memory)}
        versions = {
            lineage: versions_of(memory, self.facts.store, ask.filters.scopes) for lineage, memory in lineages.items()
        }
        named = {
            lineage: {version.id for version in of_that_value(versions[lineage], ask.text)} for lineage in versions
        }

        def is_not_meant(hit: Hit) -> bool:
            ids = named.get(hit.memory.lineage, set()) if hit.memory is not None else set()
            return hit.memory is not None and (hit.id not in ids if ids else hit.memory.status not in LIVE)

        return leaving_out(found, is_not_meant, "a version that is not the one asked about")

    def _remembered(self, ask: Ask, window: Window | None) -> Hits:
        """What is known beside happenings: the versions of a fact whose value is named, else what a search finds."""
        found, histories = self.facts.histories(ask, NEAREST)
        named = [
            shown(version, history.best)
            for history in histories
            for version in of_that_value(history.versions, ask.text)
        ]
        told = [looked_up(hit, "value") for hit in named if _names(ask.text) <= set(tokens(hit.text))]
        if window is None and told:
            return among(found, told[: ask.limit])
        return self.facts.search(replace(within(ask, window), purpose="what is known beside happenings"))


def _topic(question: str) -> str:
    """What something was said about: of "what did I say about the lease" the ledger holds the lease, and not that I say it."""
    keys = words(question)
    if not says(question) or _SPEAKERS.isdisjoint(word.key for word in keys):
        return question
    return " ".join(question[word.start : word.end] for word in keys if kind_of(word.key) != "say")


def _names(question: str) -> set[str]:
    return {term for name in entities(question) for term in query_terms(name)}


def happened(memory: Memory) -> bool:
    """Whether a memory tells of something that took place, and not of how things are."""
    if memory.occurred_at is not None or memory.memory_kind == "episode" or _is_episode(memory):
        return True
    keys = [word.key for word in words(memory.statement)]
    return any(is_past(key) and before not in _NO_SUBJECTS for before, key in pairwise(keys))


def _is_episode(memory: Memory) -> bool:
    return type_or_default(memory.type).nature == "episode"


def asks_for_all(question: str) -> bool:
    """Whether a question names nothing but the asking: "what happened", "summarize", "what did I ask for"."""
    bare = {term for word in word_class("asking", "bare") | _DOING for term in query_terms(word)}
    said = {term for word in words(question) if kind_of(word.key) == "say" for term in query_terms(word.key)}
    return set(query_terms(question)) <= bare | said


def says(question: str) -> bool:
    """Whether something said is asked for; the ledger tells that."""
    return any(kind_of(word.key) == "say" for word in words(question))


def _all_of_it(every: Hits, limit: int) -> tuple[Hits, tuple[str, ...]]:
    left = len(every) - limit
    notes = (f"{left} more of that time were left out by the limit of {limit}",) if left > 0 else ()
    return in_time(first(every, limit)), notes


def in_time(hits: Hits) -> Hits:
    """What happened, in the order in which it did."""
    hits.sort(key=_moment)
    return hits


def _moment(hit: Hit) -> tuple[float, int]:
    if hit.event is not None:
        return hit.event.at.timestamp(), hit.event.seq
    when = hit.memory.when if hit.memory is not None else None
    return (when.timestamp() if when is not None else 0.0), 0


def within(ask: Ask, window: Window | None) -> Ask:
    """The search with the question's window, where the caller gave none."""
    if window is None:
        return ask
    given = ask.filters
    return replace(ask, filters=replace(given, since=given.since or window.since, until=given.until or window.until))
