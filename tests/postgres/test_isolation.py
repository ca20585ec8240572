"""What the schema itself promises, read from the catalog: no row without its tenant, no key that crosses."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import errors, sql

from engram.model.records import Checkpoint, Job, TaskRun
from engram.store.postgres.setup import open_store
from tests.backends import static_embedder
from tests.clock import Clock
from tests.conformance.keeping import Keep, said

WITHOUT_TENANT = {"schema_versions"}


@pytest.fixture
def filled(shared_database: str, tenant: str, clock: Clock) -> str:
    """A tenant with some rows."""
    store = open_store(shared_database, tenant, static_embedder(), clock=clock)
    Keep(store, clock)("zebra", name="zebra")
    store.append_events("talk", [said("Ann", "hello")])
    now = clock()
    store.save_record(TaskRun("TASK-1", "ship it", "global", now, now))
    store.add_checkpoint("TASK-1", lambda number: Checkpoint("CKP-1", "TASK-1", number, now, "half way"))
    store.enqueue([Job("one", "derive", now, now)])
    store.change_state("buffer/talk", lambda _: {"turns": [1]})
    store.close()
    return tenant


@pytest.fixture
def raw(shared_database: str) -> Iterator[psycopg.Connection]:
    """A plain connection of the ordinary role that owns the tables."""
    with psycopg.connect(shared_database, autocommit=True) as connection:
        yield connection


def tenant_tables(raw: psycopg.Connection) -> list[str]:
    rows = raw.execute(
        "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant'"
        " WHERE c.relnamespace = 'engram'::regnamespace AND c.relkind IN ('r', 'p') ORDER BY 1"
    ).fetchall()
    assert rows
    return [name for (name,) in rows]


def table(name: str) -> sql.Identifier:
    return sql.Identifier("engram", name)


def test_every_table_has_a_tenant(raw: psycopg.Connection) -> None:
    rows = raw.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'engram'::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f')"
    ).fetchall()
    assert {name for (name,) in rows} - set(tenant_tables(raw)) == WITHOUT_TENANT


def test_row_level_security_is_forced_on_every_table_for_reading_and_writing(raw: psycopg.Connection) -> None:
    for name in tenant_tables(raw):
        assert raw.execute(
            "SELECT relrowsecurity, relforcerowsecurity FROM pg_class WHERE oid = %s::regclass", (f"engram.{name}",)
        ).fetchone() == (True, True), name
        policies = raw.execute(
            "SELECT cmd, permissive, roles, qual, with_check FROM pg_policies WHERE schemaname = 'engram' AND tablename = %s",
            (name,),
        ).fetchall()
        # A worker of all tenants may read who has work, and says that it is one.
        at_work = [policy for policy in policies if name == "memory_jobs" and policy[0] == "SELECT"]
        assert all("engram.worker" in reading for *_, reading, _ in at_work)
        own = [policy for policy in policies if policy not in at_work]
        assert [(cmd, permissive, roles) for cmd, permissive, roles, *_ in own] == [("ALL", "PERMISSIVE", ["public"])]
        for *_, reading, writing in own:
            assert "engram.tenant" in reading
            assert "engram.tenant" in writing


def test_every_index_leads_with_the_tenant(raw: psycopg.Connection) -> None:
    rows = raw.execute(
        "SELECT t.relname, i.indexrelid::regclass::text, a.attname, x.indisunique FROM pg_index x"
        " JOIN pg_class t ON t.oid = x.indrelid JOIN pg_class ic ON ic.oid = x.indexrelid"
        " LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = x.indkey[0]"
        " CROSS JOIN LATERAL (SELECT x.indexrelid) i JOIN pg_am m ON m.oid = ic.relam"
        " WHERE t.relnamespace = 'engram'::regnamespace AND t.relname <> ALL(%s) AND m.amname = 'btree'",
        (list(WITHOUT_TENANT),),
    ).fetchall()
    assert len(rows) > 10
    assert [(owner, index) for owner, index, first, _ in rows if first != "tenant"] == []


def test_no_unique_index_is_of_a_kind_that_cannot_lead_with_the_tenant(raw: psycopg.Connection) -> None:
    rows = raw.execute(
        "SELECT i.relname FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_am m ON m.oid = i.relam"
        " WHERE i.relnamespace = 'engram'::regnamespace AND (x.indisunique OR x.indisexclusion) AND m.amname <> 'btree'"
    ).fetchall()
    assert rows == []


def test_no_foreign_key_crosses_tenants(raw: psycopg.Connection) -> None:
    rows = raw.execute(
        "SELECT c.conname FROM pg_constraint c WHERE c.connamespace = 'engram'::regnamespace AND c.contype = 'f'"
        " AND NOT EXISTS (SELECT 1 FROM unnest(c.conkey, c.confkey) AS k(here, there)"
        " JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.here"
        " JOIN pg_attribute b ON b.attrelid = c.confrelid AND b.attnum = k.there"
        " WHERE a.attname = 'tenant' AND b.attname = 'tenant')"
    ).fetchall()
    assert rows == []


def test_nothing_in_the_schema_runs_with_anothers_rights(raw: psycopg.Connection) -> None:
    rows = raw.execute(
        "SELECT proname FROM pg_proc WHERE pronamespace = 'engram'::regnamespace AND prosecdef"
    ).fetchall()
    assert rows == []


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("said", [None, "", "nobody"], ids=["not set", "empty", "somebody else"])
def test_without_its_tenant_a_connection_sees_changes_and_adds_nothing(
    raw: psycopg.Connection, filled: str, said: str | None
) -> None:
    if said is not None:
        raw.execute("SELECT set_config('engram.tenant', %s, false)", (said,))
    for name in tenant_tables(raw):
        assert raw.execute(sql.SQL("SELECT count(*) FROM {}").format(table(name))).fetchone() == (0,), name
        chosen = sql.SQL("SELECT count(*) FROM {} WHERE tenant = %s").format(table(name))
        assert raw.execute(chosen, (filled,)).fetchone() == (0,), name
        assert raw.execute(sql.SQL("UPDATE {} SET tenant = tenant").format(table(name))).rowcount == 0, name
        assert raw.execute(sql.SQL("DELETE FROM {}").format(table(name))).rowcount == 0, name
        with pytest.raises(errors.InsufficientPrivilege, match="row-level security"):
            raw.execute(sql.SQL("INSERT INTO {} (tenant) VALUES (%s)").format(table(name)), (filled,))


def test_a_row_cannot_be_handed_to_another_tenant(raw: psycopg.Connection, filled: str) -> None:
    raw.execute("SELECT set_config('engram.tenant', %s, false)", (filled,))
    handed = set()
    for name in tenant_tables(raw):
        held = raw.execute(sql.SQL("SELECT count(*) FROM {}").format(table(name))).fetchone()
        if held == (0,):
            continue
        handed.add(name)
        with pytest.raises(errors.InsufficientPrivilege, match="row-level security"):
            raw.execute(sql.SQL("UPDATE {} SET tenant = 'another'").format(table(name)))
    assert handed >= {
        "agent_task_runs",
        "agent_checkpoints",
        "memory_jobs",
        "agent_memory",
        "agent_events",
        "named_states",
    }
    assert raw.execute("SELECT count(*) FROM engram.agent_memory").fetchone() == (1,)


def test_row_level_security_cannot_be_switched_off_for_a_query(raw: psycopg.Connection) -> None:
    raw.execute("SET row_security = off")
    for name in tenant_tables(raw):
        with pytest.raises(errors.InsufficientPrivilege):
            raw.execute(sql.SQL("SELECT count(*) FROM {}").format(table(name)))
