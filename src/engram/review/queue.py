"""The review queue: read in few queries, filtered, sorted by worth, and grouped."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, TypedDict

from engram.decisions.execution import Change, LockedMemories, execute_change
from engram.gates.trust import kind_of, tier_3_reason, tier_of
from engram.model.arguments import FORGET_REQUESTED
from engram.model.errors import InvalidInput
from engram.model.lazy import dataclass, field
from engram.model.memory import CONTRADICTS, LIVE_STATUSES, MAY_SUPERSEDE, Memory
from engram.model.types import KINDS, type_or_default
from engram.rules.lifecycle import eligibility
from engram.rules.scopes import is_scope_visible
from engram.rules.sources import is_from
from engram.store.protocol import Filters, Store

APPROVE: Final = "approve"
REJECT: Final = "reject"
CHOICES = ("new", "old", "merge", "both")
WAITS_AS = ("contradiction", "update", "forget", "candidate", "retirement")
"""The kinds of queue items, in the order they are listed."""
CONFIDENCE_SHARE, IMPORTANCE_SHARE, TYPE_SHARE, REPEAT_STEP, REPEAT_MAX = 0.5, 0.3, 0.2, 0.02, 0.1
"""Weights of a candidate's worth: corrections and constraints rank before facts, and repeated statements before single ones."""
LOWEST_PRIORITY = 3
_ACTIONS = {
    **dict.fromkeys(("contradiction", "update"), CHOICES),
    **dict.fromkeys(("candidate", "forget"), (APPROVE, REJECT)),
    "retirement": ("retire", "reinforce", "later"),
}


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """An item to review: its kind, its memory, the other memory involved, and the possible actions."""

    waits_as: str
    memory: Memory
    other: Memory | None
    reason: str
    actions: tuple[str, ...]

    def concerns(self, memory_id: str) -> bool:
        """Whether the item involves this memory, on either side."""
        return memory_id == self.memory.id or (self.other is not None and memory_id == self.other.id)


def worth(memory: Memory) -> float:
    """A candidate's worth to a reviewer, from 0 to about 1, by confidence, importance, type and number of derivations."""
    urgency = 1 - type_or_default(memory.type).priority / LOWEST_PRIORITY
    repeated = min(REPEAT_MAX, REPEAT_STEP * max(0, memory.derivation_count - 1))
    return CONFIDENCE_SHARE * memory.confidence + IMPORTANCE_SHARE * memory.importance + TYPE_SHARE * urgency + repeated


@dataclass(frozen=True, slots=True)
class QueueReader:
    """Reads the queue for a caller who sees these scopes."""

    store: Store
    now: datetime
    scopes: Collection[str] | None = None

    def candidates(self) -> list[ReviewItem]:
        """The candidates, without reasons: those that contradict a current memory first, then by worth."""
        waiting = self._list_memories(("candidate",))
        known = self._linked_memories(waiting, CONTRADICTS)
        known |= self._fetch_memories(i for memory in waiting for i in memory.supersedes)
        items = [self._candidate(memory, known) for memory in waiting]
        return sorted(items, key=lambda item: (WAITS_AS.index(item.waits_as), -worth(item.memory), item.memory.id))

    def waiting_items(self) -> list[ReviewItem]:
        """All items, in the order of `WAITS_AS`, without reasons."""
        return sorted([*self.candidates(), *self._current()], key=lambda item: WAITS_AS.index(item.waits_as))

    def with_reason(self, item: ReviewItem, *, sourced: bool = True) -> ReviewItem:
        """The item with its reason, which names a candidate's source if `sourced`.

        The sensitivity model is slow, so it runs only for items that are shown.
        """
        return ReviewItem(item.waits_as, item.memory, item.other, self._reason(item, sourced), item.actions)

    def _list_memories(self, statuses: tuple[str, ...]) -> list[Memory]:
        scopes = None if self.scopes is None else tuple(self.scopes)
        return self.store.listing(Filters(statuses=statuses, valid_at=None, scopes=scopes))

    def _linked_memories(self, memories: Iterable[Memory], kind: str) -> dict[str, Memory]:
        return self._fetch_memories(
            link.target for memory in memories for link in memory.associations if link.type == kind
        )

    def _fetch_memories(self, ids: Iterable[str]) -> dict[str, Memory]:
        """The memories with these ids, in two reads."""
        wanted = list(dict.fromkeys(ids))
        numbers = list(self.store.numbers(wanted).values()) if wanted else []
        found = (one.record for one in self.store.get_many(numbers)) if numbers else ()
        return {memory.id: memory for memory in found if isinstance(memory, Memory)}

    def _candidate(self, memory: Memory, known: Mapping[str, Memory]) -> ReviewItem:
        other = self._first_current(_targets(memory, CONTRADICTS), known)
        waits_as = "contradiction" if other is not None else "candidate"
        return _item(waits_as, memory, other or self._replaced_head(memory, known))

    def _first_current(self, ids: Sequence[str], known: Mapping[str, Memory]) -> Memory | None:
        found = (known[i] for i in ids if i in known)
        current = next((other for other in found if other.status in LIVE_STATUSES), None)
        return current if current is not None and is_scope_visible(self.scopes, current.scope) else None

    def _replaced_head(self, memory: Memory, known: Mapping[str, Memory]) -> Memory | None:
        """The current memory that a candidate would supersede if approved."""
        from engram.review.lineage import Lineages

        lineages = Lineages(self.store, lambda: self.now)
        for older in (known[i] for i in memory.supersedes if i in known):
            head = older if older.status in LIVE_STATUSES else lineages.current(older.id)
            if head.status in LIVE_STATUSES and is_scope_visible(self.scopes, head.scope):
                return head
        return None

    def _current(self) -> list[ReviewItem]:
        """The current memories that may replace an older one, that somebody asked to forget, or that have faded."""
        memories = self._list_memories(LIVE_STATUSES)
        known = self._linked_memories(memories, MAY_SUPERSEDE)
        items = []
        for memory in memories:
            if FORGET_REQUESTED in memory.metadata:
                items.append(_item("forget", memory))
            if memory.status != "active":
                continue
            if older := self._first_current(_targets(memory, MAY_SUPERSEDE), known):
                items.append(_item("update", memory, older))
            if eligibility(memory, self.now).state == "retirement candidate":
                items.append(_item("retirement", memory))
        return items

    def _reason(self, item: ReviewItem, sourced: bool) -> str:
        memory, other = item.memory, item.other
        about = f"{other.id}: {other.statement[:80]}" if other is not None else ""
        if item.waits_as == "contradiction":
            return f"contradicts {about}"
        if item.waits_as == "update":
            return f"may supersede {about}"
        if item.waits_as == "forget":
            return f"to be forgotten: asked for by {memory.metadata[FORGET_REQUESTED]}"
        if item.waits_as == "retirement":
            return eligibility(memory, self.now).reason
        replaced = f"would supersede {about}" if about else ""
        source = f"from {memory.source or 'unknown'}" if sourced else ""
        return "; ".join(filter(None, (replaced, source, tier_3_reason(memory))))


def _item(waits_as: str, memory: Memory, other: Memory | None = None) -> ReviewItem:
    return ReviewItem(waits_as, memory, other, "", _ACTIONS[waits_as])


def _targets(memory: Memory, kind: str) -> list[str]:
    return [link.target for link in memory.associations if link.type == kind]


def request_forget(store: Store, clock: Callable[[], datetime], ref: str, *, actor: str, where: str) -> bool:
    """Queue a memory that the actor asked to forget but may not; returns whether the request is new.

    The request is stored in the memory's metadata, so every backend, copy and migration carries it.
    """

    def plan(memories: LockedMemories) -> bool:
        (memory,) = memories.targets
        if is_to_be_forgotten(memory):
            return False
        memories.put(memory.replace(metadata={**memory.metadata, FORGET_REQUESTED: f"{actor} in {where}"}))
        return True

    change = Change(op="request", actor=actor, plan=plan, note=f"asked to forget it in {where}", targets=[ref])
    return execute_change(store, clock, change)


def is_to_be_forgotten(memory: Memory) -> bool:
    """Whether a memory is current and has a pending request to forget it."""
    return memory.status in LIVE_STATUSES and FORGET_REQUESTED in memory.metadata


TIERS = (1, 2, 3)


class QueueFilters(TypedDict, total=False):
    """The filters on candidates."""

    source: str
    kind: str
    tier: int | None
    scope: str
    group: str


@dataclass(frozen=True, slots=True)
class QueueGroup:
    """Candidates of one source on one topic; `count` is how many wait, `items` those listed, possibly none."""

    source: str
    topic: str
    count: int
    items: tuple[ReviewItem, ...]


@dataclass(frozen=True, slots=True)
class QueuePage:
    """The queue's groups, best first; `more` is the number of unlisted items of each source."""

    waiting: int
    groups: tuple[QueueGroup, ...]
    more: Mapping[str, int] = field(default_factory=dict)


def filter_items(items: Sequence[ReviewItem], filters: QueueFilters) -> list[ReviewItem]:
    """The items that pass the filters, in their order. Raises `InvalidInput` for an unknown kind or tier."""
    kind, tier, topic = filters.get("kind", ""), filters.get("tier"), filters.get("group", "")
    _check("kind", kind, tuple(KINDS))
    if tier is not None:
        _check("tier", str(tier), [str(one) for one in TIERS])
    source, scope = filters.get("source", ""), filters.get("scope", "")
    kept = [
        item
        for item in items
        if (not source or is_from(source_of(item.memory), source))
        and (not scope or item.memory.scope == scope)
        and (not kind or kind_of(item.memory) == kind)
    ]
    if topic:
        # Topics are named over all items before filtering, so that a topic has the same name everywhere.
        named = topics(items)
        kept = [item for item in kept if named[item.memory.id].casefold() == topic.casefold()]
    if tier is not None:
        kept = [item for item in kept if tier_of(item.memory) == tier]
    return kept


def _check(name: str, value: str, known: Sequence[str]) -> None:
    if value and value not in known:
        raise InvalidInput(f"Unknown {name} {value!r}; choose {', '.join(known)}")


def source_of(memory: Memory) -> str:
    """The name of a memory's source in the queue."""
    return memory.source or "unknown"


def build_page(
    items: Sequence[ReviewItem],
    named: Mapping[str, str],
    per_source: int,
    explain: Callable[[ReviewItem], ReviewItem],
) -> QueuePage:
    """The items grouped by topic, at most `per_source` of each source (0: all); only listed items are explained."""
    if per_source < 0:
        raise InvalidInput(f"the number per source is 0 for all, or more; not {per_source}")
    groups: dict[tuple[str, str], list[ReviewItem]] = {}
    for item in items:
        groups.setdefault((source_of(item.memory), named[item.memory.id]), []).append(item)
    counts = Counter(source_of(item.memory) for item in items)
    room = {source: per_source or count for source, count in counts.items()}
    page = []
    for (source, topic), found in sorted(groups.items(), key=_by_worth):
        listed = found[: room[source]]
        room[source] -= len(listed)
        page.append(QueueGroup(source, topic, len(found), tuple(map(explain, listed))))
    more = {source: count - per_source for source, count in counts.items() if per_source and count > per_source}
    return QueuePage(len(items), tuple(page), more)


def _by_worth(group: tuple[tuple[str, str], list[ReviewItem]]) -> tuple[str, float, str]:
    """Sort key that keeps groups of one source together, best first."""
    (source, topic), items = group
    return source, -max(worth(item.memory) for item in items), topic


def topics(items: Iterable[ReviewItem]) -> dict[str, str]:
    """The topic of each item, by memory id, named among the items of its source."""
    from engram.review.topics import topics_of

    found: dict[str, str] = {}
    by_source: dict[str, list[Memory]] = {}
    for item in items:
        by_source.setdefault(source_of(item.memory), []).append(item.memory)
    for memories in by_source.values():
        found |= topics_of(memories)
    return found
