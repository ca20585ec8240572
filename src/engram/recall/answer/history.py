"""The facts a question is about, found by search or by the conflict key it names, and their versions over time."""

from calendar import day_name, month_name
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from engram.model.hit import Hit, Hits, HitTrace, Part
from engram.model.lazy import dataclass, replace
from engram.model.memory import Memory
from engram.recall.answer.anchors import EVERY_VERSION
from engram.recall.cutoff import ABOUT, LOOKED_UP, about, looked_up
from engram.recall.query import SearchQuery
from engram.recall.search import Searcher
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
    """Whether its own validity has ended."""
    return memory is not None and memory.valid_until is not None and memory.valid_until <= now


def is_past_version(memory: Memory, now: datetime) -> bool:
    """Whether it is no longer true: superseded, archived, or past the end of its validity."""
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
    """The versions of a fact that were ever true, in order; only those of these scopes, if any are given."""
    if not memory.lineage:
        return [memory]
    found = store.lineage(memory.lineage)
    return [version for version in found if version.status not in _OUT and shows(scopes, version.scope)]


def of_that_value(versions: Sequence[Memory], question: str) -> list[Memory]:
    """The versions whose own value the question names ("how long did I live in Rome"); none where it names none in particular."""
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
    """The version before an event; one that began last on the day of the event itself is taken to be its result."""
    day = event.replace(hour=0, minute=0, second=0, microsecond=0)
    of_the_day = [version for version in versions if day <= start_of(version) < day + timedelta(days=1)]
    earlier = [version for version in versions if start_of(version) < start_of(memory)]
    came_of_it = bool(of_the_day) and of_the_day[-1].id == memory.id
    return earlier[-1] if came_of_it and earlier else memory


def shown(memory: Memory, hit: Hit) -> Hit:
    """A version as a hit, with the score of the version that a search found."""
    note = "" if memory.status in LIVE else memory.status
    trace = hit.trace if memory.id == hit.id else replace(hit.trace or HitTrace(), version_of=hit.id)
    return Hit(memory.id, "memory", hit.score, memory.statement, memory, metadata=memory.metadata, trace=trace,
               relevance=hit.relevance, note=note)  # fmt: skip


def time_of(hit: Hit) -> str:
    """When a hit was true or happened, as days; "" where that is not known."""
    if hit.memory is None:
        return f"{hit.event.at:%Y-%m-%d}" if hit.event is not None else ""
    memory = hit.memory
    if memory.valid_from is None and memory.valid_until is None:
        return f"{memory.when:%Y-%m-%d}" if memory.when is not None else ""
    start = f"{start_of(memory):%Y-%m-%d}"
    return f"since {start}" if memory.valid_until is None else f"{start} to {memory.valid_until:%Y-%m-%d}"


WIDE = 30
"""Hits read for the versions of facts: those of one fact must not crowd out another."""
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
    """Searches for the facts of one question, and for the names in it that no memory mentions."""

    searcher: Searcher
    store: Store
    clock: Callable[[], datetime]

    def search(self, query: SearchQuery) -> Hits:
        """The hits of a search, those of the fact that the question names first."""
        hits = self.searcher.search(query)
        slots = slot_query(query.text)
        if not slots.slots or "memory" not in query.filters.kinds:
            return hits

        def is_anothers(hit: Hit) -> bool:
            return hit.memory is not None and slots.is_anothers(hit.memory.conflict_key)

        hits = leaving_out(hits, is_anothers, f"the same fact about somebody other than {slots.owner}")
        return self._named_first(hits, slots, query)

    def histories(self, query: SearchQuery, floor: float = ABOUT) -> tuple[Hits, list[FactHistory]]:
        """Hits among all versions, and the facts that are meant, the most relevant first.

        Where none is, the search is repeated without the words that only ask for another time.
        """
        found, histories = self._histories(query, floor)
        topic = _topic(query.text)
        return (
            (found, histories)
            if histories or topic == query.text
            else self._histories(replace(query, text=topic), floor)
        )

    def _histories(self, query: SearchQuery, floor: float) -> tuple[Hits, list[FactHistory]]:
        every = replace(query.filters, kinds=("memory",), statuses=EVERY_VERSION, valid_at=None, as_of=False)
        wide = replace(
            query, filters=every, limit=max(WIDE, query.limit), purpose="every version of the facts asked about"
        )
        found = self.search(wide)
        groups, meant = by_lineage(found), {hit.id for hit in about(found, query.text, floor)}
        by_key = [group for group in groups if any(map(_is_named, group))]
        likely = [group for group in groups if any(hit.id in meant for hit in group)]
        return found, [self._history(group, query.filters) for group in (by_key or likely)[:MOST_FACTS]]

    def unknown(self, query: SearchQuery) -> tuple[str, ...]:
        """The names in a question that nothing the caller may see mentions."""
        names = {name: tuple(query_terms(name)) for name in entities(query.text) if name.rstrip("s") not in _DAYS}
        mentioned = self._mentioned((term for terms in names.values() for term in terms), query.filters)
        return tuple(name for name, terms in names.items() if terms and mentioned.isdisjoint(terms))

    def _mentioned(self, terms: Iterable[str], filters: Filters) -> frozenset[str]:
        """The terms that something the caller may see mentions."""
        wanted = list(dict.fromkeys(terms))
        found = self.store.frequencies(wanted) if wanted else {}
        if filters.scopes is None or not found:
            return frozenset(found)
        return self.store.known_terms(list(found), filters.scopes)

    def _history(self, group: list[Hit], filters: Filters) -> FactHistory:
        best = next(filter(_is_named, group), group[0])
        return FactHistory(best, tuple(versions_of(best.memory, self.store, filters.scopes)) if best.memory else ())

    def _named_first(self, hits: Hits, slots: SlotQuery, query: SearchQuery) -> Hits:
        found = {h.memory.conflict_key for h in hits if h.memory is not None and slots.has(h.memory.conflict_key)}
        of_policies = [key for key in slots.conflict_keys if key in found]
        wanted = found - set(of_policies[1:])
        first = [looked_up(hit, NAMED) for hit in hits if hit.memory is not None and hit.memory.conflict_key in wanted]
        if not first:
            first = [self._hit(memory) for memory in self._heads(slots, query.filters)]
        ids = {hit.id for hit in first}
        hits[:] = [*first, *(hit for hit in hits if hit.id not in ids)][: query.limit]
        return hits

    def _heads(self, slots: SlotQuery, filters: Filters) -> list[Memory]:
        """The current versions of the fact, by its conflict key: in a large store a search may miss them."""
        plain = replace(filters, scopes=None, statuses=None, valid_at=None, as_of=False) == Filters(statuses=None)
        for key in slots.conflict_keys if plain else ():
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
    """The question without words of change: no version of the budget says that it "changed", or was so "before"."""
    said = words(question)
    topic = [word for word in said if not (word.key in word_class("asking", "of_old") or _tells_change(word.key))]
    return " ".join(question[word.start : word.end] for word in topic) if len(topic) < len(said) else question


def _tells_change(key: str) -> bool:
    return kind_of(key) == "change" or revises(key)


def _is_named(hit: Hit) -> bool:
    return hit.trace is not None and NAMED in hit.trace.found_by
