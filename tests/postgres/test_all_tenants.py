"""A worker for every tenant of a server: who has work, fair turns, few connections, and each job done once whoever dies."""

import json
import os
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import errors, sql

from engram import AllTenantsWorker, Engram
from engram.client import tenant_worker as all_tenants
from engram.model.errors import InvalidInput, StoreUnreachable
from engram.model.records import Job
from engram.sessions.jobs import LEASE, WorkerTurn, WorkResult
from engram.store.defaults import DEFAULT_TENANT
from engram.store.postgres.connections import MAX_CONNECTIONS
from engram.store.postgres.setup import open_store
from engram.store.postgres.store import PostgresStore
from engram.store.postgres.tenants import DueTenants
from tests.client.test_patience import Waiting
from tests.clock import Clock
from tests.faults.workers.operations import sentence
from tests.postgres.server import Role, Server
from tests.postgres.workers.starting import start

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
PATIENCE = 120.0
TENANTS = 40
KINDS = ("derive",)


def empty_jobs(count: int, *, first: int = 0, at: datetime = LONG_AGO) -> list[Job]:
    """Jobs that are due and have nothing in them."""
    made = [f"derive:EVT-{number}" for number in range(first, first + count)]
    return [Job(i, "derive", at, at, {"events": [], "task": ""}) for i in made]


def queue(url: str, **jobs: int) -> None:
    """Give tenants jobs without anything in them."""
    for tenant, count in jobs.items():
        store = open_store(url, tenant, None)
        store.enqueue(empty_jobs(count))
        store.close()


def say(url: str, **turns: int) -> None:
    """Let tenants' users say things, each of which is one fact."""
    for tenant, count in turns.items():
        with Engram.open(url=url, tenant=tenant) as mem:
            task = mem.start_task("Get to know the user").id
            for number in range(count):
                mem.record_turn(task, user=f"I prefer tea number {number} over coffee number {7 * number}.")


def jobs_left(url: str, tenant: str) -> list[Job]:
    store = open_store(url, tenant, None)
    try:
        return store.list_records(Job)
    finally:
        store.close()


@pytest.fixture
def everyone(database: str, clock: Clock) -> Iterator[AllTenantsWorker]:
    """A worker for all tenants of a database of its own."""
    with AllTenantsWorker.open(database, embedder="none", clock=clock) as worker:
        yield worker


def order_of(turns: list[WorkerTurn]) -> list[str]:
    return [turn.tenant for turn in turns]


# -- who has work


@pytest.fixture
def due(database: str) -> Iterator[DueTenants]:
    """Asks for three jobs at a time, and twice at most."""
    open_store(database, "migrating", None).close()
    asking = DueTenants(database, KINDS, rows=3, statements=2)
    yield asking
    asking.close()


def test_only_tenants_with_a_job_that_can_be_done_now_have_work(due: DueTenants, database: str, clock: Clock) -> None:
    queue(database, waits=1, leased=1, dead=1, other=0, later=0)
    for tenant in ("leased", "dead", "other", "later"):
        store = open_store(database, tenant, None)
        if tenant == "other":
            store.enqueue([Job("strange:1", "strange", LONG_AGO, LONG_AGO)])
        elif tenant == "later":
            store.enqueue(empty_jobs(1, at=clock.now + timedelta(hours=1)))
        else:
            (taken,) = store.lease_jobs("somebody", clock(), clock() + LEASE)
            if tenant == "dead":
                store.settle_job(taken, Job(taken.id, "derive", LONG_AGO, LONG_AGO, status="dead"))
        store.close()
    assert due.names(clock()) == {"waits"}
    assert due.names(clock.forward(seconds=LEASE.total_seconds() + 1)) == {"waits", "leased"}
    assert due.names(clock.forward(hours=1)) == {"waits", "leased", "later"}


def test_a_long_queue_hides_nobody_and_everyone_is_named_within_a_few_calls(
    due: DueTenants, database: str, clock: Clock
) -> None:
    counts = {"a": 50, "b": 1, "c": 1, "d": 9, "e": 1, "f": 1, "g": 1, "h": 1, "i": 1}
    queue(database, **counts)
    named = [due.names(clock()) for _ in range(4)]
    assert set().union(*named) == set(counts)
    assert due.names(clock()) | due.names(clock()) | due.names(clock()) == set(counts)


def test_to_see_the_names_a_transaction_must_say_that_it_works_for_all(database: str) -> None:
    queue(database, acme=1, other=1)
    names = "SELECT tenant FROM engram.memory_jobs ORDER BY tenant"
    with psycopg.connect(database) as connection:
        assert connection.execute(names).fetchall() == []
        connection.execute("SET LOCAL engram.tenant = 'acme'")
        assert connection.execute(names).fetchall() == [("acme",)]
        connection.execute("SET LOCAL engram.worker = 'on'")
        assert connection.execute(names).fetchall() == [("acme",), ("other",)]
        # Nothing but the queue is open to it, and of the queue only its tenant's part can be changed.
        assert connection.execute("SELECT tenant FROM engram.store_facts WHERE tenant <> 'acme'").fetchall() == []
        assert connection.execute("UPDATE engram.memory_jobs SET status = 'dead'").rowcount == 1
        assert connection.execute("DELETE FROM engram.memory_jobs").rowcount == 1
        connection.commit()
        assert connection.execute(names).fetchall() == []
        connection.execute("SET LOCAL engram.worker = 'on'")
        assert connection.execute(names).fetchall() == [("other",)]
        with pytest.raises(errors.InsufficientPrivilege, match="row-level security"):
            connection.execute(
                "INSERT INTO engram.memory_jobs (tenant, id, kind, status, run_after, record)"
                " VALUES ('other', 'x', 'derive', 'waiting', now(), '{}')"
            )


def test_asking_leaves_nothing_on_the_connection_that_the_next_one_gets(due: DueTenants, clock: Clock) -> None:
    due.names(clock())
    pool = due._connections.pool
    connection = pool.getconn()
    try:
        row = connection.execute("SELECT current_setting('engram.worker', true)").fetchone()
        assert row in ((None,), ("",))
        assert connection.execute("SELECT tenant FROM engram.memory_jobs").fetchall() == []
    finally:
        connection.rollback()
        pool.putconn(connection)


# -- turns


def test_every_tenant_gets_its_facts(database: str) -> None:
    say(database, acme=2, beta=1, gamma=1)
    with AllTenantsWorker.open(database) as worker:
        turns = worker.work()
    assert Counter(order_of(turns)) == {"acme": 2, "beta": 1, "gamma": 1}
    assert not any(turn.failed for turn in turns)
    for tenant, facts in {"acme": 2, "beta": 1, "gamma": 1}.items():
        with Engram.open(url=database, tenant=tenant) as mem:
            assert len(mem.list(status="any")) == facts
            assert mem.jobs.list() == []


def test_captured_turns_that_waited_long_enough_are_read_for_every_tenant(database: str, clock: Clock) -> None:
    for tenant in ("acme", "beta"):
        with Engram.open(url=database, tenant=tenant, clock=clock) as mem:
            mem.capture("chat", "user", "My sister lives in Oslo.")
    with AllTenantsWorker.open(database, clock=clock) as worker:
        assert worker.work() == []
    clock.forward(minutes=15)
    with AllTenantsWorker.open(database, clock=clock) as worker:
        assert sorted(order_of(worker.work())) == ["acme", "beta"]
    for tenant in ("acme", "beta"):
        with Engram.open(url=database, tenant=tenant, clock=clock) as mem:
            assert (mem.upkeep.status()["waiting_turns"], len(mem.list(status="any"))) == (0, 1)


def test_a_tenant_with_many_jobs_delays_the_others_by_one_round(everyone: AllTenantsWorker, database: str) -> None:
    queue(database, large=60, small=1, middle=5)
    order = order_of(everyone.work())
    assert "small" in order[:3]
    assert [order[place : place + 2].count("middle") for place in (3, 5, 7, 9)] == [1, 1, 1, 1]
    assert Counter(order) == {"large": 60, "small": 1, "middle": 5}


def test_one_who_comes_later_is_next_after_the_look(everyone: AllTenantsWorker, database: str) -> None:
    queue(database, large=60)
    everyone.work(limit=10)
    queue(database, late=1)
    everyone._turns._look_at = float("-inf")  # a second has passed
    assert sorted(order_of(everyone.work(limit=2))) == ["large", "late"]


def test_work_is_bounded_by_its_limit(everyone: AllTenantsWorker, database: str) -> None:
    queue(database, acme=3, beta=3)
    assert len(everyone.work(limit=4)) == 4
    assert len(jobs_left(database, "acme")) + len(jobs_left(database, "beta")) == 2
    with pytest.raises(InvalidInput):
        everyone.work(limit=0)


def test_a_paused_tenant_is_passed_over(everyone: AllTenantsWorker, database: str) -> None:
    queue(database, asleep=2, awake=2)
    with Engram.open(url=database, tenant="asleep", embedder="none") as mem:
        mem.upkeep.pause()
    assert order_of(everyone.work()) == ["awake", "awake"]
    assert len(jobs_left(database, "asleep")) == 2


def test_a_tenant_whose_store_cannot_be_opened_is_told_and_passed_over(database: str) -> None:
    queue(database, ill=3, well=4)
    queue(database, **{DEFAULT_TENANT: 1})
    with psycopg.connect(database) as connection:  # vectors of this embedder, of another length
        connection.execute("SET LOCAL engram.tenant = 'ill'")
        facts = {"embedder": '"static-minilm-256-v2"', "dim": "7", "generation": "1"}
        for key, value in facts.items():
            connection.execute(
                "INSERT INTO engram.store_facts (tenant, key, value) VALUES ('ill', %s, %s)", (key, value)
            )
    with AllTenantsWorker.open(database) as worker:
        turns = worker.work()
    (failed,) = [turn for turn in turns if turn.failed]
    assert failed.tenant == "ill"
    assert "EmbedderError" in failed.failed and "7 dimensions" in failed.failed
    assert Counter(turn.tenant for turn in turns if turn.worked) == {"well": 4, DEFAULT_TENANT: 1}
    assert len(jobs_left(database, "ill")) == 3


def test_a_name_nobody_could_have_opened_and_a_job_nobody_can_read_stop_no_one_else(
    everyone: AllTenantsWorker, database: str
) -> None:
    queue(database, well=2)
    for tenant, record in {"no tenant at all": "{}", "odd": '{"id": 7}'}.items():
        with psycopg.connect(database) as connection:
            connection.execute(sql.SQL("SET LOCAL engram.tenant = {}").format(tenant))
            connection.execute(
                "INSERT INTO engram.memory_jobs (tenant, id, kind, status, run_after, record)"
                " VALUES (%s, 'derive:1', 'derive', 'waiting', now() - interval '1 year', %s)",
                (tenant, record),
            )
    turns = everyone.work()
    assert sorted(turn.tenant for turn in turns if turn.failed) == ["no tenant at all", "odd"]
    assert [turn.tenant for turn in turns if turn.worked] == ["well", "well"]


def test_a_job_that_fails_says_why_and_waits(
    everyone: AllTenantsWorker, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue(database, acme=1)
    store = open_store(database, "acme", None)
    store.enqueue([Job("derive:EVT-9", "derive", LONG_AGO, LONG_AGO, {"no": "events"})])
    store.close()
    turns = everyone.work()
    worked = WorkResult()
    for turn in turns:
        worked.add(turn.worked)
    assert worked.done == ["derive:EVT-0"]
    assert worked.retried == ["derive:EVT-9"]
    assert "KeyError" in worked.errors["derive:EVT-9"]


def test_with_nothing_to_do_it_looks_less_and_less_often(
    everyone: AllTenantsWorker, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(all_tenants, "add_jitter", lambda seconds: seconds)
    queue(database, acme=1)
    stop, told = Waiting(ends_after=6), list[WorkerTurn]()
    everyone.run(stop, 1.0, told.append)
    assert order_of(told) == ["acme"]
    assert stop.pauses == [1, 2, 4, 5, 5, 5]


def test_a_server_that_is_away_is_waited_for(
    everyone: AllTenantsWorker, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue(database, acme=1)
    stop, told, names = Waiting(), list[WorkerTurn](), DueTenants.names

    def away(due: DueTenants, now: datetime) -> set[str]:
        if len(stop.pauses) < 3:
            raise StoreUnreachable("the server is away")
        return names(due, now)

    monkeypatch.setattr(DueTenants, "names", away)

    def tell(turn: WorkerTurn) -> None:
        told.append(turn)
        stop.set()

    everyone.run(stop, report=tell)
    assert order_of(told) == ["acme"]
    assert len(stop.pauses) == 3


def test_files_have_no_tenants() -> None:
    with pytest.raises(InvalidInput, match="ENGRAM_URL"):
        AllTenantsWorker.open()


# -- connections


def test_stores_of_many_tenants_share_one_pool_and_the_least_used_are_closed(
    everyone: AllTenantsWorker, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(all_tenants, "MAX_OPEN_TENANTS", 3)
    queue(database, a=1, b=1, c=1, d=1, e=1)
    order = order_of(everyone.work(limit=5))
    assert sorted(order) == ["a", "b", "c", "d", "e"]
    assert list(everyone._open) == order[-3:]
    pools = {mem.store.context.database.connections for mem in everyone._open.values()}  # type: ignore[attr-defined]
    assert pools == {everyone._due._connections}
    assert everyone._due._connections.users == 4
    everyone.close()
    assert everyone._due._connections.pool.closed


def test_forty_tenants_opened_and_used_by_as_many_threads_are_ten_connections(
    postgres_role: Role, postgres_server: Server, database: str
) -> None:
    """The server refuses the eleventh."""
    open_store(database, "migrating", None).close()
    limit = sql.SQL("ALTER ROLE {} CONNECTION LIMIT {}")
    together = threading.Barrier(TENANTS)

    def use(number: int) -> PostgresStore:
        together.wait(PATIENCE)
        mem = Engram.open(url=database, tenant=f"tenant-{number}", embedder="none")
        mem.add(sentence(number))
        assert [memory.statement for memory in mem.list()] == [sentence(number)]
        assert isinstance(mem.store, PostgresStore)
        return mem.store

    with postgres_server.admin() as admin:
        admin.execute(limit.format(sql.Identifier(postgres_role.name), MAX_CONNECTIONS))
        try:
            with ThreadPoolExecutor(TENANTS) as threads:
                stores = list(threads.map(use, range(TENANTS), timeout=PATIENCE))
            assert len({id(store.context.database.connections) for store in stores}) == 1
            held = admin.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND application_name = 'engram'",
                (urlsplit(database).path.lstrip("/"),),
            ).fetchone()
            assert held is not None and held[0] <= MAX_CONNECTIONS
            for store in stores:
                store.close()
        finally:
            admin.execute(limit.format(sql.Identifier(postgres_role.name), -1))


# -- processes


def started(url: str, monkeypatch: pytest.MonkeyPatch, **asked: Any) -> "Any":
    monkeypatch.setenv("ENGRAM_URL", url)
    return start("all_tenants", json.dumps(asked))


def output(process: "subprocess.Popen[str]") -> str:
    said, _ = process.communicate(timeout=PATIENCE)
    return said


def done_in(answer: Mapping[str, Any]) -> list[tuple[str, str]]:
    assert answer["failed"] == {}
    return [(tenant, job) for tenant, worked in answer["tenants"].items() for job in worked["done"]]


def test_asked_to_end_it_finishes_the_job_at_hand_and_leaves_the_rest(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue(database, acme=2, beta=2)
    with started(database, monkeypatch, waits=True) as process:
        assert process.stdout is not None and process.stdin is not None
        begun = json.loads(process.stdout.readline())["begun"]
        os.kill(process.pid, signal.SIGTERM)
        process.stdin.write("go on\n")
        process.stdin.flush()
        told = json.loads(output(process))
        assert process.returncode == 0
    assert (told["job"], told["outcome"]) == (begun, "done")
    left = jobs_left(database, "acme") + jobs_left(database, "beta")
    assert [job.status for job in left] == ["waiting"] * 3


@pytest.mark.heavy
def test_many_workers_do_each_job_of_each_tenant_once_though_some_are_killed(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = {"large": 9, "a": 1, "b": 2, "c": 3}
    say(database, **turns)
    deaths = [(1, "after"), (2, "before"), (2, "after")]
    dying = [started(database, monkeypatch, killed_in=number, when=when) for number, when in deaths]
    told = []
    with dying[0] as one, dying[1] as two, dying[2] as three:
        for process in (one, two, three):
            told += [json.loads(line) for line in output(process).splitlines()]
            assert process.returncode == -signal.SIGKILL
    with (
        started(database, monkeypatch, options=["--once"]) as one,
        started(database, monkeypatch, options=["--once"]) as two,
    ):
        answers = [json.loads(output(process)) for process in (one, two)]
    held = [job for tenant in turns for job in jobs_left(database, tenant)]
    assert [job.status for job in held] == ["leased"] * len(deaths)
    # When their leases have run out, the jobs are anybody's.
    with started(database, monkeypatch, options=["--once"], later=LEASE.total_seconds() + 60) as last:
        answers.append(json.loads(output(last)))
        assert last.returncode == 0
    done = Counter([(line["tenant"], line["job"]) for line in told if line["outcome"] == "done"])
    done.update(job for answer in answers for job in done_in(answer))
    assert set(done.values()) == {1}
    assert Counter(tenant for tenant, _ in done) == turns
    for tenant, facts in turns.items():
        with Engram.open(url=database, tenant=tenant) as mem:
            assert mem.jobs.list() == []
            assert Counter(memory.evidence[0].event for memory in mem.list(status="any", limit=None)) == {
                event.id: 1 for task in mem.list_tasks() for event in mem.list_events(task.id)
            }
            assert len(mem.list(status="any", limit=None)) == facts
