"""Answers about the history of facts: the versions of those asked about, or everything that changed in a window."""

from collections.abc import Sequence

from engram.model.hit import Hit, Hits, HitTrace, Part
from engram.model.lazy import dataclass, replace
from engram.model.memory import Memory
from engram.recall.answer.history import FactFinder, FactHistory, changes_within, overlaps, shown, versions_of
from engram.recall.cutoff import LOOKED_UP, among
from engram.recall.query import SearchQuery
from engram.recall.trace import TracedAnswer
from engram.rules.numbers import RELEVANCE_SCALE
from engram.store.lineage import start_of
from engram.text.time.windows import Window
from engram.text.time.words import words
from engram.text.tokens import query_terms
from engram.text.verbs import kind_of, revises
from engram.text.word_tables import word_class

__all__ = ["LineageAnswerer", "asks_what_changed", "asks_when_it_changed"]

MOST_SUPERSEDED = 5_000
"""The most superseded memories read for what changed in a window, newest first."""
AS_GOOD = 0.8
"""The share of the best relevance from which another statement counts as an equal match."""
VERSIONS = "the versions of each fact asked about, oldest first"
CHANGES = "superseded memories, before and after each change; listed, not searched"
_ACTORS = frozenset(("i", "we", "you", "he", "she", "they", "who"))
_ANYTHING_KNOWN = frozenset(("fact", "facts", "memory", "memories", "information", "stuff", "lately", "recently"))
_BY_LINEAGE = HitTrace((Part("match", RELEVANCE_SCALE),), {"lineage": 1})


@dataclass(slots=True)
class LineageAnswerer:
    """Answers questions about the history of facts."""

    facts: FactFinder

    def of(self, query: SearchQuery, window: Window | None) -> TracedAnswer:
        """The history of every fact the question is about, one after the other, the likeliest first."""
        found, histories = self.facts.histories(query)
        if not histories:
            return TracedAnswer(found, window, (), VERSIONS)
        chosen = [(history, self._within(history, window)) for history in _about(histories)]
        changed = window is None or any(changes_within(history.versions, window) for history, _ in chosen)
        notes = () if changed or not chosen else ("It did not change in that time.",)
        hits, left = _cut(
            [[shown(version, history.best) for version in versions] for history, versions in chosen], query.limit
        )
        return TracedAnswer(among(found, hits), window, (*notes, *left), VERSIONS)

    def changed(self, query: SearchQuery, window: Window | None) -> TracedAnswer:
        """Every fact that changed in the window: before and after each change, in the order of the changes."""
        past = replace(query.filters, kinds=("memory",), statuses=("superseded",), valid_at=None, as_of=False)
        gone = self.facts.store.listing(past, MOST_SUPERSEDED)
        lineages = {memory.lineage: memory for memory in gone if memory.lineage and _ended_in(memory, window)}
        histories = [changes_within(self._versions(memory, query), window) for memory in lineages.values()]
        histories = sorted((history for history in histories if history), key=lambda history: start_of(history[1]))
        hits, left = _cut(
            [[shown(version, _hit(version)) for version in history] for history in histories], query.limit
        )
        if not hits:
            left = ("No known fact changed" + (" in that time." if window else "."),)
        if len(gone) == MOST_SUPERSEDED:
            left = (*left, f"Only the newest {MOST_SUPERSEDED} superseded memories were searched.")
        return TracedAnswer(Hits(hits), window, left, CHANGES)

    def _versions(self, memory: Memory, query: SearchQuery) -> list[Memory]:
        return versions_of(memory, self.facts.store, query.filters.scopes)

    def _within(self, history: FactHistory, window: Window | None) -> list[Memory]:
        """The versions of a fact on either side of its changes in the window, and those true in it."""
        if window is None:
            return list(history.versions)
        now = self.facts.clock()
        true_then = {version.id for version in history.versions if overlaps(version, window, now)}
        sides = {version.id for version in changes_within(history.versions, window)}
        return [version for version in history.versions if version.id in true_then | sides]


def asks_when_it_changed(question: str) -> bool:
    """Whether the question asks when something changed: "when did the launch date change", but not "when did I change the lock"."""
    keys = [word.key for word in words(question)]
    changed = any(kind_of(key) == "change" or revises(key) for key in keys[1:])
    return keys[:1] == ["when"] and changed and _ACTORS.isdisjoint(keys)


def asks_what_changed(question: str, intent: str) -> bool:
    """Whether the question asks for everything that changed: "what changed", "what is different", but not "what did I change"."""
    keys = [word.key for word in words(question)]
    by_itself = any(kind_of(key) == "change" for key in keys) and _ACTORS.isdisjoint(keys)
    return _names_only_the_change(keys) and (intent == "lineage" or (intent != "current" and by_itself))


def _names_only_the_change(keys: Sequence[str]) -> bool:
    bare = (
        _ANYTHING_KNOWN
        | word_class("asking", "bare")
        | word_class("asking", "differing")
        | word_class("asking", "version_noun")
    )
    return all(
        key in bare or kind_of(key) == "change" or revises(key) or not query_terms(f"x {key}")[1:] for key in keys
    )


def _about(histories: Sequence[FactHistory]) -> list[FactHistory]:
    """The facts a question about change is about: the best one, and others that did change. Where none did, statements that match
    as well as the best one stand in for its history, although none replaced another.
    """
    if histories and not any(history.changed for history in histories):
        least = AS_GOOD * histories[0].best.relevance
        alike = [history for history in histories if history.best.relevance >= least]
        return sorted(alike, key=lambda history: start_of(history.versions[0]))
    return [history for place, history in enumerate(histories) if not place or history.changed]


def _cut(facts: Sequence[Sequence[Hit]], limit: int) -> tuple[list[Hit], tuple[str, ...]]:
    """The latest versions of each fact while there is room, and how many were left out."""
    hits: list[Hit] = []
    for versions in facts:
        room = limit - len(hits)
        hits.extend(versions[-room:] if room > 0 else ())
    left = sum(map(len, facts)) - len(hits)
    return hits, (f"{left} more versions were cut by the limit of {limit}.",) if left else ()


def _ended_in(memory: Memory, window: Window | None) -> bool:
    end = memory.valid_until
    if window is None or end is None:
        return True
    return (window.since is None or end >= window.since) and (window.until is None or end < window.until)


def _hit(memory: Memory) -> Hit:
    return Hit(memory.id, "memory", RELEVANCE_SCALE, memory.statement, memory, trace=_BY_LINEAGE, relevance=LOOKED_UP)
