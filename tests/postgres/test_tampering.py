"""Whoever can write to the tables past Engram leaves a trace in the chain."""

import json
from collections.abc import Iterator
from urllib.parse import urlsplit

import psycopg
import pytest

from engram.model.errors import EngramError
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


HEAD_MOVED_BACK = (
    "UPDATE engram.ledger_heads h SET seq = e.seq, digest = e.record ->> 'digest' FROM engram.agent_events e "
    "WHERE h.tenant = %s AND e.tenant = h.tenant AND e.session = h.session AND e.seq = 4"
)


def test_a_cut_off_end_is_noticed_though_the_head_was_moved_back(
    store: Store, admin: psycopg.Connection, tenant: str
) -> None:
    admin.execute("DELETE FROM engram.agent_events WHERE tenant = %s AND seq = 5", (tenant,))
    assert admin.execute(HEAD_MOVED_BACK, (tenant,)).rowcount == 1
    [problem] = store.verify_ledgers()
    assert "talk: event 5 is missing or was altered" in problem


def test_a_ledger_that_is_gone_with_its_head_is_noticed(store: Store, admin: psycopg.Connection, tenant: str) -> None:
    for table in ("agent_events", "ledger_heads"):
        admin.execute(f"DELETE FROM engram.{table} WHERE tenant = %s".encode(), (tenant,))
    [problem] = store.verify_ledgers()
    assert "talk: event 5" in problem


def test_a_moved_back_head_alone_is_noticed(store: Store, admin: psycopg.Connection, tenant: str) -> None:
    admin.execute(HEAD_MOVED_BACK, (tenant,))
    assert [problem for problem in store.verify_ledgers() if "ends at event 5, but 4 were written" in problem]


@pytest.mark.parametrize("reason", ["", "five", "5", "99999999999999999999 x", "-1 x", "٣ x"])
def test_a_falsified_witness_is_told_as_a_problem(
    store: Store, admin: psycopg.Connection, tenant: str, reason: str
) -> None:
    admin.execute("UPDATE engram.journal SET reason = %s WHERE tenant = %s AND op = 'ledger'", (reason, tenant))
    assert len(store.verify_ledgers()) == 1


def test_what_was_written_while_a_head_was_moved_back_is_refused_by_the_table(
    store: Store, admin: psycopg.Connection, tenant: str
) -> None:
    admin.execute(HEAD_MOVED_BACK, (tenant,))
    with pytest.raises(EngramError):
        store.append_events("talk", [said("Ann", "line 5 once more")])
    assert len(store.events("talk")) == 5


def test_what_nobody_touched_is_in_order(store: Store) -> None:
    assert store.verify_ledgers() == []
