"""The schema's migrations, numbered `.sql` files applied by one process at a time.

Also manages the tables' location: on one server, or distributed by tenant on a Citus cluster.
"""

import re
from contextlib import suppress
from importlib import resources
from typing import Any

import psycopg
from psycopg import errors, sql

from engram.model.errors import NotFound, StoreDenied, StoreError, UnknownVersion
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
"""How long copying one table to the workers may take, regardless of the server's statement timeout."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table with rows of tenants, and its location."""

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
    """How many nodes may store shards; the coordinator may be one of them."""
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
    """Distribute tables that are not distributed yet, and empty local remains. Returns the changes, or what is needed.

    Everything is distributed in one transaction, with existing rows, or nothing is. `connection` is in autocommit mode.

    Engram's statements are the same in both cases. `engram init` distributes the tables; a migration distributes those
    it creates.
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
    # Separately, because Citus does not pass it on to the workers in a transaction with parallel work on shards.
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
    """The messages, and whether tables were distributed."""
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
    # A group of their own, because they must move between nodes together, and without other tables.
    colocate_with = next((table.full_name for table in cluster.distributed_tables), "none")
    rows = 0
    for table in cluster.local_tables:
        rows += _move(connection, table, colocate_with)
        colocate_with = table.full_name if colocate_with == "none" else colocate_with
    return rows


def _move(connection: Connection, table: Table, colocate_with: str) -> int:
    """Distribute one table with its rows. Row security is not forced in the meantime, because it would refuse the COPY."""
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


LOCK_SECONDS = 60
LEAST_SERVER, LEAST_VECTOR = 15, (0, 8)
_FILE = re.compile(r"(\d{4})_\w+\.sql")


def migrations() -> dict[int, str]:
    """Every migration's text by its number."""
    folder = resources.files("engram.store.postgres.sql").joinpath("migrations")
    found = {}
    for file in folder.iterdir():
        if matched := _FILE.fullmatch(file.name):
            found[int(matched.group(1))] = file.read_text("utf-8")
    return dict(sorted(found.items()))


_PART = re.compile(r"--[^\n]*|'[^']*'|\$\$.*?\$\$|;|.", re.DOTALL)


def statements_of(script: str) -> list[str]:
    """The statements of a migration; handles comments, strings and `$$` bodies, which is all that migrations contain."""
    found = [""]
    for part in _PART.findall(script):
        if part == ";":
            found.append("")
        elif not part.startswith("--"):
            found[-1] += part
    return [statement.strip() for statement in found if statement.strip()]


LATEST_SCHEMA = 8
"""The newest migration."""


def version_of(connection: Connection) -> int:
    """The schema's version; 0 if there is none."""
    # From the catalog: `to_regclass` may cache that a table did not exist before another process created it.
    known = connection.execute(
        "SELECT FROM pg_catalog.pg_tables WHERE schemaname = 'engram' AND tablename = 'schema_versions'"
    ).fetchone()
    if known is None:
        return 0
    row = connection.execute("SELECT coalesce(max(version), 0) FROM engram.schema_versions").fetchone()
    return int(row[0]) if row else 0


def check_server(connection: Connection, where: str) -> None:
    """Refuse a server that is too old."""
    version = connection.info.server_version // 10000
    if version < LEAST_SERVER:
        raise StoreError(f"{where} is Postgres {version}; Engram needs {LEAST_SERVER} or newer")


def migrate(connection: Connection, where: str, upto: int = LATEST_SCHEMA) -> int:
    """Bring the schema up to date; returns its previous version. `connection` is in autocommit mode.

    A new schema is created in one transaction. An existing one is upgraded only by `migrate`, each migration in its own
    transaction. Clients of the previous version are refused from then on, so an upgrade is always explicit.
    """
    check_server(connection, where)
    before = version_of(connection)
    if before > LATEST_SCHEMA:
        raise UnknownVersion(f"{where} has schema {before}; this Engram supports up to {LATEST_SCHEMA}. Update Engram")
    if before == 0:
        create(connection, where, upto)
    elif before < upto:
        _refuse_follower(connection, where)
        for number, text in migrations().items():
            if before < number <= upto:
                _apply(connection, where, number, text)
    return before


def create(connection: Connection, where: str, upto: int = LATEST_SCHEMA) -> None:
    """Create the whole schema in one transaction, unless there is one. `connection` is in autocommit mode."""
    check_server(connection, where)
    if version_of(connection):
        return
    _refuse_follower(connection, where)
    with connection.transaction():
        lock_schema(connection, LOCK_SECONDS)
        if version_of(connection):
            return
        for number, text in migrations().items():
            if number <= upto:
                _apply(connection, where, number, text)


def check_version(connection: Connection, where: str) -> None:
    """Raise unless the schema is the one that this Engram uses: `NotFound`, `StoreError` or `UnknownVersion`."""
    version = version_of(connection)
    if version == 0:
        raise NotFound(f"{where} has no Engram store; create one with `engram init`")
    if version < LATEST_SCHEMA:
        raise StoreError(
            f"{where} has schema {version}, this Engram needs {LATEST_SCHEMA}. Run `engram init` with the owner's role to upgrade it; "
            "clients of the previous version are refused from then on"
        )
    if version > LATEST_SCHEMA:
        raise UnknownVersion(f"{where} has schema {version}; this Engram supports up to {LATEST_SCHEMA}. Update Engram")


def _refuse_follower(connection: Connection, where: str) -> None:
    """Raise `StoreError` unless this server is a primary and, in a cluster, the coordinator."""
    row = connection.execute("SELECT pg_is_in_recovery()").fetchone()
    if row and row[0]:
        raise StoreError(f"{where} is a replica without Engram's schema; open the primary once, which creates it")
    cluster = find_cluster(connection)
    if cluster is not None and not cluster.is_coordinator:
        raise StoreError(f"{where} is a worker of a Citus cluster; use the coordinator's URL")


def _apply(connection: Connection, where: str, number: int, text: str) -> None:
    """Apply one migration, unless another process has just done it."""
    with connection.transaction():
        lock_schema(connection, LOCK_SECONDS)
        if version_of(connection) >= number:
            return
        if number == 1:
            _prepare(connection, where)
        # One by one: Citus sends the whole text to its workers, which accept one statement at a time.
        for statement in statements_of(text):
            connection.execute(statement.encode())
        distribute_new_tables(connection)
        connection.execute("INSERT INTO engram.schema_versions (version) VALUES (%s)", (number,))


def _prepare(connection: Connection, where: str) -> None:
    """Create the schema, and the extension it needs."""
    _need_vector(connection, where)
    try:
        # IF NOT EXISTS would require the privilege to create one even if it exists.
        if connection.execute("SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'engram'").fetchone() is None:
            connection.execute("CREATE SCHEMA engram")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS engram.schema_versions "
            "(version integer PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now())"
        )
    except errors.InsufficientPrivilege as error:
        raise StoreDenied(
            f"{where}: {error.diag.message_primary}; Engram's schema does not exist yet: run `engram init` "
            "once as the role that will own it (or GRANT CREATE ON DATABASE); see docs/postgres.md"
        ) from None


def _need_vector(connection: Connection, where: str) -> None:
    row = connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone()
    if row is None:
        row = _create_vector(connection, where)
    if row is not None and vector_version(row[0]) < LEAST_VECTOR:
        raise StoreError(f"{where} has pgvector {row[0]}; Engram needs 0.8 or newer: ALTER EXTENSION vector UPDATE")


def vector_version(text: str) -> tuple[int, ...]:
    """pgvector's version as numbers."""
    return tuple(int(part) for part in re.findall(r"\d+", text)[:2])


def _create_vector(connection: Connection, where: str) -> tuple[Any, ...] | None:
    try:
        with connection.transaction():
            connection.execute("CREATE EXTENSION vector")
    except errors.InsufficientPrivilege:
        raise StoreDenied(
            f"{where} lacks the extension pgvector, and this role may not create it; "
            "as an administrator, run: CREATE EXTENSION vector"
        ) from None
    except (errors.UndefinedFile, errors.FeatureNotSupported):
        raise StoreError(
            f"{where} has no pgvector; install it on the server, then run: CREATE EXTENSION vector"
        ) from None
    return connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone()
