"""Whoever can write to the tables past Engram leaves a trace in the chain."""

import json
from collections.abc import Iterator
from urllib.parse import urlsplit

import psycopg
import pytest

from engram.store.protocol import Store
from tests.backends import OnPostgres
from tests.clock import Clock
from tests.conformance.keeping import said
from tests.postgres.server import Server


@pytest.fixture
def store(shared_database: str, tenant: str, clock: Clock, postgres_server: Server) -> Iterator[Store]:
    """A store with a session of five events."""
    backend = OnPostgres(clock, shared_database, tenant, postgres_server)
    opened = backend.store()
    opened.append_events("talk", [said("Ann", f"line {n}", n) for n in range(5)])
    yield opened
    backend.close()


@pytest.fixture
def admin(shared_database: str, tenant: str, postgres_server: Server) -> Iterator[psycopg.Connection]:
    """The superuser, whom no policy binds."""
    with postgres_server.admin(urlsplit(shared_database).path.lstrip("/")) as connection:
        yield connection


def test_an_altered_event_is_noticed(store: Store, admin: psycopg.Connection, tenant: str) -> None:
    row = admin.execute(
        "SELECT record::text FROM engram.agent_events WHERE tenant = %s AND seq = 3", (tenant,)
    ).fetchone()
    assert row is not None
    altered = json.loads(row[0]) | {"content": "something else"}
    admin.execute(
        "UPDATE engram.agent_events SET record = %s::json WHERE tenant = %s AND seq = 3", (json.dumps(altered), tenant)
    )
    assert any("altered" in problem for problem in store.verify_ledgers())


def test_a_dropped_event_is_noticed(store: Store, admin: psycopg.Connection, tenant: str) -> None:
    admin.execute("DELETE FROM engram.agent_events WHERE tenant = %s AND seq = 2", (tenant,))
    assert store.verify_ledgers()


def test_reordered_events_are_noticed(store: Store, admin: psycopg.Connection, tenant: str) -> None:
    for old, new in ((1, 99), (2, 1), (99, 2)):
        admin.execute("UPDATE engram.agent_events SET seq = %s WHERE tenant = %s AND seq = %s", (new, tenant, old))
    assert store.verify_ledgers()


def test_a_cut_off_end_is_noticed(store: Store, admin: psycopg.Connection, tenant: str) -> None:
    admin.execute("DELETE FROM engram.agent_events WHERE tenant = %s AND seq = 5", (tenant,))
    assert store.verify_ledgers()


def test_what_nobody_touched_is_in_order(store: Store) -> None:
    assert store.verify_ledgers() == []
