"""The facts a question is about, found by likeness or by the conflict key it names, and their versions in time."""

from calendar import day_name, month_name
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise

from engram.model.hit import Hit, Hits, HitTrace, Part
from engram.model.memory import Memory
from engram.recall.answer.anchors import EVERY_VERSION
from engram.recall.cutoff import ABOUT, LOOKED_UP, about, looked_up
from engram.recall.search import Ask, Searcher
from engram.recall.slots import NAMED, SlotQuery, slot_query
from engram.recall.trace import leaving_out
from engram.rules.eligibility import is_valid
from engram.rules.numbers import RELEVANCE_SCALE
from engram.rules.scopes import shows
from engram.store.lineage import start_of
from engram.store.protocol import LIVE, Filters, Store
from engram.text.entities import entities
from engram.text.time.windows import Window
from engram.text.time.words import words
from engram.text.tokens import query_terms, tokens
from engram.text.verbs import kind_of, revises
from engram.text.word_tables import word_class

__all__ = [
    "INSTANT",
    "before_outcome",
    "by_lineage",
    "changes_within",
    "is_over",
    "is_past_version",
    "of_that_value",
    "overlaps",
    "shown",
    "time_of",
    "versions_of",
]

INSTANT = timedelta(microseconds=1)
_OUT = ("retired", "rejected", "candidate")


def is_over(memory: Memory | None, now: datetime) -> bool:
    """Whether it came to its end by itself."""
    return memory is not None and memory.valid_until is not None and memory.valid_until <= now


def is_past_version(memory: Memory, now: datetime) -> bool:
    """Whether it is no longer so: replaced, put away, or come to its end."""
    return memory.status not in LIVE or is_over(memory, now)


def overlaps(memory: Memory | None, window: Window, now: datetime) -> bool:
    """Whether it was true at some moment of the window."""
    if memory is None:
        return False
    until = memory.valid_until or now + INSTANT
    return (window.until is None or start_of(memory) < window.until) and (window.since is None or until > window.since)


def changes_within(versions: Sequence[Memory], window: Window | None) -> list[Memory]:
    """The versions on either side of every change that falls into the window, each once, in order."""
    sides = [pair for pair in pairwise(versions) if window is None or _holds(window, start_of(pair[1]))]
    return list({version.id: version for pair in sides for version in pair}.values())


def _holds(window: Window, moment: datetime) -> bool:
    return (window.since is None or moment >= window.since) and (window.until is None or moment < window.until)


def versions_of(memory: Memory, store: Store, scopes: Collection[str] | None) -> list[Memory]:
    """The versions of a fact that were ever so, in the order in which they were; of these scopes, if any are given."""
    if not memory.lineage:
        return [memory]
    found = store.lineage(memory.lineage)
    return [version for version in found if version.status not in _OUT and shows(scopes, version.scope)]


def of_that_value(versions: Sequence[Memory], question: str) -> list[Memory]:
    """The versions whose own value the question names ("how long did I live in Rome"); none where it names no one's in particular."""
    named = {term for name in entities(question) for term in query_terms(name)}
    said = [named & set(tokens(version.statement)) for version in versions]
    return [version for version, terms in zip(versions, said, strict=True) if any(terms - other for other in said)]


def by_lineage(hits: Sequence[Hit]) -> list[list[Hit]]:
    """The hits of each fact together, the fact with the best hit first."""
    groups: dict[str, list[Hit]] = {}
    for hit in hits:
        if hit.memory is not None:
            groups.setdefault(hit.memory.lineage or hit.id, []).append(hit)
    return list(groups.values())


def before_outcome(memory: Memory, event: datetime, versions: Sequence[Memory]) -> Memory:
    """What held before an event: where the fact began on the event's own day, and nothing later that day did, it came of it."""
    day = event.replace(hour=0, minute=0, second=0, microsecond=0)
    of_the_day = [version for version in versions if day <= start_of(version) < day + timedelta(days=1)]
    earlier = [version for version in versions if start_of(version) < start_of(memory)]
    came_of_it = bool(of_the_day) and of_the_day[-1].id == memory.id
    return earlier[-1] if came_of_it and earlier else memory


def shown(memory: Memory, hit: Hit) -> Hit:
    """A version as a hit of the search that found the fact by another one."""
    note = "" if memory.status in LIVE else memory.status
    trace = hit.trace if memory.id == hit.id else replace(hit.trace or HitTrace(), version_of=hit.id)
    return Hit(memory.id, "memory", hit.score, memory.statement, memory, metadata=memory.metadata, trace=trace,
               relevance=hit.relevance, note=note)  # fmt: skip


def time_of(hit: Hit) -> str:
    """When a hit was so, or happened, as days; "" where nothing is known of that."""
    if hit.memory is None:
        return f"{hit.event.at:%Y-%m-%d}" if hit.event is not None else ""
    memory = hit.memory
    if memory.valid_from is None and memory.valid_until is None:
        return f"{memory.when:%Y-%m-%d}" if memory.when is not None else ""
    start = f"{start_of(memory):%Y-%m-%d}"
    return f"since {start}" if memory.valid_until is None else f"{start} to {memory.valid_until:%Y-%m-%d}"


WIDE = 30
"""Hits looked at for the versions of facts: those of one fact must not crowd out another."""
MOST_FACTS = 10
"""Facts whose versions are looked up for one question."""

_DAYS = frozenset((*day_name, *month_name))


@dataclass(frozen=True, slots=True)
class FactHistory:
    """A fact the question is about: the hit that found it, and its versions in the order in which they were true."""

    best: Hit
    versions: tuple[Memory, ...]

    @property
    def changed(self) -> bool:
        """Whether it ever had another value."""
        return len(self.versions) > 1


@dataclass(slots=True)
class FactFinder:
    """Searches for one question, and what is known of the names in it."""

    searcher: Searcher
    store: Store
    clock: Callable[[], datetime]

    def search(self, ask: Ask) -> Hits:
        """What a search finds, the fact that the question names first."""
        hits = self.searcher.search(ask)
        asked = slot_query(ask.text)
        if not asked.slots or "memory" not in ask.filters.kinds:
            return hits

        def is_anothers(hit: Hit) -> bool:
            return hit.memory is not None and asked.is_anothers(hit.memory.conflict_key)

        hits = leaving_out(hits, is_anothers, f"the same of somebody else than {asked.owner}")
        return self._named_first(hits, asked, ask)

    def histories(self, ask: Ask, floor: float = ABOUT) -> tuple[Hits, list[FactHistory]]:
        """All that was found of every version of everything, and the facts among it that are meant, the likeliest first.

        Where none is, the question is asked again without the words that only ask for another time.
        """
        found, histories = self._ways(ask, floor)
        topic = _topic(ask.text)
        return (found, histories) if histories or topic == ask.text else self._ways(replace(ask, text=topic), floor)

    def _ways(self, ask: Ask, floor: float) -> tuple[Hits, list[FactHistory]]:
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
        return self.store.known_terms(list(found), filters.scopes)

    def _way(self, group: list[Hit], filters: Filters) -> FactHistory:
        best = next(filter(_is_named, group), group[0])
        return FactHistory(best, tuple(versions_of(best.memory, self.store, filters.scopes)) if best.memory else ())

    def _named_first(self, hits: Hits, asked: SlotQuery, ask: Ask) -> Hits:
        found = {h.memory.conflict_key for h in hits if h.memory is not None and asked.has(h.memory.conflict_key)}
        of_policies = [key for key in asked.conflict_keys if key in found]
        wanted = found - set(of_policies[1:])
        first = [looked_up(hit, NAMED) for hit in hits if hit.memory is not None and hit.memory.conflict_key in wanted]
        if not first:
            first = [self._hit(memory) for memory in self._heads(asked, ask.filters)]
        ids = {hit.id for hit in first}
        hits[:] = [*first, *(hit for hit in hits if hit.id not in ids)][: ask.limit]
        return hits

    def _heads(self, asked: SlotQuery, filters: Filters) -> list[Memory]:
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
