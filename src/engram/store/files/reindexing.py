"""Bringing the index's view of the journal up to date after the journal was rewritten. For the holder of the writer lock."""

from engram.store.files.parts import Parts, index_entry


def reindex_journal(parts: Parts) -> None:
    """Note anew where every image lies; numbers and tombstones only ever grow."""
    with parts.index.writing():
        parts.index.db.execute("DELETE FROM images")
        parts.index.db.execute("DELETE FROM meta WHERE key = 'journal'")
        seq = parts.seq
        unread: list[str] = []
        for placed in parts.journal.readable(unread):
            index_entry(parts, placed)
        parts.index.set("seq", max(seq, parts.seq))
    parts.warnings += [problem for problem in unread if problem not in parts.warnings]
