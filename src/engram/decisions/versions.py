"""Versions of facts: what replaces what, in which order they were true, and which one is current.

`place_version` is the one place where a version replaces another. Valid time (`valid_from`, `valid_until`) says when a version
was true; the journal has the recorded time. A version that ends before the current one would is an exception to it: both are
current while it holds, and the other alone afterwards.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from engram.model.errors import InvalidInput, Refused
from engram.model.memory import CONTRADICTS, Memory
from engram.rules.eligibility import has_begun, is_effective, outlasts
from engram.rules.sources import may_replace
from engram.store.protocol import Store, Transaction
from engram.store.records import CURRENT_STATUSES, sort_versions, start_of

VERSION_STATUSES = (*CURRENT_STATUSES, "superseded")
"""Statuses of versions that count; retired, rejected and candidate memories are no part of a fact's history."""


def resolve_versions(members: Sequence[Memory], now: datetime) -> list[Memory]:
    """The versions that count, in order, with the status and end that follow from the others.

    An end that is no other version's beginning is the version's own and stays. A version that begins later leaves the one
    before it current until then; no decision is needed on that day.
    """
    versions = [memory for memory in sort_versions(members) if memory.status in VERSION_STATUSES]
    placed = []
    for i, memory in enumerate(versions):
        later = next((m for m in versions[i + 1 :] if not _is_exception(m, memory, members)), None)
        placed.append(_resolve_version(memory, later, members, now))
    return placed


def _is_exception(later: Memory, memory: Memory, members: Sequence[Memory]) -> bool:
    """Whether a later version leaves one before it in force: it ends earlier, and was not made to replace it for good."""
    own = _own_end(later, members)
    return (
        own is not None and outlasts(memory, later.replace(valid_until=own)) and not _replaces(later, memory, members)
    )


def _replaces(later: Memory, memory: Memory, members: Sequence[Memory]) -> bool:
    """Whether a version says that it supersedes another, or one that does."""
    known, waiting, seen = {m.id: m for m in members}, [later.id], set[str]()
    while waiting:
        one = known.get(waiting.pop())
        older = set(one.supersedes) - seen if one is not None else set()
        seen |= older
        waiting += older
    return memory.id in seen


def _resolve_version(memory: Memory, later: Memory | None, members: Sequence[Memory], now: datetime) -> Memory:
    # The clock may have been set back between the two: no version ends before it begins.
    replaced_at = max(start_of(memory), start_of(later)) if later is not None else None
    ends = [end for end in (_own_end(memory, members), replaced_at) if end is not None]
    memory = memory.replace(valid_until=min(ends, default=None))
    if memory.status == "superseded" and not memory.superseded_by:
        return memory  # nothing replaced it: its document no longer states it, and the removal of another version does not restore it
    if later is None or not has_begun(later, now):
        return memory.replace(status=memory.status if memory.status in CURRENT_STATUSES else "active", superseded_by="")
    return memory.replace(status="superseded", superseded_by=later.id)


def _own_end(memory: Memory, members: Sequence[Memory]) -> datetime | None:
    """The end a version was given itself, not the one it has because another began."""
    # Its own beginning is where it ends if the clock was set back before the next one began.
    return None if memory.valid_until in {start_of(other) for other in (*members, memory)} else memory.valid_until


DERIVED_FIELDS = frozenset({"lineage", "revision", "superseded_by", "supersedes"})
"""Fields that follow from `add`, `revise`, `forget` and `undo`."""


def replaced_memories(deciding: Transaction, memory: Memory) -> list[Memory]:
    """The memories an active one replaces: the current ones with its conflict key, and those it says it supersedes."""
    if memory.status != "active":
        return []
    heads = list(deciding.heads(memory.conflict_key, memory.scope)) if memory.conflict_key else []
    named = find_heads(deciding, memory.supersedes)
    return [head for head in {head.id: head for head in (*heads, *named)}.values() if head.id != memory.id]


def find_heads(deciding: Transaction, ids: Sequence[str]) -> list[Memory]:
    """The current versions of the facts that these ids belong to."""
    return [head for older in ids for head in _heads_of(deciding, older)]


def outranking_head(heads: Sequence[Memory], source: str) -> Memory | None:
    """The first head that this source may not replace, because a more trusted source said it; None where it may replace all."""
    return next((head for head in heads if not may_replace(source, head)), None)


def contradiction_target(get: Callable[[str], Memory | None], memory: Memory) -> Memory | None:
    """The current memory that another one is linked to as contradicting it."""
    linked = (get(link.target) for link in memory.associations if link.type == CONTRADICTS)
    return next((other for other in linked if other is not None and other.status in CURRENT_STATUSES), None)


def _heads_of(deciding: Transaction, memory_id: str) -> list[Memory]:
    """The current version of the fact that an id belongs to."""
    memory = deciding.get(memory_id)
    if memory is None:
        return []
    versions = (
        deciding.lineage(memory.lineage) if memory.lineage and memory.status not in CURRENT_STATUSES else [memory]
    )
    return [version for version in versions if version.status in CURRENT_STATUSES]


def place_version(
    deciding: Transaction, new: Memory, heads: Sequence[Memory], now: datetime, *, for_good: bool = False
) -> Memory:
    """The new version, placed among the others by its beginning; those stay readable, each true until the next begins.

    Without a given date it follows every version that has begun, whatever the clock said when that one was stored. A version that
    is dated before the current head is part of the history: the head stays. So does a head that outlasts the new version, unless
    it is replaced `for_good`; what the new version supersedes then says so.
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
    """Every version of the facts these are heads of, the heads as they are given."""
    known = {version.id: version for head in heads if head.lineage for version in deciding.lineage(head.lineage)}
    return list((known | {head.id: head for head in heads}).values())


def _is_before(head: Memory, start: datetime, now: datetime) -> bool:
    """Whether a version that starts then follows the head. A head dated after now, although it has begun, was dated by a wrong clock."""
    return start_of(head) <= start or (start_of(head) > now and has_begun(head, now))


def _mark_superseded(version: Memory, new: Memory, older: Collection[str]) -> Memory:
    """The version, superseded by the new one if it is one of the older ones."""
    return version.replace(superseded_by=new.id) if version.id in older else version


def reorder_versions(
    deciding: Transaction, lineage: str, now: datetime, ends: "Mapping[str, datetime | None] | None" = None
) -> None:
    """Reorder a fact's versions after one was removed or restored; `ends` are those that versions had before it began."""
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
    """Raise `Refused` where a memory would be current next to another with the same conflict key."""
    if memory.status not in CURRENT_STATUSES or not is_effective(memory, now):
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
    """Raise `InvalidInput` for fields that follow from decisions: set by hand, they could leave two current versions, or none."""
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
    """A memory cannot supersede itself, nor what supersedes it."""
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
    """The ends that this version cut short when it superseded others, and which would be lost with it otherwise."""
    ends: dict[str, datetime | None] = {}
    for version in store.lineage(memory.lineage) if memory.lineage else ():
        if version.superseded_by == memory.id:
            images = [image.memory for image in store.history(version.id) if image.memory is not None]
            before = [image.valid_until for image in images if image.superseded_by != memory.id]
            if before and (before[-1] is None or before[-1] > start_of(memory)):
                ends[version.id] = before[-1]
    return ends
