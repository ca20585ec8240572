"""What keeping the index current needs besides the logs; and the appends to the journal, whose numbers the index knows."""

import json
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from engram.model.lazy import dataclass, field
from engram.store.files.log.context import LogContext
from engram.store.files.log.journal import AfterImage, Entry, JournalLine, Position
from engram.store.files.log.ledger import last_anchored
from engram.store.files.log.mark import Durability, is_own
from engram.store.files.memories import Stamp
from engram.store.files.reconcile.index_records import Anchors, index_entries
from engram.store.files.reconcile.pending_events import PendingEvents
from engram.store.ledger import LEDGER_OP, Head, checkpoint_text
from engram.store.sqlite.index import Index

if TYPE_CHECKING:
    from engram.embedding.protocol import Embedder, Vectors


@dataclass(slots=True)
class IndexContext(LogContext):
    """The logs of an open store, and the index that follows them and the memory files."""

    index: Index
    embedder: "Embedder | None"
    teams: set[str] = field(default_factory=set)
    """The folders of the team stores in use."""
    trust: tuple[Stamp | None, dict[str, frozenset[str]]] | None = None
    """The digests the owner trusts, by folder, and the stamp of the file they were read from."""
    anchors: Anchors = field(init=False)
    durability: Durability = field(default_factory=Durability)
    pending: PendingEvents | None = None
    """Events this process has appended to ledgers and not indexed yet."""

    def __post_init__(self) -> None:
        self.anchors = Anchors(self.index)
        # Without a reference to self: the index of a closed store must be freed at once, not by the cycle collector.
        self.ledger.last_anchored = partial(last_anchored, self.journal)

    def embed(self, texts: Sequence[str]) -> "Vectors | None":
        """Vectors of texts; None if this process does not have the index's embedder."""
        if self.embedder is None or not self.index.can_embed():
            return None
        return self.embedder.embed(texts)

    def image_before(self, memory_id: str, seq: int) -> AfterImage | None:
        """A memory's last image before a decision, of those the index has read; None if there is none."""
        row = self.index.db.execute(
            "SELECT month, offset FROM images WHERE id = ? AND seq < ? ORDER BY seq DESC LIMIT 1", (memory_id, seq)
        ).fetchone()
        changes = self.journal.at(Position(*row)).changes if row else ()
        return next((change for change in reversed(changes) if change.id == memory_id), None)

    @property
    def seq(self) -> int:
        """The number of the last decision the index knows."""
        return int(self.index.get("seq") or 0)

    @property
    def position(self) -> Position:
        """How far into the journal the index has read."""
        return self.position_of(self.index.get("journal"))

    @staticmethod
    def position_of(stored: str | None) -> Position:
        """The position stored in the index."""
        return Position(*json.loads(stored)[:2]) if stored else Position()


def reindex_journal(context: IndexContext) -> None:
    """Record the positions of all images again, after the journal was rewritten. The caller holds the writer lock."""
    with context.index.writing():
        context.index.db.execute("DELETE FROM images")
        context.index.db.execute("DELETE FROM meta WHERE key = 'journal'")
        seq = context.seq
        unread: list[str] = []
        index_entries(context.index, context.journal.readable(unread))
        context.index.set("seq", max(seq, context.seq))
    context.warn(*unread)


class Tail(NamedTuple):
    """The end of the journal and the number of its last entry."""

    end: Position
    seq: int
    others: bool = False
    """Whether other processes have written to it since this one last read it."""


def journal_tail(context: IndexContext) -> Tail:
    """The journal's end, with the last number from the index if it has read that far."""
    end = context.journal.end()
    return Tail(end, context.seq if end == context.position else context.journal.last_seq())


def append_entry(
    context: IndexContext,
    op: str,
    actor: str,
    reason: str,
    changes: Sequence[AfterImage],
    session: str = "",
    *,
    durably: bool = True,
    tail: Tail | None = None,
) -> JournalLine:
    """Journal one decision: the commit point. `tail` is the journal's end, if the caller knows it."""
    tail = tail or journal_tail(context)
    entry = Entry(
        max(tail.seq, context.durability.floor) + 1, context.clock(), op, actor, reason, tuple(changes), session
    )
    context.durability.waiting += sum(1 for change in changes if is_own(change.file) or not change.file)
    return context.journal.append(entry, tail.end, durably=durably)


def append_anchor(context: IndexContext, session: str, head: Head, tail: Tail, *, durably: bool) -> JournalLine:
    """Record a ledger's end in the journal (an anchor), linked to the previous anchor."""
    reason = checkpoint_text(head, context.anchors.link(tail.end))
    placed = append_entry(context, LEDGER_OP, "engram", reason, (), session, durably=durably, tail=tail)
    context.anchors.note(placed)
    return placed
