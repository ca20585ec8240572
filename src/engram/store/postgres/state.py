"""A tenant's settings on the server: its embedder, the current generation of vectors, whether it is paused."""

import json
import time
from contextlib import suppress
from typing import Any

from engram.model.errors import EmbedderError, StoreDenied, StoreReadOnly
from engram.store.postgres.connections import Connection
from engram.store.postgres.database import Database
from engram.store.postgres.sql import statement

CACHE_SECONDS = 2.0
"""Seconds until settings are read again: another process may re-embed or pause the store at any time."""


class StoreState:
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

    def set(self, connection: Connection, **facts: Any) -> None:
        """Write settings inside a transaction; None removes one."""
        for key, value in facts.items():
            name, values = ("drop_fact", {}) if value is None else ("put_fact", {"value": json.dumps(value)})
            self._database.within(connection, statement(name), {"key": key, **values})
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
            with suppress(StoreReadOnly, StoreDenied), self._database.transaction() as connection:
                self._database.within(connection, statement("lock_facts"), {})
                self.refresh()
                if self.get("embedder") is None:
                    self.set(connection, embedder=self._embedder, dim=self._dim, generation=1)
        if self.can_embed() and self.get("dim") != self._dim:
            raise EmbedderError(
                f"the store's vectors by {self._embedder} have {self.get('dim')} dimensions, this embedder makes "
                f"{self._dim}; give it another name, or run `engram index --reembed` with the right one"
            )
