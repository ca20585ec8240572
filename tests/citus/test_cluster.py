"""Engram on a running cluster: where its rows are, that tenants are kept apart there, and that each statement goes to one shard."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from engram import Engram
from engram.store.postgres import connections, schema
from engram.store.postgres import schema as distribution
from engram.store.postgres.connections import connect
from engram.store.postgres.schema import LATEST_SCHEMA, migrate, migrations, version_of
from engram.store.postgres.setup import open_store, prepare_server
from tests.citus.cluster import BEFORE, MOVED_ALONG
from tests.clock import Clock
from tests.conformance.keeping import Keep, listed
from tests.postgres.seeded import steps
from tests.postgres.server import Lease, Role, Server, fresh_database, ordinary_role, running_server
from tests.postgres.shard_plans import more_than_one_shard, recording

PATIENCE = 600.0
ROUNDS = 160
ADDED = """
CREATE TABLE engram.added (tenant text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL, PRIMARY KEY (tenant, id));
ALTER TABLE engram.added ENABLE ROW LEVEL SECURITY;
ALTER TABLE engram.added FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON engram.added USING (tenant = current_setting('engram.tenant', true))
    WITH CHECK (tenant = current_setting('engram.tenant', true));
"""


@pytest.fixture
def admin(postgres_server: Server) -> Iterator[psycopg.Connection]:
    """The superuser, in the database of the run."""
    with psycopg.connect(postgres_server.admin_url, autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="session")
def one_server() -> Iterator[str]:
    """The URL of an empty database of a plain server."""
    lease = Lease()
    try:
        kept = running_server(lease.folder)
        with ordinary_role(Server(kept.admin_url, kept)) as role, fresh_database(role) as url:
            yield url
    finally:
        lease.end()


def test_every_table_is_distributed_and_nothing_is_left_on_the_coordinator(
    shared_database: str, admin: psycopg.Connection
) -> None:
    cluster = distribution.find_cluster(admin)
    assert cluster is not None and cluster.is_coordinator and cluster.nodes
    assert [table.name for table in cluster.local_tables] == [table.name for table in cluster.leftover_tables] == []
    assert len(cluster.distributed_tables) > 20 and len({table.group for table in cluster.distributed_tables}) == 1
    local = "SELECT count(*) FROM pg_dist_partition WHERE logicalrelid = 'engram.schema_versions'::regclass"
    assert admin.execute(local.encode()).fetchone() == (0,)


def test_row_security_is_forced_on_every_shard(shared_database: str, admin: psycopg.Connection) -> None:
    counted = (
        "SELECT success, result FROM run_command_on_shards('engram.agent_memory', "
        "$$SELECT relrowsecurity AND relforcerowsecurity FROM pg_class WHERE oid = '%s'::regclass$$)"
    )
    answers = admin.execute(counted.encode()).fetchall()
    assert answers and set(answers) == {(True, "t")}


def test_rows_that_were_there_before_moved_along(shared_database: str, clock: Clock) -> None:
    store = open_store(shared_database, MOVED_ALONG, None, clock=clock)
    assert sorted(listed(store)) == sorted(BEFORE)
    store.close()


def test_init_again_by_two_at_once_changes_nothing(shared_database: str) -> None:
    with ThreadPoolExecutor(2) as threads:
        told = [one.result(PATIENCE) for one in [threads.submit(prepare_server, shared_database) for _ in range(2)]]
    assert [len(lines) for lines in told] == [1, 1]


def test_the_doctor_is_content(shared_database: str, tenant: str, clock: Clock) -> None:
    with Engram.open(url=shared_database, tenant=tenant, clock=clock) as mem:
        mem.add("The staging server is called nightshift")
        checks = {check.name: check for check in mem.store.examine()}
    assert [check for check in checks.values() if not check.ok] == []
    assert checks["cluster"].detail.startswith("Citus ")


def test_the_servers_that_hold_the_rows_keep_tenants_apart(shared_database: str, tenant: str, clock: Clock) -> None:
    for name in (tenant, f"{tenant}-2", f"{tenant}-3"):
        store = open_store(shared_database, name, None, clock=clock)
        Keep(store, clock)(f"A word of {name}")
        store.close()
    with psycopg.connect(shared_database) as connection:
        assert connection.execute("SELECT count(*) FROM engram.agent_memory").fetchone() == (0,)
        connection.rollback()
        connection.execute("SET LOCAL citus.propagate_set_commands = 'local'")
        connection.execute(sql.SQL("SET LOCAL engram.tenant = {}").format(sql.Literal(tenant)))
        # Every shard is asked, and none of them tells of another tenant.
        assert connection.execute("SELECT DISTINCT tenant FROM engram.agent_memory").fetchall() == [(tenant,)]
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
            connection.execute("INSERT INTO engram.tombstones (tenant, id) VALUES (%s, 'x')", (f"{tenant}-2",))


def test_every_statement_goes_to_one_shard(shared_database: str, tenant: str, admin: psycopg.Connection) -> None:
    with recording() as recorder:
        steps(shared_database, tenant, rounds=ROUNDS)
    cluster = distribution.find_cluster(admin)
    assert cluster is not None
    tables = {table.name for table in cluster.distributed_tables}
    found = {}
    for sent in [*recorder.sent.values(), *recorder.unsent(tenant)]:
        if sent.tables & tables and "%(tenant)s" in sent.text:
            with psycopg.connect(shared_database) as connection:
                connections.register_vectors(connection)
                connections.register_texts(connection)
                found[sent.text] = more_than_one_shard(sent.explained(connection))
    assert len(found) > 100
    assert {text: words for text, words in found.items() if words} == {}


def test_one_program_takes_the_same_steps_on_one_server_and_here(
    shared_database: str, one_server: str, tenant: str
) -> None:
    here, there = (steps(url, tenant, rounds=ROUNDS) for url in (shared_database, one_server))
    assert len(here) > ROUNDS
    apart = [(a, b) for a, b in zip(here, there, strict=True) if a != b]
    assert not apart, f"{len(apart)} of {len(here)} steps differ, the first of them:\n{difference(*apart[0])}"


def difference(here: str, there: str) -> str:
    """Where two lines begin to differ."""
    same = next((n for n, (a, b) in enumerate(zip(here, there, strict=False)) if a != b), min(len(here), len(there)))
    begin = max(0, same - 200)
    return f"{here[:60]} …\nhere:  {here[begin : same + 200]}\nthere: {there[begin : same + 200]}"


def test_a_table_of_a_later_migration_is_distributed_beside_the_others(
    shared_database: str, admin: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts_of = migrations()
    monkeypatch.setattr(schema, "LATEST_SCHEMA", LATEST_SCHEMA + 1)
    monkeypatch.setattr(schema, "migrations", lambda: texts_of | {LATEST_SCHEMA + 1: ADDED})
    try:
        with connect(shared_database) as connection:
            assert migrate(connection, "the cluster", upto=LATEST_SCHEMA + 1) == LATEST_SCHEMA
            cluster = distribution.find_cluster(connection)
        assert cluster is not None and cluster.local_tables == []
        assert "added" in {table.name for table in cluster.distributed_tables}
        assert len({table.group for table in cluster.distributed_tables}) == 1
    finally:
        admin.execute("DROP TABLE IF EXISTS engram.added")
        admin.execute("DELETE FROM engram.schema_versions WHERE version > %s", (LATEST_SCHEMA,))
    with connect(shared_database) as connection:
        assert version_of(connection) == LATEST_SCHEMA


def test_a_tenants_shards_move_to_another_node_while_its_writers_wait(
    shared_database: str, tenant: str, clock: Clock, admin: psycopg.Connection
) -> None:
    nodes = admin.execute(
        "SELECT nodename, nodeport FROM pg_dist_node WHERE isactive AND noderole = 'primary' AND shouldhaveshards ORDER BY 1, 2"
    ).fetchall()
    if len(nodes) < 2:
        pytest.skip("a shard needs a second node to move to")
    store = open_store(shared_database, tenant, None, clock=clock)
    keep = Keep(store, clock)
    keep("Written before the move")
    place = "SELECT s.shardid, p.nodename, p.nodeport FROM pg_dist_shard_placement p JOIN (SELECT get_shard_id_for_distribution_column('engram.journal', %s::text) AS shardid) s USING (shardid)"
    row = admin.execute(place.encode(), (tenant,)).fetchone()
    assert row is not None
    shard, name, port = row
    target = next(node for node in nodes if node != (name, port))
    move = "SELECT citus_move_shard_placement(%s::bigint, %s::text, %s::integer, %s::text, %s::integer, shard_transfer_mode => 'block_writes')"
    admin.execute(move.encode(), (shard, name, port, *target))
    row = admin.execute(place.encode(), (tenant,)).fetchone()
    assert row is not None and row[1:] == target
    keep("Written after the move")
    assert sorted(listed(store)) == ["Written after the move", "Written before the move"]
    assert all(check.ok for check in store.examine())
    store.close()


def test_a_reader_and_a_writer_with_no_more_rights_than_they_need(
    shared_database: str, tenant: str, clock: Clock, admin: psycopg.Connection, postgres_role: Role
) -> None:
    """Grants reach the shards: what `roles.sql` gives to the application is enough there, too."""
    name = sql.Identifier(f"{postgres_role.name}_app")
    admin.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(name, sql.Literal(postgres_role.password)))
    app = Role(postgres_role.server, f"{postgres_role.name}_app", postgres_role.password)
    try:
        login = f"password={app.password}"
        known = "INSERT INTO pg_dist_authinfo (nodeid, rolename, authinfo) VALUES (0, %s, %s), (-1, %s, %s)"
        admin.execute(known.encode(), (app.name, login, app.name, login))
        for grant in (
            "GRANT USAGE ON SCHEMA engram TO {}",
            "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA engram TO {}",
            "GRANT USAGE ON ALL SEQUENCES IN SCHEMA engram TO {}",
        ):
            admin.execute(sql.SQL(grant).format(name))
        url = app.url(urlsplit(shared_database).path.lstrip("/"))
        with Engram.open(url=url, tenant=tenant, clock=clock) as mem:
            mem.learn("The staging server is called nightshift")
            assert mem.search("nightshift")
            checks = {check.name: check for check in mem.store.examine()}
        assert [check for check in checks.values() if not check.ok] == []
        assert checks["tenants"].detail == f"{app.name} sees only tenant {tenant}"
    finally:
        admin.execute("DELETE FROM pg_dist_authinfo WHERE rolename = %s", (app.name,))
        admin.execute(sql.SQL("DROP OWNED BY {}").format(name))
        admin.execute(sql.SQL("DROP ROLE {}").format(name))
