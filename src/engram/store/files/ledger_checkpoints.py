"""Anchors: the journal's record of where each ledger ends, and the verification of ledgers against it."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from engram.disk import json_object, lines_backwards
from engram.model.lazy import dataclass, field
from engram.store.files.index.index import Index
from engram.store.files.journal import Entry, Journal, JournalLine, Position
from engram.store.files.ledger import ledger_name
from engram.store.ledger import NO_HEAD, Head, chain_problems
from engram.store.ledger_checkpoints import (
    FIRST,
    LEDGER_OP,
    REDACTED,
    broken_links,
    link_to,
    missing_events,
    parse_checkpoint,
    without_checkpoint,
)

if TYPE_CHECKING:
    from engram.store.files.context import StoreContext

NEWEST = "word"
"""Key of the newest anchor of any ledger in the index's metadata, as ledger and reason."""
_NEEDLE = f'"op":"{LEDGER_OP}"'.encode()


class Anchors:
    """The newest anchor of all, and of each ledger. The index must have read the journal to its end."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._given: tuple[Position, str] | None = None
        """The journal's end after this process's own last anchor, which may not be indexed yet, and the link to it."""

    def link(self, end: Position) -> str:
        """The link from the next anchor to the newest one; `end` is the journal's end."""
        if self._given is not None and self._given[0] == end:
            return self._given[1]
        newest = self._index.get(NEWEST)
        return link_to(*json.loads(newest)) if newest else FIRST

    def head_of(self, session: str) -> Head | None:
        """The end of a ledger by its last anchor; None if there is none."""
        row = self._index.db.execute("SELECT reason FROM ends WHERE session = ?", (session,)).fetchone()
        anchor = parse_checkpoint(row[0]) if row else None
        return anchor.head if anchor is not None else None

    def note(self, placed: JournalLine) -> None:
        """Remember an anchor of this process."""
        self._given = placed.end, link_to(placed.entry.session, placed.entry.reason)


def index_anchor(index: Index, entry: Entry) -> None:
    """Index an anchor; inside a transaction."""
    if parse_checkpoint(entry.reason) is not None:
        index.db.execute("INSERT OR REPLACE INTO ends (session, reason) VALUES (?, ?)", (entry.session, entry.reason))
    index.set(NEWEST, json.dumps([entry.session, entry.reason]))


def last_anchored(journal: Journal, session: str) -> int:
    """The number of a ledger's last anchored event, read from the journal's end without the index."""
    reasons = (reason for name, reason in _anchors_backwards(journal) if name == session)
    anchors = (anchor for reason in reasons if (anchor := parse_checkpoint(reason)) is not None)
    found = next(anchors, None)
    return (found.head if found is not None else NO_HEAD).seq


def _anchors_backwards(journal: Journal) -> Iterator[tuple[str, str]]:
    """Ledger and reason of every anchor, newest first."""
    for month in reversed(journal.months()):
        for line in lines_backwards(journal.path(month)):
            fields = json_object(line) if _NEEDLE in line else {}
            if fields.get("op") == LEDGER_OP:
                yield str(fields.get("session", "")), str(fields.get("reason", ""))


@dataclass(slots=True)
class _JournaledAnchors:
    """The journal's anchors: of each ledger since it was last pruned, of redactions, and all of them in order."""

    ends: dict[str, list[str]] = field(default_factory=dict)
    redacted: set[str] = field(default_factory=set)
    all: list[tuple[str, str]] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


def verify_ledgers(parts: "StoreContext") -> list[str]:
    """The problems of each ledger: its chain, and its end compared with the anchors.

    The index is not used: it is derived from these files, possibly before they were changed.
    """
    anchors = _read_anchors(parts)
    sessions = {ledger_name(session): session for session in anchors.ends}
    problems = [*anchors.unread, *parts.ledger.irregular_entries()]
    for name in sorted(parts.ledger.sizes()):
        problems += _ledger_problems(parts, name, anchors, anchors.ends.get(sessions.pop(name, ""), []))
    for session in sorted(sessions.values()):
        problems += missing_events(session, anchors.ends[session], lambda _: None)
    return problems + broken_links(anchors.all)


def _read_anchors(parts: "StoreContext") -> _JournaledAnchors:
    found = _JournaledAnchors()
    for placed in parts.journal.readable(found.unread):
        entry = placed.entry
        if entry.op == REDACTED:
            found.redacted.update(entry.reason.split())
        elif entry.op == LEDGER_OP:
            found.all.append((entry.session, entry.reason))
            anchor = parse_checkpoint(entry.reason)
            if anchor is not None and anchor.is_pruned:
                found.ends[entry.session] = []
            found.ends.setdefault(entry.session, []).append(entry.reason)
    return found


def _ledger_problems(parts: "StoreContext", name: str, anchors: _JournaledAnchors, ends: list[str]) -> list[str]:
    events, problems = parts.ledger.checked_events(name)
    problems += chain_problems(events, name, anchors.redacted)
    if events and ledger_name(events[0].session) != name:
        problems.append(
            f"{name}: contains the ledger of {events[0].session}, whose name is {ledger_name(events[0].session)}"
        )
    digests = {event.seq: event.digest for event in events}
    return problems + missing_events(name, ends, digests.get) + without_checkpoint(name, events, ends)
