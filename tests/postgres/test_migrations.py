"""The schema's versions: from each earlier one with data in it, many migrators at once, one killed half-way, one too new."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from engram import Engram
from engram.model.errors import NotFound, StoreError, UnknownVersion
from engram.store.postgres import migrating
from engram.store.postgres.database import connect
from engram.store.postgres.migrating import LATEST, LOCK, migrate, migrations, version_of
from engram.store.postgres.opening import open_store
from tests.clock import Clock
from tests.conformance.keeping import ANY, Keep, listed

FOLDER = Path(__file__).parent / "versions"
PATIENCE = 60.0
STATEMENTS = ["Deploy on Tuesdays only", "The staging server is called nightshift"]
MIGRATOR = (
    "import sys; from engram.store.postgres.database import connect; from engram.store.postgres.migrating import migrate;"
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
    assert list(migrations()) == list(range(1, LATEST + 1))


@pytest.mark.parametrize("before", range(1, LATEST + 1))
def test_data_of_an_earlier_version_is_whole_afterwards(
    database: str, raw: psycopg.Connection, clock: Clock, before: int
) -> None:
    at_version(raw, before)
    assert version_of(raw) == before
    with Engram.open(url=database, tenant="acme", clock=clock) as mem:
        assert version_of(raw) == LATEST
        if before == 1:
            mem.rebuild_index()  # documents and words came with schema 2 and are made from the records
        assert sorted(listed(mem.store)) == STATEMENTS
        found = mem.search("what is the staging server called", kinds=("memory", "event"))
        assert found[0].text == STATEMENTS[1]
        rated = mem.get("staging")
        assert (rated.feedback.positive, [link.target for link in rated.associations]) == (1, ["ENG-2026-0301-002"])
        assert [image.op for image in mem.store.history(rated.id)] == ["add", "use"]
        assert mem.store.verify_ledgers() == []
        assert mem.store.events(mem.store.sessions()[0].id)[0].content == "ship it please"
        assert mem.add("After the migration", scope="project:acme").id.startswith("ENG-")
        assert all(check.ok for check in mem.store.examine())


def test_a_purged_id_does_not_come_back_after_a_migration(database: str, raw: psycopg.Connection, clock: Clock) -> None:
    at_version(raw, LATEST - 1)
    store = open_store(database, "acme", None, clock=clock)
    with pytest.raises(NotFound, match="purged"), store.deciding("add", actor="test") as deciding:
        deciding.put(store.listing(ANY)[0].but(id="ENG-2026-0301-003"))
    store.close()


def test_every_way_to_the_latest_version_ends_in_the_same_schema(raw: psycopg.Connection, shared_database: str) -> None:
    for version in range(1, LATEST + 1):
        at_version(raw, version) if version == 1 else migrate(raw, "the server", upto=version)
    with connect(shared_database) as other:
        assert schema(raw) == [line for line in schema(other) if not line.startswith("near_")]


def test_a_current_schema_is_only_looked_at(database: str, raw: psycopg.Connection) -> None:
    migrate(raw, "the server")
    with psycopg.connect(database) as connection:
        assert migrate(connection, "the server") == LATEST
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
        raw.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
        tables = raw.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'engram'").fetchall()
        raw.execute(f"LOCK TABLE {', '.join(f'engram.{name}' for (name,) in tables)} IN EXCLUSIVE MODE".encode())
        store = open_store(database, "acme", None, clock=clock)
        assert listed(store) == []
        store.close()


def test_eight_migrators_at_once_make_one_schema(database: str, raw: psycopg.Connection, shared_database: str) -> None:
    with connect(shared_database) as other, ThreadPoolExecutor(4) as threads:
        whole = schema(other)
        # They are let go when all of them have come to the lock.
        with raw.transaction():
            raw.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
            programs = [
                subprocess.Popen([sys.executable, "-c", MIGRATOR, database], stderr=subprocess.PIPE, text=True)
                for _ in range(4)
            ]
            done = [threads.submit(lambda: migrated(database)) for _ in range(4)]
            wait_until(raw, "SELECT count(*) = 8 FROM pg_locks l JOIN pg_database d ON d.oid = l.database "
                            "WHERE d.datname = current_database() AND l.locktype = 'advisory' AND NOT l.granted")  # fmt: skip
        assert [one.result(PATIENCE) for one in done] == [0] * 4
        errors = [program.communicate(timeout=PATIENCE)[1] for program in programs]
    assert [(program.returncode, error) for program, error in zip(programs, errors, strict=True)] == [(0, "")] * 4
    assert schema(raw) == [line for line in whole if not line.startswith("near_")]
    rows = raw.execute("SELECT version FROM engram.schema_versions ORDER BY version").fetchall()
    assert rows == [(number,) for number in range(1, LATEST + 1)]


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
    at_version(raw, LATEST - 1)
    before = schema(raw)
    texts = migrations()
    with monkeypatch.context() as patch:
        endless = "CREATE TABLE engram.half_made (tenant text); SELECT pg_sleep(600);"
        patch.setattr(migrating, "migrations", lambda: texts | {LATEST: texts[LATEST] + endless})
        failed: list[BaseException] = []
        killed = threading.Thread(target=lambda: failed.append(failure_of(database)))
        killed.start()
        sleeping = "datname = current_database() AND wait_event = 'PgSleep'"
        wait_until(raw, f"SELECT count(*) = 1 FROM pg_stat_activity WHERE {sleeping}")
        raw.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {sleeping}".encode())
        killed.join(PATIENCE)
    assert isinstance(failed[0], psycopg.OperationalError)
    assert (version_of(raw), schema(raw)) == (LATEST - 1, before)
    assert migrated(database) == LATEST - 1
    assert version_of(raw) == LATEST


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
    with monkeypatch.context() as patch:
        patch.setattr(migrating, "migrations", lambda: broken)
        with pytest.raises(psycopg.Error, match="division by zero"):
            migrate(raw, "the server")
    assert version_of(raw) == 1
    assert not any("documents" in line for line in schema(raw) if "document_numbers" not in line)
    migrate(raw, "the server")
    assert version_of(raw) == LATEST


def test_versions_only_go_forward(raw: psycopg.Connection) -> None:
    migrate(raw, "the server")
    before = schema(raw)
    assert migrate(raw, "the server", upto=1) == LATEST
    assert (version_of(raw), schema(raw)) == (LATEST, before)


def test_a_newer_version_is_refused_by_whoever_comes_and_whoever_is_there(
    database: str, raw: psycopg.Connection, clock: Clock
) -> None:
    store = open_store(database, "acme", None, clock=clock)
    Keep(store, clock)("Written before")
    raw.execute("INSERT INTO engram.schema_versions (version) VALUES (%s)", (LATEST + 1,))
    for refused in (
        lambda: migrate(raw, "the server"),
        lambda: open_store(database, "acme", None, clock=clock),
        lambda: open_store(database, "acme", None, clock=clock, create=False),
        lambda: store.listing(ANY),
        lambda: Keep(store, clock)("Written afterwards"),
    ):
        with pytest.raises(UnknownVersion, match=f"schema {LATEST + 1}.*Update Engram"):
            refused()
    raw.execute("DELETE FROM engram.schema_versions WHERE version > %s", (LATEST,))
    assert listed(store) == ["Written before"]
    store.close()


def test_whoever_may_not_migrate_is_told_that_an_older_version_must_be(
    database: str, raw: psycopg.Connection, clock: Clock
) -> None:
    with pytest.raises(NotFound, match="engram init"):
        open_store(database, "acme", None, clock=clock, create=False)
    at_version(raw, 1)
    with pytest.raises(StoreError, match=f"schema 1.*needs {LATEST}.*engram init"):
        open_store(database, "acme", None, clock=clock, create=False)


def test_an_open_store_goes_on_while_others_migrate_again(database: str, clock: Clock) -> None:
    store = open_store(database, "acme", None, clock=clock)
    keep = Keep(store, clock)
    with ThreadPoolExecutor(4) as threads:
        others = [threads.submit(migrated, database) for _ in range(8)]
        for number in range(20):
            keep(f"Written in turn {number}")
            assert len(listed(store)) == number + 1
        assert [other.result(PATIENCE) for other in others] == [LATEST] * 8
    store.close()
