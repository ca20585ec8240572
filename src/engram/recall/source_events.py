"""Events that only repeat a found memory or describe a document."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from engram.model.event import DOCUMENT_ROLE, Event
from engram.model.memory import Memory

__all__ = ["MIN_CHUNK_RELEVANCE", "fold_events", "is_chunk", "is_manifest"]

MIN_CHUNK_RELEVANCE = 0.05
"""The floor of possibly related document chunks, which are long enough to share words with any question."""
Item = TypeVar("Item")


def fold_events(ranked: Sequence[Item], record_of: Callable[[Item], Memory | Event]) -> list[Item]:
    """The ranked items without events that a memory among them was extracted from."""
    records = [record_of(item) for item in ranked]
    sources = {evidence.event for record in records if isinstance(record, Memory) for evidence in record.evidence}
    return [
        item
        for item, record in zip(ranked, records, strict=True)
        if not (_is_foldable(record) and record.id in sources)
    ]


def is_manifest(event: Event) -> bool:
    """Whether an event records that a document was read."""
    return event.role == DOCUMENT_ROLE and event.event_type == "observation"


def is_chunk(event: Event) -> bool:
    """Whether an event is a chunk of a document."""
    return event.role == DOCUMENT_ROLE and event.event_type == "artifact"


def _is_foldable(record: Memory | Event) -> bool:
    """Whether a memory can replace this record; not a chunk, which says more than the facts extracted from it."""
    return isinstance(record, Event) and not is_chunk(record)
