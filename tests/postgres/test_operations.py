"""What the pages on operations promise: a dump that comes back whole, tables that partition by the statements printed there."""

import re
import subprocess
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from benchmarks.tenants import is_empty
from engram import Engram
from engram.model.records import Checkpoint, Job, TaskRun
from engram.store.postgres import neighbours, tenants
from engram.store.postgres.setup import open_store
from engram.store.postgres.store import PostgresStore
from tests.backends import static_embedder
from tests.clock import Clock
from tests.conformance.keeping import ANY, Keep, asked, listed, said, texts
from tests.postgres.programs import program_at, run_program
from tests.postgres.server import Role, Server, at_database, fresh_database

pytestmark = pytest.mark.heavy

DOCS = Path(__file__).parents[2] / "docs"
NIGHTSHIFT = "The staging server is called nightshift"
TENANTS = [f"tenant-{number}" for number in range(6)]


def fill(url: str, clock: Clock) -> None:
    """Some tenants with memories, a past and a conversation each."""
    for tenant in TENANTS:
        store = open_store(url, tenant, static_embedder(), clock=clock)
        keep = Keep(store, clock)
        kept = keep(f"{NIGHTSHIFT}, says {tenant}", name="staging")
        keep.again(kept, rationale="it runs at night")
        store.append_events("talk", [said("Ann", f"hello {tenant}", key="k1"), said("Bob", "hello Ann", 1)])
        begin_task(store, f"Ship it for {tenant}", clock())
        store.close()


def begin_task(store: PostgresStore, goal: str, now: datetime) -> None:
    """A run with an event, the job that follows on it, and a checkpoint."""
    store.save_record(TaskRun("TASK-1", goal, "global", now, now))
    store.append_events("TASK-1", [said("Ann", "begin")], lambda made: [Job(made[0].id, "derive", now, now)])
    store.add_checkpoint("TASK-1", lambda number: Checkpoint("CKP-1", "TASK-1", number, now, "half way"))


@pytest.fixture(scope="module")
def original(postgres_role: Role) -> Iterator[tuple[str, datetime]]:
    """A database with six tenants, to be copied, and the time it was then."""
    clock = Clock()
    with fresh_database(postgres_role) as url:
        fill(url, clock)
        yield url, clock()


@pytest.fixture
def filled(original: tuple[str, datetime], postgres_role: Role, clock: Clock) -> Iterator[str]:
    """A database with six tenants."""
    url, clock.now = original
    with fresh_database(postgres_role, like=url) as copied:
        yield copied


def admin_url(server: Server, url: str) -> str:
    return at_database(server.admin_url, urlsplit(url).path.lstrip("/"))


def assert_whole(url: str, clock: Clock) -> None:
    """Every tenant has what is its own, answers, and goes on writing."""
    for tenant in TENANTS:
        store = open_store(url, tenant, static_embedder(), clock=clock)
        assert listed(store) == [f"{NIGHTSHIFT}, says {tenant}"]
        found = asked(store, "what is staging called")
        assert texts(store, found.lexical[:1]) == texts(store, found.semantic[:1]) == listed(store)
        memory = store.get("staging")
        assert memory is not None
        assert [image.op for image in store.history(memory.id)] == ["add", "update"]
        assert store.verify_ledgers() == []
        task, [checkpoint] = store.load_record(TaskRun, "TASK-1"), store.list_records(Checkpoint, of="TASK-1")
        assert task is not None and (task.goal, checkpoint.number) == (f"Ship it for {tenant}", 1)
        assert [job.id for job in store.list_records(Job)] == [event.id for event in store.events("TASK-1")]
        assert [check.detail for check in store.examine() if not check.ok] == []
        added = Keep(store, clock)(f"Written afterwards by {tenant}")
        assert added.id != memory.id
        assert len(store.append_events("talk", [said("Ann", "again", 2)])) == 1
        assert store.verify_ledgers() == []
        store.close()


def test_every_table_is_described(shared_database: str) -> None:
    page = (DOCS / "postgres.md").read_text("utf-8")
    with psycopg.connect(shared_database) as connection:
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'engram'").fetchall()
    assert len(rows) > 15
    assert [name for (name,) in rows if f"`{name}`" not in page] == []


def test_a_dump_restored_elsewhere_is_whole(
    filled: str, postgres_role: Role, postgres_server: Server, clock: Clock, tmp_path: Path
) -> None:
    dump = str(tmp_path / "engram.dump")
    run_program(postgres_server, "pg_dump", "-Fc", "-d", admin_url(postgres_server, filled), "-f", dump)
    with fresh_database(postgres_role) as elsewhere:
        run_program(postgres_server, "pg_restore", "--exit-on-error", "-d", admin_url(postgres_server, elsewhere), dump)
        assert_whole(elsewhere, clock)
    assert_whole(filled, clock)


def test_a_dump_by_a_role_bound_to_a_tenant_fails_instead_of_leaving_rows_out(
    filled: str, postgres_server: Server, tmp_path: Path
) -> None:
    command = [program_at(postgres_server, "pg_dump"), "-d", filled, "-f", str(tmp_path / "dump.sql")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode != 0
    assert "row-level security" in ended.stderr


@pytest.fixture(scope="module")
def original_in_parts(original: tuple[str, datetime], postgres_role: Role, postgres_server: Server) -> Iterator[str]:
    """The same, after the statements that docs/scaling.md gives; to be copied too."""
    page = (DOCS / "scaling.md").read_text("utf-8")
    (statements,) = (
        block for block in re.findall(r"```sql\n(.*?)```", page, re.DOTALL) if "PARTITION BY HASH" in block
    )
    with fresh_database(postgres_role, like=original[0]) as url:
        with psycopg.connect(admin_url(postgres_server, url), autocommit=True) as admin:
            admin.execute(statements.encode())
            admin.execute("DROP SCHEMA engram_whole CASCADE")
        yield url


@pytest.fixture
def partitioned(
    original: tuple[str, datetime], original_in_parts: str, postgres_role: Role, clock: Clock
) -> Iterator[str]:
    """A database with six tenants in partitioned tables."""
    clock.now = original[1]
    with fresh_database(postgres_role, like=original_in_parts) as copied:
        yield copied


def test_the_tables_partition_by_tenant_as_they_are(partitioned: str, clock: Clock) -> None:
    with psycopg.connect(partitioned) as connection:
        kinds = connection.execute(
            "SELECT DISTINCT c.relkind::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant' "
            "WHERE c.relnamespace = 'engram'::regnamespace AND c.relkind IN ('r', 'p')"
        ).fetchall()
        granted = connection.execute(
            "SELECT count(*), count(*) FILTER (WHERE g.grantee <> c.relowner) FROM pg_class c "
            "LEFT JOIN LATERAL aclexplode(c.relacl) g ON true WHERE c.relnamespace = 'engram_parts'::regnamespace"
        ).fetchone()
    assert kinds == [("p",)]
    assert granted is not None
    assert (granted[0] > 16, granted[1]) == (True, 0), "nobody reaches a partition but through its table"
    assert_whole(partitioned, clock)


def test_partitioned_tables_purge_prune_rebuild_index_and_remove(
    partitioned: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Engram.open(url=partitioned, tenant=TENANTS[0], clock=clock) as mem:
        gone = mem.add("This one goes again")
        mem.forget(gone.id, purge=True)
        mem.rebuild_index()
        mem.store.prune(clock.forward(days=400), 1, 1, 1, dry_run=False)
        store = mem.store
        assert isinstance(store, PostgresStore)
        monkeypatch.setattr(neighbours, "MAX_EXACT_SEARCH_VECTORS", 0)
        store.build_nearest()
        assert texts(store, asked(store, "staging", ANY, 1).semantic) == listed(store)
    tenants.remove(partitioned, TENANTS[0])
    assert is_empty(partitioned, TENANTS[0])
    assert not is_empty(partitioned, TENANTS[1])


def test_a_tenant_that_is_removed_is_gone_and_no_other(filled: str, clock: Clock, postgres_server: Server) -> None:
    store = open_store(filled, TENANTS[0], static_embedder(), clock=clock)
    store.build_nearest()
    store.close()
    tenants.remove(filled, TENANTS[0])
    with psycopg.connect(admin_url(postgres_server, filled)) as admin:
        for (table,) in admin.execute(
            "SELECT table_name FROM information_schema.columns WHERE table_schema = 'engram' AND column_name = 'tenant'"
        ).fetchall():
            rows = admin.execute(f"SELECT count(*) FROM engram.{table} WHERE tenant = %s".encode(), (TENANTS[0],))
            assert rows.fetchone() == (0,), table
        left = admin.execute("SELECT count(*) FROM pg_indexes WHERE starts_with(indexname, 'near_')").fetchone()
    assert left == (0,)
    again = open_store(filled, TENANTS[0], static_embedder(), clock=clock)
    assert listed(again) == []
    again.close()
    other = open_store(filled, TENANTS[1], static_embedder(), clock=clock)
    assert len(listed(other)) == 1
    other.close()
