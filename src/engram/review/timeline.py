"""The versions of one fact on their timeline: each is true until the next begins, and the last one that has begun is in force."""

from collections.abc import Sequence
from datetime import datetime
from itertools import zip_longest

from engram.model.memory import Memory
from engram.store.lineages import IN_FORCE, start_of

STANDING = (*IN_FORCE, "superseded")
"""Statuses of versions that count; what was retired or rejected, or waits for a person, is no part of a fact's way."""


def settled(members: Sequence[Memory], now: datetime) -> list[Memory]:
    """The versions that stand, in order, as they follow from each other.

    An end that is no other version's beginning is the version's own and stays. A version that begins later leaves the one
    before it in force until then; that day comes without anybody's decision.
    """
    standing = sorted((m for m in members if m.status in STANDING), key=lambda m: (start_of(m), m.revision, m.id))
    begun = [m for m in standing if start_of(m) <= now]
    head = begun[-1].id if begun else ""
    followed = zip_longest(standing, standing[1:])
    return [_placed(m, later, members, in_force=m.id == head or start_of(m) > now) for m, later in followed]


def _placed(memory: Memory, later: Memory | None, members: Sequence[Memory], *, in_force: bool) -> Memory:
    ends = [end for end in (_own_end(memory, members), start_of(later) if later else None) if end is not None]
    memory = memory.but(valid_until=min(ends, default=None))
    if memory.status == "superseded" and not memory.superseded_by:
        return memory  # nothing took its place: its document no longer states it, and no other version's going brings it back
    if in_force or later is None:
        return memory.but(status=memory.status if memory.status in IN_FORCE else "active", superseded_by="")
    return memory.but(status="superseded", superseded_by=later.id)


def _own_end(memory: Memory, members: Sequence[Memory]) -> datetime | None:
    """The end a version was given with its words; not the one it has because another began."""
    others = {start_of(other) for other in members if other.id != memory.id}
    return None if memory.valid_until in others else memory.valid_until
