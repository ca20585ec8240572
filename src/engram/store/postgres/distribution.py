"""Where the tables are: on one server, or on a Citus cluster, distributed by tenant and colocated.

Engram's statements are the same in both cases. `engram init` distributes the tables; a migration distributes those it creates.
"""

import re
from contextlib import suppress
from typing import Any

import psycopg
from psycopg import errors, sql

from engram.model.errors import StoreError
from engram.model.lazy import dataclass
from engram.store.postgres.sql import statement

Connection = psycopg.Connection[tuple[Any, ...]]
SCHEMA_LOCK_ID = 0x656E6772616D
"""The advisory lock for changing the schema: "engram" in ASCII."""
MIN_CITUS_VERSION = (11, 1)
"""The first version that distributes tables with row security on PostgreSQL 15."""
TURN_MINUTES = 60
"""How long one `engram init` waits for another, which may be copying a large store."""
TABLE_SECONDS = 60
"""How long it waits for current readers and writers."""
COPY_HOURS = 6
"""How long copying one table to the workers may take, whatever the server allows a statement."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table with rows of tenants, and where they are."""

    name: str
    owner: str
    is_ours: bool
    """Whether this role has the owner's rights."""
    is_partitioned: bool
    is_distributed: bool
    group: int | None
    """The colocation group it is distributed in."""
    has_rows_here: bool
    """Whether this server itself stores rows of it, even if queries do not find them."""

    @property
    def full_name(self) -> str:
        """Its name with the schema, as Citus' functions expect it."""
        return f"engram.{self.name}"

    @property
    def identifier(self) -> sql.Identifier:
        """Its name in a statement."""
        return sql.Identifier("engram", self.name)


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Citus cluster as seen by one of its nodes."""

    version: str
    is_coordinator: bool
    nodes: int
    """How many may store shards; the coordinator may be one of them."""
    tables: tuple[Table, ...] = ()

    @property
    def distributed_tables(self) -> list[Table]:
        """The distributed tables."""
        return [table for table in self.tables if table.is_distributed]

    @property
    def local_tables(self) -> list[Table]:
        """The tables that are only on this server."""
        return [table for table in self.tables if not table.is_distributed]

    @property
    def leftover_tables(self) -> list[Table]:
        """Distributed tables with rows left on this server, where no statement reaches them."""
        return [table for table in self.distributed_tables if table.has_rows_here]


def find_cluster(connection: Connection) -> Cluster | None:
    """The cluster this database is part of; None without the extension citus."""
    row = connection.execute(statement("citus_version")).fetchone()
    if row is None:
        return None
    version = str(row[0]).partition("-")[0]
    group, nodes = connection.execute(statement("citus_nodes")).fetchone() or (0, 0)
    made = connection.execute("SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'engram'").fetchone()
    tables = [] if made is None else connection.execute(statement("citus_tables")).fetchall()
    return Cluster(version, group == 0, int(nodes), tuple(Table(*row) for row in tables))


def obstacle(cluster: Cluster) -> str:
    """Why tables cannot be distributed, and who can change that; "" if they can."""
    if not cluster.is_coordinator:
        return "this is a worker of a Citus cluster; run `engram init` with the coordinator's URL"
    if tuple(int(part) for part in re.findall(r"\d+", cluster.version)[:2]) < MIN_CITUS_VERSION:
        least = ".".join(map(str, MIN_CITUS_VERSION))
        return (
            f"Citus {cluster.version} does not distribute tables with row security; the store stays on this server. "
            f"As an administrator, install Citus {least} or newer and run: ALTER EXTENSION citus UPDATE"
        )
    if cluster.nodes == 0:
        return (
            "Citus has no node for shards; the store stays on this server. As an administrator, run: "
            "SELECT citus_add_node('worker', 5432); then run `engram init` again"
        )
    waiting = [*cluster.local_tables, *cluster.leftover_tables]
    if partitioned := [table.name for table in waiting if table.is_partitioned]:
        return f"partitioned tables are not distributed ({', '.join(partitioned)}); the store stays on this server"
    if owners := sorted({table.owner for table in waiting if not table.is_ours}):
        return f"only the owner of the tables can distribute them; run `engram init` as {' and '.join(owners)}"
    return ""


def distribute(connection: Connection, where: str) -> list[str]:
    """Distribute the tables that are not distributed yet, and empty what remained. Returns what was done, or what is needed.

    Everything is distributed in one transaction, with existing rows, or nothing is. `connection` is in autocommit mode.
    """
    if find_cluster(connection) is None:
        return []
    try:
        with connection.transaction():
            lock_schema(connection, TURN_MINUTES * 60)
            report, changed = _distribute_tables(connection)
    except errors.LockNotAvailable:
        raise
    except psycopg.Error as error:
        raise StoreError(
            f"{where}: {_error_text(error)}; nothing was distributed, the tables are unchanged. "
            "docs/scaling.md lists what Citus needs"
        ) from error
    # Separately: Citus does not pass it on to the workers in a transaction with parallel work on shards.
    return report + _pass_settings_on(connection) if changed else report


def distribute_new_tables(connection: Connection) -> None:
    """Distribute the tables that a migration created, if the others are distributed."""
    cluster = find_cluster(connection)
    if cluster is not None and cluster.distributed_tables:
        _distribute_local_tables(connection, cluster)


def lock_schema(connection: Connection, seconds: int) -> None:
    """Lock the schema against other changes until the end of the transaction."""
    connection.execute(f"SET LOCAL lock_timeout = '{seconds}s'".encode())
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (SCHEMA_LOCK_ID,))


def _distribute_tables(connection: Connection) -> tuple[list[str], bool]:
    """What there is to say, and whether tables were distributed."""
    cluster = find_cluster(connection)
    assert cluster is not None, "the extension was there a moment ago"
    if words := obstacle(cluster):
        return [words], False
    connection.execute(f"SET LOCAL lock_timeout = '{TABLE_SECONDS}s'".encode())
    connection.execute(f"SET LOCAL statement_timeout = '{COPY_HOURS}h'".encode())
    rows = _distribute_local_tables(connection, cluster)
    for table in cluster.leftover_tables:
        connection.execute(statement("citus_empty"), {"table": table.full_name})
    place = f"Citus {cluster.version}, {cluster.nodes} {'node' if cluster.nodes == 1 else 'nodes'}"
    report = [f"{place}: {len(cluster.tables)} tables are distributed by tenant"]
    if cluster.local_tables:
        report.append(f"distributed now: {len(cluster.local_tables)} tables, {rows:,} rows")
    if cluster.leftover_tables:
        report.append(f"emptied on the coordinator: {', '.join(table.name for table in cluster.leftover_tables)}")
    return report, bool(cluster.local_tables)


def _distribute_local_tables(connection: Connection, cluster: Cluster) -> int:
    """Distribute the local tables, colocated with the distributed ones; returns the number of rows. Locks them until the end."""
    if not cluster.local_tables:
        return 0
    names = sql.SQL(", ").join(table.identifier for table in cluster.local_tables)
    connection.execute(sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(names))
    # A group of their own: they are to move between nodes together, and with nobody else's tables.
    colocate_with = next((table.full_name for table in cluster.distributed_tables), "none")
    rows = 0
    for table in cluster.local_tables:
        rows += _move(connection, table, colocate_with)
        colocate_with = table.full_name if colocate_with == "none" else colocate_with
    return rows


def _move(connection: Connection, table: Table, colocate_with: str) -> int:
    """Distribute one table with its rows. Row security is not forced meanwhile: it would refuse the COPY."""
    security = sql.SQL("ALTER TABLE {} {} ROW LEVEL SECURITY")
    connection.execute(security.format(table.identifier, sql.SQL("NO FORCE")))
    rows = _count(connection, table)
    connection.execute(statement("citus_distribute"), {"table": table.full_name, "beside": colocate_with})
    arrived = _count(connection, table)
    if arrived != rows:
        raise StoreError(f"{arrived} of {rows} rows of {table.full_name} arrived; nothing was distributed")
    connection.execute(statement("citus_empty"), {"table": table.full_name})
    connection.execute(security.format(table.identifier, sql.SQL("FORCE")))
    return rows


def _count(connection: Connection, table: Table) -> int:
    row = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(table.identifier)).fetchone()
    return int(row[0]) if row else 0


def _pass_settings_on(connection: Connection) -> list[str]:
    """Make the database pass `SET LOCAL` on to the workers. Engram does so in each transaction; this is for other clients."""
    row = connection.execute(statement("citus_setting")).fetchone()
    if row is None or row[2]:
        return []
    command = sql.SQL("ALTER DATABASE {} SET citus.propagate_set_commands = 'local'").format(sql.Identifier(row[0]))
    if row[1]:
        with suppress(psycopg.Error):
            connection.execute(command)
            return []
    return [f"to read the tables with psql, run as the database's owner: {command.as_string(connection)}"]


def _error_text(error: psycopg.Error) -> str:
    message = error.diag.message_primary or " ".join(str(error).split()) or type(error).__name__
    return f"{message} ({error.diag.message_detail})" if error.diag.message_detail else message
