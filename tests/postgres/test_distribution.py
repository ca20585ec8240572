"""Distributing the tables on a Citus cluster: what Engram asks of it, seen on a stand-in of its catalogs.

What a real cluster makes of it is asked by `make test-citus`.
"""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from engram import Engram
from engram.model.errors import StoreBusy, StoreError
from engram.store.postgres import schema as distribution
from engram.store.postgres import schema as migrating
from engram.store.postgres.connections import connect
from engram.store.postgres.schema import (
    LATEST_SCHEMA,
    SCHEMA_LOCK_ID,
    distribute,
    find_cluster,
    migrate,
    migrations,
    version_of,
)
from engram.store.postgres.setup import prepare_server
from tests.clock import Clock
from tests.postgres.citus_stand_in import StandIn, stand_in, tables_of
from tests.postgres.server import Role, Server, at_database, ordinary_role

pytestmark = pytest.mark.heavy

PATIENCE = 120.0
ADDED = (
    'CREATE TABLE engram.added (tenant text COLLATE "C" NOT NULL, id text NOT NULL, PRIMARY KEY (tenant, id));'
    "ALTER TABLE engram.added ENABLE ROW LEVEL SECURITY; ALTER TABLE engram.added FORCE ROW LEVEL SECURITY;"
)
"""What a later migration may add."""


@pytest.fixture
def citus(postgres_role: Role, postgres_server: Server) -> Iterator[StandIn]:
    """A coordinator of two workers, as far as its catalogs say."""
    with stand_in(postgres_role, postgres_server) as database:
        yield database


@pytest.fixture
def filled(citus: StandIn, clock: Clock) -> dict[str, list[str]]:
    """Rows in it before it is distributed, by table."""
    prepare = connect(citus.url)
    migrate(prepare, "the server")
    prepare.close()
    with Engram.open(url=citus.url, tenant="acme", clock=clock) as mem:
        mem.add("The staging server is called nightshift")
        task = mem.start_task("Roll out")
        mem.record_turn(task.id, "ship it", "done")
    with Engram.open(url=citus.url, tenant="zeta", clock=clock) as mem:
        mem.add("Deploy on Tuesdays only")
    return rows_of(citus, "engram")


def rows_of(citus: StandIn, schema: str) -> dict[str, list[str]]:
    """Every row of every table of a schema, past row security."""
    found = {}
    for name in tables_of(citus.admin):
        table = sql.Identifier(schema, name)
        rows = citus.admin.execute(sql.SQL("SELECT t::text FROM {} t ORDER BY 1").format(table)).fetchall()
        found[name] = [row for (row,) in rows]
    return found


def unforced(citus: StandIn) -> list[str]:
    """Tables whose owner row security does not bind."""
    rows = citus.admin.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'engram'::regnamespace AND relkind = 'r'"
        " AND NOT (relrowsecurity AND relforcerowsecurity) ORDER BY 1"
    ).fetchall()
    return [name for (name,) in rows]


def test_one_server_has_nothing_to_distribute(database: str) -> None:
    assert prepare_server(database) == []
    with connect(database) as connection:
        assert find_cluster(connection) is None and version_of(connection) == LATEST_SCHEMA


def test_every_table_with_a_tenant_is_distributed_by_it_in_one_group_of_their_own(citus: StandIn) -> None:
    told = prepare_server(citus.url)
    tables = tables_of(citus.admin)
    made = [(relation, beside) for name, relation, beside in citus.calls() if name == "create_distributed_table"]
    first = tables[0]
    assert made == [(first, "none"), *((name, f"engram.{first}") for name in tables[1:])]
    assert citus.transactions() == 1
    assert "schema_versions" not in tables
    assert citus.admin.execute("SELECT DISTINCT partkey, colocationid FROM pg_dist_partition").fetchall() == [
        ("tenant", 1)
    ]
    assert told[:2] == [
        f"Citus 13.2, 2 nodes: {len(tables)} tables are distributed by tenant",
        f"distributed now: {len(tables)} tables, 0 rows",
    ]


def test_rows_that_are_there_move_along_and_nothing_stays_behind(citus: StandIn, filled: dict[str, list[str]]) -> None:
    assert filled["agent_memory"] and filled["agent_events"] and filled["memory_jobs"]
    told = prepare_server(citus.url)
    assert rows_of(citus, "citus_shards") == filled
    assert rows_of(citus, "engram") == {name: [] for name in filled}
    assert f"{sum(map(len, filled.values())):,} rows" in told[1]
    assert unforced(citus) == ["schema_versions"]
    emptied = [relation for name, relation, _ in citus.calls() if name.startswith("truncate")]
    assert emptied == tables_of(citus.admin)


def test_a_row_that_does_not_arrive_keeps_everything_where_it_was(citus: StandIn, filled: dict[str, list[str]]) -> None:
    citus.trouble("loses a row")
    with pytest.raises(StoreError, match=r"of \d+ rows of engram\.\w+ arrived; nothing was distributed"):
        prepare_server(citus.url)
    assert (rows_of(citus, "engram"), citus.calls(), unforced(citus)) == (filled, [], ["schema_versions"])


def test_a_worker_that_does_not_answer_keeps_everything_where_it_was(
    citus: StandIn, filled: dict[str, list[str]], clock: Clock
) -> None:
    citus.trouble("unreachable")
    with pytest.raises(
        StoreError, match=r"remote node .* failed \(password.*\); nothing was distributed.*docs/scaling"
    ):
        prepare_server(citus.url)
    assert (rows_of(citus, "engram"), citus.calls(), unforced(citus)) == (filled, [], ["schema_versions"])
    with Engram.open(url=citus.url, tenant="acme", clock=clock) as mem:
        assert mem.search("nightshift")
    citus.trouble("")
    assert len(prepare_server(citus.url)) >= 2 and rows_of(citus, "citus_shards")["journal"] == filled["journal"]


def test_a_policy_that_citus_would_refuse_keeps_everything_where_it_was(citus: StandIn) -> None:
    with connect(citus.url) as owner:
        migrate(owner, "the server")
    citus.change(
        "CREATE POLICY asking ON engram.tombstones USING ((SELECT current_setting('engram.worker', true)) = 'on')"
    )
    with pytest.raises(StoreError, match=r"cannot create policy \(Subqueries are not supported"):
        prepare_server(citus.url)
    assert citus.calls() == []


def test_a_second_time_nothing_is_left_to_do(citus: StandIn) -> None:
    prepare_server(citus.url)
    before = citus.calls()
    assert prepare_server(citus.url) == [
        f"Citus 13.2, 2 nodes: {len(tables_of(citus.admin))} tables are distributed by tenant"
    ]
    assert citus.calls() == before


def test_two_at_once_take_turns(citus: StandIn) -> None:
    with connect(citus.url) as holder, ThreadPoolExecutor(2) as threads:
        migrate(holder, "the server")
        with holder.transaction():
            holder.execute("SELECT pg_advisory_xact_lock(%s)", (SCHEMA_LOCK_ID,))
            both = [threads.submit(prepare_server, citus.url) for _ in range(2)]
            wait_for(citus, 2)
        told = sorted(len(one.result(PATIENCE)) for one in both)
    assert told[0] == 1 < told[1]
    assert citus.distributed() == tables_of(citus.admin) and citus.transactions() == 1


def wait_for(citus: StandIn, count: int) -> None:
    """Until so many wait for their turn."""
    deadline = time.monotonic() + PATIENCE
    question = (
        "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database"
        " WHERE d.datname = current_database() AND l.locktype = 'advisory' AND NOT l.granted"
    )
    while citus.admin.execute(question.encode()).fetchone() != (count,):
        assert time.monotonic() < deadline, f"{count} should wait"
        time.sleep(0.01)


def test_whoever_reads_or_writes_meanwhile_is_waited_for_and_told_so(
    citus: StandIn, filled: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distribution, "TABLE_SECONDS", 1)
    with connect(citus.url) as reader, reader.transaction():
        reader.execute("SELECT count(*) FROM engram.documents")
        with pytest.raises(StoreBusy, match="try again"):
            prepare_server(citus.url)
    assert (citus.calls(), unforced(citus)) == ([], ["schema_versions"])
    started = threading.Event()

    def write() -> None:
        with connect(citus.url) as writer, writer.transaction():
            writer.execute("SELECT set_config('engram.tenant', 'acme', true)")
            writer.execute("INSERT INTO engram.tombstones (tenant, id) VALUES ('acme', 'ENG-written-meanwhile')")
            started.set()
            wait_for_lock(citus)

    monkeypatch.setattr(distribution, "TABLE_SECONDS", PATIENCE)
    with ThreadPoolExecutor(1) as threads:
        writing = threads.submit(write)
        assert started.wait(PATIENCE)
        prepare_server(citus.url)
        writing.result(PATIENCE)
    assert any("ENG-written-meanwhile" in row for row in rows_of(citus, "citus_shards")["tombstones"])


def wait_for_lock(citus: StandIn) -> None:
    """Until somebody waits for a table."""
    deadline = time.monotonic() + PATIENCE
    question = (
        "SELECT count(*) > 0 FROM pg_locks l JOIN pg_database d ON d.oid = l.database"
        " WHERE d.datname = %s AND l.locktype = 'relation' AND NOT l.granted"
    )
    with psycopg.connect(citus.admin.info.dsn, password=citus.admin.info.password, autocommit=True) as asking:
        while asking.execute(question.encode(), (citus.admin.info.dbname,)).fetchone() != (True,):
            assert time.monotonic() < deadline, "nobody waits"
            time.sleep(0.01)


OBSTACLES = {
    "UPDATE pg_extension SET extversion = '10.2-5' WHERE extname = 'citus'": r"Citus 10\.2 .*stays on this server.*11\.1.*ALTER EXTENSION",
    "DELETE FROM pg_dist_node": r"no node for shards.*stays on this server.*citus_add_node.*`engram init` again",
    "UPDATE pg_dist_node SET isactive = false": "no node for shards",
    "UPDATE pg_dist_node SET noderole = 'secondary'": "no node for shards",
    "UPDATE pg_dist_node SET shouldhaveshards = false": "no node for shards",
}


@pytest.mark.parametrize("statement", OBSTACLES)
def test_where_it_cannot_be_distributed_it_says_who_can_change_that_and_the_store_works(
    citus: StandIn, clock: Clock, statement: str
) -> None:
    citus.change(statement)
    [told] = prepare_server(citus.url)
    assert_matches(OBSTACLES[statement], told)
    assert citus.calls() == []
    with Engram.open(url=citus.url, tenant="acme", clock=clock) as mem:
        mem.add("The staging server is called nightshift")
        assert mem.search("nightshift")


def assert_matches(pattern: str, told: str) -> None:
    """What is said, in words."""
    with pytest.raises(ValueError, match=pattern):
        raise ValueError(told)


def test_a_coordinator_that_may_hold_shards_is_a_node(citus: StandIn) -> None:
    citus.change("DELETE FROM pg_dist_node")
    citus.change("INSERT INTO pg_dist_node (nodeid, groupid, nodename) VALUES (1, 0, 'coordinator')")
    assert prepare_server(citus.url)[0].startswith("Citus 13.2, 1 node: ")


def test_shards_on_the_coordinator_are_no_tables_to_distribute(citus: StandIn) -> None:
    prepare_server(citus.url)
    row = citus.admin.execute(
        "SELECT shardid FROM pg_dist_shard WHERE logicalrelid = 'engram.journal'::regclass"
    ).fetchone()
    assert row is not None
    citus.change(f"CREATE TABLE engram.journal_{row[0]} (LIKE engram.journal INCLUDING ALL)")
    before = citus.calls()
    assert len(prepare_server(citus.url)) == 1 and citus.calls() == before


def test_a_worker_is_refused_before_anything_is_made_there(citus: StandIn) -> None:
    citus.change("UPDATE pg_dist_local_group SET groupid = 1")
    with pytest.raises(StoreError, match="worker of a Citus cluster; use the coordinator's URL"):
        prepare_server(citus.url)
    assert citus.admin.execute("SELECT FROM pg_namespace WHERE nspname = 'engram'").fetchone() is None


def test_whoever_does_not_own_the_tables_is_told_who_does(citus: StandIn, postgres_server: Server) -> None:
    with connect(citus.url) as owner:
        migrate(owner, "the server")
    with ordinary_role(postgres_server) as other:
        name = sql.Identifier(other.name)
        citus.admin.execute(sql.SQL("GRANT USAGE ON SCHEMA engram TO {}").format(name))
        citus.admin.execute(sql.SQL("GRANT SELECT ON ALL TABLES IN SCHEMA engram TO {}").format(name))
        [told] = prepare_server(other.url(urlsplit(citus.url).path.lstrip("/")))
        citus.admin.execute(sql.SQL("DROP OWNED BY {}").format(name))
    assert told.endswith(f"run `engram init` as {urlsplit(citus.url).username}")
    assert citus.calls() == []


def test_partitioned_tables_stay_where_they_are(citus: StandIn) -> None:
    with connect(citus.url) as owner:
        migrate(owner, "the server")
    citus.change("DROP TABLE engram.tombstones")
    owner_name = urlsplit(citus.url).username
    citus.change('CREATE TABLE engram.tombstones (tenant text COLLATE "C", id text) PARTITION BY HASH (tenant)')
    citus.change(f"ALTER TABLE engram.tombstones OWNER TO {owner_name}")
    [told] = prepare_server(citus.url)
    assert_matches(r"partitioned.*\(tombstones\)", told)
    assert citus.calls() == []


def test_what_was_distributed_by_hand_is_completed_and_emptied(citus: StandIn, filled: dict[str, list[str]]) -> None:
    citus.change("SELECT create_distributed_table('engram.journal', 'tenant', colocate_with => 'none')")
    told = prepare_server(citus.url)
    made = [(relation, beside) for name, relation, beside in citus.calls() if name == "create_distributed_table"]
    rest = [name for name in tables_of(citus.admin) if name != "journal"]
    assert made == [("journal", "none"), *((name, "engram.journal") for name in rest)]
    assert "emptied on the coordinator: journal" in told
    assert rows_of(citus, "citus_shards") == filled and not any(rows_of(citus, "engram").values())


def test_a_table_that_a_migration_makes_lies_beside_the_others(citus: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare_server(citus.url)
    before, texts = len(citus.calls()), migrations()
    monkeypatch.setattr(migrating, "LATEST_SCHEMA", LATEST_SCHEMA + 1)
    with connect(citus.url) as connection:
        with monkeypatch.context() as patch:
            patch.setattr(migrating, "migrations", lambda: texts | {LATEST_SCHEMA + 1: ADDED + "SELECT 1 / 0;"})
            with pytest.raises(psycopg.Error, match="division by zero"):
                migrate(connection, "the server", upto=LATEST_SCHEMA + 1)
        assert (len(citus.calls()), version_of(connection)) == (before, LATEST_SCHEMA)
        monkeypatch.setattr(migrating, "migrations", lambda: texts | {LATEST_SCHEMA + 1: ADDED})
        assert migrate(connection, "the server", upto=LATEST_SCHEMA + 1) == LATEST_SCHEMA
        assert version_of(connection) == LATEST_SCHEMA + 1
    first = tables_of(citus.admin)[1]
    assert citus.calls()[before:] == [
        ("create_distributed_table", "added", f"engram.{first}"),
        ("truncate_local_data_after_distributing_table", "added", None),
    ]
    assert unforced(citus) == ["schema_versions"]


def test_a_migration_of_a_store_on_one_server_distributes_nothing(citus: StandIn) -> None:
    with connect(citus.url) as connection:
        assert migrate(connection, "the server") == 0
    assert citus.calls() == []


def test_opening_a_store_distributes_nothing(citus: StandIn, clock: Clock) -> None:
    Engram.open(url=citus.url, tenant="acme", clock=clock).close()
    assert citus.calls() == []


def test_the_database_passes_settings_on_where_its_owner_may_say_so(citus: StandIn, postgres_server: Server) -> None:
    mighty = at_database(postgres_server.admin_url, urlsplit(citus.url).path.lstrip("/"))
    told = prepare_server(mighty)
    assert len(told) == 2
    with psycopg.connect(citus.url) as connection:
        row = connection.execute("SELECT current_setting('citus.propagate_set_commands')").fetchone()
    assert row == ("local",)


def test_where_the_role_may_not_say_so_it_is_told_what_to_run(citus: StandIn) -> None:
    # Without Citus' library the setting is nobody's, and only a superuser may keep it.
    database = urlsplit(citus.url).path.lstrip("/")
    command = f"ALTER DATABASE \"{database}\" SET citus.propagate_set_commands = 'local'"
    assert prepare_server(citus.url)[-1].endswith(f"run as the database's owner: {command}")
    citus.change(command)
    with connect(citus.url) as connection:
        assert len(distribute(connection, "the server")) == 1
