"""The schema's versions: from each earlier one with data in it, many migrators at once, one killed half-way, one too new."""

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from engram import Engram
from engram.model.errors import NotFound, StoreError, UnknownVersion
from engram.model.records import Checkpoint, Job, Session, TaskRun
from engram.store.ledger import ledger_scope
from engram.store.postgres import schema as migrating
from engram.store.postgres.connections import connect
from engram.store.postgres.schema import LATEST_SCHEMA, SCHEMA_LOCK_ID, create, migrate, migrations, version_of
from engram.store.postgres.setup import open_due_tenants, open_store, upgrade_schema
from engram.store.protocol import Filters
from tests.cli.conftest import Console
from tests.clock import Clock
from tests.conformance.keeping import ANY, Keep, listed
from tests.faults.processes import ending
from tests.postgres.server import Server

FOLDER = Path(__file__).parent / "versions"
PATIENCE = 120.0
STATEMENTS = ["Deploy on Tuesdays only", "The staging server is called nightshift"]
LATER = ["The release train leaves on Mondays", "The release train leaves on Thursdays"]
"""What the rows of schema 4 add."""
ANNS = ["The user lives in Lisbon.", "The user works as a nurse now."]
"""What the rows of schema 5 add: one person's."""
MIGRATOR = (
    "import sys; from engram.store.postgres.connections import connect; from engram.store.postgres.schema import migrate;"
    "migrate(connect(sys.argv[1]), 'the server')"
)
EVERYTHING = """
SELECT array_agg(what ORDER BY what) FROM (
    SELECT c.relname || ' ' || c.relkind::text || ' ' || coalesce(pg_get_indexdef(i.indexrelid), '') AS what
    FROM pg_class c LEFT JOIN pg_index i ON i.indexrelid = c.oid WHERE c.relnamespace = 'engram'::regnamespace
    UNION ALL SELECT table_name || '.' || column_name || ' ' || data_type FROM information_schema.columns
    WHERE table_schema = 'engram'
) found
"""
"""Every table, sequence, index and column, as text."""


@pytest.fixture
def database(empty_database: str) -> str:
    """The URL of a database without any tables."""
    return empty_database


@pytest.fixture
def raw(database: str) -> Iterator[psycopg.Connection]:
    """A connection to an empty database, as a migrator has it."""
    with connect(database) as connection:
        yield connection


def schema(raw: psycopg.Connection) -> list[str]:
    """All that is there."""
    row = raw.execute(EVERYTHING).fetchone()
    assert row is not None
    return list(row[0] or [])


def at_version(raw: psycopg.Connection, version: int) -> None:
    """Bring an empty database to a version, with the rows Engram had written to it by then."""
    if version:
        migrate(raw, "the server", upto=version)
    for number in range(1, version + 1):
        rows = FOLDER / f"{number}.sql"
        if rows.exists():
            with raw.transaction():
                raw.execute("SELECT set_config('engram.tenant', 'acme', true)")
                raw.execute(rows.read_bytes())


def test_the_migrations_are_numbered_without_a_gap() -> None:
    assert list(migrations()) == list(range(1, LATEST_SCHEMA + 1))


BETWEEN = [pytest.param(version, marks=pytest.mark.heavy) for version in range(2, LATEST_SCHEMA - 1)]


@pytest.mark.parametrize("before", [1, *BETWEEN, LATEST_SCHEMA - 1, LATEST_SCHEMA])
def test_data_of_an_earlier_version_is_whole_afterwards(
    database: str, raw: psycopg.Connection, clock: Clock, before: int
) -> None:
    at_version(raw, before)
    assert version_of(raw) == before
    upgrade_schema(database)
    with Engram.open(url=database, tenant="acme", clock=clock) as mem:
        assert version_of(raw) == LATEST_SCHEMA
        if before == 1:
            mem.rebuild_index()  # documents and words came with schema 2 and are made from the records
        assert sorted(listed(mem.store)) == sorted(STATEMENTS + LATER * (before >= 4) + ANNS * (before >= 5))
        found = mem.search("what is the staging server called", kinds=("memory", "event"))
        assert found[0].text == STATEMENTS[1]
        rated = mem.get("staging")
        assert (rated.feedback.positive, [link.target for link in rated.associations]) == (1, ["ENG-2026-0301-002"])
        assert [image.op for image in mem.store.history(rated.id)] == ["add", "use"]
        assert mem.store.verify_ledgers() == []
        assert mem.store.events(mem.store.list_records(Session)[0].id)[0].content == "ship it please"
        assert mem.add("After the migration", scope="project:acme").id.startswith("ENG-")
        # The vectors of that time were another model's.
        assert [check.name for check in mem.store.examine() if not check.ok] == ["embedder"]
        mem.upkeep.reembed()
        assert all(check.ok for check in mem.store.examine())


PAIR: dict[str, dict[str, object]] = {
    "ENG-2026-0228-001": {"statement": "The tests run on Mondays", "status": "superseded", "critical_slot": "tests"},
    "ENG-2026-0228-002": {"statement": "The tests run every night", "status": "active", "revision": 2},
}
"""Two versions of a fact, as every schema since the first could hold them."""


@pytest.mark.parametrize("before", range(1, 4))
def test_versions_of_a_fact_from_before_schema_4_are_found_by_lineage_and_conflict_key(
    database: str, raw: psycopg.Connection, clock: Clock, before: int
) -> None:
    at_version(raw, before)
    for memory_id, fields in PAIR.items():
        record = {"id": memory_id, "version": 2, "type": "decision", "scope": "global", "metadata": {}}
        versions = {"lineage": "LIN-tests", "conflict_key": "test-day"}
        with raw.transaction():
            raw.execute("SELECT set_config('engram.tenant', 'acme', true)")
            raw.execute(
                "INSERT INTO engram.agent_memory (tenant, id, record) VALUES ('acme', %s, %s::json)",
                (memory_id, json.dumps(record | versions | fields)),
            )
    upgrade_schema(database)
    store = open_store(database, "acme", None, clock=clock)
    store.rebuild()
    assert [memory.id for memory in store.heads("test-day", "global")] == ["ENG-2026-0228-002"]
    assert [memory.id for memory in store.lineage("LIN-tests")] == list(PAIR)
    assert [memory.id for memory in store.listing(Filters(statuses=None, critical=True))] == ["ENG-2026-0228-001"]
    assert store.heads("test-day", "user") == [] and store.lineage("") == []
    store.close()


def test_a_session_from_before_schema_4_has_a_summary_that_was_given(
    database: str, raw: psycopg.Connection, clock: Clock
) -> None:
    at_version(raw, 3)
    upgrade_schema(database)
    store = open_store(database, "acme", None, clock=clock)
    [session] = store.list_records(Session)
    assert (session.summary_through, session.summary_style, session.summary_by) == (0, "", "")
    store.close()


def test_tasks_and_versions_that_schema_4_wrote_are_read_as_they_were(
    database: str, raw: psycopg.Connection, clock: Clock
) -> None:
    at_version(raw, 4)
    upgrade_schema(database)
    store = open_store(database, "acme", None, clock=clock)
    [task] = store.list_records(TaskRun, statuses=["running"])
    assert (task.goal, [event.content for event in store.events(task.id)]) == (
        "Move the release train",
        ["move it to Thursdays"],
    )
    [checkpoint] = store.list_records(Checkpoint, of=task.id)
    assert (checkpoint.number, checkpoint.through, checkpoint.pending_steps) == (1, 1, ("tell the team",))
    clock.forward(seconds=1)
    [job] = store.lease_jobs("me", clock(), clock())
    assert job.payload["events"] == [event.id for event in store.events(task.id)]
    session = store.load_record(Session, "S-20260301-090100-5f1d20")
    assert session is not None and (session.summary_through, session.summary_by) == (1, "rules")
    assert [memory.statement for memory in store.lineage("LIN-release-day")] == LATER
    assert [memory.statement for memory in store.heads("release-day", "project:acme")] == LATER[1:]
    assert [memory.statement for memory in store.listing(Filters(critical=True))] == LATER[1:]
    store.close()


def test_what_schema_5_wrote_for_one_person_is_theirs_and_goes_on(
    database: str, raw: psycopg.Connection, clock: Clock
) -> None:
    at_version(raw, 5)
    upgrade_schema(database)
    with Engram.open(url=database, tenant="acme", clock=clock) as mem:
        assert version_of(raw) == LATEST_SCHEMA
        assert [hit.text for hit in mem.search("Lisbon", user_id="ann", kinds=("memory",))] == ANNS[:1]
        assert mem.search("Lisbon", user_id="bob") == []
        [task] = mem.list_tasks(user_id="ann")
        assert [event.content for event in mem.list_events(task.id)] == ["Nights only in May, please", "Noted."]
        assert ledger_scope(mem.store, "conversation:user:ann") == "user:ann"
        [job] = [job for job in mem.store.list_records(Job) if job.scope == "user:ann"]
        assert job.payload["task"] == task.id
        mem.record_turn(task.id, "And none in June", "Noted, too.", user_id="ann")
        mem.complete_task(task.id)
        assert mem.add_conversation("I moved to Porto last week.", user_id="ann")
        assert mem.store.verify_ledgers() == []
        mem.forget("the-user-works-as-a-nurse", purge=True)
        assert [hit.text for hit in mem.search("nurse", user_id="ann")] == []


def test_a_store_of_schema_6_has_no_states_and_keeps_those_written_since(
    database: str, raw: psycopg.Connection, clock: Clock
) -> None:
    at_version(raw, 6)
    upgrade_schema(database)
    store = open_store(database, "acme", None, clock=clock)
    assert (version_of(raw), store.states("")) == (LATEST_SCHEMA, [])
    store.change_state("buffer/S-1", lambda held: {**held, "turns": [1]})
    store.close()
    again = open_store(database, "acme", None, clock=clock)
    assert again.state("buffer/S-1") == {"turns": [1]}
    again.close()


def test_memories_of_schema_7_have_no_cues_rank_as_before_and_take_some(
    database: str, raw: psycopg.Connection, clock: Clock
) -> None:
    at_version(raw, 7)
    upgrade_schema(database)
    with Engram.open(url=database, tenant="acme", clock=clock) as mem:
        (before,) = mem.search("nightshift", mode="keyword", kinds=("memory",))
        assert before.memory is not None and before.memory.cues == ()
        assert mem.search("bastion", mode="keyword") == []
        mem.update(before.id, cues=["the bastion host"])
        assert [hit.id for hit in mem.search("bastion", mode="keyword")] == [before.id]
        mem.update(before.id, cues=[])
        assert mem.search("bastion", mode="keyword") == []
        (after,) = mem.search("nightshift", mode="keyword", kinds=("memory",))
        assert after.score == pytest.approx(before.score, rel=1e-3)


def test_an_end_that_schema_4_witnessed_is_missed_when_it_is_gone(
    database: str, raw: psycopg.Connection, clock: Clock
) -> None:
    at_version(raw, 4)
    with raw.transaction():
        raw.execute("SELECT set_config('engram.tenant', 'acme', true)")
        raw.execute("DELETE FROM engram.agent_events WHERE session LIKE 'TASK-%'")
        raw.execute("DELETE FROM engram.ledger_heads WHERE session LIKE 'TASK-%'")
    upgrade_schema(database)
    store = open_store(database, "acme", None, clock=clock)
    [problem] = store.verify_ledgers()
    assert problem.startswith("TASK-") and "event 1" in problem
    store.close()


def test_a_purged_id_does_not_come_back_after_a_migration(database: str, raw: psycopg.Connection, clock: Clock) -> None:
    at_version(raw, LATEST_SCHEMA - 1)
    upgrade_schema(database)
    store = open_store(database, "acme", None, clock=clock)
    with pytest.raises(NotFound, match="purged"), store.deciding("add", actor="test") as deciding:
        deciding.put(store.listing(ANY)[0].replace(id="ENG-2026-0301-003"))
    store.close()


def test_every_way_to_the_latest_version_ends_in_the_same_schema(raw: psycopg.Connection, shared_database: str) -> None:
    for version in range(1, LATEST_SCHEMA + 1):
        at_version(raw, version) if version == 1 else migrate(raw, "the server", upto=version)
    with connect(shared_database) as other:
        assert schema(raw) == [line for line in schema(other) if not line.startswith("near_")]


def partition(admin: psycopg.Connection) -> None:
    """What docs/scaling.md says."""
    page = (Path(__file__).parents[2] / "docs" / "scaling.md").read_text("utf-8")
    (text,) = (block for block in re.findall(r"```sql\n(.*?)```", page, re.DOTALL) if "PARTITION BY HASH" in block)
    admin.execute(text.encode())
    admin.execute("DROP SCHEMA engram_whole CASCADE")


@pytest.mark.heavy
def test_partitioned_tables_are_migrated_as_they_are_and_new_ones_partitioned_too(
    database: str, raw: psycopg.Connection, clock: Clock, postgres_server: Server
) -> None:
    at_version(raw, 3)
    with postgres_server.admin(urlsplit(database).path.lstrip("/")) as admin:
        partition(admin)
        assert migrate(raw, "the server") == 3
        partition(admin)
    kinds = raw.execute(
        "SELECT DISTINCT c.relkind::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant'"
        " WHERE c.relnamespace = 'engram'::regnamespace AND c.relkind IN ('r', 'p')"
    ).fetchall()
    assert kinds == [("p",)]
    with Engram.open(url=database, tenant="acme", clock=clock) as mem:
        kept = mem.add("Versions in partitions", lineage="LIN-1", conflict_key="place")
        assert [memory.id for memory in mem.store.heads("place", kept.scope)] == [kept.id]
        task = mem.tasks.start("Go on")
        assert mem.tasks.record_turn(task.id, "ship it", "done") and len(mem.store.list_records(Job)) == 1
        mem.upkeep.reembed()
        assert mem.store.verify_ledgers() == [] and all(check.ok for check in mem.store.examine())


def test_a_current_schema_is_only_looked_at(database: str, raw: psycopg.Connection) -> None:
    migrate(raw, "the server")
    with psycopg.connect(database) as connection:
        assert migrate(connection, "the server") == LATEST_SCHEMA
        row = connection.execute("SELECT pg_current_xact_id_if_assigned()").fetchone()
        assert row == (None,), "nothing was written"
        held = connection.execute("SELECT DISTINCT mode FROM pg_locks WHERE pid = pg_backend_pid()").fetchall()
        assert {mode for (mode,) in held} <= {
            "AccessShareLock",
            "ExclusiveLock",
        }  # the latter: its own transaction's number
        assert connection.execute(
            "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype NOT IN ('relation', 'virtualxid')"
        ).fetchone() == (0,)


def test_opening_waits_for_no_one_who_only_writes_or_migrates(
    database: str, raw: psycopg.Connection, clock: Clock
) -> None:
    migrate(raw, "the server")
    with raw.transaction():
        raw.execute("SELECT pg_advisory_xact_lock(%s)", (SCHEMA_LOCK_ID,))
        tables = raw.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'engram'").fetchall()
        raw.execute(f"LOCK TABLE {', '.join(f'engram.{name}' for (name,) in tables)} IN EXCLUSIVE MODE".encode())
        store = open_store(database, "acme", None, clock=clock)
        assert listed(store) == []
        store.close()


def test_eight_migrators_at_once_make_one_schema(database: str, raw: psycopg.Connection, shared_database: str) -> None:
    with connect(shared_database) as other, ThreadPoolExecutor(6) as threads, ExitStack() as started:
        whole = schema(other)
        # They are let go when all of them have come to the lock.
        with raw.transaction():
            raw.execute("SELECT pg_advisory_xact_lock(%s)", (SCHEMA_LOCK_ID,))
            command = [sys.executable, "-c", MIGRATOR, database]
            programs = [
                subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) for _ in range(2)
            ]
            started.enter_context(ending(*programs))
            done = [threads.submit(lambda: migrated(database)) for _ in range(6)]
            wait_until(raw, "SELECT count(*) = 8 FROM pg_locks l JOIN pg_database d ON d.oid = l.database "
                            "WHERE d.datname = current_database() AND l.locktype = 'advisory' AND NOT l.granted")  # fmt: skip
        assert [one.result(PATIENCE) for one in done] == [0] * 6
        errors = [program.communicate(timeout=PATIENCE)[1] for program in programs]
    assert [(program.returncode, error) for program, error in zip(programs, errors, strict=True)] == [(0, "")] * 2
    assert schema(raw) == [line for line in whole if not line.startswith("near_")]
    rows = raw.execute("SELECT version FROM engram.schema_versions ORDER BY version").fetchall()
    assert rows == [(number,) for number in range(1, LATEST_SCHEMA + 1)]


def migrated(url: str) -> int:
    """One migrator; the version it found."""
    with connect(url) as connection:
        return migrate(connection, "the server")


def wait_until(raw: psycopg.Connection, question: str) -> None:
    """Until the server says yes."""
    deadline = time.monotonic() + PATIENCE
    while raw.execute(question.encode()).fetchone() != (True,):
        assert time.monotonic() < deadline, question


def test_a_migrator_killed_half_way_leaves_the_version_before_and_the_next_one_finishes(
    database: str, raw: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_version(raw, LATEST_SCHEMA - 1)
    before = schema(raw)
    texts = migrations()
    with monkeypatch.context() as patch:
        endless = "CREATE TABLE engram.half_made (tenant text); SELECT pg_sleep(600);"
        patch.setattr(migrating, "migrations", lambda: texts | {LATEST_SCHEMA: texts[LATEST_SCHEMA] + endless})
        failed: list[BaseException] = []
        killed = threading.Thread(target=lambda: failed.append(failure_of(database)))
        killed.start()
        sleeping = "datname = current_database() AND wait_event = 'PgSleep'"
        wait_until(raw, f"SELECT count(*) = 1 FROM pg_stat_activity WHERE {sleeping}")
        raw.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {sleeping}".encode())
        killed.join(PATIENCE)
    assert isinstance(failed[0], psycopg.OperationalError)
    assert (version_of(raw), schema(raw)) == (LATEST_SCHEMA - 1, before)
    assert migrated(database) == LATEST_SCHEMA - 1
    assert version_of(raw) == LATEST_SCHEMA


def failure_of(url: str) -> BaseException:
    """How a migrator failed."""
    try:
        migrated(url)
    except BaseException as error:
        return error
    raise AssertionError("it did not fail")


def test_a_migration_that_fails_leaves_nothing(raw: psycopg.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = migrations()
    broken = texts | {2: texts[2] + "; SELECT 1 / 0;"}
    for before in (0, 1):
        migrate(raw, "the server", upto=before)
        with monkeypatch.context() as patch:
            patch.setattr(migrating, "migrations", lambda: broken)
            with pytest.raises(psycopg.Error, match="division by zero"):
                migrate(raw, "the server")
        assert version_of(raw) == before
    assert not any("documents" in line for line in schema(raw) if "document_numbers" not in line)
    migrate(raw, "the server")
    assert version_of(raw) == LATEST_SCHEMA


def test_versions_only_go_forward(raw: psycopg.Connection) -> None:
    migrate(raw, "the server")
    before = schema(raw)
    assert migrate(raw, "the server", upto=1) == LATEST_SCHEMA
    assert (version_of(raw), schema(raw)) == (LATEST_SCHEMA, before)


def test_a_newer_version_is_refused_by_whoever_comes_and_whoever_is_there(
    database: str, raw: psycopg.Connection, clock: Clock
) -> None:
    store = open_store(database, "acme", None, clock=clock)
    Keep(store, clock)("Written before")
    raw.execute("INSERT INTO engram.schema_versions (version) VALUES (%s)", (LATEST_SCHEMA + 1,))
    for refused in (
        lambda: migrate(raw, "the server"),
        lambda: open_store(database, "acme", None, clock=clock),
        lambda: open_store(database, "acme", None, clock=clock, create=False),
        lambda: store.listing(ANY),
        lambda: Keep(store, clock)("Written afterwards"),
    ):
        with pytest.raises(UnknownVersion, match=f"schema {LATEST_SCHEMA + 1}.*Update Engram"):
            refused()
    raw.execute("DELETE FROM engram.schema_versions WHERE version > %s", (LATEST_SCHEMA,))
    assert listed(store) == ["Written before"]
    store.close()


def test_a_store_without_a_schema_is_not_found_unless_it_may_be_created(database: str, clock: Clock) -> None:
    with pytest.raises(NotFound, match="engram init"):
        open_store(database, "acme", None, clock=clock, create=False)
    open_store(database, "acme", None, clock=clock).close()
    open_store(database, "acme", None, clock=clock, create=False).close()


@pytest.mark.parametrize("before", [1, LATEST_SCHEMA - 1])
def test_no_opening_upgrades_an_older_schema(
    database: str, raw: psycopg.Connection, clock: Clock, before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_version(raw, before)
    left = schema(raw)
    openings: list[Callable[[], object]] = [
        lambda: open_store(database, "acme", None, clock=clock),
        lambda: open_store(database, "acme", None, clock=clock, create=False),
        lambda: open_due_tenants(database, ["derive"]),
        lambda: Engram.open(url=database, tenant="acme", clock=clock),
    ]
    for opening in openings:
        with pytest.raises(StoreError, match=f"schema {before}.*needs {LATEST_SCHEMA}.*engram init"):
            opening()
    monkeypatch.setenv("ENGRAM_URL", database)
    monkeypatch.setenv("ENGRAM_TENANT", "acme")
    for words in (["status"], ["list"], ["learn", "Use tabs"], ["doctor"], ["worker", "--once"]):
        result = Console(Path())(*words)
        assert result.exit_code == 1 and "engram init" in result.stderr, (words, result)
    assert (version_of(raw), schema(raw)) == (before, left)
    assert Console(Path())("init").exit_code == 0
    assert version_of(raw) == LATEST_SCHEMA
    assert Console(Path())("status").exit_code == 0


def test_many_first_openings_at_once_find_one_whole_schema(
    database: str, raw: psycopg.Connection, clock: Clock
) -> None:
    def opened(_: int) -> int:
        with connect(database) as connection:
            create(connection, "the server")
            return version_of(connection)

    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(opened, range(6))) == [LATEST_SCHEMA] * 6
    open_store(database, "acme", None, clock=clock).close()


def test_an_open_store_goes_on_while_others_migrate_again(database: str, clock: Clock) -> None:
    store = open_store(database, "acme", None, clock=clock)
    keep = Keep(store, clock)
    with ThreadPoolExecutor(4) as threads:
        others = [threads.submit(migrated, database) for _ in range(8)]
        for number in range(20):
            keep(f"Written in turn {number}")
            assert len(listed(store)) == number + 1
        assert [other.result(PATIENCE) for other in others] == [LATEST_SCHEMA] * 8
    store.close()
