"""The facts a question is about, found by search or by the conflict key it names, and their versions over time.

"The user moved to Lisbon" shares no word with "What was my previous home?". But the policy gave it a conflict key, and
the question names the same slot (residence) and owner (the user). A slot that no policy defines ("user:home") is
recognised if its words are in the table. A window anchored to an event ("before I moved") is looked up in memories and
the session log.
"""

from calendar import day_name, month_name
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from engram.model.hit import Filtered, Hit, Hits, HitTrace, Part
from engram.model.lazy import dataclass, field, lazy_pattern, replace
from engram.model.memory import LIVE_STATUSES, Memory
from engram.recall.cutoff import (
    LOOKED_UP_RELEVANCE,
    MIN_KNOWN,
    NEAREST_FLOOR,
    derive_hits,
    is_about,
    keep_relevant,
    mark_looked_up,
)
from engram.recall.freshness import MAX_COMPARED_HITS, Replacements, contradicted_by, replacements_among
from engram.recall.parse import ParsedQuestion
from engram.recall.query import SearchQuery, is_selected
from engram.recall.search import Searcher
from engram.recall.trace import drop_hits
from engram.rules.lifecycle import is_effective
from engram.rules.numbers import RELEVANCE_SCALE
from engram.rules.scopes import GLOBAL, USER
from engram.store.protocol import NEVER_TRUE_STATUSES, Filters, Store
from engram.store.records import sort_versions, start_of
from engram.text.entities import entities
from engram.text.time.windows import Window
from engram.text.time.words import words
from engram.text.time.zone import local
from engram.text.tokens import query_terms, tokens
from engram.text.words import is_past, kind_of, revises, stem, word_class

__all__ = [
    "EVERY_VERSION",
    "FOUND_BY_KEY",
    "INSTANT",
    "AnchoredWindow",
    "SlotQuery",
    "before_outcome",
    "changes_within",
    "group_by_lineage",
    "is_over",
    "is_past_version",
    "overlaps",
    "select_by_value",
    "slot_query",
    "time_of",
    "version_hit",
    "versions_of",
    "window_of",
]

FOUND_BY_KEY = "key"
"""The name in a hit's trace for a match by conflict key."""
_SELF = frozenset(("my", "i"))
_CARRIERS = frozenset(("do", "does", "did", "have", "has", "had", "am", "is", "was", "are", "were"))
_PARTS = lazy_pattern(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class SlotQuery:
    """The fact a question names: its possible slots, the most likely first, and its owner."""

    slots: tuple[str, ...] = ()
    owner: str = ""

    @property
    def conflict_keys(self) -> tuple[str, ...]:
        """The conflict keys a policy may have given it."""
        return tuple(f"{slot}:{self.owner}" for slot in self.slots)

    def has(self, conflict_key: str) -> bool:
        """Whether a memory with this key is a version of the fact."""
        if not conflict_key or not self.slots:
            return False
        if conflict_key in self.conflict_keys:
            return True
        parts = {part for part in _PARTS.split(conflict_key.lower()) if part}
        said = {word for slot in self.slots for word in _words_of(slot)}
        return bool(parts & said) and self.owner in parts and parts <= said | {self.owner}

    def is_anothers(self, conflict_key: str) -> bool:
        """Whether a key is for the same slot but the wrong owner: the user instead of somebody else, or the reverse."""
        slot, _, owner = conflict_key.partition(":")
        return slot in self.slots and bool(owner) and (owner == USER) != (self.owner == USER)


@lru_cache(maxsize=1)
def _rows() -> tuple[tuple[str, ...], ...]:
    lines = (Path(__file__).parent / "slots.txt").read_text("utf-8").splitlines()
    return tuple(tuple(line.split()) for line in lines if line and not line.startswith("#"))


@lru_cache(maxsize=2)
def _slots(how: str) -> dict[str, tuple[str, ...]]:
    return {stem(row[1]): row[2:] for row in _rows() if row[0] == how}


@lru_cache(maxsize=2)
def _class(how: str) -> frozenset[str]:
    return frozenset(word for row in _rows() if row[0] == how for word in row[1:])


@lru_cache(maxsize=64)
def _words_of(slot: str) -> frozenset[str]:
    return frozenset((slot, *(row[1] for row in _rows() if row[0] == "noun" and slot in row[2:])))


def slot_query(question: str) -> SlotQuery:
    """The fact that a question, without its time phrase, names; without slots if it names none."""
    keys = [word.key + _possessive(question[word.start : word.end]) * ("'" not in word.key) for word in words(question)]
    return _parse_possession(keys) or _parse_activity(keys) or SlotQuery()


def _possessive(written: str) -> str:
    return "'s" if written.lower().rstrip("?!.,;:").endswith(("'s", "’s")) else ""


def _parse_possession(keys: list[str]) -> SlotQuery | None:
    """A thing with its owner: "what was my previous employer", "Anna's age". In "my home wifi", "home" only qualifies
    the thing.
    """
    for place, (noun, after) in enumerate(pairwise([*keys, ""])):
        slots = _slots("noun").get(stem(noun))
        owner = _owner(keys[:place]) if slots and _is_clause_end(after) else ""
        if slots and owner:
            return SlotQuery(slots, owner)
    return None


def _owner(before: list[str]) -> str:
    while before and before[-1] in _class("modifier"):
        before = before[:-1]
    if not before:
        return ""
    if before[-1] == "my":
        return USER
    return _as_key(before[-1].removesuffix("'s")) if before[-1].endswith("'s") and len(before[-1]) > 2 else ""


def _is_clause_end(after: str) -> bool:
    said_of_it = is_past(after) or kind_of(after) == "change" or revises(after)
    return not after or after in _class("adverb") or said_of_it or not query_terms(f"x {after}")[1:]


def _parse_activity(keys: list[str]) -> SlotQuery | None:
    """What somebody does at a place: "where did I live", "which company does my sister work for"."""
    asks = keys[:1] in (["where"], ["who"]) or (len(keys) > 1 and keys[0] in ("which", "what") and _is_noun(keys[1]))
    carrier = next((place for place, key in enumerate(keys) if key in _CARRIERS), 0)
    if not asks or not carrier:
        return None
    rest = [key for key in keys[carrier + 1 :] if key not in _class("adverb")]
    for place, verb in enumerate(rest):
        slots = _slots("verb").get(stem(verb))
        if slots and place and not any(query_terms(f"x {key}")[1:] for key in rest[place + 1 :]):
            owner = _subject(rest[:place])
            return SlotQuery(slots, owner) if owner else None
    return None


def _is_noun(key: str) -> bool:
    return stem(key) in _slots("noun")


def _subject(said: list[str]) -> str:
    """The one person who is the verb's subject: "I", "Anna", "my sister"; nobody if it may be several people."""
    if said == ["i"]:
        return USER
    name = said[1:] if said[0] == "my" else said
    return _as_key(" ".join(name)) if name and all(query_terms(f"x {key}")[1:] for key in name) else ""


def _as_key(name: str) -> str:
    from engram.gates.policies.keys import normalize_value  # slow to import, and most questions do not need it

    return normalize_value(name)


_IT = frozenset(("it", "them", "that", "this", "they", "these"))
EVERY_VERSION = (*LIVE_STATUSES, "superseded", "archived")
"""The statuses of memories that are or once were true."""


@dataclass(frozen=True, slots=True)
class AnchoredWindow:
    """The window of a question, with warnings about it.

    If it is anchored to an event, `anchor_id` is the id of the hit that dates the event. `after` is the same id if the
    window follows the event.
    """

    window: Window | None
    notes: tuple[str, ...] = ()
    after: str = ""
    anchor_id: str = ""


def window_of(question: ParsedQuestion, filters: Filters, searcher: Searcher) -> AnchoredWindow:
    """The question's window; an anchor is looked up."""
    if question.window is not None or not query_terms(question.anchor) or _is_own_change(question):
        return AnchoredWindow(question.window)
    dated = _find_anchor_hit(question.anchor, filters, searcher)
    moment = _moment_of(dated) if dated is not None else None
    if dated is None or moment is None:
        return AnchoredWindow(None, (f"It is not known when “{question.anchor}” was.",))
    if question.relation == "after":
        return AnchoredWindow(Window(moment, None), after=dated.id, anchor_id=dated.id)
    if question.relation == "before":
        return AnchoredWindow(Window(None, moment), anchor_id=dated.id)
    return AnchoredWindow(_during(dated, moment, question.at.tzinfo), anchor_id=dated.id)


def _is_own_change(question: ParsedQuestion) -> bool:
    """Whether the anchor is a change of the fact itself: "before I changed it". Then its versions show the earlier
    value.
    """
    told = [word.key for word in words(question.anchor)]
    return question.relation == "before" and bool(_IT & set(told)) and any(revises(key, loosely=True) for key in told)


def _find_anchor_hit(anchor: str, filters: Filters, searcher: Searcher) -> Hit | None:
    """The memory or logged event that dates the anchor. The question assumes that it exists, so the closest match is
    enough.
    """
    wide = replace(filters, kinds=("memory", "event"), statuses=EVERY_VERSION, valid_at=None, as_of=False, types=None,
                   since=None, until=None)  # fmt: skip
    found = searcher.search(
        SearchQuery(anchor, 5, filters=wide, min_relevance=NEAREST_FLOOR, purpose=f"when “{anchor}” was")
    )
    return max(found, key=lambda hit: hit.relevance, default=None)


def _moment_of(hit: Hit) -> datetime | None:
    return start_of(hit.memory) if hit.memory else hit.event.at if hit.event else None


def _during(dated: Hit, moment: datetime, zone: tzinfo | None) -> Window:
    """The time a memory was valid; for an event, its day in the question's zone."""
    if dated.memory is not None and dated.memory.valid_until is not None:
        return Window(moment, dated.memory.valid_until)
    day = (local(moment, zone) if zone else moment).replace(hour=0, minute=0, second=0, microsecond=0)
    return Window(day, day + timedelta(days=1))


INSTANT = timedelta(microseconds=1)


def is_over(memory: Memory | None, now: datetime) -> bool:
    """Whether the validity of a memory has ended."""
    return memory is not None and memory.valid_until is not None and memory.valid_until <= now


def is_past_version(memory: Memory, now: datetime) -> bool:
    """Whether a memory is no longer true: superseded, archived, or past the end of its validity."""
    return memory.status not in LIVE_STATUSES or is_over(memory, now)


def overlaps(memory: Memory | None, window: Window, now: datetime) -> bool:
    """Whether a memory was true at some moment of the window."""
    if memory is None:
        return False
    until = memory.valid_until or now + INSTANT
    return (window.until is None or start_of(memory) < window.until) and (window.since is None or until > window.since)


def changes_within(versions: Sequence[Memory], window: Window | None) -> list[Memory]:
    """The versions before and after every change in the window, each once, in order."""
    sides = [pair for pair in pairwise(versions) if window is None or _is_in_window(window, start_of(pair[1]))]
    return list({version.id: version for pair in sides for version in pair}.values())


def _is_in_window(window: Window, moment: datetime) -> bool:
    return (window.since is None or moment >= window.since) and (window.until is None or moment < window.until)


def versions_of(memory: Memory, store: Store, filters: Filters) -> list[Memory]:
    """The versions of a fact that were ever true and pass the filters, at any time, in order."""
    if not memory.lineage:
        return [memory]
    anytime = replace(filters, kinds=("memory",), since=None, until=None)
    found = store.lineage(memory.lineage)
    return [version for version in found if version.status not in NEVER_TRUE_STATUSES and is_selected(anytime, version)]


def select_by_value(versions: Sequence[Memory], question: str) -> list[Memory]:
    """The versions whose own value the question names ("how long did I live in Rome"); empty if it does not name
    one.
    """
    named = {term for name in entities(question) for term in query_terms(name)}
    said = [named & set(tokens(version.statement)) for version in versions]
    return [version for version, terms in zip(versions, said, strict=True) if any(terms - other for other in said)]


def group_by_lineage(hits: Sequence[Hit]) -> list[list[Hit]]:
    """The hits of each fact together, the fact with the best hit first."""
    groups: dict[str, list[Hit]] = {}
    for hit in hits:
        if hit.memory is not None:
            groups.setdefault(hit.memory.lineage or hit.id, []).append(hit)
    return list(groups.values())


def before_outcome(memory: Memory, event: datetime, versions: Sequence[Memory]) -> Memory:
    """The version before an event. A version that began on the day of the event is taken to be its result."""
    day = event.replace(hour=0, minute=0, second=0, microsecond=0)
    of_the_day = [version for version in versions if day <= start_of(version) < day + timedelta(days=1)]
    earlier = [version for version in versions if start_of(version) < start_of(memory)]
    came_of_it = bool(of_the_day) and of_the_day[-1].id == memory.id
    return earlier[-1] if came_of_it and earlier else memory


def version_hit(memory: Memory, hit: Hit) -> Hit:
    """A version as a hit, with the score of the version that a search found."""
    note = "" if memory.status in LIVE_STATUSES else memory.status
    trace = hit.trace if memory.id == hit.id else replace(hit.trace or HitTrace(), version_of=hit.id)
    return Hit(memory.id, "memory", hit.score, memory.statement, memory, metadata=memory.metadata, trace=trace,
               relevance=hit.relevance, note=note)  # fmt: skip


def time_of(hit: Hit, zone: tzinfo | None = None) -> str:
    """When a hit was true or happened, as days in the zone; "" if unknown."""
    if hit.memory is None:
        return _day(hit.event.at, zone) if hit.event is not None else ""
    memory = hit.memory
    if memory.valid_from is None and memory.valid_until is None:
        return _day(memory.when, zone) if memory.when is not None else ""
    start = _day(start_of(memory), zone)
    return f"since {start}" if memory.valid_until is None else f"{start} to {_day(memory.valid_until, zone)}"


def _day(moment: datetime, zone: tzinfo | None) -> str:
    return f"{moment if zone is None else local(moment, zone):%Y-%m-%d}"


WAITING_PURPOSE = "statements that wait for review"
CROWDED_OUT_PURPOSE = "current memories that versions of others left no place for"
VERSION_SEARCH_LIMIT = 30
"""Hits read for the versions of facts, enough that the versions of one fact do not crowd out another."""
MAX_FACTS = 10
"""The maximum number of facts whose versions are looked up for one question."""

_DAYS = frozenset((*day_name, *month_name))


@dataclass(frozen=True, slots=True)
class FactHistory:
    """A fact the question is about: the hit that found it, and its versions in the order in which they were true."""

    best: Hit
    versions: tuple[Memory, ...]
    ended: Mapping[str, tuple[Memory, str]] = field(default_factory=dict)
    """By id, versions that get an end here because another statement seems to have replaced them: as stored, with a
    note.
    """

    def version_hit(self, version: Memory) -> Hit:
        """A version as a hit, with the score of the hit that found the fact."""
        stored, note = self.ended.get(version.id, (version, ""))
        hit = version_hit(stored, self.best)
        return replace(hit, note=note) if note else hit

    @property
    def has_changed(self) -> bool:
        """Whether the fact ever had another value."""
        return len(self.versions) > 1


@dataclass(slots=True)
class FactFinder:
    """Searches for the facts of one question and for the names in it that no memory mentions."""

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

        hits = drop_hits(hits, is_anothers, f"the same fact about somebody other than {slots.owner}")
        return self._put_named_first(hits, slots, query)

    def find_current(self, query: SearchQuery) -> Hits:
        """Current memories, found by their own words or by those of a version they superseded."""
        given = query.filters
        if given.statuses != LIVE_STATUSES or given.as_of or given.known_at is not None:
            return self.search(query)
        every = replace(given, statuses=(*LIVE_STATUSES, "superseded"), valid_at=None)
        found = self.search(replace(query, filters=every))
        heads: dict[str, Hit] = {}
        for hit in found:
            head = self._head(hit, given)
            if head is not None:
                heads.setdefault(head.id, head)
        if not heads:
            return self.search(query)
        # Versions of one fact may have crowded out others.
        if len(found) >= query.limit and any(hit.id not in heads for hit in found):
            live = self.search(replace(query, purpose=CROWDED_OUT_PURPOSE))
            heads.update({hit.id: hit for hit in live if hit.id not in heads})
        left = [Filtered(hit.id, "not current") for hit in found if hit.id not in heads]
        hits = derive_hits(found, heads.values())
        hits.filtered = [*found.filtered, *left]
        return hits

    def find_waiting(self, query: SearchQuery) -> Hits:
        """Statements that wait for review only because they contradict a current memory, each followed by that
        memory.
        """
        found = self.search(
            replace(query, filters=replace(query.filters, statuses=("candidate",)), purpose=WAITING_PURPOSE)
        )
        hits: dict[str, Hit] = {}
        for hit in found:
            rivals = contradicted_by(hit.memory, self.store) if hit.memory is not None and is_about(hit) else []
            if rivals:
                seen = [rival for rival in rivals if is_selected(query.filters, rival)]
                hits.setdefault(hit.id, hit)
                hits.update({rival.id: hits.get(rival.id) or version_hit(rival, hit) for rival in seen})
        return derive_hits(found, hits.values())

    def _head(self, hit: Hit, filters: Filters) -> Hit | None:
        """The current version of a hit that passes the filters; None if there is none."""
        memory, now = hit.memory, self.clock()
        if memory is None or (memory.status in LIVE_STATUSES and is_effective(memory, now)):
            return hit
        if memory.status in LIVE_STATUSES or hit.relevance < NEAREST_FLOOR:
            return None
        follower = self.store.get(memory.superseded_by) if memory.superseded_by else None
        versions = (*versions_of(memory, self.store, filters), *([follower] if follower is not None else []))
        heads = [
            each
            for each in versions
            if each.status in LIVE_STATUSES and is_effective(each, now) and is_selected(filters, each)
        ]
        return version_hit(heads[-1], hit) if heads else None

    def find_histories(self, query: SearchQuery, floor: float = MIN_KNOWN) -> tuple[Hits, list[FactHistory]]:
        """Hits among all versions, and the facts the question means, the most relevant first.

        If it finds no fact, it repeats the search without the words that only ask for another time.
        """
        found, histories = self._find_histories(query, floor)
        topic = _topic(query.text)
        return (
            (found, histories)
            if histories or topic == query.text
            else self._find_histories(replace(query, text=topic), floor)
        )

    def _find_histories(self, query: SearchQuery, floor: float) -> tuple[Hits, list[FactHistory]]:
        every = replace(query.filters, kinds=("memory",), statuses=EVERY_VERSION, valid_at=None, as_of=False)
        wide = replace(
            query,
            filters=every,
            limit=max(VERSION_SEARCH_LIMIT, query.limit),
            purpose="every version of the facts asked about",
        )
        found = self.search(wide)
        groups, meant = group_by_lineage(found), {hit.id for hit in keep_relevant(found, query.text, floor)}
        by_key = [group for group in groups if any(map(_is_named, group))]
        likely = [group for group in groups if any(hit.id in meant for hit in group)]
        chosen = (by_key or likely)[:MAX_FACTS]
        near = [
            group for group in groups[:MAX_COMPARED_HITS] if group not in chosen and group[0].relevance >= NEAREST_FLOOR
        ]
        told, others = (
            [self._history(group, query.filters) for group in some] for some in (chosen, near if chosen else ())
        )
        return found, _join_histories(told, others, query.text, found)

    def find_unknown_names(self, query: SearchQuery) -> tuple[str, ...]:
        """The names in a question that no record visible to the caller mentions."""
        names = {name: tuple(query_terms(name)) for name in entities(query.text) if name.rstrip("s") not in _DAYS}
        mentioned = self._find_mentioned((term for terms in names.values() for term in terms), query.filters)
        return tuple(name for name, terms in names.items() if terms and mentioned.isdisjoint(terms))

    def _find_mentioned(self, terms: Iterable[str], filters: Filters) -> frozenset[str]:
        """The terms that some record visible to the caller mentions."""
        wanted = list(dict.fromkeys(terms))
        found = self.store.frequencies(wanted) if wanted else {}
        if filters.scopes is None or not found:
            return frozenset(found)
        return self.store.known_terms(list(found), filters.scopes)

    def _history(self, group: list[Hit], filters: Filters) -> FactHistory:
        # Every version gets the relevance of the best match, so a floor keeps all of them or none.
        best = next(filter(_is_named, group), None) or max(group, key=lambda hit: hit.relevance)
        return FactHistory(best, tuple(versions_of(best.memory, self.store, filters)) if best.memory else ())

    def _put_named_first(self, hits: Hits, slots: SlotQuery, query: SearchQuery) -> Hits:
        found = {h.memory.conflict_key for h in hits if h.memory is not None and slots.has(h.memory.conflict_key)}
        of_policies = [key for key in slots.conflict_keys if key in found]
        wanted = found - set(of_policies[1:])
        first = [
            mark_looked_up(hit, FOUND_BY_KEY)
            for hit in hits
            if hit.memory is not None and hit.memory.conflict_key in wanted
        ]
        if not first:
            first = [self._hit(memory) for memory in self._heads(slots, query.filters, hits)]
        ids = {hit.id for hit in first}
        hits[:] = [*first, *(hit for hit in hits if hit.id not in ids)][: query.limit]
        return hits

    def _heads(self, slots: SlotQuery, filters: Filters, near: Hits) -> list[Memory]:
        """The current versions of the fact, by its conflict key, because a search in a large store may miss them."""
        default = Filters(statuses=None)
        plain = replace(filters, kinds=default.kinds, scopes=None, statuses=None, valid_at=None, as_of=False) == default
        # Without scopes, try the shared scopes and those of the most similar hits.
        scopes = filters.scopes or dict.fromkeys((GLOBAL, USER, *(hit.memory.scope for hit in near if hit.memory)))
        for key in slots.conflict_keys if plain else ():
            heads = [memory for scope in scopes for memory in self.store.heads(key, scope)]
            if filters.valid_at is not None and not filters.as_of:
                heads = [memory for memory in heads if is_effective(memory, self.clock())]
            if heads:
                return heads
        return []

    def _hit(self, memory: Memory) -> Hit:
        trace = HitTrace((Part("match", RELEVANCE_SCALE),), {FOUND_BY_KEY: 1})
        return Hit(memory.id, "memory", RELEVANCE_SCALE, memory.statement, memory, metadata=memory.metadata, trace=trace,
                   relevance=LOOKED_UP_RELEVANCE)  # fmt: skip


def _join_histories(
    histories: list[FactHistory], near: Sequence[FactHistory], question: str, hits: Sequence[Hit]
) -> list[FactHistory]:
    """Join the histories of statements that seem to have replaced one another; each is true until the next begins.

    A history that is only loosely related to the question counts if it joins one that is about it.
    """
    every = [*histories, *near]
    if len(every) < 2:
        return histories
    meant = {version.id for history in histories for version in history.versions}
    versions = [version for history in every for version in history.versions]
    replaced = replacements_among(versions[:MAX_COMPARED_HITS], question, hits, meant)
    joined: list[FactHistory] = []
    for history in every:
        ids = {version.id for version in history.versions}
        related = [other for other in joined if replaced.relate(ids, {version.id for version in other.versions})]
        joined = [other for other in joined if other not in related]
        joined.append(_merge_histories([*related, history], replaced) if related else history)
    order = {history.best.id: place for place, history in enumerate(histories)}
    return sorted((one for one in joined if one.best.id in order), key=lambda history: order[history.best.id])


def _merge_histories(histories: Sequence[FactHistory], replaced: Replacements) -> FactHistory:
    stored = [history.ended.get(each.id, (each, ""))[0] for history in histories for each in history.versions]
    ends = {version.id: replaced.end(version.id) for version in stored if version.valid_until is None}
    versions = [
        version.replace(valid_until=ends[version.id]) if ends.get(version.id) else version for version in stored
    ]
    ended = {version.id: (version, replaced.note(version)) for version in stored if ends.get(version.id)}
    return FactHistory(histories[0].best, tuple(sort_versions(versions)), ended)


def _topic(question: str) -> str:
    """The question without words of change: no version of the budget says that it "changed", or what it was
    "before".
    """
    said = words(question)
    topic = [word for word in said if not (word.key in word_class("asking", "of_old") or _is_change_word(word.key))]
    return " ".join(question[word.start : word.end] for word in topic) if len(topic) < len(said) else question


def _is_change_word(key: str) -> bool:
    return kind_of(key) == "change" or revises(key)


def _is_named(hit: Hit) -> bool:
    return hit.trace is not None and FOUND_BY_KEY in hit.trace.found_by
