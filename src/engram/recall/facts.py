"""The facts a question is about: found by likeness or by the key it names, each with its way through time."""

from calendar import day_name, month_name
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from engram.model.hit import Hit, Hits, HitTrace, Part
from engram.model.memory import Memory
from engram.recall.anchoring import EVERY_VERSION
from engram.recall.cutoff import ABOUT, LOOKED_UP, about, looked_up
from engram.recall.named import NAMED, Named, named
from engram.recall.search import Ask, Searcher
from engram.recall.trace import leaving_out
from engram.recall.versions import by_lineage, versions_of
from engram.rules.eligibility import is_valid
from engram.rules.numbers import RELEVANCE_SCALE
from engram.store.protocol import Filters, Store
from engram.text.entities import entities
from engram.text.time.words import words
from engram.text.tokens import query_terms
from engram.text.verbs import kind_of, revises
from engram.text.word_classes import word_class

WIDE = 30
"""Hits looked at for the versions of facts: those of one fact must not crowd out another."""
MOST_FACTS = 10
"""Facts whose versions are looked up for one question."""

_DAYS = frozenset((*day_name, *month_name))


@dataclass(frozen=True, slots=True)
class Way:
    """A fact the question is about: the hit that found it, and its versions in the order in which they were true."""

    best: Hit
    versions: tuple[Memory, ...]

    @property
    def changed(self) -> bool:
        """Whether it ever had another value."""
        return len(self.versions) > 1


@dataclass(slots=True)
class Facts:
    """Searches for one question, and what is known of the names in it."""

    searcher: Searcher
    store: Store
    clock: Callable[[], datetime]

    def search(self, ask: Ask) -> Hits:
        """What a search finds, the fact that the question names first."""
        hits = self.searcher.search(ask)
        asked = named(ask.text)
        if not asked.slots or "memory" not in ask.filters.kinds:
            return hits

        def is_anothers(hit: Hit) -> bool:
            return hit.memory is not None and asked.is_anothers(hit.memory.conflict_key)

        hits = leaving_out(hits, is_anothers, f"the same of somebody else than {asked.owner}")
        return self._named_first(hits, asked, ask)

    def ways(self, ask: Ask, floor: float = ABOUT) -> tuple[Hits, list[Way]]:
        """All that was found of every version of everything, and the facts among it that are meant, the likeliest first.

        Where none is, the question is asked again without the words that only ask for another time.
        """
        found, ways = self._ways(ask, floor)
        topic = _topic(ask.text)
        return (found, ways) if ways or topic == ask.text else self._ways(replace(ask, text=topic), floor)

    def _ways(self, ask: Ask, floor: float) -> tuple[Hits, list[Way]]:
        every = replace(ask.filters, kinds=("memory",), statuses=EVERY_VERSION, valid_at=None, as_of=False)
        wide = replace(ask, filters=every, limit=max(WIDE, ask.limit), purpose="every version of the facts asked about")
        found = self.search(wide)
        groups, meant = by_lineage(found), {hit.id for hit in about(found, ask.text, floor)}
        by_key = [group for group in groups if any(map(_is_named, group))]
        likely = [group for group in groups if any(hit.id in meant for hit in group)]
        return found, [self._way(group, ask.filters) for group in (by_key or likely)[:MOST_FACTS]]

    def unknown(self, ask: Ask) -> tuple[str, ...]:
        """The names in a question that nothing its asker sees says."""
        names = {name: tuple(query_terms(name)) for name in entities(ask.text) if name.rstrip("s") not in _DAYS}
        told = self._told((term for terms in names.values() for term in terms), ask.filters)
        return tuple(name for name, terms in names.items() if terms and told.isdisjoint(terms))

    def _told(self, terms: Iterable[str], filters: Filters) -> frozenset[str]:
        """Those of the terms that something in sight says: that others say them is theirs to tell."""
        wanted = list(dict.fromkeys(terms))
        found = self.store.frequencies(wanted) if wanted else {}
        if filters.scopes is None or not found:
            return frozenset(found)
        return self.store.said(list(found), filters.scopes)

    def _way(self, group: list[Hit], filters: Filters) -> Way:
        best = next(filter(_is_named, group), group[0])
        return Way(best, tuple(versions_of(best.memory, self.store, filters.scopes)) if best.memory else ())

    def _named_first(self, hits: Hits, asked: Named, ask: Ask) -> Hits:
        found = {h.memory.conflict_key for h in hits if h.memory is not None and asked.has(h.memory.conflict_key)}
        of_policies = [key for key in asked.conflict_keys if key in found]
        wanted = found - set(of_policies[1:])
        first = [looked_up(hit, NAMED) for hit in hits if hit.memory is not None and hit.memory.conflict_key in wanted]
        if not first:
            first = [self._hit(memory) for memory in self._heads(asked, ask.filters)]
        ids = {hit.id for hit in first}
        hits[:] = [*first, *(hit for hit in hits if hit.id not in ids)][: ask.limit]
        return hits

    def _heads(self, asked: Named, filters: Filters) -> list[Memory]:
        """What is in force of the fact, looked up: a large store may hold more that resembles the question than is looked at."""
        plain = replace(filters, scopes=None, statuses=None, valid_at=None, as_of=False) == Filters(statuses=None)
        for key in asked.conflict_keys if plain else ():
            heads = [memory for scope in filters.scopes or () for memory in self.store.heads(key, scope)]
            if filters.valid_at is not None and not filters.as_of:
                heads = [memory for memory in heads if is_valid(memory, self.clock())]
            if heads:
                return heads
        return []

    def _hit(self, memory: Memory) -> Hit:
        trace = HitTrace((Part("match", RELEVANCE_SCALE),), {NAMED: 1})
        return Hit(memory.id, "memory", RELEVANCE_SCALE, memory.statement, memory, metadata=memory.metadata, trace=trace,
                   relevance=LOOKED_UP)  # fmt: skip


def _topic(question: str) -> str:
    """What is asked about: no version of the budget says that it "changed", or that it was so "before"."""
    said = words(question)
    told = [word for word in said if not (word.key in word_class("asking", "of_old") or _tells_change(word.key))]
    return " ".join(question[word.start : word.end] for word in told) if len(told) < len(said) else question


def _tells_change(key: str) -> bool:
    return kind_of(key) == "change" or revises(key)


def _is_named(hit: Hit) -> bool:
    return hit.trace is not None and NAMED in hit.trace.found_by
