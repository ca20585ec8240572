"""Waiting that a test makes short: the limits are a minute in production."""

import pytest

from engram import Engram
from engram.store.postgres import database
from engram.store.postgres.store import PostgresStore


def shorten(
    patch: pytest.MonkeyPatch,
    mem: Engram,
    *,
    statement: float = database.STATEMENT_SECONDS,
    lock: float = database.LOCK_SECONDS,
) -> None:
    """From here on the server ends a statement of this memory, or its waiting for a lock, after so many seconds."""
    assert isinstance(mem.store, PostgresStore)
    patch.setattr(database, "STATEMENT_SECONDS", statement)
    patch.setattr(database, "LOCK_SECONDS", lock)
    within = mem.store.context.database
    patch.setattr(within, "_settings", database._settings(within.tenant))
