"""Whole tenants: whether one holds anything, copying one beside others, taking one away."""

from collections.abc import Sequence
from datetime import datetime

from psycopg import sql

from engram.store.postgres import neighbours
from engram.store.postgres.connections import Connection, connect
from engram.store.postgres.database import Database
from engram.store.postgres.errors import explained, shown_url
from engram.store.postgres.sql import statement

_COLUMNS = """
SELECT c.relname, array_agg(a.attname::text ORDER BY a.attnum) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = 'engram'::regnamespace AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
    AND a.attgenerated = ''
GROUP BY c.relname HAVING bool_or(a.attname = 'tenant') ORDER BY c.relname
"""
DELETED_AT_ONCE = 20_000


def holds_anything(url: str, tenant: str) -> bool:
    """Whether a tenant has a document."""
    database = Database(url, tenant)
    try:
        return bool(database.query("SELECT 1 FROM engram.documents WHERE tenant = %(tenant)s LIMIT 1", {}))
    finally:
        database.close()


def remove(url: str, tenant: str) -> None:
    """Take everything of a tenant away, a slice at a time. There is no way back."""
    database = Database(url, tenant)
    try:
        neighbours.drop_all(database)
        for table, _ in database.query(_COLUMNS, {}):
            while _deleted(database, removal(table)) == DELETED_AT_ONCE:
                pass
        # Each of these deletions was a commit, too.
        database.change_at_once("forget_writers", days=-1)
    finally:
        database.close()


def removal(table: str) -> str:
    """The statement that deletes the next rows of a tenant from a table."""
    return (
        f'DELETE FROM engram."{table}" WHERE tenant = %(tenant)s AND ctid = ANY(ARRAY('
        f'SELECT ctid FROM engram."{table}" WHERE tenant = %(tenant)s LIMIT {DELETED_AT_ONCE})) RETURNING 1'
    )


def _deleted(database: Database, text: str) -> int:
    with database.transaction() as connection:
        return len(database.within(connection, text, {}))


def copy(admin: str, source: str, target: str, documents: int) -> None:
    """Copy a tenant's first documents, with all that belongs to them; for a role that row security does not bind."""
    with explained(shown_url(admin)), connect(admin) as connection, connection.transaction():
        for table, columns in connection.execute(_COLUMNS).fetchall():
            kept = [name for name in columns if name != "tenant"]
            connection.execute(
                sql.SQL(
                    "INSERT INTO engram.{table} (tenant, {columns}) SELECT {target}, {columns} FROM engram.{table} t "
                    "WHERE t.tenant = {source} {first}"
                ).format(
                    table=sql.Identifier(table),
                    columns=sql.SQL(", ").join(map(sql.Identifier, kept)),
                    target=sql.Literal(target),
                    source=sql.Literal(source),
                    first=_first(columns, source, documents),
                )
            )


def _first(columns: list[str], source: str, documents: int) -> sql.Composable:
    """Restricts a table's rows to those of the first documents."""
    chosen = sql.SQL("(SELECT {{}} FROM engram.documents WHERE tenant = {source} ORDER BY n LIMIT {count})").format(
        source=sql.Literal(source), count=sql.Literal(documents)
    )
    for column in ("n", "id"):
        if column in columns and (column == "n" or "day" not in columns):
            inner = sql.SQL(chosen.as_string().replace("{}", column))
            return sql.SQL("AND t.{} IN ").format(sql.Identifier(column)) + inner
    return sql.SQL("")


def analyse(admin: str) -> None:
    """Let the planner know what the tables hold now."""
    with explained(shown_url(admin)), connect(admin) as connection:
        for table, _ in connection.execute(_COLUMNS).fetchall():
            connection.execute(sql.SQL("VACUUM ANALYZE engram.{}").format(sql.Identifier(table)))


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
