"""Whether a memory of the index says when it matters: where none does, no search compares a task with situations."""

import sqlite3

__all__ = ["Situations"]

MAX_DOCUMENTS_READ = 50_000
"""Documents whose records are read, in some fifteen milliseconds for ten thousand; a larger index is taken to have situations."""
_CHANGED = """
SELECT 1 FROM docs d JOIN records r ON r.n = d.n WHERE d.change > ? AND instr(r.record, '"situation":') LIMIT 1
"""
_ANY = """
SELECT 1 FROM records WHERE instr(record, '"situation":') LIMIT 1
"""


class Situations:
    """What one process knows of the situations in its index. It may say yes where there is none, never the other way round."""

    def __init__(self) -> None:
        self._read_to: int | None = None
        self._found = False

    def may_exist(self, db: sqlite3.Connection, change: int, count: int) -> bool:
        """Whether there may be one. `change` is the last change of the index, `count` the number of its documents."""
        if self._found or count > MAX_DOCUMENTS_READ:
            return True
        if self._read_to != change:
            known = self._read_to is not None and self._read_to < change
            row = db.execute(_CHANGED, (self._read_to,)) if known else db.execute(_ANY)
            self._found, self._read_to = row.fetchone() is not None, change
        return self._found
