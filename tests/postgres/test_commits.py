"""What the server knows of commits: one row for each writer, asked for when an answer was lost; and numbers that come twice."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import psycopg
import pytest

from engram import Engram
from engram.model.errors import StoreBusy
from engram.store.documents import memory_document
from engram.store.postgres import database as databases
from engram.store.postgres.store import PostgresStore
from engram.store.postgres.transaction import DocumentNumbers, DocumentRow, documents_work
from tests.clock import Clock
from tests.faults.workers.operations import sentence
from tests.postgres.server import Server, at_database
from tests.postgres.workers.agreement import disagreements
from tests.postgres.workers.cutting import Link, wire

PATIENCE = 120.0


@pytest.fixture
def mem(database: str, tenant: str) -> Iterator[Engram]:
    """A memory alone in its database."""
    with Engram.open(url=database, tenant=tenant) as opened:
        yield opened


@pytest.fixture
def admin(postgres_server: Server, database: str) -> Iterator[psycopg.Connection]:
    """A connection that row security does not bind."""
    url = at_database(postgres_server.admin_url, database.rpartition("/")[2])
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


def writers(admin: psycopg.Connection, tenant: str) -> list[tuple[str, str]]:
    """Every writer's name and its last token."""
    return admin.execute("SELECT writer, token FROM engram.commits WHERE tenant = %s", (tenant,)).fetchall()


def test_each_connection_has_one_row_however_often_it_writes(
    mem: Engram, admin: psycopg.Connection, tenant: str
) -> None:
    seen = set()
    for number in range(5):
        mem.learn(sentence(number))
        seen |= set(writers(admin, tenant))
    assert len(writers(admin, tenant)) == 1
    assert len(seen) == 5


def test_reading_and_a_decision_without_an_outcome_write_nothing(
    mem: Engram, admin: psycopg.Connection, tenant: str
) -> None:
    kept = mem.add(sentence(1))
    before = writers(admin, tenant)
    mem.get(kept.id)
    mem.list()
    with mem.store.deciding("update", actor="test", about=[kept.id]) as deciding:
        assert deciding.get(kept.id) == kept
    assert writers(admin, tenant) == before


def test_writers_are_forgotten_after_a_day(
    mem: Engram, admin: psycopg.Connection, database: str, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mem.learn(sentence(1))
    admin.execute(
        "INSERT INTO engram.commits SELECT %s, 'old-' || i, 'x', now() - interval '25 hours' FROM generate_series(1, 9) i",
        (tenant,),
    )
    admin.execute("INSERT INTO engram.commits VALUES (%s, 'young', 'x', now() - interval '20 hours')", (tenant,))
    monkeypatch.setattr(databases, "FORGET_EVERY", 1)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
                           "AND application_name = 'engram' AND datname = current_database()")  # fmt: skip
    mem.learn(sentence(2))
    left = {writer for writer, _ in writers(admin, tenant)}
    assert "young" in left
    assert not {writer for writer in left if writer.startswith("old-")}


def sent_and_cut(link: Link, data: bytes) -> None:
    """The server has the commit; nobody is there to hear its answer."""
    link.server.sendall(data)
    link.close()


def test_a_commit_still_under_way_is_waited_for_and_not_taken_for_lost(
    database: str, tenant: str, postgres_server: Server
) -> None:
    """A trigger holds the commit up on the server, after its client's connection is gone."""
    with Engram.open(url=database, tenant=tenant) as mem:
        mem.add(sentence(1))
    url = at_database(postgres_server.admin_url, database.rpartition("/")[2])
    with psycopg.connect(url, autocommit=True) as admin, wire(database) as laid:
        admin.execute("CREATE FUNCTION engram.hold() RETURNS trigger LANGUAGE plpgsql AS "
                      "$$ BEGIN PERFORM pg_advisory_xact_lock(11); RETURN NULL; END $$")  # fmt: skip
        admin.execute("CREATE CONSTRAINT TRIGGER hold AFTER INSERT ON engram.journal DEFERRABLE INITIALLY DEFERRED "
                      "FOR EACH ROW EXECUTE FUNCTION engram.hold()")  # fmt: skip
        admin.execute("SELECT pg_advisory_lock(11)")
        with Engram.open(url=laid.through(database), tenant=tenant) as mem, ThreadPoolExecutor(1) as beside:
            laid.arm(sent_and_cut, "journal")
            learned = beside.submit(mem.learn, sentence(2))
            assert laid.happened.wait(PATIENCE)
            _wait_for_a_waiting_question(admin)
            assert not learned.done()
            admin.execute("SELECT pg_advisory_unlock(11)")
            memory = learned.result(PATIENCE).memory
            assert memory is not None
            assert mem.get(memory.id).statement == sentence(2)
            assert len(mem.list()) == 2
    assert disagreements(database, tenant) == []


def _wait_for_a_waiting_question(admin: psycopg.Connection) -> None:
    deadline = time.monotonic() + PATIENCE
    asked = (
        "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%engram.commits%' "
        "AND query LIKE '%RETURNING%'"
    )
    while admin.execute(asked).fetchone() is None:
        assert time.monotonic() < deadline, "nobody asks"
        time.sleep(0.01)


# -- numbers that come twice, as after the failover of a server that had not yet sent them on


def test_an_id_given_out_twice_never_overwrites_a_memory(mem: Engram, admin: psycopg.Connection, tenant: str) -> None:
    kept = mem.add(sentence(1))
    admin.execute("UPDATE engram.id_numbers SET last = last - 1 WHERE tenant = %s", (tenant,))
    with pytest.raises(StoreBusy, match="try again"):
        mem.add(sentence(2))
    assert mem.list() == [kept]
    assert mem.add(sentence(2)).id > kept.id


def test_a_document_number_given_out_twice_never_overwrites_a_document(
    mem: Engram, admin: psycopg.Connection, database: str, tenant: str
) -> None:
    mem.add(sentence(1))
    admin.execute("SELECT setval('engram.document_numbers', 1, false)")
    with pytest.raises(StoreBusy, match="try again"):
        mem.add(sentence(2))
    assert mem.add(sentence(2)).statement == sentence(2)
    assert [hit.text for hit in mem.search(sentence(1), limit=1)] == [sentence(1)]
    assert disagreements(database, tenant) == []


def test_a_document_keeps_its_number_whatever_number_it_is_put_with(mem: Engram) -> None:
    assert isinstance(mem.store, PostgresStore)
    kept, database = mem.add(sentence(1)), mem.store.context.database
    numbers = mem.store.numbers([kept.id])
    again = DocumentRow(memory_document(kept.replace(statement=sentence(2))))
    with database.transaction():
        placed = DocumentNumbers({kept.id: numbers[kept.id] + 100}, {})
        database.run_all(documents_work([again], placed, 1))
    assert mem.store.numbers([kept.id]) == numbers


def test_a_decision_number_given_out_twice_is_refused(mem: Engram, admin: psycopg.Connection, tenant: str) -> None:
    kept = mem.add(sentence(1))
    admin.execute("SELECT setval('engram.decision_numbers', 1, false)")
    with pytest.raises(StoreBusy, match="try again"):
        mem.add(sentence(2))
    assert mem.list() == [kept]


def test_sequences_that_fell_back_pass_what_is_in_use_after_one_refusal(
    mem: Engram, admin: psycopg.Connection, database: str, tenant: str
) -> None:
    for number in range(12):
        mem.add(sentence(number))
        mem.observe("talk", "user", sentence(number))
    for sequence in ("document_numbers", "decision_numbers", "use_numbers"):
        admin.execute(f"SELECT setval('engram.{sequence}', 1, false)".encode())
    with pytest.raises(StoreBusy, match="try again"):
        mem.add(sentence(50))
    for number in range(50, 56):
        mem.add(sentence(number))
        mem.observe("talk", "user", sentence(number))
        mem.feedback(mem.list()[0].id, "positive")
    assert len(mem.list(limit=None)) == 18
    assert disagreements(database, tenant) == []


# -- ids


def test_the_ids_of_a_decision_that_fails_come_again(mem: Engram, clock: Clock) -> None:
    first = mem.add(sentence(1)).id
    at = mem.get(first).created
    assert at is not None
    for _ in range(3):
        with pytest.raises(RuntimeError), mem.store.deciding("add", actor="test", ids_for=[at, at]):
            raise RuntimeError
    second = mem.add(sentence(2)).id
    assert int(second.rpartition("-")[2]) == int(first.rpartition("-")[2]) + 1


def test_more_ids_than_were_foreseen_and_another_day_are_taken_on_the_way(mem: Engram, clock: Clock) -> None:
    today, tomorrow = clock(), clock() + timedelta(days=1)
    with mem.store.deciding("add", actor="test", scopes=["global"], ids_for=[today]) as deciding:
        made = [deciding.new_id(today) for _ in range(3)] + [deciding.new_id(tomorrow)]
    assert len(set(made)) == 4


def test_many_tenants_of_a_process_share_its_connections(database: str, tenant: str) -> None:
    stores = [Engram.open(url=database, tenant=f"{tenant}-{n}") for n in range(24)]
    try:
        barrier = threading.Barrier(len(stores))

        def work(mem: Engram) -> int:
            barrier.wait(PATIENCE)
            mem.add(sentence(1))
            return len(mem.list())

        with ThreadPoolExecutor(len(stores)) as threads:
            assert set(threads.map(work, stores)) == {1}
        pools = set()
        for mem in stores:
            assert isinstance(mem.store, PostgresStore)
            pools.add(mem.store.context.database.connections.pool)
        (pool,) = pools
        assert pool.get_stats()["pool_size"] <= pool.max_size
    finally:
        for mem in stores[:-1]:
            mem.close()
    assert len(stores[-1].list()) == 1
    stores[-1].close()
    assert pool.closed
