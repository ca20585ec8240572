"""Checkpoints of ledgers in the journal, the same on every backend: where each ledger ended, and which events were redacted.

In a checkpoint, `op` is `ledger`, `session` the ledger's name, and `reason` the number and digest of its last event and a link: a
digest of the newest checkpoint at the time, of any ledger. So removing a checkpoint breaks the link of the next one. Removing the
newest checkpoints together with their events cannot be detected: the result is an earlier state of the store.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from engram.model.event import Event
from engram.store.ledger import Head, is_marked

LEDGER_OP = "ledger"
BEGUN, PRUNED = "begun", "pruned"
"""In place of a digest, after the number 0: a ledger that is about to begin, and one that was pruned."""
TASK = "task"
"""The operation of an entry for a new task or checkpoint: `session` is the task's id, `reason` says which."""
FIRST = "-"
"""In place of a link, in the first checkpoint."""
REDACTED = "redact"
"""The operation of a redaction: `session` is the ledger, `reason` the ids of the events."""


class LedgerCheckpoint(NamedTuple):
    """A ledger's end. `link` is "" in checkpoints from before links existed."""

    head: Head
    link: str = ""

    @property
    def is_pruned(self) -> bool:
        """Whether the ledger was pruned here."""
        return self.head == (0, PRUNED)


def checkpoint_text(head: Head, link: str) -> str:
    """A checkpoint as an entry's reason."""
    return f"{head.seq} {head.digest} {link}"


def parse_checkpoint(reason: str) -> LedgerCheckpoint | None:
    """The checkpoint in an entry's reason; None if it is malformed."""
    count, _, rest = reason.partition(" ")
    digest, _, link = rest.partition(" ")
    return LedgerCheckpoint(Head(int(count), digest), link) if count.isascii() and count.isdigit() else None


def link_to(session: str, reason: str) -> str:
    """The link by which the next checkpoint refers to this one."""
    return hashlib.sha256(f"{session}\0{reason}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def redaction_text(ids: Iterable[str]) -> str:
    """A redaction as an entry's reason: the ids of the events, none of their content."""
    return " ".join(sorted(ids))


def missing_events(name: str, checkpoints: Iterable[str], digest_at: Callable[[int], str | None]) -> list[str]:
    """Whether events that a ledger's checkpoints name are missing or replaced; no lines if all are there.

    Every checkpoint counts, not only the last: events appended after a tail was cut off have checkpoints of their own.
    """
    lost = 0
    for reason in checkpoints:
        checkpoint = parse_checkpoint(reason)
        if checkpoint is None:
            return [f"{name}: a checkpoint in the journal was altered"]
        if checkpoint.head.seq and digest_at(checkpoint.head.seq) != checkpoint.head.digest:
            lost = max(lost, checkpoint.head.seq)
    if not lost:
        return []
    return [f"{name}: event {lost} is missing or was altered; events at the end were dropped or replaced"]


def without_checkpoint(name: str, events: Sequence[Event], checkpoints: Sequence[str]) -> list[str]:
    """Whether the journal has no checkpoint of a ledger, though one is written before the first event."""
    if checkpoints or not any(is_marked(event) for event in events):
        return []
    return [
        f"{name}: the journal has no checkpoint of its {len(events)} events; the checkpoints were removed, or the events inserted"
    ]


def broken_links(checkpoints: Iterable[tuple[str, str]]) -> list[str]:
    """Checkpoints, given as ledger and reason, that link to one that is missing or was altered."""
    found = list(checkpoints)
    known = {link_to(session, reason) for session, reason in found} | {FIRST, ""}
    parsed = [(session, point) for session, reason in found if (point := parse_checkpoint(reason)) is not None]
    return [
        f"journal: the checkpoint before that of event {point.head.seq} of {session} is missing or was altered"
        for session, point in parsed
        if point.link not in known
    ]
