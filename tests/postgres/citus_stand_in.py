"""A stand-in for Citus in a database of its own: what Engram asks of a cluster can be seen without one."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from tests.postgres.server import Role, Server, at_database, fresh_database

SCRIPT = Path(__file__).with_name("citus_stand_in.sql")


@dataclass(frozen=True, slots=True)
class StandIn:
    """A database that says it is the coordinator of two workers. `url` is its owner's, an ordinary role."""

    url: str
    admin: psycopg.Connection

    def calls(self) -> list[tuple[str, str, str | None]]:
        """What was called, in order: the function, the table, what it was to lie beside."""
        return [
            (name, relation.removeprefix("engram."), beside)
            for name, relation, beside in self.admin.execute(
                "SELECT name, relation, beside FROM citus.calls ORDER BY n"
            )
        ]

    def distributed(self) -> list[str]:
        """The tables that were distributed, in the order of the calls."""
        return [relation for name, relation, _ in self.calls() if name == "create_distributed_table"]

    def transactions(self) -> int:
        """In how many transactions all calls were made."""
        row = self.admin.execute("SELECT count(DISTINCT transaction) FROM citus.calls").fetchone()
        return int(row[0]) if row else 0

    def trouble(self, kind: str) -> None:
        """Let something go wrong from now on; "" ends it."""
        self.admin.execute("UPDATE citus.trouble SET kind = %s", (kind,))

    def change(self, statement: str) -> None:
        """Change the catalogs, as an administrator of the cluster would."""
        self.admin.execute(statement.encode())


def tables_of(admin: psycopg.Connection) -> list[str]:
    """Every table that has rows of tenants, by name."""
    rows = admin.execute(
        "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant'"
        " WHERE c.relnamespace = 'engram'::regnamespace AND c.relkind IN ('r', 'p') ORDER BY 1"
    ).fetchall()
    return [name for (name,) in rows]


@contextmanager
def stand_in(role: Role, server: Server) -> Iterator[StandIn]:
    """A database with the stand-in in it, and gone afterwards."""
    with fresh_database(role) as url:
        admin_url = at_database(server.admin_url, urlsplit(url).path.lstrip("/"))
        with psycopg.connect(admin_url, autocommit=True) as admin:
            admin.execute(SCRIPT.read_bytes())
            yield StandIn(url, admin)
