"""The parts of an open Postgres store, handed to the functions that work on them."""

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
    """Gives out the numbers of a day's ids, each once.

    Before the decision's transaction, never beside it: a decision that held a connection and waited for another one could
    wait for those who wait for its own. A decision that fails leaves a gap. Nobody waits for the disk under the lock of a day's
    row: should a crash take back a number that a decision goes on to use, and another be given it, the second of them fails.
    """

    database: Database

    def take(self, day: str, count: int) -> range:
        """The next numbers of a day."""
        ((last,),) = self.database.change_at_once("take_numbers", day=day, count=count)
        return range(int(last) - count + 1, int(last) + 1)

    def give_back(self, day: str, unused: range) -> None:
        """Numbers nobody was told of; they come again unless others were taken behind them."""
        if unused:
            self.database.change_at_once("give_back_numbers", day=day, last=unused[-1], count=len(unused))

    def raise_to(self, connection: Connection, ids: Iterable[str]) -> None:
        """Never give out the number of an id that came from elsewhere."""
        highest = highest_numbers(ids)
        if highest:
            values = {"days": list(highest), "lasts": list(highest.values())}
            self.database.within(connection, statement("raise_numbers"), values)


@dataclass(slots=True)
class TenantContext:
    """Everything an open store consists of. `warnings` collects what the owner should hear of."""

    database: Database
    facts: StoreState
    numbers: Numbers
    embedder: "Embedder | None"
    clock: Callable[[], datetime] = utc_now
    token: Callable[[int], str] = random_hex
    warnings: list[str] = field(default_factory=list)

    def embed(self, texts: Sequence[str]) -> "Vectors | None":
        """Vectors of texts, where this process has the store's embedder."""
        return self.embedder.embed(texts) if self.embedder is not None and self.facts.can_embed() else None

    def warn(self, text: str) -> None:
        """Tell the owner, once."""
        if text not in self.warnings:
            self.warnings.append(text)
