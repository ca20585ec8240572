"""Engram through PgBouncer in transaction mode: every transaction may get another connection to the server, shared with everybody."""

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
import pytest

from engram import Engram
from engram.model.errors import EngramError, NotFound, StoreError
from engram.store.postgres.schema import LATEST_SCHEMA
from engram.store.postgres.setup import open_store
from tests.backends import static_embedder
from tests.clock import Clock
from tests.conformance.keeping import ANY, Keep
from tests.faults.processes import ending
from tests.faults.workers.operations import sentence
from tests.postgres import pooler as poolers
from tests.postgres.pooler import Pooler, pooler
from tests.postgres.seeded import steps
from tests.postgres.server import Server
from tests.postgres.test_server import ROOT, runs
from tests.postgres.workers.acknowledged import RATED, assert_kept, wait_for, wait_for_acknowledgements
from tests.postgres.workers.agreement import disagreements
from tests.postgres.workers.cutting import Cut, after_it_was_sent, before_it_is_sent, wire
from tests.postgres.workers.starting import crowd

pytestmark = pytest.mark.heavy

FEW = 3
"""Connections to the server, of which every test wants more."""
TENANTS, THREADS, TURNS = 4, 3, 6
QUICK, MANY_ROUNDS = 50, 40
PATIENCE = 120.0
OF_THE_POOLER = (
    "application_name",
    "client_encoding",
    "DateStyle",
    "TimeZone",
    "standard_conforming_strings",
    "IntervalStyle",
)
"""What PgBouncer itself sets on a connection, to what its client asked for."""
PROTOCOL = 3
LEFT_BEHIND = """
SELECT pg_backend_pid(),
    ARRAY(SELECT name FROM pg_prepared_statements),
    ARRAY(SELECT name || ' = ' || setting FROM pg_settings
        WHERE source = 'session' AND setting <> reset_val AND NOT name = ANY(%(own)s)),
    coalesce(current_setting('engram.tenant', true), ''),
    ARRAY(SELECT locktype || ' ' || mode FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'),
    ARRAY(SELECT relname::text FROM pg_class WHERE relpersistence = 't'),
    ARRAY(SELECT name FROM pg_cursors WHERE is_holdable),
    ARRAY(SELECT pg_listening_channels())
"""


@pytest.fixture
def pooled(postgres_server: Server) -> Iterator[Pooler]:
    """A pooler with few connections in front of the server of the run."""
    with pooler(postgres_server.admin_url, FEW) as running:
        yield running


@pytest.fixture
def url(pooled: Pooler, database: str) -> str:
    """An empty database, reached through the pooler."""
    return pooled.through(database)


def assert_nothing_left_behind(pooled: Pooler, database: str) -> None:
    """Whoever gets one of the server's connections next finds it as if nobody had had it before."""
    with contextlib.ExitStack() as held:
        found = []
        for _ in range(FEW):
            # Each keeps its own until all have been looked at.
            connection = held.enter_context(psycopg.connect(pooled.through(database), prepare_threshold=None))
            row = connection.execute(LEFT_BEHIND, {"own": list(OF_THE_POOLER)}).fetchone()
            assert row is not None
            found.append(row)
    assert len({pid for pid, *_ in found}) == FEW
    assert [left for _, *left in found] == [[[], [], "", [], [], [], []]] * FEW


# -- the pooler itself


def test_it_lends_a_connection_for_a_transaction_and_knows_no_prepared_statements(
    pooled: Pooler, database: str
) -> None:
    with (
        psycopg.connect(pooled.through(database), autocommit=True) as one,
        psycopg.connect(pooled.through(database), autocommit=True) as other,
    ):
        first = one.execute("SELECT pg_backend_pid()", prepare=True).fetchone()
        with other.transaction():
            assert other.execute("SELECT pg_backend_pid()").fetchone() == first
            with pytest.raises(psycopg.errors.InvalidSqlStatementName, match="_pg3_0"):
                one.execute("SELECT pg_backend_pid()", prepare=True)


def test_a_pooler_that_was_killed_comes_back_at_the_same_address(pooled: Pooler, database: str) -> None:
    through = pooled.through(database)
    with psycopg.connect(through, prepare_threshold=None) as connection:
        pooled.kill()
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError, match="refused"):
        psycopg.connect(through)
    pooled.start()
    with psycopg.connect(through, prepare_threshold=None) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


HOLDER = """
import sys, time
from tests.postgres.pooler import pooler

with pooler(sys.argv[1]) as running:
    print(running.pid, running.place, flush=True)
    time.sleep(600)
"""


def test_a_run_that_is_killed_leaves_no_pooler(postgres_server: Server) -> None:
    command = [sys.executable, "-c", HOLDER, postgres_server.admin_url]
    holder = subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, start_new_session=True)
    with ending(holder):
        assert holder.stdout is not None
        pid, place = holder.stdout.readline().split()
        assert runs(int(pid))
    wait_for(lambda: not Path(place).exists() and not runs(int(pid)), "PgBouncer outlived its run")


def test_without_the_program_it_is_said_what_to_install(
    postgres_server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(poolers, "PLACES", ())
    monkeypatch.setenv("CI", "true")
    with pytest.raises(RuntimeError, match="apt-get install pgbouncer"), pooler(postgres_server.admin_url):
        pass


# -- the same behaviour


def test_one_program_takes_the_same_steps_directly_and_through_the_pooler(
    pooled: Pooler, database: str, url: str
) -> None:
    directly = steps(database, "directly", rounds=QUICK)
    with ThreadPoolExecutor(2) as threads:
        # Two at once, so that neither has a connection of the server's for itself.
        through = list(threads.map(lambda tenant: steps(url, tenant, rounds=QUICK), ("one", "other")))
    for taken in through:
        assert_same_steps(taken, directly)
    assert_nothing_left_behind(pooled, database)


def test_many_tenants_take_the_same_steps_at_once(pooled: Pooler, database: str, url: str) -> None:
    tenants = [f"tenant-{n}" for n in range(TENANTS)]
    directly = steps(database, "directly", rounds=MANY_ROUNDS)
    with ThreadPoolExecutor(TENANTS) as threads:
        for taken in threads.map(lambda tenant: steps(url, tenant, rounds=MANY_ROUNDS), tenants):
            assert_same_steps(taken, directly)
    for tenant in tenants:
        assert disagreements(database, tenant) == []
    assert_nothing_left_behind(pooled, database)


def assert_same_steps(taken: list[str], expected: list[str]) -> None:
    """The first step that differs is what failed; the rest follows from it."""
    for number, (one, other) in enumerate(zip(taken, expected, strict=False)):
        assert one == other, f"step {number}"
    assert len(taken) == len(expected)


def test_nothing_is_sent_between_a_commit_and_the_next_transaction(pooled: Pooler, database: str, tenant: str) -> None:
    """For a lone request to flush, which nobody answers, PgBouncer would lend a connection to the server until the next one."""
    with wire(pooled.through(database)) as line, Engram.open(url=line.through(database), tenant=tenant) as mem:
        for n in range(3):
            kept = mem.add(sentence(n))
            mem.learn(sentence(n))
            mem.observe("talk", "user", sentence(n))
        mem.recall(sentence(1), session="talk")
        mem.feedback(kept.id, "positive")
        with pytest.raises(NotFound):
            mem.get("nobody")
        mem.forget(kept.id, purge=True)
    parted = [after for link in line.links for after in _after_ends(_messages(bytes(link.sent)))]
    assert len(parted) > 20
    assert set(parted) <= {b"P", b"Q", b"X"}


def _messages(sent: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Kind and content of each message of a client, from its password on."""
    place, begun = 0, False
    while not begun:  # asking for encryption, and the first message, have no kind
        begun = int.from_bytes(sent[place + 4 : place + 6], "big") == PROTOCOL
        place += int.from_bytes(sent[place : place + 4], "big")
    while place < len(sent):
        size = int.from_bytes(sent[place + 1 : place + 5], "big")
        yield sent[place : place + 1], sent[place + 5 : place + 1 + size]
        place += 1 + size


def _after_ends(messages: Iterator[tuple[bytes, bytes]]) -> Iterator[bytes]:
    """The kind of what follows on the end of each transaction."""
    ends = (b"COMMIT", b"ROLLBACK")
    return (kind for (_, content), (kind, _) in pairwise(messages) if content.lstrip(b"\0").startswith(ends))


# -- many at once


def test_tenants_never_mix_on_shared_connections(pooled: Pooler, database: str, url: str, clock: Clock) -> None:
    stores = [open_store(url, f"tenant-{n}", None, clock=clock) for n in range(TENANTS)]
    barrier = threading.Barrier(TENANTS * THREADS)

    def work(place: int, number: int) -> None:
        keep = Keep(stores[place], clock)
        barrier.wait(PATIENCE)
        for turn in range(TURNS):
            keep(f"of {place}: {number}-{turn}", scope=f"scope:{number}")
            assert all(memory.statement.startswith(f"of {place}:") for memory in stores[place].listing(ANY))
            with pytest.raises(EngramError), stores[place].context.database.transaction() as connection:
                connection.execute("SELECT 1 / 0")

    try:
        with ThreadPoolExecutor(TENANTS * THREADS) as threads:
            work_of = [threads.submit(work, place, number) for place in range(TENANTS) for number in range(THREADS)]
            for done in work_of:
                done.result(PATIENCE)
        for place, store in enumerate(stores):
            expected = {f"of {place}: {n}-{t}" for n in range(THREADS) for t in range(TURNS)}
            assert {memory.statement for memory in store.listing(ANY)} == expected
    finally:
        for store in stores:
            store.close()
    assert_nothing_left_behind(pooled, database)


@pytest.mark.parametrize(
    ("connections", "processes", "threads", "rounds"),
    [pytest.param(2, 3, 8, 2, id="24 on 2"), pytest.param(20, 20, 10, 1, id="200 on 20")],
)
def test_more_writers_than_connections_finish_without_an_error(
    postgres_server: Server,
    database: str,
    tenant: str,
    tmp_path: Path,
    connections: int,
    processes: int,
    threads: int,
    rounds: int,
) -> None:
    with pooler(postgres_server.admin_url, connections) as running:
        asked = {"url": running.through(database), "tenant": tenant, "rounds": rounds}
        with crowd("learning", tmp_path, processes, threads, **asked) as everyone:
            everyone.begin()
            told = everyone.end()
    made = [pair for line in told for pair in line.get("made", {}).items()]
    assert len(dict(made)) == len(made) == processes * threads * rounds * 3
    with Engram.open(url=database, tenant=tenant) as mem:
        assert {memory.id: memory.statement for memory in mem.list(limit=None)} == dict(made)
    assert disagreements(database, tenant) == []


# -- a pooler that goes away


def test_a_pooler_killed_under_load_loses_and_doubles_nothing_acknowledged(
    pooled: Pooler, database: str, url: str, tenant: str, tmp_path: Path
) -> None:
    with Engram.open(url=url, tenant=tenant) as mem:
        shared = mem.add(RATED).id
    with crowd("writing", tmp_path, 2, 4, url=url, tenant=tenant, shared=shared) as everyone:
        everyone.begin()
        for _ in range(3):
            wait_for_acknowledgements(everyone, 12)
            pooled.restart()
        wait_for_acknowledgements(everyone, 24)
        told = everyone.end()
    assert any("failed" in line for line in told)
    assert_kept(database, tenant, told, shared)
    assert_nothing_left_behind(pooled, database)


CUTS: dict[str, tuple[Cut, bool]] = {
    "the answer is lost": (after_it_was_sent, True),
    "it never arrives": (before_it_is_sent, False),
}


@pytest.mark.parametrize("side", ["before the pooler", "behind the pooler"])
@pytest.mark.parametrize("cut", CUTS)
def test_a_commit_that_is_cut_off_is_told_as_it_is(
    postgres_server: Server, database: str, tenant: str, side: str, cut: str
) -> None:
    how, is_written = CUTS[cut]
    with contextlib.ExitStack() as laid:
        if side == "before the pooler":
            running = laid.enter_context(pooler(postgres_server.admin_url, FEW))
            line = laid.enter_context(wire(running.through(database)))
            through = line.through(database)
        else:
            line = laid.enter_context(wire(postgres_server.admin_url))
            running = laid.enter_context(pooler(line.through(postgres_server.admin_url), FEW))
            through = running.through(database)
        mem = laid.enter_context(Engram.open(url=through, tenant=tenant))
        mem.add(sentence(1))
        line.arm(how, "journal")
        if is_written:
            mem.learn(sentence(2))
        else:
            with pytest.raises(StoreError, match="postgresql://"):
                mem.learn(sentence(2))
        assert line.happened.is_set()
        assert len(mem.list()) == 1 + is_written
    assert disagreements(database, tenant) == []


# -- what an owner does


def engram(url: str, folder: Path, *arguments: str) -> Any:
    """What the program says, with a server through the environment."""
    environment = {**os.environ, "ENGRAM_URL": url, "ENGRAM_TENANT": "acme", "ENGRAM_HOME": str(folder)}
    ended = subprocess.run(
        [sys.executable, "-m", "engram", *arguments, "--json"],
        env=environment, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_an_owner_makes_fills_indexes_and_examines_a_store(
    pooled: Pooler, database: str, url: str, tmp_path: Path
) -> None:
    assert engram(url, tmp_path, "init")["store"].startswith("postgresql://")
    engram(url, tmp_path, "learn", "The api listens on port 8080 in production")
    engram(url, tmp_path, "index", "--nearest")
    engram(url, tmp_path, "index", "--rebuild")
    engram(url, tmp_path, "index", "--reembed")
    assert engram(url, tmp_path, "doctor")["ok"] is True
    hits = engram(url, tmp_path, "search", "which port has the api")["hits"]
    assert [hit["text"] for hit in hits] == ["The api listens on port 8080 in production"]
    engram(url, tmp_path, "forget", hits[0]["id"], "--purge", "--yes")
    assert_nothing_left_behind(pooled, database)


def test_many_who_open_an_empty_database_at_once_make_one_schema(pooled: Pooler, database: str, url: str) -> None:
    barrier = threading.Barrier(THREADS * 2)

    def opened(number: int) -> None:
        barrier.wait(PATIENCE)
        open_store(url, f"tenant-{number}", static_embedder()).close()

    with ThreadPoolExecutor(THREADS * 2) as threads:
        list(threads.map(opened, range(THREADS * 2)))
    with psycopg.connect(database) as connection:
        versions = connection.execute("SELECT version FROM engram.schema_versions ORDER BY version").fetchall()
    assert versions == [(number,) for number in range(1, LATEST_SCHEMA + 1)]
    assert_nothing_left_behind(pooled, database)
