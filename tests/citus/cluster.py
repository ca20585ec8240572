"""The Citus cluster a run was given, and the store the tests keep there."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from tests.clock import Clock
from tests.postgres.server import Role, Server

GIVEN = os.environ.get("ENGRAM_TEST_CITUS", "")
"""The URL of a superuser, in a database of the coordinator that has Citus and room for Engram's schema."""
MOVED_ALONG = "moved-along"
"""A tenant whose rows were there before the tables were distributed."""
BEFORE = [f"Rule {number} was written before the tables were distributed" for number in range(40)]
_FRESH = {"database", "empty_database", "own_server"}
"""What a test may want and a cluster has not: a database, or a server, of the test's own."""


def runs_here(item: pytest.Item) -> bool:
    """Whether a test asks the server anything, in the one database there is."""
    wanted = set(getattr(item, "fixturenames", ()))
    given = getattr(getattr(item, "callspec", None), "params", {})
    kinds = [value for value in given.values() if isinstance(value, str)]
    files_alone = "postgres" not in " ".join(kinds) and bool({"files", "files to files"} & set(kinds))
    return not wanted & _FRESH and not files_alone


@contextmanager
def owner(server: Server) -> Iterator[Role]:
    """An ordinary role that owns the schema, on every node, and whose password the coordinator knows; gone afterwards."""
    role = Role(server, f"engram_{secrets.token_hex(6)}", secrets.token_hex(8))
    name = sql.Identifier(role.name)
    with psycopg.connect(server.admin_url, autocommit=True) as admin:
        _check(admin)
        # In this database, so that Citus makes it on the workers, too.
        admin.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(name, sql.Literal(role.password)))
        try:
            login = f"password={role.password}"
            admin.execute(
                "INSERT INTO pg_dist_authinfo (nodeid, rolename, authinfo) VALUES (0, %(role)s, %(login)s), (-1, %(role)s, %(login)s)",
                {"role": role.name, "login": login},
            )
            admin.execute(sql.SQL("CREATE SCHEMA engram AUTHORIZATION {}").format(name))
            yield role
        finally:
            admin.execute("DROP SCHEMA IF EXISTS engram CASCADE")
            admin.execute("DELETE FROM pg_dist_authinfo WHERE rolename = %s", (role.name,))
            admin.execute(sql.SQL("DROP ROLE {}").format(name))


def _check(admin: psycopg.Connection) -> None:
    """Say what is missing before anything is made."""
    lacks = [name for name in ("citus", "vector") if not _has(admin, name)]
    if lacks:
        pytest.exit(
            f"the database of URL lacks the extension {' and '.join(lacks)}: CREATE EXTENSION as a superuser", 2
        )
    if admin.execute("SELECT FROM pg_roles WHERE rolname = current_user AND rolsuper").fetchone() is None:
        pytest.exit("URL must be a superuser's: the tests make a role, and look past row security", 2)
    if admin.execute("SELECT FROM pg_namespace WHERE nspname = 'engram'").fetchone() is not None:
        pytest.exit(
            "the database of URL has a schema engram already, which the tests would remove; give another one", 2
        )


def _has(admin: psycopg.Connection, extension: str) -> bool:
    return admin.execute("SELECT FROM pg_extension WHERE extname = %s", (extension,)).fetchone() is not None


@contextmanager
def database(role: Role) -> Iterator[str]:
    """The URL of the distributed store. One tenant's rows were there before, on the coordinator."""
    from engram.store.postgres.setup import open_store, prepare_server
    from tests.conformance.keeping import Keep

    url, clock = role.url(urlsplit(role.server.admin_url).path.lstrip("/")), Clock()
    store = open_store(url, MOVED_ALONG, None, clock=clock)
    keep = Keep(store, clock)
    for statement in BEFORE:
        keep(statement)
    store.close()
    told = prepare_server(url)
    assert any(line.startswith("distributed now") for line in told), told
    yield url
