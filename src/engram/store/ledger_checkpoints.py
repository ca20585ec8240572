"""The journal's word on the ledgers, alike on every backend: where each one ended, and which events were redacted.

`op` is `ledger`, `session` the ledger's name, `reason` the number and digest of its last event and a link: a digest of the word
that was the journal's newest then, of whichever ledger. So a word taken out of the journal is missed by the one after it.
Whoever takes away the newest words together with the events they speak of leaves a store that was once the true one: only
a copy of the last word kept elsewhere would tell.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from engram.model.event import Event
from engram.store.ledger import Head, is_marked

LEDGER_OP = "ledger"
BEGUN, PRUNED = "begun", "pruned"
"""In place of a digest, behind the number 0: a ledger that is about to begin, and one that was let go."""
TASK = "task"
"""The entry that says that a task was begun, or which checkpoint it got: `session` is the task's id, `reason` says which."""
FIRST = "-"
"""In place of a link, where the journal held no word before."""
REDACTED = "redact"
"""The entry that says whose words were destroyed: `session` is the ledger, `reason` the ids of the events."""


class LedgerCheckpoint(NamedTuple):
    """One word on a ledger's end. `link` is "" in those of a store that did not link them yet."""

    head: Head
    link: str = ""

    @property
    def is_pruned(self) -> bool:
        """Whether the ledger was let go here."""
        return self.head == (0, PRUNED)


def checkpoint_text(head: Head, link: str) -> str:
    """What the journal keeps of a ledger's end."""
    return f"{head.seq} {head.digest} {link}"


def parse_checkpoint(reason: str) -> LedgerCheckpoint | None:
    """The anchor of an entry's reason; None for what is none."""
    count, _, rest = reason.partition(" ")
    digest, _, link = rest.partition(" ")
    return LedgerCheckpoint(Head(int(count), digest), link) if count.isascii() and count.isdigit() else None


def link_to(session: str, reason: str) -> str:
    """How the next word refers to this one."""
    return hashlib.sha256(f"{session}\0{reason}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def redaction_text(ids: Iterable[str]) -> str:
    """What the journal keeps of a redaction: whose words went, and none of them."""
    return " ".join(sorted(ids))


def missing_events(name: str, anchors: Iterable[str], digest_at: Callable[[int], str | None]) -> list[str]:
    """What the ends the journal has seen tell of a ledger: nothing, or that events are gone or others stand in their place.

    Every one counts, not the last alone: what is appended after a tail was cut off has an end of its own.
    """
    lost = 0
    for reason in anchors:
        anchor = parse_checkpoint(reason)
        if anchor is None:
            return [f"{name}: the journal's word on where it ends was altered"]
        if anchor.head.seq and digest_at(anchor.head.seq) != anchor.head.digest:
            lost = max(lost, anchor.head.seq)
    if not lost:
        return []
    return [f"{name}: event {lost} was written and is not there as it was; events at the end were dropped or replaced"]


def without_checkpoint(name: str, events: Sequence[Event], anchors: Sequence[str]) -> list[str]:
    """Whether the journal says nothing at all of a ledger, though it was told before its first event was written."""
    if anchors or not any(is_marked(event) for event in events):
        return []
    return [
        f"{name}: the journal knows nothing of its {len(events)} events; what it said was removed, or they were put there"
    ]


def broken_links(words: Iterable[tuple[str, str]]) -> list[str]:
    """Words of the journal, as ledger and reason, that refer to one that is gone or was altered."""
    told = list(words)
    known = {link_to(session, reason) for session, reason in told} | {FIRST, ""}
    anchors = [(session, anchor) for session, reason in told if (anchor := parse_checkpoint(reason)) is not None]
    return [
        f"journal: the word on a ledger's end before that on event {anchor.head.seq} of {session} is gone or was altered"
        for session, anchor in anchors
        if anchor.link not in known
    ]
