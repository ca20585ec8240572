"""What the journal says of the ledgers' ends, as the index has it or as the journal itself does. For the holder of the writer lock."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engram.disk import MALFORMED, lines_backwards
from engram.store.files.index.index import Index
from engram.store.files.journal import Entry, Journal, JournalLine, Position
from engram.store.files.ledger import ledger_name
from engram.store.ledger import NO_HEAD, Head, problems_of
from engram.store.ledger_checkpoints import (
    ANCHOR,
    FIRST,
    REDACTED,
    broken_links,
    link_to,
    missing_events,
    parsed_anchor,
    unwitnessed,
)

if TYPE_CHECKING:
    from engram.store.files.context import StoreContext

NEWEST = "word"
"""The index's own fact: the journal's newest word on any ledger's end, as ledger and reason."""
_NEEDLE = f'"op":"{ANCHOR}"'.encode()


class Anchors:
    """The newest word of all, and the newest on each ledger. The index must have read the journal to its end."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._given: tuple[Position, str] | None = None
        """Where the journal ended behind this process's own last word, which the index may not have yet, and the link to it."""

    def link(self, end: Position) -> str:
        """How the next word refers to the newest one; `end` is where the journal ends."""
        if self._given is not None and self._given[0] == end:
            return self._given[1]
        newest = self._index.get(NEWEST)
        return link_to(*json.loads(newest)) if newest else FIRST

    def told(self, session: str) -> Head | None:
        """Where the journal saw a ledger end; None for nowhere."""
        row = self._index.db.execute("SELECT reason FROM ends WHERE session = ?", (session,)).fetchone()
        anchor = parsed_anchor(row[0]) if row else None
        return anchor.head if anchor is not None else None

    def note(self, placed: JournalLine) -> None:
        """A word was given."""
        self._given = placed.end, link_to(placed.entry.session, placed.entry.reason)


def index_anchor(index: Index, entry: Entry) -> None:
    """Keep a word that the journal was given; inside a transaction."""
    if parsed_anchor(entry.reason) is not None:
        index.db.execute("INSERT OR REPLACE INTO ends (session, reason) VALUES (?, ?)", (entry.session, entry.reason))
    index.set(NEWEST, json.dumps([entry.session, entry.reason]))


def last_witnessed(journal: Journal, session: str) -> int:
    """The number of a ledger's last event that the journal has seen, read from its end: for when there is no index to ask."""
    reasons = (reason for name, reason in _anchors_backwards(journal) if name == session)
    anchors = (anchor for reason in reasons if (anchor := parsed_anchor(reason)) is not None)
    found = next(anchors, None)
    return (found.head if found is not None else NO_HEAD).seq


def _anchors_backwards(journal: Journal) -> Iterator[tuple[str, str]]:
    """Ledger and reason of every word, the newest first."""
    for month in reversed(journal.months()):
        for line in lines_backwards(journal.path(month)):
            fields = _parsed(line) if _NEEDLE in line else {}
            if fields.get("op") == ANCHOR:
                yield str(fields.get("session", "")), str(fields.get("reason", ""))


def _parsed(line: bytes) -> dict[str, Any]:
    """A line as it was written; one that cannot be read says nothing of a ledger."""
    with contextlib.suppress(*MALFORMED):
        found = json.loads(line)
        return found if isinstance(found, dict) else {}
    return {}


@dataclass(slots=True)
class _JournaledAnchors:
    """What the journal says: of each ledger's ends since it was last let go, of redactions, and all of it in order."""

    ends: dict[str, list[str]] = field(default_factory=dict)
    redacted: set[str] = field(default_factory=set)
    all: list[tuple[str, str]] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


def verify_ledgers(parts: "StoreContext") -> list[str]:
    """What is wrong, ledger by ledger."""
    words = _read_anchors(parts)
    sessions = {ledger_name(session): session for session in words.ends}
    problems = [*words.unread, *parts.ledger.odd()]
    for name in sorted(parts.ledger.sizes()):
        problems += _ledger_problems(parts, name, words, words.ends.get(sessions.pop(name, ""), []))
    for session in sorted(sessions.values()):
        problems += missing_events(session, words.ends[session], lambda _: None)
    return problems + broken_links(words.all)


def _read_anchors(parts: "StoreContext") -> _JournaledAnchors:
    found = _JournaledAnchors()
    for placed in parts.journal.readable(found.unread):
        entry = placed.entry
        if entry.op == REDACTED:
            found.redacted.update(entry.reason.split())
        elif entry.op == ANCHOR:
            found.all.append((entry.session, entry.reason))
            anchor = parsed_anchor(entry.reason)
            if anchor is not None and anchor.is_pruned:
                found.ends[entry.session] = []
            found.ends.setdefault(entry.session, []).append(entry.reason)
    return found


def _ledger_problems(parts: "StoreContext", name: str, words: _JournaledAnchors, ends: list[str]) -> list[str]:
    events, problems = parts.ledger.examined(name)
    problems += problems_of(events, name, words.redacted)
    if events and ledger_name(events[0].session) != name:
        problems.append(
            f"{name}: holds the ledger of {events[0].session}, whose name is {ledger_name(events[0].session)}"
        )
    digests = {event.seq: event.digest for event in events}
    return problems + missing_events(name, ends, digests.get) + unwitnessed(name, events, ends)
