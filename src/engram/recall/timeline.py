"""How facts came to be what they are: the versions of those asked about, or all that changed in a time."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engram.model.hit import Hit, Hits, HitTrace, Part
from engram.model.memory import Memory
from engram.recall.cutoff import LOOKED_UP, among
from engram.recall.facts import Facts, Way
from engram.recall.search import Ask
from engram.recall.trace import Answer
from engram.recall.versions import changes_within, overlaps, shown, versions_of
from engram.rules.numbers import RELEVANCE_SCALE
from engram.store.lineages import start_of
from engram.text.time.windows import Window
from engram.text.time.words import words
from engram.text.tokens import query_terms
from engram.text.verbs import kind_of, revises
from engram.text.word_classes import word_class

__all__ = ["Timelines", "asks_what_changed", "asks_when_it_changed"]

MOST_SUPERSEDED = 5_000
"""Superseded memories looked through for what changed in a time; the newest of them."""
AS_GOOD = 0.8
"""Part of the best one's relevance from which another statement is as good a match."""
VERSIONS = "the versions of each fact asked about, oldest first"
CHANGES = "what was superseded, before and after each change, listed and not searched for"
_ACTORS = frozenset(("i", "we", "you", "he", "she", "they", "who"))
_ANYTHING_KNOWN = frozenset(("fact", "facts", "memory", "memories", "information", "stuff", "lately", "recently"))
_BY_LINEAGE = HitTrace((Part("match", RELEVANCE_SCALE),), {"lineage": 1})


@dataclass(slots=True)
class Timelines:
    """Answers questions about the way of facts."""

    facts: Facts

    def of(self, ask: Ask, window: Window | None) -> Answer:
        """The way of every fact the question is about, one after the other, the likeliest first."""
        found, ways = self.facts.ways(ask)
        if not ways:
            return Answer(found, window, (), VERSIONS)
        told = [(way, self._within(way, window)) for way in _about(ways)]
        changed = window is None or any(changes_within(way.versions, window) for way, _ in told)
        notes = () if changed or not told else ("it did not change in that time",)
        hits, left = _cut([[shown(version, way.best) for version in versions] for way, versions in told], ask.limit)
        return Answer(among(found, hits), window, (*notes, *left), VERSIONS)

    def changed(self, ask: Ask, window: Window | None) -> Answer:
        """Everything that took another value in the window: before and after each change, what changed first first."""
        past = replace(ask.filters, kinds=("memory",), statuses=("superseded",), valid_at=None, as_of=False)
        gone = self.facts.store.listing(past, MOST_SUPERSEDED)
        lineages = {memory.lineage: memory for memory in gone if memory.lineage and _ended_in(memory, window)}
        ways = [changes_within(self._versions(memory, ask), window) for memory in lineages.values()]
        ways = sorted((way for way in ways if way), key=lambda way: start_of(way[1]))
        hits, left = _cut([[shown(version, _hit(version)) for version in way] for way in ways], ask.limit)
        if not hits:
            left = ("nothing that is known changed" + (" in that time" if window else ""),)
        if len(gone) == MOST_SUPERSEDED:
            left = (*left, f"only the newest {MOST_SUPERSEDED} superseded memories were looked through")
        return Answer(Hits(hits), window, left, CHANGES)

    def _versions(self, memory: Memory, ask: Ask) -> list[Memory]:
        return versions_of(memory, self.facts.store, ask.filters.scopes)

    def _within(self, way: Way, window: Window | None) -> list[Memory]:
        """What the window shows of a fact: its changes there, else what held in it."""
        if window is None:
            return list(way.versions)
        now = self.facts.clock()
        held = {version.id for version in way.versions if overlaps(version, window, now)}
        sides = {version.id for version in changes_within(way.versions, window)}
        return [version for version in way.versions if version.id in held | sides]


def asks_when_it_changed(question: str) -> bool:
    """Whether a change's time is asked for: "when did the launch date change", but not "when did I change the lock"."""
    keys = [word.key for word in words(question)]
    changed = any(kind_of(key) == "change" or revises(key) for key in keys[1:])
    return keys[:1] == ["when"] and changed and _ACTORS.isdisjoint(keys)


def asks_what_changed(question: str, intent: str) -> bool:
    """Whether everything that changed is asked for: "what changed", "what is different", but not "what did I change"."""
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


def _about(ways: Sequence[Way]) -> list[Way]:
    """The facts a question about change is about: the best one, and others as likely that did change. Where none did, statements that
    match as well as the best one tell its way, although nobody said that they replace each other.
    """
    if ways and not any(way.changed for way in ways):
        least = AS_GOOD * ways[0].best.relevance
        alike = [way for way in ways if way.best.relevance >= least]
        return sorted(alike, key=lambda way: start_of(way.versions[0]))
    return [way for place, way in enumerate(ways) if not place or way.changed]


def _cut(facts: Sequence[Sequence[Hit]], limit: int) -> tuple[list[Hit], tuple[str, ...]]:
    """The latest versions of each fact while there is room, and how many were left out."""
    hits: list[Hit] = []
    for versions in facts:
        room = limit - len(hits)
        hits.extend(versions[-room:] if room > 0 else ())
    left = sum(map(len, facts)) - len(hits)
    return hits, (f"{left} more versions were left out by the limit of {limit}",) if left else ()


def _ended_in(memory: Memory, window: Window | None) -> bool:
    end = memory.valid_until
    if window is None or end is None:
        return True
    return (window.since is None or end >= window.since) and (window.until is None or end < window.until)


def _hit(memory: Memory) -> Hit:
    return Hit(memory.id, "memory", RELEVANCE_SCALE, memory.statement, memory, trace=_BY_LINEAGE, relevance=LOOKED_UP)
