"""Events that stand in their ledgers and wait for the index: it takes them in together, before the next question.

The ledger is the commit point and the index is derived, so an append need not wait for it. Nothing hangs on this process:
the journal tells of every append, and whoever finds it longer than the index has read takes the events from the files.
"""

import contextlib
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engram.model.errors import EmbedderError
from engram.model.event import Event
from engram.store.documents import Document, event_document
from engram.store.files.context import StoreContext, index_entry, index_event, note_ledger
from engram.store.files.journal import JournalLine
from engram.store.files.ledger import Written

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors

MOST, MOST_BYTES = 64, 1_000_000
"""So many may wait, and so much; the append that comes to it pays for all of them."""


@dataclass(slots=True)
class PendingEvents:
    """What this process has appended since the index was in step with all logs."""

    into: sqlite3.Connection
    read: str | None
    """How far the index had read the journal, in its own words: as long as that stands, nobody else took the events in."""
    events: list[tuple[Event, str]] = field(default_factory=list)
    """Each with the scope its ledger belongs to."""
    sizes: dict[str, int] = field(default_factory=dict)
    """How long each ledger is behind its last event."""
    told: dict[str, JournalLine] = field(default_factory=dict)
    """What the journal was told of each session's ledger last; the newest word of all is the last."""
    size: int = 0
    """Bytes of all of them."""
    is_pressing: bool = False
    """Whether the index should have them at once: others are writing too, or the journal could not be told."""

    @property
    def newest(self) -> JournalLine | None:
        """The journal's newest word on any of these ledgers."""
        return next(reversed(self.told.values()), None)

    @property
    def is_due(self) -> bool:
        """Whether the index should have all this now."""
        return self.is_pressing or self.read is None or len(self.events) >= MOST or self.size >= MOST_BYTES

    def add(self, events: Sequence[Event], scope: str, written: Written) -> None:
        """An append to a ledger."""
        self.events += [(event, scope) for event in events]
        self.size += written.end - written.start
        self.sizes[written.ledger] = written.end

    def tell(self, placed: JournalLine | None) -> None:
        """What the journal was told of it."""
        if placed is None:
            self.is_pressing = True
            return
        self.told.pop(placed.entry.session, None)
        self.told[placed.entry.session] = placed


def is_untouched(parts: StoreContext, waiting: PendingEvents) -> bool:
    """Whether the index is as it was before these events were appended; if not, another process has taken them in.

    Whoever moves on in the journal has taken in every ledger that it tells of.
    """
    return waiting.into is parts.index.db and parts.index.get("journal") == waiting.read


def vectors_of(parts: StoreContext, documents: Sequence[Document]) -> "Sequence[Vectors | None]":
    """A vector for each; None where there is none yet: it is found by its words, and by its meaning once that can be made."""
    vectors = None
    with contextlib.suppress(EmbedderError):
        vectors = parts.embed([document.meaning for document in documents])
    return list(vectors) if vectors is not None else [None] * len(documents)


def take_in(parts: StoreContext) -> None:
    """Put what waits into the index. For the holder of the writer lock."""
    waiting = parts.awaiting
    if waiting is not None and is_untouched(parts, waiting):
        documents = [event_document(event, scope) for event, scope in waiting.events]
        vectors = vectors_of(parts, documents)
        with parts.index.writing() as writer:
            for (event, _), document, vector in zip(waiting.events, documents, vectors, strict=True):
                index_event(parts, writer, event, document, vector)
            for ledger, size in waiting.sizes.items():
                note_ledger(parts, ledger, size)
            for placed in waiting.told.values():
                index_entry(parts, placed)
    parts.awaiting = None
