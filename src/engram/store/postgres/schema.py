"""The schema's migrations: numbered `.sql` files, applied by one process at a time.

A new schema is created in one transaction. An existing one is upgraded only by `migrate`, each migration in its own transaction:
clients of the previous version are refused from then on, so nobody upgrades in passing.
"""

import re
from importlib import resources
from typing import Any

import psycopg
from psycopg import errors

from engram.model.errors import NotFound, StoreDenied, StoreError, UnknownVersion
from engram.store.postgres import distribution

LOCK_SECONDS = 60
LEAST_SERVER, LEAST_VECTOR = 15, (0, 8)
_FILE = re.compile(r"(\d{4})_\w+\.sql")
Connection = psycopg.Connection[tuple[Any, ...]]


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
    """Bring the schema up to date; returns its previous version. `connection` is in autocommit mode."""
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
        distribution.lock_schema(connection, LOCK_SECONDS)
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
    cluster = distribution.find_cluster(connection)
    if cluster is not None and not cluster.is_coordinator:
        raise StoreError(f"{where} is a worker of a Citus cluster; use the coordinator's URL")


def _apply(connection: Connection, where: str, number: int, text: str) -> None:
    """Apply one migration, unless another process has just done so."""
    with connection.transaction():
        distribution.lock_schema(connection, LOCK_SECONDS)
        if version_of(connection) >= number:
            return
        if number == 1:
            _prepare(connection, where)
        # One by one: Citus sends the whole text to its workers, which accept one statement at a time.
        for statement in statements_of(text):
            connection.execute(statement.encode())
        distribution.distribute_new_tables(connection)
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
