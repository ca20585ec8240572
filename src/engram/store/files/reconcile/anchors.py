"""The newest anchor of each ledger, in the index: the journal's record of where the ledger ends."""

import json

from engram.store.files.log.journal import Entry, JournalLine, Position
from engram.store.ledger import FIRST, Head, link_to, parse_checkpoint
from engram.store.sqlite.index import Index

NEWEST = "word"
"""Key of the newest anchor of any ledger in the index's metadata, as ledger and reason."""


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
