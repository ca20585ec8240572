"""Memories by id, name or alias, for verbs that need one: `NotFound` says what to do."""

from collections.abc import Collection

from engram.model.errors import NotFound
from engram.model.memory import Memory
from engram.store.protocol import Store, Transaction

__all__ = ["find_memory", "locked_memory", "no_memory"]


def find_memory(store: Store, ref: object, scopes: Collection[str] | None = None) -> Memory:
    """The memory of that id, name or alias; raises `NotFound` where none of these scopes has it."""
    memory = store.get(ref, scopes) if isinstance(ref, str) else None
    if memory is None:
        raise no_memory(ref)
    return memory


def no_memory(ref: object) -> NotFound:
    """The error for an id, name or alias that no memory has."""
    return NotFound(f"no memory {ref!r}; `engram list` shows what there is")


def locked_memory(deciding: Transaction, memory_id: str) -> Memory:
    """A memory inside a transaction; raises `NotFound` where it was purged in the meantime."""
    memory = deciding.get(memory_id)
    if memory is None:
        raise NotFound(f"{memory_id} was purged in the meantime")
    return memory
