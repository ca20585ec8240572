"""What Engram knew at a moment (`known_at`): memories as the journal says they were then, judged by what they said then."""

from dataclasses import replace

from engram.model.memory import Memory
from engram.rules.eligibility import is_valid
from engram.rules.scopes import shows
from engram.store.protocol import Filters, Store


def ever(filters: Filters) -> Filters:
    """The same without what changes with time: whoever passed then may be out of force, or not yet in force, today."""
    return replace(filters, statuses=None, valid_at=None, as_of=False)


def was_in_force(memory: Memory, filters: Filters) -> bool:
    """Whether a memory, as it was at `known_at`, was in force for the moment asked about, and in sight."""
    if not shows(filters.scopes, memory.scope):
        return False
    moment = filters.valid_at if filters.as_of and filters.valid_at is not None else filters.known_at
    return moment is None or is_valid(memory, moment)


def listing(store: Store, filters: Filters, limit: int | None, offset: int) -> list[Memory]:
    """Memories, newest first; those of `known_at` as they were."""
    if filters.known_at is None:
        return store.listing(filters, limit, offset)
    held = store.known_at(filters.known_at)
    then = (held.get(memory.id, memory) for memory in store.listing(ever(filters)))
    kept = [memory for memory in then if memory is not None and _passes(memory, filters)]
    return kept[offset:] if limit is None else kept[offset : offset + limit]


def _passes(memory: Memory, filters: Filters) -> bool:
    return was_in_force(memory, filters) and (filters.statuses is None or memory.status in filters.statuses)
