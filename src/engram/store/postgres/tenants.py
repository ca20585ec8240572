"""Operations on whole tenants: removing one, and finding those with due jobs."""

from collections.abc import Sequence
from datetime import datetime

from engram.store.postgres import neighbours
from engram.store.postgres.database import Database
from engram.store.tasks import LONGEST_WAIT

TENANT_TABLES = """
SELECT c.relname, array_agg(a.attname::text ORDER BY a.attnum) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = 'engram'::regnamespace AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
    AND a.attgenerated = ''
GROUP BY c.relname HAVING bool_or(a.attname = 'tenant') ORDER BY c.relname
"""
"""Every table with rows of tenants, and its columns."""
DELETED_AT_ONCE = 20_000


def remove(url: str, tenant: str) -> None:
    """Delete everything of a tenant, a slice at a time. This cannot be undone."""
    database = Database(url, tenant)
    try:
        neighbours.drop_all(database)
        for table, _ in database.query(TENANT_TABLES, {}):
            while len(database.query(removal(table), {})) == DELETED_AT_ONCE:
                pass
        # Each of these deletions was a commit, too.
        database.run_quickly("forget_writers", days=-1)
    finally:
        database.close()


def removal(table: str) -> str:
    """The statement that deletes a tenant's next rows from a table."""
    return (
        f'DELETE FROM engram."{table}" WHERE tenant = %(tenant)s AND ctid = ANY(ARRAY('
        f'SELECT ctid FROM engram."{table}" WHERE tenant = %(tenant)s LIMIT {DELETED_AT_ONCE})) RETURNING 1'
    )


JOBS_PER_STATEMENT = 100
"""Jobs that one statement reads; the rest of a long queue is skipped."""
MAX_STATEMENTS = 20
"""The most statements of one call; the next call continues where this one ended."""


class DueTenants:
    """Finds tenants with jobs of some kinds that are due; it sees only their names, not the jobs."""

    def __init__(
        self, url: str, kinds: Sequence[str], rows: int = JOBS_PER_STATEMENT, statements: int = MAX_STATEMENTS
    ) -> None:
        self._database = Database(url, "")
        self._connections = self._database.connections  # Kept, so that closing a store does not close the pool.
        self._kinds, self._rows, self._statements = list(kinds), rows, statements
        self._after = ""

    def names(self, now: datetime) -> set[str]:
        """Tenants with a job that is due and not leased; if there are many, all of them within a few calls."""
        found: set[str] = set()
        ends = 1 if not self._after else 2  # A call that starts in the middle continues at the beginning.
        with self._database.reading():
            self._database.run("see_all_tenants")
            for _ in range(self._statements):
                names = self._read_names(now)
                found.update(names)
                self._after = names[-1] if len(names) == self._rows else ""
                ends -= not self._after
                if not ends:
                    break
        return found

    def _read_names(self, now: datetime) -> list[str]:
        wanted = {
            "after": self._after,
            "now": now,
            "ahead": now + LONGEST_WAIT,
            "kinds": self._kinds,
            "limit": self._rows,
        }
        return [tenant for (tenant,) in self._database.run("due_tenants", **wanted)]

    def close(self) -> None:
        """Close the connections."""
        self._database.close()
