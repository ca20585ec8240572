"""What the doctor says behind a real pooler and beside real standbys."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from engram.store.postgres import health
from engram.store.postgres.setup import open_store
from engram.store.postgres.store import PostgresStore
from engram.store.reports import Check
from tests.clock import Clock
from tests.postgres.pooler import pooler
from tests.postgres.server import Server
from tests.postgres.standby import Pair, pair
from tests.postgres.workers.acknowledged import wait_for

pytestmark = pytest.mark.heavy


def found(store: PostgresStore, name: str) -> Check:
    """What the doctor says of one thing, of which nothing else is wrong."""
    checks = {check.name: check for check in store.examine()}
    assert [check for check in checks.values() if not check.ok and check.name != name] == []
    return checks[name]


# -- a pooler


def test_a_pooler_in_transaction_mode_is_called_one(postgres_server: Server, shared_database: str, tenant: str) -> None:
    with pooler(postgres_server.admin_url, 3) as running:
        store = open_store(running.through(shared_database), tenant, None)
        check = found(store, "pooler")
        store.close()
    assert (check.ok, check.detail) == (True, "a pooler in transaction mode; statements are not prepared")
    assert "directly" in check.advice


def test_one_connection_is_enough_to_tell_the_mode(postgres_server: Server, shared_database: str, tenant: str) -> None:
    with pooler(postgres_server.admin_url, 1) as running:
        store = open_store(running.through(shared_database), tenant, None)
        assert "in transaction mode" in found(store, "pooler").detail
        store.close()


def test_a_pooler_in_session_mode_is_called_one(postgres_server: Server, shared_database: str, tenant: str) -> None:
    with pooler(postgres_server.admin_url, 3, pool_mode="session") as running:
        store = open_store(running.through(shared_database), tenant, None)
        check = found(store, "pooler")
        store.close()
    assert (check.ok, check.detail) == (
        True,
        "a pooler probably in session mode; statements are not prepared",
    )


def test_what_cannot_be_told_is_said_in_time(
    postgres_server: Server, shared_database: str, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "ANSWER_SECONDS", 0.5)
    with pooler(postgres_server.admin_url, 1, pool_mode="session") as running:
        store = open_store(running.through(shared_database), tenant, None)
        check = found(store, "pooler")
        store.close()
    assert check.ok and "unknown mode" in check.detail


# -- standbys


@pytest.fixture(scope="module")
def synchronous(postgres_server: Server) -> Iterator[Pair]:
    """A primary whose commits wait for its standby."""
    with pair(postgres_server.kept, synchronous=True) as made:
        yield made


@pytest.fixture(scope="module")
def asynchronous(postgres_server: Server) -> Iterator[Pair]:
    """A primary whose commits wait for nobody."""
    with pair(postgres_server.kept, synchronous=False) as made:
        yield made


def watched(servers: Pair) -> str:
    """A database whose owner may see how the standbys are."""
    with servers.primary.admin() as admin:
        admin.execute(sql.SQL("GRANT pg_monitor TO {}").format(sql.Identifier(servers.role)))
    return servers.new_database()


def unwatched(servers: Pair) -> str:
    """A database whose owner may not."""
    with servers.primary.admin() as admin:
        admin.execute(sql.SQL("REVOKE pg_monitor FROM {}").format(sql.Identifier(servers.role)))
    return servers.new_database()


def test_a_synchronous_standby_is_told_with_its_lag(synchronous: Pair, clock: Clock) -> None:
    store = open_store(watched(synchronous), "acme", None, clock=clock)
    synchronous.wait_until_in_step()
    check = found(store, "standbys")
    assert check.ok and check.advice == ""
    assert check.detail.endswith("streaming, synchronous, 0 bytes behind")
    store.close()


def test_an_asynchronous_standby_may_lose_what_was_acknowledged(asynchronous: Pair, clock: Clock) -> None:
    store = open_store(watched(asynchronous), "acme", None, clock=clock)
    check = found(store, "standbys")
    assert check.ok and "streaming, asynchronous" in check.detail
    assert "none is synchronous" in check.advice and "docs/scaling.md" in check.advice
    store.close()


@pytest.mark.parametrize("waits", [True, False])
def test_a_role_that_may_not_see_them_is_told_how(request: pytest.FixtureRequest, clock: Clock, waits: bool) -> None:
    servers: Pair = request.getfixturevalue("synchronous" if waits else "asynchronous")
    store = open_store(unwatched(servers), "acme", None, clock=clock)
    check = found(store, "standbys")
    words = "commits wait for one of them" if waits else "commits do not wait for them"
    assert check.ok and check.detail.endswith(words) and "pg_monitor" in check.advice
    store.close()


def test_commits_that_do_not_wait_although_a_standby_is_named_are_told(synchronous: Pair, clock: Clock) -> None:
    url = watched(synchronous)
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute(
            sql.SQL("ALTER ROLE {} SET synchronous_commit = 'local'").format(sql.Identifier(synchronous.role))
        )
    store = open_store(url, "acme", None, clock=clock)
    try:
        check = found(store, "standbys")
        assert (check.ok, check.advice) == (True, "commits do not wait for them: synchronous_commit is local")
    finally:
        store.close()
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute(sql.SQL("ALTER ROLE {} RESET synchronous_commit").format(sql.Identifier(synchronous.role)))


def test_a_standby_knows_that_it_is_one_and_how_old_it_is(asynchronous: Pair, clock: Clock) -> None:
    url = watched(asynchronous)
    open_store(url, "acme", None, clock=clock).close()
    asynchronous.wait_until_in_step()
    dbname = url.rpartition("/")[2].partition("?")[0]
    assert asynchronous.standby.kept is not None
    port = asynchronous.standby.kept.port
    store = open_store(asynchronous.url(dbname, port, any_server=True), "acme", None, clock=clock)
    check = found(store, "standbys")
    assert check.ok and check.advice == ""
    assert check.detail.startswith("this is one; 0 bytes received and not yet replayed, last change ")
    with asynchronous.standby_cut_off():
        check = found(store, "standbys")
        assert check.ok and "not connected to its primary" in check.advice
    store.close()


def test_a_standby_that_is_away_is_told_before_a_commit_waits_for_it(postgres_server: Server, clock: Clock) -> None:
    with pair(postgres_server.kept, synchronous=True) as servers:
        store = open_store(watched(servers), "acme", None, clock=clock)
        servers.standby.stop("immediate")
        asked = "SELECT count(*) FROM pg_stat_replication"
        with servers.primary.admin() as admin:
            wait_for(lambda: admin.execute(asked.encode()).fetchone() == (0,), "the standby is gone")
        check = found(store, "standbys")
        assert not check.ok and check.detail.startswith("none, and every commit waits for one (")
        assert "synchronous_standby_names = ''" in check.advice
        store.close()
