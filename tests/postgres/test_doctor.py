"""What the doctor says of a server: it names what is wrong, and what to do."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from engram.model.errors import StoreError
from engram.store.postgres import health, neighbours, schema
from engram.store.postgres.connections import connect
from engram.store.postgres.database import Database
from engram.store.postgres.health import expected_indexes
from engram.store.postgres.schema import LATEST_SCHEMA, migrate, vector_version
from engram.store.postgres.setup import open_store
from engram.store.postgres.store import PostgresStore
from engram.store.reports import Check
from tests.backends import static_embedder
from tests.clock import Clock
from tests.conformance.keeping import Keep
from tests.conformance.test_reembedding import Letters
from tests.postgres.server import Server, at_database, ordinary_role

NAMES = ["server", "extension", "schema", "indexes", "tenants", "privileges", "cluster", "pooler", "standbys", "jit", "index",
         "embedder"]  # fmt: skip


def filled(url: str, tenant: str, clock: Clock) -> PostgresStore:
    """A store with a memory."""
    store = open_store(url, tenant, static_embedder(), clock=clock)
    Keep(store, clock)("The staging server is called nightshift")
    return store


@pytest.fixture
def store(shared_database: str, tenant: str, clock: Clock) -> Iterator[PostgresStore]:
    """A store of which nothing but its own rows may be changed."""
    opened = filled(shared_database, tenant, clock)
    yield opened
    opened.close()


@pytest.fixture
def alone(database: str, clock: Clock) -> Iterator[PostgresStore]:
    """A store alone in its database."""
    opened = filled(database, "acme", clock)
    yield opened
    opened.close()


@pytest.fixture
def admin(database: str, postgres_server: Server) -> Iterator[psycopg.Connection]:
    """The superuser, in the same database."""
    with postgres_server.admin(urlsplit(database).path.lstrip("/")) as connection:
        yield connection


def check(store: PostgresStore, name: str) -> Check:
    """What the doctor says of one thing; of all others nothing bad."""
    found = {check.name: check for check in store.examine()}
    assert [check for check in found.values() if not check.ok and check.name != name] == []
    return found[name]


def test_a_healthy_server(store: PostgresStore, shared_database: str, tenant: str) -> None:
    found = store.examine()
    assert [(check.name, check.ok, check.advice) for check in found] == [(name, True, "") for name in NAMES]
    told = {check.name: check.detail for check in found}
    assert told["server"].endswith("a primary")
    assert told["schema"] == f"version {LATEST_SCHEMA}"
    assert told["tenants"] == f"{urlsplit(shared_database).username} sees only tenant {tenant}"
    assert told["index"] == "1 documents, 1 vectors"
    around = [told[name] for name in ("cluster", "pooler", "standbys")]
    assert around == ["none: one server", "none: connected directly", "none"]
    assert told["jit"] in ("off", "on at the server; Engram switches it off in its transactions")


def test_it_knows_every_index_there_is(admin: psycopg.Connection, alone: PostgresStore) -> None:
    rows = admin.execute(
        "SELECT indexname FROM pg_indexes WHERE schemaname = 'engram' AND tablename <> 'schema_versions'"
    ).fetchall()
    assert expected_indexes() == {name for (name,) in rows}
    assert all(check.ok for check in alone.examine())


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("DROP INDEX engram.documents_scope", "documents_scope"),
        ("ALTER TABLE engram.postings DROP CONSTRAINT postings_pkey", "postings_pkey"),
    ],
)
def test_a_missing_index_is_named(alone: PostgresStore, admin: psycopg.Connection, statement: str, name: str) -> None:
    admin.execute(statement.encode())
    found = check(alone, "indexes")
    assert (found.ok, found.detail) == (False, f"missing: {name}")
    assert "docs/postgres.md" in found.advice


def test_an_index_that_is_not_valid_is_named(alone: PostgresStore, admin: psycopg.Connection) -> None:
    admin.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'engram.documents_hash'::regclass")
    found = check(alone, "indexes")
    assert (found.ok, found.detail) == (False, "not valid: documents_hash")
    assert found.advice == "REINDEX INDEX CONCURRENTLY engram.documents_hash"
    admin.execute(found.advice.encode())
    assert check(alone, "indexes").ok


@pytest.mark.parametrize("how", ["DISABLE", "NO FORCE"])
def test_a_table_without_row_security_is_named(alone: PostgresStore, admin: psycopg.Connection, how: str) -> None:
    admin.execute(f"ALTER TABLE engram.agent_events {how} ROW LEVEL SECURITY".encode())
    found = check(alone, "tenants")
    assert (found.ok, found.detail) == (False, "row security is off on agent_events")
    for advice in found.advice.replace("…", "engram.agent_events").split("; "):
        admin.execute(advice.encode())
    assert check(alone, "tenants").ok


def test_a_schema_that_is_behind(alone: PostgresStore, admin: psycopg.Connection) -> None:
    admin.execute("DELETE FROM engram.schema_versions WHERE version = %s", (LATEST_SCHEMA,))
    found = check(alone, "schema")
    assert (found.ok, found.detail) == (False, f"version {LATEST_SCHEMA - 1} of {LATEST_SCHEMA}")
    assert "engram init" in found.advice


@pytest.mark.parametrize(
    ("version", "ok"), [("0.8.0", True), ("0.10.1", True), ("1.0", True), ("0.7.4", False), ("0.5", False)]
)
def test_a_pgvector_that_is_too_old(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, version: str, ok: bool
) -> None:
    run = Database.run
    monkeypatch.setattr(
        Database,
        "run",
        lambda self, name, /, **values: [(version,)] if name == "extension" else run(self, name, **values),
    )
    found = check(store, "extension")
    assert (found.ok, found.detail) == (ok, f"pgvector {version}")
    assert found.advice == ("" if ok else "ALTER EXTENSION vector UPDATE")
    assert (vector_version(version) >= (0, 8)) == ok


def test_no_schema_is_made_with_a_pgvector_that_is_too_old(
    empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "LEAST_VECTOR", (99, 0))
    with connect(empty_database) as connection:
        with pytest.raises(StoreError, match="ALTER EXTENSION vector UPDATE"):
            migrate(connection, "the server")
        row = connection.execute("SELECT count(*) FROM pg_namespace WHERE nspname = 'engram'").fetchone()
    assert row == (0,)


def test_a_server_that_is_too_old(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "LEAST_SERVER", 99)
    assert "99 or newer" in check(store, "server").advice


def test_a_replica_is_called_one(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Database, "is_replica", lambda *_: True)
    found = check(store, "server")
    assert (found.ok, found.detail.endswith("a replica: reads only")) == (True, True)


def test_a_superuser_is_advised_to_become_somebody_else(
    store: PostgresStore, shared_database: str, postgres_server: Server, tenant: str, clock: Clock
) -> None:
    url = at_database(postgres_server.admin_url, urlsplit(shared_database).path.lstrip("/"))
    mighty = open_store(url, tenant, static_embedder(), clock=clock)
    found = check(mighty, "tenants")
    assert (found.ok, found.detail) == (True, "postgres is a superuser")
    assert "ordinary role" in found.advice
    mighty.close()


def test_a_role_that_row_security_does_not_bind(
    store: PostgresStore, shared_database: str, postgres_server: Server, tenant: str, clock: Clock
) -> None:
    with (
        ordinary_role(postgres_server) as role,
        postgres_server.admin(urlsplit(shared_database).path.lstrip("/")) as admin,
    ):
        name = sql.Identifier(role.name)
        admin.execute(sql.SQL("ALTER ROLE {} BYPASSRLS").format(name))
        admin.execute(sql.SQL("GRANT USAGE ON SCHEMA engram TO {}").format(name))
        admin.execute(sql.SQL("GRANT SELECT ON ALL TABLES IN SCHEMA engram TO {}").format(name))
        mighty = open_store(role.url(urlsplit(shared_database).path.lstrip("/")), tenant, None, clock=clock)
        assert check(mighty, "tenants").detail == f"{role.name} bypasses row security"
        mighty.close()
        admin.execute(sql.SQL("DROP OWNED BY {}").format(name))


def test_privileges_that_are_missing_are_named(
    store: PostgresStore, shared_database: str, postgres_server: Server, tenant: str, clock: Clock
) -> None:
    with (
        ordinary_role(postgres_server) as role,
        postgres_server.admin(urlsplit(shared_database).path.lstrip("/")) as admin,
    ):
        name = sql.Identifier(role.name)
        for grant in (
            "GRANT USAGE ON SCHEMA engram TO {}",
            "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA engram TO {}",
            "GRANT USAGE ON ALL SEQUENCES IN SCHEMA engram TO {}",
            "REVOKE UPDATE, DELETE ON engram.memory_uses FROM {}",
            "REVOKE USAGE ON SEQUENCE engram.use_numbers FROM {}",
        ):
            admin.execute(sql.SQL(grant).format(name))
        limited = open_store(
            role.url(urlsplit(shared_database).path.lstrip("/")), tenant, static_embedder(), clock=clock
        )
        found = check(limited, "privileges")
        assert found.detail == "lacks UPDATE and DELETE on memory_uses, USAGE on use_numbers"
        assert "roles.sql" in found.advice
        admin.execute(sql.SQL("REVOKE INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA engram FROM {}").format(name))
        assert check(limited, "privileges") == Check("privileges", True, "may read; every write is refused")
        limited.close()
        admin.execute(sql.SQL("DROP OWNED BY {}").format(name))


def test_another_embedder_than_the_stores(
    store: PostgresStore, shared_database: str, tenant: str, clock: Clock
) -> None:
    other = open_store(shared_database, tenant, Letters(), clock=clock)
    found = check(other, "embedder")
    assert (found.ok, "engram index --reembed" in found.advice) == (False, True)
    assert "letters-26-v1" in found.detail
    assert static_embedder().name in found.detail
    other.close()


def test_documents_without_a_vector_are_counted(
    store: PostgresStore, shared_database: str, tenant: str, clock: Clock
) -> None:
    deaf = open_store(shared_database, tenant, None, clock=clock)
    Keep(deaf, clock)("Written without an embedder")
    assert check(deaf, "embedder").detail == "none: search is by keyword"
    assert check(store, "index").detail == "2 documents, 1 vectors; 1 lack a vector"
    store.reembed()
    assert check(store, "index").ok
    deaf.close()


def test_a_large_tenant_is_advised_to_make_an_index(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "MIN_INDEX_VECTORS", 1)
    assert "engram index --nearest" in check(store, "index").advice
    store.build_nearest()
    assert check(store, "index").advice == ""
    neighbours.drop_all(store.context.database)


def test_the_program_says_so_too(
    alone: PostgresStore, admin: psycopg.Connection, database: str, tmp_path: Path
) -> None:
    admin.execute("DROP INDEX engram.documents_scope")
    environment = {**os.environ, "ENGRAM_URL": database, "ENGRAM_TENANT": "acme", "ENGRAM_HOME": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-m", "engram", "doctor", "--json"],
        env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    found = json.loads(ended.stdout)
    assert (ended.returncode, found["ok"]) == (1, False)
    assert [check["name"] for check in found["checks"] if not check["ok"]] == ["indexes"]
    assert str(urlsplit(database).password) not in ended.stdout + ended.stderr


def test_a_memory_that_is_missing_from_the_index_is_named(store: PostgresStore) -> None:
    known = Keep(store, Clock())("The office is in Lyon")
    store.context.database.run("drop_documents", numbers=list(store.numbers([known.id]).values()))
    found = check(store, "index")
    assert not found.ok
    assert f"{known.id} not in the index" in found.detail
    assert "engram index --rebuild" in found.advice
