"""Events that a process has appended to ledgers and not indexed yet."""

import sqlite3
from collections.abc import Sequence

from engram.model.event import Event
from engram.model.lazy import dataclass, field
from engram.store.files.log.journal import JournalLine
from engram.store.files.log.ledger import LedgerRange

MOST, MOST_BYTES = 64, 1_000_000
"""Events, and bytes of events, that may stay pending; the append that reaches a limit indexes all of them."""


@dataclass(slots=True)
class PendingEvents:
    """Events this process has appended and not indexed yet.

    The ledger is the commit point and the index is derived, so an append need not wait for it. Nothing depends on this process:
    every append is anchored in the journal, and any process that finds the journal longer than the index has read indexes them.
    """

    into: sqlite3.Connection
    read: str | None
    """How far the index had read the journal; while that is unchanged, nobody else has indexed the events."""
    events: list[tuple[Event, str]] = field(default_factory=list)
    """Each event with the scope of its ledger."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Each ledger's size after its last event."""
    anchors: dict[str, JournalLine] = field(default_factory=dict)
    """The last anchor journaled for each session, the newest of all last."""
    size: int = 0
    """Bytes of all pending events."""
    is_urgent: bool = False
    """Whether to index them at once: others are writing too, or the anchor could not be journaled."""

    @property
    def newest(self) -> JournalLine | None:
        """The newest anchor of any of these ledgers."""
        return next(reversed(self.anchors.values()), None)

    @property
    def is_due(self) -> bool:
        """Whether the events should be indexed now."""
        return self.is_urgent or self.read is None or len(self.events) >= MOST or self.size >= MOST_BYTES

    def add(self, events: Sequence[Event], scope: str, written: LedgerRange) -> None:
        """Add events appended to a ledger."""
        self.events += [(event, scope) for event in events]
        self.size += written.end - written.start
        self.sizes[written.ledger] = written.end

    def note_anchor(self, placed: JournalLine | None) -> None:
        """Add the anchor that was journaled; None if that failed."""
        if placed is None:
            self.is_urgent = True
            return
        self.anchors.pop(placed.entry.session, None)
        self.anchors[placed.entry.session] = placed
