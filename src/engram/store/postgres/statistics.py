"""How common each term is: counted in slices behind the writers, never under their locks.

A store of a few hundred documents is counted anew after each write; a large one when a fiftieth of it is new. Whoever finds
the count behind moves it on; on a replica, where nobody can, it is as far as the primary brought it.
"""

import contextlib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from engram.model.errors import EngramError, StoreDenied, StoreReadOnly
from engram.store.postgres.connections import Connection
from engram.store.postgres.database import Database, Row
from engram.store.postgres.sql import statement

BEHIND = 50
"""The count is moved on when more than one in so many documents is new."""
SLICE, SLICES = 2_000, 5
"""Documents counted at once, and how often one search or write does so."""
ENOUGH = 20_001
"""New documents looked at when asking how many there are; a multiple of what a slice takes."""
LOOK_EVERY = 1.0
"""Seconds between two looks of a reader that has not written anything itself."""
_RECOUNT = 1.05


@dataclass(frozen=True, slots=True)
class Totals:
    """How many documents were counted, and how many terms they hold."""

    documents: int = 0
    length: int = 0

    @property
    def average(self) -> float:
        """Terms per document."""
        return self.length / self.documents if self.documents and self.length else 1.0


class Statistics:
    """A tenant's term statistics, remembered by this process until they have moved."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._totals = Totals()
        self._looked_at = float("-inf")
        self._frequency: dict[str, int] = {}
        self._remembered_at = 0
        self._uncounted = 0

    def written(self, documents: int) -> None:
        """This process has written: the next reader looks. Whoever writes much counts as it goes."""
        self._looked_at = float("-inf")
        self._uncounted += documents
        if self._uncounted >= SLICE:
            self._uncounted = 0
            with contextlib.suppress(EngramError):  # a count that fails is made later; the write stands
                self._catch_up()

    def totals(self) -> Totals:
        """How many documents there are, after moving the count on if it is behind."""
        now = time.monotonic()
        if now - self._looked_at >= LOOK_EVERY and not self._database.in_transaction:
            self._catch_up()
            self._looked_at = now
        return self._totals

    def _catch_up(self) -> None:
        """Move the count on by a few slices; a search must not wait for a whole store to be counted."""
        for _ in range(SLICES):
            rows = self._database.run("statistics", enough=ENOUGH)
            counted = Totals(int(rows[0][1]), int(rows[0][2])) if rows else Totals()
            self._take(counted)
            behind = rows[0][3] if rows else 1
            if not behind * BEHIND > counted.documents or not self._count_slice(known=bool(rows)):
                return

    def _count_slice(self, *, known: bool) -> bool:
        """Count some more; says whether that may have left more to do."""
        try:
            with self._database.transaction(durable=False) as connection:
                if not known:
                    self._database.within(connection, statement("begin_statistics"), {})
                return count_slice(self._database, connection, SLICE) > 0
        except (StoreReadOnly, StoreDenied):
            return False

    def _take(self, totals: Totals) -> None:
        if not self._remembered_at <= totals.documents <= self._remembered_at * _RECOUNT:
            self._frequency, self._remembered_at = {}, totals.documents
        self._totals = totals

    def frequencies(self, terms: Sequence[str]) -> Mapping[str, int]:
        """In how many documents each term occurs; a term of documents not yet counted occurs at least once."""
        self.totals()
        known, missing = self.remembered(terms)
        if missing:
            self.remember(known, self._database.run("frequencies", terms=missing))
        return {term: known[term] for term in terms if term in known}

    def remembered(self, terms: Sequence[str]) -> tuple[dict[str, int], list[str]]:
        """The counts this process knows, and the terms that it has to ask for.

        What is then read goes to these counts, not to those another thread may have begun meanwhile.
        """
        known = self._frequency
        return known, [term for term in dict.fromkeys(terms) if term not in known]

    def remember(self, known: dict[str, int], rows: Iterable[Row]) -> None:
        """Take what was read. A term nobody has used yet is not remembered: the next memory may bring it."""
        known |= dict(rows)


def count_slice(database: Database, connection: Connection, size: int) -> int:
    """Count the terms of the next documents; how many documents that were. 0 as well while somebody else counts."""
    held = database.within(connection, statement("lock_statistics"), {})
    if not held:
        return 0
    asked = {"counted_to": held[0][0], "slice": size}
    ((numbers, length),) = database.within(connection, statement("uncounted"), asked)
    if not numbers:
        return 0
    database.within(connection, statement("count_terms"), {"numbers": numbers})
    moved = {"upto": max(numbers), "documents": len(numbers), "length": int(length)}
    database.within(connection, statement("move_statistics"), moved)
    return len(numbers)
