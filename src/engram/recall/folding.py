"""Events of which an answer has the memory already, and events that are about a document instead of what it says."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from engram.model.event import DOCUMENT_ROLE, Event
from engram.model.memory import Memory

__all__ = ["MIN_CHUNK_RELEVANCE", "fold_events", "is_chunk", "is_manifest"]

MIN_CHUNK_RELEVANCE = 0.05
"""The floor of possibly related chunks of documents: a chunk says so much that some of its words match any question."""
Item = TypeVar("Item")


def fold_events(ranked: Sequence[Item], record_of: Callable[[Item], Memory | Event]) -> list[Item]:
    """The ranked items without the events from which a memory among them was extracted."""
    records = [record_of(item) for item in ranked]
    sources = {evidence.event for record in records if isinstance(record, Memory) for evidence in record.evidence}
    return [
        item
        for item, record in zip(ranked, records, strict=True)
        if not (_is_foldable(record) and record.id in sources)
    ]


def is_manifest(event: Event) -> bool:
    """Whether an event says which document was read and how long it is."""
    return event.role == DOCUMENT_ROLE and event.event_type == "observation"


def is_chunk(event: Event) -> bool:
    """Whether an event is a part of a document."""
    return event.role == DOCUMENT_ROLE and event.event_type == "artifact"


def _is_foldable(record: Memory | Event) -> bool:
    """Whether a record is an event that a memory can stand for; a chunk says more than the facts taken from it."""
    return isinstance(record, Event) and not is_chunk(record)
