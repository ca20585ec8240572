"""Bringing the index's view of the journal up to date after the journal was rewritten. For the holder of the writer lock."""

import json

from engram.store.files.journal import Position
from engram.store.files.parts import Parts, index_entry


def reindex_journal(parts: Parts) -> None:
    """Note anew where every image lies; numbers and tombstones only ever grow."""
    with parts.index.writing():
        parts.index.db.execute("DELETE FROM images")
        seq = parts.seq
        for placed in parts.journal.read():
            index_entry(parts, placed)
        end = parts.journal.end()
        parts.index.set("seq", max(seq, parts.seq))
        parts.index.set("journal", json.dumps([end.month, end.offset] if end != Position() else ["", 0]))
