"""What the doctor says of what is around a server: the cluster, seen on a stand-in of Citus' catalogs, and the compiler."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from engram.store.postgres.database import Database
from engram.store.postgres.setup import open_store, prepare_server
from engram.store.postgres.store import PostgresStore
from engram.store.reports import Check
from tests.clock import Clock
from tests.conformance.keeping import Keep
from tests.postgres.citus_stand_in import StandIn, stand_in, tables_of
from tests.postgres.server import Role, Server

pytestmark = pytest.mark.heavy


@pytest.fixture
def citus(postgres_role: Role, postgres_server: Server) -> Iterator[StandIn]:
    """A coordinator of two workers, as far as its catalogs say, with the tables distributed."""
    with stand_in(postgres_role, postgres_server) as database:
        prepare_server(database.url)
        yield database


@pytest.fixture
def store(citus: StandIn, clock: Clock) -> Iterator[PostgresStore]:
    """An empty store: on the stand-in, what is written lies on the coordinator."""
    opened = open_store(citus.url, "acme", None, clock=clock)
    yield opened
    opened.close()


def found(store: PostgresStore, name: str) -> Check:
    """What the doctor says of one thing."""
    [check] = [check for check in store.examine() if check.name == name]
    return check


def test_a_cluster_is_healthy_where_every_table_is_distributed(store: PostgresStore, citus: StandIn) -> None:
    tables = len(tables_of(citus.admin))
    assert found(store, "cluster") == Check("cluster", True, f"Citus 13.2, {tables} tables over 2 nodes")


def test_tables_that_were_forgotten_are_named(store: PostgresStore, citus: StandIn) -> None:
    citus.change("DELETE FROM pg_dist_partition WHERE logicalrelid::text IN ('engram.journal', 'engram.documents')")
    check = found(store, "cluster")
    assert (check.ok, check.detail) == (False, "not distributed: documents, journal")
    assert check.advice == f"`engram init` as {urlsplit(citus.url).username} distributes them"


def test_tables_that_do_not_lie_together_are_named(store: PostgresStore, citus: StandIn) -> None:
    citus.change("UPDATE pg_dist_partition SET colocationid = 7 WHERE logicalrelid = 'engram.journal'::regclass")
    check = found(store, "cluster")
    first = tables_of(citus.admin)[0]
    assert (check.ok, check.detail) == (False, f"not colocated with {first}: journal")
    assert (
        check.advice
        == f"SELECT update_distributed_table_colocation('engram.journal', colocate_with => 'engram.{first}')"
    )


def test_rows_on_the_coordinator_are_named_and_init_empties_them(
    store: PostgresStore, citus: StandIn, clock: Clock
) -> None:
    Keep(store, clock)("The staging server is called nightshift")
    check = found(store, "cluster")
    assert not check.ok and check.detail.startswith(
        "rows remain on the coordinator, where a purge cannot reach them: agent_memory"
    )
    assert "journal" in check.detail and check.advice == f"`engram init` as {urlsplit(citus.url).username} empties them"
    prepare_server(citus.url)
    assert found(store, "cluster").ok


def test_a_name_that_does_not_reach_the_workers_is_told(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Database.run
    monkeypatch.setattr(
        Database,
        "run",
        lambda self, name, /, **values: [(None, 0)] if name == "citus_reached" else run(self, name, **values),
    )
    check = found(store, "cluster")
    assert (check.ok, "does not reach the workers" in check.detail) == (False, True)
    assert "citus.propagate_set_commands" in check.advice


def test_the_name_is_asked_for_where_the_tenants_rows_are(store: PostgresStore) -> None:
    assert store.context.database.run("citus_reached") == [("acme", 0)]


def test_a_worker_is_no_place_to_connect_to(store: PostgresStore, citus: StandIn) -> None:
    citus.change("UPDATE pg_dist_local_group SET groupid = 2")
    assert found(store, "cluster") == Check("cluster", False, "a worker of Citus 13.2", "connect to the coordinator")


@pytest.mark.parametrize("nodes", [0, 2])
def test_a_store_that_is_not_distributed_is_healthy_and_advised(
    store: PostgresStore, citus: StandIn, nodes: int
) -> None:
    citus.change("DELETE FROM pg_dist_partition")
    citus.change(f"DELETE FROM pg_dist_node WHERE nodeid > {nodes}")
    check = found(store, "cluster")
    assert (check.ok, check.detail) == (True, "Citus 13.2; the store is on this server alone")
    assert check.advice.startswith("`engram init` distributes" if nodes else "Citus has no node for shards")


@pytest.mark.parametrize("value", ["on", "off"])
def test_the_compiler_is_harmless_either_way(database: str, clock: Clock, value: str) -> None:
    with psycopg.connect(database, autocommit=True) as owner:
        name = sql.Identifier(urlsplit(database).path.lstrip("/"))
        owner.execute(sql.SQL("ALTER DATABASE {} SET jit = {}").format(name, sql.Literal(value)))
    store = open_store(database, "acme", None, clock=clock)
    words = {"on": "on at the server; Engram switches it off in its transactions", "off": "off"}
    assert found(store, "jit") == Check("jit", True, words[value])
    assert store.context.database.query("SELECT current_setting('jit')", {}) == [("off",)]
    store.close()
