"""What the functions of the Postgres backend share: database, settings, id numbers, embedder, clock."""

import json
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from engram.model.errors import EmbedderError, StoreDenied, StoreReadOnly
from engram.model.lazy import dataclass, field
from engram.store.postgres.database import Database
from engram.store.records import highest_numbers
from engram.store.sources import random_hex, utc_now

if TYPE_CHECKING:
    from engram.embedding.protocol import Embedder, Vectors


CACHE_SECONDS = 2.0
"""Seconds until settings are read again: another process may re-embed or pause the store at any time."""
FOLDING_VERSION = 2
"""The version of text folding and translation; a tenant's `folding` is the version of its index."""


class TenantSettings:
    """Settings by key, read again every two seconds."""

    def __init__(self, database: Database, embedder_name: str, dim: int) -> None:
        self._database = database
        self._embedder, self._dim = embedder_name, dim
        self._known: dict[str, Any] = {}
        self._read_at = float("-inf")

    def get(self, key: str, default: Any = None) -> Any:
        """A setting, or the default."""
        if time.monotonic() - self._read_at > CACHE_SECONDS:
            self.refresh()
        return self._known.get(key, default)

    def refresh(self) -> None:
        """Read all settings."""
        self._known = {key: json.loads(value) for key, value in self._database.run("facts")}
        self._read_at = time.monotonic()

    def set(self, **settings: Any) -> None:
        """Write settings inside a transaction; None removes one."""
        for key, value in settings.items():
            name, values = ("drop_fact", {}) if value is None else ("put_fact", {"value": json.dumps(value)})
            self._database.run(name, key=key, **values)
            self._known[key] = value

    @property
    def generation(self) -> int:
        """The current generation of vectors."""
        return int(self.get("generation", 1))

    def can_embed(self) -> bool:
        """Whether the current vectors were made by this process's embedder."""
        return self.usable_generation() is not None

    def usable_generation(self) -> int | None:
        """The current generation if this process's embedder made it, else None; read once for a whole search."""
        self.get("embedder")
        known = self._known
        same = bool(self._embedder) and known.get("embedder") == self._embedder
        return int(known.get("generation", 1)) if same else None

    def claim(self) -> None:
        """Make this process's embedder the store's if it has none. Raises `EmbedderError` if dimensions differ."""
        self.refresh()
        if self._embedder and self.get("embedder") is None:
            # On a replica or for a read-only role it stays unclaimed: there are no vectors to search yet.
            with suppress(StoreReadOnly, StoreDenied), self._database.transaction():
                self._database.run("lock_facts")
                self.refresh()
                if self.get("embedder") is None:
                    self.set(embedder=self._embedder, dim=self._dim, generation=1)
                    if not self._database.run("memory_slice", after="", limit=1):
                        self.set(folding=FOLDING_VERSION)
        if self.can_embed() and self.get("dim") != self._dim:
            raise EmbedderError(
                f"the store's vectors by {self._embedder} have {self.get('dim')} dimensions, this embedder makes "
                f"{self._dim}; give it another name, or run `engram index --reembed` with the right one"
            )


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
        ((last,),) = self.database.run_quickly("take_numbers", day=day, count=count)
        return range(int(last) - count + 1, int(last) + 1)

    def give_back(self, day: str, unused: range) -> None:
        """Return unused numbers; they are reused unless later ones were taken meanwhile."""
        if unused:
            self.database.run_quickly("give_back_numbers", day=day, last=unused[-1], count=len(unused))

    def raise_to(self, ids: Iterable[str]) -> None:
        """Skip the numbers of ids that were not allocated here."""
        highest = highest_numbers(ids)
        if highest:
            values = {"days": list(highest), "lasts": list(highest.values())}
            self.database.run("raise_numbers", **values)


@dataclass(slots=True)
class TenantContext:
    """An open tenant. `warnings` collects messages for the owner."""

    database: Database
    settings: TenantSettings
    numbers: Numbers
    embedder: "Embedder | None"
    clock: Callable[[], datetime] = utc_now
    token: Callable[[int], str] = random_hex
    warnings: list[str] = field(default_factory=list)

    def embed(self, texts: Sequence[str]) -> "Vectors | None":
        """Vectors of texts; None unless this process has the store's embedder."""
        return self.embedder.embed(texts) if self.embedder is not None and self.settings.can_embed() else None

    def warn(self, text: str) -> None:
        """Add a message for the owner, once."""
        if text not in self.warnings:
            self.warnings.append(text)
