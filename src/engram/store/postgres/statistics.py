"""How common each term is: counted in slices after writes, never under the writers' locks.

A store of a few hundred documents is recounted after each write; a large one when a fiftieth of it is new. Any reader that finds
a stale count updates it; a replica uses the primary's count.
"""

import contextlib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from engram.model.errors import EngramError, StoreDenied, StoreReadOnly
from engram.store.postgres.connections import Connection
from engram.store.postgres.database import Database, Row
from engram.store.postgres.sql import statement

STALE_SHARE = 50
"""The count is updated when more than one in this many documents is new."""
SLICE, SLICES = 2_000, 5
"""Documents per slice, and the most slices that one search or write counts."""
MOST_UNCOUNTED = 20_001
"""New documents are counted up to this number; several slices' worth."""
CHECK_SECONDS = 1.0
"""How often a reader that has not written anything checks the count."""
_RECOUNT = 1.05


@dataclass(frozen=True, slots=True)
class Totals:
    """The number of counted documents, and of their terms."""

    documents: int = 0
    length: int = 0

    @property
    def average(self) -> float:
        """Terms per document."""
        return self.length / self.documents if self.documents and self.length else 1.0


class Statistics:
    """A tenant's term statistics, cached by this process until they change."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._totals = Totals()
        self._checked_at = float("-inf")
        self._frequency: dict[str, int] = {}
        self._cached_at = 0
        self._uncounted = 0

    def written(self, documents: int) -> None:
        """Note that this process wrote documents: the next read checks the count. A bulk writer counts as it goes."""
        self._checked_at = float("-inf")
        self._uncounted += documents
        if self._uncounted >= SLICE:
            self._uncounted = 0
            with contextlib.suppress(EngramError):  # the write is committed; the count is updated later
                self._catch_up()

    def totals(self) -> Totals:
        """The current totals, after updating a stale count."""
        now = time.monotonic()
        if now - self._checked_at >= CHECK_SECONDS and not self._database.in_transaction:
            self._catch_up()
            self._checked_at = now
        return self._totals

    def _catch_up(self) -> None:
        """Count a few slices; a search must not wait for a whole store to be counted."""
        for _ in range(SLICES):
            rows = self._database.run("statistics", enough=MOST_UNCOUNTED)
            counted = Totals(int(rows[0][1]), int(rows[0][2])) if rows else Totals()
            self._take(counted)
            uncounted = rows[0][3] if rows else 1
            if not uncounted * STALE_SHARE > counted.documents or not self._count_slice(known=bool(rows)):
                return

    def _count_slice(self, *, known: bool) -> bool:
        """Count one slice; returns whether more may be left."""
        try:
            with self._database.transaction(durable=False) as connection:
                if not known:
                    self._database.within(connection, statement("begin_statistics"), {})
                return count_slice(self._database, connection, SLICE) > 0
        except (StoreReadOnly, StoreDenied):
            return False

    def _take(self, totals: Totals) -> None:
        if not self._cached_at <= totals.documents <= self._cached_at * _RECOUNT:
            self._frequency, self._cached_at = {}, totals.documents
        self._totals = totals

    def frequencies(self, terms: Sequence[str]) -> Mapping[str, int]:
        """The number of documents each term occurs in; at least 1 for a term of uncounted documents."""
        self.totals()
        known, missing = self.cached(terms)
        if missing:
            self.cache(known, self._database.run("frequencies", terms=missing))
        return {term: known[term] for term in terms if term in known}

    def cached(self, terms: Sequence[str]) -> tuple[dict[str, int], list[str]]:
        """The cached frequencies, and the terms to read. Pass the former to `cache`: another thread may start a new one."""
        known = self._frequency
        return known, [term for term in dict.fromkeys(terms) if term not in known]

    def cache(self, known: dict[str, int], rows: Iterable[Row]) -> None:
        """Add frequencies that were read. Unknown terms are not cached: the next memory may contain them."""
        known |= dict(rows)


def count_slice(database: Database, connection: Connection, size: int) -> int:
    """Count the terms of the next documents. Returns how many documents; 0 while another process counts."""
    locked = database.within(connection, statement("lock_statistics"), {})
    if not locked:
        return 0
    values = {"counted_to": locked[0][0], "slice": size}
    ((numbers, length),) = database.within(connection, statement("uncounted"), values)
    if not numbers:
        return 0
    database.within(connection, statement("count_terms"), {"numbers": numbers})
    moved = {"upto": max(numbers), "documents": len(numbers), "length": int(length)}
    database.within(connection, statement("move_statistics"), moved)
    return len(numbers)
