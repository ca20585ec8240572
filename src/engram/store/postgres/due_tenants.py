"""Which tenants of a server have work that is due; the only question that is asked of all tenants at once."""

from collections.abc import Sequence
from datetime import datetime

from engram.store.postgres.connections import Connection
from engram.store.postgres.database import Database
from engram.store.postgres.sql import statement

ROWS = 100
"""Jobs that one statement reads: a long queue costs no more than this, what is behind it is skipped."""
STATEMENTS = 20
"""How often it is asked in one call; the next call goes on where this one ended."""


class DueTenants:
    """Asks for the names of tenants with jobs of some kinds; what the jobs are is for each tenant alone."""

    def __init__(self, url: str, kinds: Sequence[str], rows: int = ROWS, statements: int = STATEMENTS) -> None:
        self._database = Database(url, "")
        self._connections = self._database.connections  # held from now on: no store that is closed closes the pool
        self._kinds, self._rows, self._statements = list(kinds), rows, statements
        self._after = ""

    def names(self, now: datetime) -> set[str]:
        """Tenants with a job that is due and that nobody holds; where they are many, all of them within a few calls."""
        found: set[str] = set()
        ends = 1 if not self._after else 2  # begun in the middle of the alphabet, it goes on at its beginning
        with self._database.reading() as connection:
            self._database.within(connection, statement("work_for_all"), {})
            for _ in range(self._statements):
                names = self._some(connection, now)
                found.update(names)
                self._after = names[-1] if len(names) == self._rows else ""
                ends -= not self._after
                if not ends:
                    break
        return found

    def _some(self, connection: Connection, now: datetime) -> list[str]:
        wanted = {"after": self._after, "now": now, "kinds": self._kinds, "limit": self._rows}
        return [tenant for (tenant,) in self._database.within(connection, statement("tenants_at_work"), wanted)]

    def close(self) -> None:
        """Let go of the connections."""
        self._database.close()
