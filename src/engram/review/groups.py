"""The queue as a person reads it: filtered, sorted by worth, grouped by source and topic, with a cap per source."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypedDict

from engram.gates.trust import kind_of, tier_of
from engram.model.errors import InvalidInput
from engram.model.lazy import dataclass, field
from engram.model.memory import Memory
from engram.model.types import KINDS
from engram.review.queue import ReviewItem, worth
from engram.rules.sources import is_from

TIERS = (1, 2, 3)


class QueueFilters(TypedDict, total=False):
    """Which candidates."""

    source: str
    kind: str
    tier: int | None
    scope: str
    group: str


@dataclass(frozen=True, slots=True)
class QueueGroup:
    """Candidates of one source about one topic; `count` is how many wait, `items` those that are listed, which may be none."""

    source: str
    topic: str
    count: int
    items: tuple[ReviewItem, ...]


@dataclass(frozen=True, slots=True)
class QueuePage:
    """The queue's groups, the most worth keeping first; `more` is how many of each source are not listed."""

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
        # Of everything that waits, whatever else is chosen: a topic is named the same wherever it is asked for.
        named = topics(items)
        kept = [item for item in kept if named[item.memory.id].casefold() == topic.casefold()]
    if tier is not None:
        kept = [item for item in kept if tier_of(item.memory) == tier]
    return kept


def _check(name: str, value: str, known: Sequence[str]) -> None:
    if value and value not in known:
        raise InvalidInput(f"Unknown {name} {value!r}; choose {', '.join(known)}")


def source_of(memory: Memory) -> str:
    """Where a memory comes from, as the queue names it."""
    return memory.source or "unknown"


def build_page(
    items: Sequence[ReviewItem],
    named: Mapping[str, str],
    per_source: int,
    explain: Callable[[ReviewItem], ReviewItem],
) -> QueuePage:
    """The items in groups by their topics, of each source at most `per_source` (0: all); only what is listed is explained."""
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
    """Groups of one source next to each other, the best first."""
    (source, topic), items = group
    return source, -max(worth(item.memory) for item in items), topic


def topics(items: Iterable[ReviewItem]) -> dict[str, str]:
    """The topic of each item, by memory id, as it is called among those of its source."""
    from engram.review.topics import topics_of

    found: dict[str, str] = {}
    by_source: dict[str, list[Memory]] = {}
    for item in items:
        by_source.setdefault(source_of(item.memory), []).append(item.memory)
    for memories in by_source.values():
        found |= topics_of(memories)
    return found
