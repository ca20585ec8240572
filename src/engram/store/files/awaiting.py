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
from engram.store.files.journal import Placed
from engram.store.files.parts import Parts, index_entry, index_event, note_ledger

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors

MOST, MOST_CHARS = 64, 1_000_000
"""So many may wait, and so much; the append that comes to it pays for all of them, some 10 ms."""


@dataclass(slots=True)
class Awaiting:
    """What this process has appended since the index was in step with all logs."""

    into: sqlite3.Connection
    read: str | None
    """How far the index had read the journal, in its own words: as long as that stands, nobody else took the events in."""
    events: list[tuple[Event, str]] = field(default_factory=list)
    """Each with the scope its ledger belongs to."""
    sizes: dict[str, int] = field(default_factory=dict)
    """How long each ledger is behind its last event."""
    told: dict[str, Placed] = field(default_factory=dict)
    """What the journal was told of each session's ledger last; the newest word of all is the last."""
    chars: int = 0
    untold: bool = False
    """Whether an append is not in the journal: nobody would look for it."""

    @property
    def newest(self) -> Placed | None:
        """The journal's newest word on any of these ledgers."""
        return next(reversed(self.told.values()), None)

    @property
    def is_due(self) -> bool:
        """Whether the index should have all this now."""
        return self.untold or self.read is None or len(self.events) >= MOST or self.chars >= MOST_CHARS

    def add(self, events: Sequence[Event], scope: str, ledger: str, size: int) -> None:
        """An append to a ledger."""
        self.events += [(event, scope) for event in events]
        self.chars += sum(len(event.content) for event in events)
        self.sizes[ledger] = size

    def tell(self, placed: Placed | None) -> None:
        """What the journal was told of it."""
        if placed is None:
            self.untold = True
            return
        self.told.pop(placed.entry.session, None)
        self.told[placed.entry.session] = placed


def is_untouched(parts: Parts, waiting: Awaiting) -> bool:
    """Whether the index is as it was before these events were appended."""
    return waiting.into is parts.index.db and parts.index.get("journal") == waiting.read


def vectors_of(parts: Parts, documents: Sequence[Document]) -> "Sequence[Vectors | None]":
    """A vector for each; None where there is none yet: it is found by its words, and by its meaning once that can be made."""
    vectors = None
    with contextlib.suppress(EmbedderError):
        vectors = parts.embed([document.meaning for document in documents])
    return list(vectors) if vectors is not None else [None] * len(documents)


def take_in(parts: Parts) -> bool:
    """Put what waits into the index. False where another process may have done so: the files tell then what is missing."""
    waiting, parts.awaiting = parts.awaiting, None
    if waiting is None:
        return True
    documents = [event_document(event, scope) for event, scope in waiting.events]
    vectors = vectors_of(parts, documents)
    # SQLite's own lock is enough: who holds the writer lock and writes to the index has read the journal first, which shows.
    with parts.index.writing() as writer:
        if not is_untouched(parts, waiting):
            return False
        for (event, _), document, vector in zip(waiting.events, documents, vectors, strict=True):
            index_event(parts, writer, event, document, vector)
        for ledger, size in waiting.sizes.items():
            note_ledger(parts, ledger, size)
        for placed in waiting.told.values():
            index_entry(parts, placed)
    return True
