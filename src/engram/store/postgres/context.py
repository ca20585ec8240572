"""What the functions of the Postgres backend share: database, state, id numbers, embedder, clock."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from engram.store.postgres.connections import Connection
from engram.store.postgres.database import Database
from engram.store.postgres.sql import statement
from engram.store.postgres.state import StoreState
from engram.store.records import highest_numbers
from engram.store.sources import random_hex, utc_now

if TYPE_CHECKING:
    from engram.embedding.protocol import Embedder, Vectors


@dataclass(slots=True)
class Numbers:
    """Allocates the numbers of a day's ids, each once.

    Numbers are taken before the decision's transaction begins, never during it: a decision that holds a connection and waits
    for another one could deadlock with others that do the same. A decision that fails leaves a gap. The commit does not wait
    for the disk, so a crash may lose one; if a number is then allocated twice, the second decision fails.
    """

    database: Database

    def take(self, day: str, count: int) -> range:
        """The next numbers of a day."""
        ((last,),) = self.database.change_quickly("take_numbers", day=day, count=count)
        return range(int(last) - count + 1, int(last) + 1)

    def give_back(self, day: str, unused: range) -> None:
        """Return unused numbers; they are reused unless later ones were taken meanwhile."""
        if unused:
            self.database.change_quickly("give_back_numbers", day=day, last=unused[-1], count=len(unused))

    def raise_to(self, connection: Connection, ids: Iterable[str]) -> None:
        """Skip the numbers of ids that were not allocated here."""
        highest = highest_numbers(ids)
        if highest:
            values = {"days": list(highest), "lasts": list(highest.values())}
            self.database.within(connection, statement("raise_numbers"), values)


@dataclass(slots=True)
class TenantContext:
    """An open tenant. `warnings` collects messages for the owner."""

    database: Database
    facts: StoreState
    numbers: Numbers
    embedder: "Embedder | None"
    clock: Callable[[], datetime] = utc_now
    token: Callable[[int], str] = random_hex
    warnings: list[str] = field(default_factory=list)

    def embed(self, texts: Sequence[str]) -> "Vectors | None":
        """Vectors of texts; None unless this process has the store's embedder."""
        return self.embedder.embed(texts) if self.embedder is not None and self.facts.can_embed() else None

    def warn(self, text: str) -> None:
        """Add a message for the owner, once."""
        if text not in self.warnings:
            self.warnings.append(text)
