"""What the journal says of the ledgers' ends, as the index has it or as the journal itself does. For the holder of the writer lock."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from engram.store.files.confinement import MALFORMED, lines_backwards
from engram.store.files.index.index import Index
from engram.store.files.journal import Entry, Journal, JournalLine, Position
from engram.store.ledger import NO_HEAD, Head
from engram.store.ledger_checkpoints import FIRST, LEDGER_OP, link_to, parse_checkpoint

NEWEST = "word"
"""The index's own fact: the journal's newest word on any ledger's end, as ledger and reason."""
_NEEDLE = f'"op":"{LEDGER_OP}"'.encode()


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
        anchor = parse_checkpoint(row[0]) if row else None
        return anchor.head if anchor is not None else None

    def note(self, placed: JournalLine) -> None:
        """A word was given."""
        self._given = placed.end, link_to(placed.entry.session, placed.entry.reason)


def index_anchor(index: Index, entry: Entry) -> None:
    """Keep a word that the journal was given; inside a transaction."""
    if parse_checkpoint(entry.reason) is not None:
        index.db.execute("INSERT OR REPLACE INTO ends (session, reason) VALUES (?, ?)", (entry.session, entry.reason))
    index.set(NEWEST, json.dumps([entry.session, entry.reason]))


def last_witnessed(journal: Journal, session: str) -> int:
    """The number of a ledger's last event that the journal has seen, read from its end: for when there is no index to ask."""
    reasons = (reason for name, reason in _words(journal) if name == session)
    anchors = (anchor for reason in reasons if (anchor := parse_checkpoint(reason)) is not None)
    found = next(anchors, None)
    return (found.head if found is not None else NO_HEAD).seq


def _words(journal: Journal) -> Iterator[tuple[str, str]]:
    """Ledger and reason of every word, the newest first."""
    for month in reversed(journal.months()):
        for line in lines_backwards(journal.path(month)):
            fields = _parsed(line) if _NEEDLE in line else {}
            if fields.get("op") == LEDGER_OP:
                yield str(fields.get("session", "")), str(fields.get("reason", ""))


def _parsed(line: bytes) -> dict[str, Any]:
    """A line as it was written; one that cannot be read says nothing of a ledger."""
    with contextlib.suppress(*MALFORMED):
        found = json.loads(line)
        return found if isinstance(found, dict) else {}
    return {}
