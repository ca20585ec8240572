"""Versions of facts: which version replaces which, which one is current, and which memories wait because they contradict a current one."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from engram.model.errors import InvalidInput, Refused
from engram.model.lazy import replace
from engram.model.memory import CONTRADICTS, LIVE_STATUSES, MAY_SUPERSEDE, Association, Memory
from engram.rules.lifecycle import has_begun, is_effective, outlasts
from engram.rules.sources import CONFIRMED, DISPUTED, is_evidence, may_replace
from engram.store.protocol import MAX_VERSIONS, Store, Transaction
from engram.store.records import sort_versions, start_of

VERSION_STATUSES = (*LIVE_STATUSES, "superseded")
"""Statuses of versions in a fact's history; retired, rejected and candidate memories do not count."""


def resolve_versions(members: Sequence[Memory], now: datetime) -> list[Memory]:
    """The versions that count, in order, with the status and end that follow from the others.

    An end that does not match another version's beginning was set explicitly and stays. A version that begins in the
    future leaves its predecessor current until then; no further decision is needed on that day.
    """
    versions = [memory for memory in sort_versions(members) if memory.status in VERSION_STATUSES]
    placed = []
    for i, memory in enumerate(versions):
        later = next((m for m in versions[i + 1 :] if not _is_exception(m, memory, members)), None)
        placed.append(_resolve_version(memory, later, members, now))
    return placed


def _is_exception(later: Memory, memory: Memory, members: Sequence[Memory]) -> bool:
    """Whether an earlier version stays current next to a later one, which ends sooner and was not made to replace it for good."""
    own = _own_end(later, members)
    return (
        own is not None and outlasts(memory, later.replace(valid_until=own)) and not _replaces(later, memory, members)
    )


def _replaces(later: Memory, memory: Memory, members: Sequence[Memory]) -> bool:
    """Whether a version supersedes another, directly or through versions in between."""
    known, waiting, seen = {m.id: m for m in members}, [later.id], set[str]()
    while waiting:
        one = known.get(waiting.pop())
        older = set(one.supersedes) - seen if one is not None else set()
        seen |= older
        waiting += older
    return memory.id in seen


def _resolve_version(memory: Memory, later: Memory | None, members: Sequence[Memory], now: datetime) -> Memory:
    # The clock may have been set back between the two; a version never ends before it begins.
    replaced_at = max(start_of(memory), start_of(later)) if later is not None else None
    ends = [end for end in (_own_end(memory, members), replaced_at) if end is not None]
    memory = memory.replace(valid_until=min(ends, default=None))
    if memory.status == "superseded" and not memory.superseded_by:
        return memory  # nothing replaced it (its document no longer states it), so removing another version does not restore it
    if later is None or not has_begun(later, now):
        return memory.replace(status=memory.status if memory.status in LIVE_STATUSES else "active", superseded_by="")
    return memory.replace(status="superseded", superseded_by=later.id)


def _own_end(memory: Memory, members: Sequence[Memory]) -> datetime | None:
    """The end set on the version itself; None if its end only comes from a later version's beginning."""
    # If the clock was set back before the next version began, the version ends at its own beginning.
    return None if memory.valid_until in {start_of(other) for other in (*members, memory)} else memory.valid_until


DERIVED_FIELDS = frozenset({"lineage", "revision", "superseded_by", "supersedes"})
"""Fields that `add`, `revise`, `forget` and `undo` compute."""


def replaced_memories(deciding: Transaction, memory: Memory) -> list[Memory]:
    """The memories that an active one replaces: current ones with its conflict key, and those named in `supersedes`."""
    if memory.status != "active":
        return []
    heads = list(deciding.heads(memory.conflict_key, memory.scope)) if memory.conflict_key else []
    named = find_heads(deciding, memory.supersedes)
    return [head for head in {head.id: head for head in (*heads, *named)}.values() if head.id != memory.id]


def find_heads(deciding: Transaction, ids: Sequence[str]) -> list[Memory]:
    """The current versions of the facts that these ids belong to."""
    return [head for older in ids for head in _heads_of(deciding, older)]


def outranking_head(heads: Sequence[Memory], source: str) -> Memory | None:
    """The first head that this source may not replace because its source is more trusted; None if there is none."""
    return next((head for head in heads if not may_replace(source, head)), None)


def contradiction_target(get: Callable[[str], Memory | None], memory: Memory) -> Memory | None:
    """The first current memory that this one is linked to as contradicting."""
    linked = (get(link.target) for link in memory.associations if link.type == CONTRADICTS)
    return next((other for other in linked if other is not None and other.status in LIVE_STATUSES), None)


def _heads_of(deciding: Transaction, memory_id: str) -> list[Memory]:
    """The current version of the fact that an id belongs to."""
    memory = deciding.get(memory_id)
    if memory is None:
        return []
    versions = deciding.lineage(memory.lineage) if memory.lineage and memory.status not in LIVE_STATUSES else [memory]
    return [version for version in versions if version.status in LIVE_STATUSES]


def place_version(
    deciding: Transaction, new: Memory, heads: Sequence[Memory], now: datetime, *, for_good: bool = False
) -> Memory:
    """The new version, placed in the history by its beginning; the other versions stay readable, each valid until the next begins.

    Without a given date it follows every version that has begun, whatever the clock showed when that one was stored. A
    version dated before the current head becomes part of the history, and the head stays current. So does a head that
    outlasts the new version, unless it is replaced `for_good`; the new version's `supersedes` then records that.

    Only `place_version` replaces one version with another. Valid time (`valid_from`, `valid_until`) says when a version
    was true; the journal has the recorded time. A version that ends before the current one is an exception to it: both
    are current while it is valid, and only the other afterwards.
    """
    latest = sort_versions(heads)[-1]
    lineage = latest.lineage or latest.id
    known = _versions(deciding, heads)
    start = new.valid_from or new.occurred_at or now
    lasting = {head.id for head in heads if outlasts(head, new) and not for_good}
    older = [head.id for head in heads if _is_before(head, start, now) and head.id not in lasting]
    named = [i for i in new.supersedes if i not in lasting] if older or not lasting else []
    new = new.replace(
        supersedes=tuple(dict.fromkeys((*named, *older))),
        lineage=lineage,
        revision=max(version.revision for version in known) + 1,
        valid_from=start,
    )
    if start <= now and (new.created is None or new.created < start):
        new = new.replace(updated=now)  # shows that it had begun when it was written
    followed = resolve_versions(
        [*(_mark_superseded(version, new, older).replace(lineage=lineage) for version in known), new], now
    )
    for version in followed:
        if version.id != new.id:
            _put_changed(deciding, version, now)
    return next(version for version in followed if version.id == new.id)


def _versions(deciding: Transaction, heads: Sequence[Memory]) -> list[Memory]:
    """Every version of the facts that these heads belong to, with the heads as given."""
    known = {version.id: version for head in heads if head.lineage for version in deciding.lineage(head.lineage)}
    return list((known | {head.id: head for head in heads}).values())


def _is_before(head: Memory, start: datetime, now: datetime) -> bool:
    """Whether a version with this start follows the head.

    If a head has begun but is dated in the future, its clock was wrong.
    """
    return start_of(head) <= start or (start_of(head) > now and has_begun(head, now))


def _mark_superseded(version: Memory, new: Memory, older: Collection[str]) -> Memory:
    """The version, marked as superseded by the new one if its id is in `older`."""
    return version.replace(superseded_by=new.id) if version.id in older else version


def reorder_versions(
    deciding: Transaction, lineage: str, now: datetime, ends: "Mapping[str, datetime | None] | None" = None
) -> None:
    """Reorder a fact's versions after one was removed or restored; `ends` restores the ends that the removed version had cut short."""
    if not lineage:
        return
    known = deciding.lineage(lineage)
    if ends:
        known = [version.replace(valid_until=ends.get(version.id, version.valid_until)) for version in known]
    for version in resolve_versions(known, now):
        _put_changed(deciding, version, now)


def _put_changed(deciding: Transaction, memory: Memory, now: datetime) -> None:
    if memory != deciding.get(memory.id):
        deciding.put(memory.replace(updated=now))


def refuse_second_head(deciding: Transaction, memory: Memory, now: datetime) -> None:
    """Raise `Refused` if a memory would be a second current one with the same conflict key."""
    if memory.status not in LIVE_STATUSES or not is_effective(memory, now):
        return
    for other in deciding.heads(memory.conflict_key, memory.scope):
        if (
            other.id != memory.id
            and is_effective(other, now)
            and (not memory.lineage or other.lineage != memory.lineage)
        ):
            raise Refused(
                f"{memory.id} cannot be current next to {other.id}, which is the current version of the same fact in "
                f"{memory.scope}; forget that one first, or `revise` it"
            )


def refuse_decided(memory: Memory, changes: Mapping[str, Any]) -> None:
    """Raise `InvalidInput` for fields that Engram computes; set by hand, they could leave two current versions, or none."""
    if changes.keys() & DERIVED_FIELDS:
        name = sorted(changes.keys() & DERIVED_FIELDS)[0]
        raise InvalidInput(f"{name} follows from decisions; `revise` adds a version, `forget` and `undo` remove one")
    status = changes.get("status", memory.status)
    if status != memory.status and "superseded" in (status, memory.status):
        raise InvalidInput(
            f"{memory.id} is {memory.status} and cannot be made {status}: `revise` adds a version that supersedes it, "
            "`undo` removes one"
        )
    since, until = (changes.get(name, getattr(memory, name)) for name in ("valid_from", "valid_until"))
    if since is not None and until is not None and until < since:
        raise InvalidInput(f"valid_until {until} is before valid_from {since}")


def refuse_cycle(memory: Memory, memory_id: str, known: Callable[[str], Memory | None]) -> None:
    """Raise if a memory would supersede itself, or a memory that supersedes it."""
    waiting, seen = list(memory.supersedes), set()
    while waiting:
        older = waiting.pop()
        if older == memory_id:
            raise InvalidInput(
                f"{memory_id} cannot supersede {', '.join(memory.supersedes)}: that one already supersedes it; "
                "`revise` adds a new version"
            )
        if older not in seen:
            seen.add(older)
            found = known(older)
            waiting += found.supersedes if found is not None else ()


def ends_before(store: Store, memory: Memory) -> dict[str, datetime | None]:
    """The original ends of the versions that this one cut short, by id; needed to restore them when it is removed."""
    ends: dict[str, datetime | None] = {}
    for version in store.lineage(memory.lineage) if memory.lineage else ():
        if version.superseded_by == memory.id:
            images = [image.memory for image in store.history(version.id) if image.memory is not None]
            before = [image.valid_until for image in images if image.superseded_by != memory.id]
            if before and (before[-1] is None or before[-1] > start_of(memory)):
                ends[version.id] = before[-1]
    return ends


WAITS_KEY = "waits"
"""Marks a link to a memory that keeps a candidate from becoming active."""


def conflict_link(other: Memory, now: datetime, *, waits_alone: bool = False) -> Association:
    """The link from a candidate to the memory it contradicts; `waits_alone` if only this conflict keeps it from being active."""
    return Association(other.id, CONTRADICTS, 0.5, last_reinforced=now, extra={WAITS_KEY: True} if waits_alone else {})


def remove_wait_mark(link: Association) -> Association:
    """The link without its `WAITS_KEY` mark."""
    return replace(link, extra={key: value for key, value in link.extra.items() if key != WAITS_KEY})


def change_link(other: Memory, probability: float, now: datetime) -> Association:
    """The link from a current memory to the older one that it probably replaces."""
    return Association(other.id, MAY_SUPERSEDE, 0.5, confidence=round(probability, 3), last_reinforced=now)


def contradicting_candidates(store: Store, ids: Collection[str]) -> list[Memory]:
    """The candidates that contradict one of these memories."""
    return [memory for memory in contradicting_memories(store, ids) if memory.status == "candidate"]


def contradicting_memories(store: Store, ids: Collection[str]) -> list[Memory]:
    """The memories that contradict one of these, or did when they were stored."""
    links = store.links_to(list(ids)) if ids else []
    sources = dict.fromkeys(source for source, _, kind, _ in links if kind == CONTRADICTS and source not in ids)
    return [memory for memory in map(store.get, sources) if memory is not None]


def with_disputes(store: Store, memories: Sequence[Memory]) -> list[Memory]:
    """The memories, marked as disputed if a waiting candidate contradicts them whose source may replace them.

    The mark is computed on read, so nothing needs to be reverted when the contradiction is settled. Memories that a
    person confirmed are never disputed.
    """
    current = {
        memory.id: memory for memory in memories if memory.status in LIVE_STATUSES and memory.verification != CONFIRMED
    }
    links = store.links_to(list(current)) if current else []
    pairs = [(source, target) for source, target, kind, _ in links if kind == CONTRADICTS]
    against = {source: store.get(source) for source in dict.fromkeys(source for source, _ in pairs)}
    open_ = {
        target
        for source, target in pairs
        if (other := against[source]) is not None
        and other.status == "candidate"
        and may_replace(other.source, current[target])
    }
    return [memory.replace(verification=DISPUTED) if memory.id in open_ else memory for memory in memories]


def update_target(get: Callable[[str], Memory | None], memory: Memory) -> Memory | None:
    """The current memory that this one may supersede; that decision is still open."""
    linked = (get(link.target) for link in memory.associations if link.type == MAY_SUPERSEDE)
    return next((other for other in linked if other is not None and other.status in LIVE_STATUSES), None)


def release_waiting(deciding: Transaction, waiting: Sequence[Memory], now: datetime) -> list[Memory]:
    """Make active each candidate that waited only for memories that this change retires or replaces, and return them, newest first.

    A candidate that also contradicts the successor waits for the successor instead.
    """
    released: list[Memory] = []
    for seen in sorted(waiting, key=lambda memory: memory.id, reverse=True):
        memory = deciding.get(seen.id)
        if memory is None or memory.status != "candidate" or not waits_alone(memory):
            continue
        moved = _move_links(deciding, memory)
        blocked = contradiction_target(deciding.get, moved) or any(_is_rival(moved, other) for other in released)
        freed = None if blocked else _try_activate(deciding, moved, now)
        if freed is not None:
            released.append(freed)
        if (changed := freed or moved) != memory:
            deciding.put(changed.replace(updated=now))
    return released


def waits_alone(memory: Memory) -> bool:
    """Whether a conflict is all that keeps a candidate from being active. Evidence never becomes active by itself."""
    marked = any(link.extra.get(WAITS_KEY) is True for link in memory.associations if link.type == CONTRADICTS)
    return marked and not is_evidence(memory)


def _move_links(deciding: Transaction, memory: Memory) -> Memory:
    """The candidate with its links moved from superseded memories to their successors, if it contradicts those as well."""
    from engram.gates.neighbourhood import in_conflict

    links = []
    for link in memory.associations:
        heir = _successor(deciding, link.target) if link.type == CONTRADICTS else None
        if heir is not None and heir.id != memory.id and in_conflict(memory, heir):
            link = replace(link, target=heir.id)
        links.append(link)
    return memory.replace(associations=tuple(links))


def _successor(deciding: Transaction, memory_id: str) -> Memory | None:
    """The current memory that has replaced a superseded one."""
    found = deciding.get(memory_id)
    for _ in range(MAX_VERSIONS):
        if found is None or found.status != "superseded":
            break
        found = deciding.get(found.superseded_by) if found.superseded_by else None
    return found if found is not None and found.id != memory_id and found.status in LIVE_STATUSES else None


def _is_rival(memory: Memory, other: Memory) -> bool:
    """Whether two memories that waited for the same one contradict each other."""
    from engram.gates.neighbourhood import in_conflict

    return in_conflict(memory, other)


def _try_activate(deciding: Transaction, memory: Memory, now: datetime) -> Memory | None:
    """The candidate as an active memory; None if it would replace a memory from a more trusted source."""
    from engram.gates.proposal import GateSettings
    from engram.gates.trust import trust

    # A program's own decision needs no trust check.
    if memory.learned_by != "add" and trust(memory, False, GateSettings()).status != "active":
        return None
    active = memory.replace(status="active")
    try:
        deciding.check(active)
    except Refused:
        return None
    heads = replaced_memories(deciding, active)
    if outranking_head(heads, active.source):
        return None
    return place_version(deciding, active, heads, now) if heads else active
