"""Connections, servers and clients that go away in the middle: what was acknowledged is there once, the rest is not."""

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from engram import Engram
from engram.model.errors import StoreError
from engram.model.memory import Memory
from tests.clock import Clock
from tests.faults.processes import finish
from tests.faults.workers.operations import sentence
from tests.postgres.server import Server, durable_server, fresh_database, ordinary_role
from tests.postgres.workers.acknowledged import RATED, assert_kept, wait_for, wait_for_acknowledgements
from tests.postgres.workers.agreement import disagreements
from tests.postgres.workers.cutting import Cut, Link, Wire, after_it_was_sent, before_it_is_sent, wire
from tests.postgres.workers.forking import CASES
from tests.postgres.workers.starting import crowd, start
from tests.postgres.workers.writes import WRITES, Write

MINE = "application_name = 'engram' AND datname = current_database()"


def terminate(url: str, *, also: str = "true") -> int:
    """Let the server end every connection of Engram's to this database; how many there were."""
    with psycopg.connect(url, autocommit=True) as connection:
        ended = connection.execute(
            f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE {MINE} AND {also}".encode()
        ).fetchall()
    return len(ended)


@pytest.fixture
def mem(database: str, tenant: str) -> Iterator[Engram]:
    """A memory alone in its database."""
    with Engram.open(url=database, tenant=tenant) as opened:
        yield opened


# -- single connections


def test_connections_that_died_while_idle_are_replaced_without_a_word(mem: Engram, database: str) -> None:
    for n in range(3):
        mem.learn(sentence(n))
        assert terminate(database) >= 1
    assert mem.search(sentence(1))[0].text == sentence(1)
    terminate(database)
    assert len(mem.list()) == 3


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_connection_that_dies_in_mid_decision_takes_the_whole_decision_along(
    mem: Engram, database: str, tenant: str, clock: Clock, when: str
) -> None:
    kept = mem.add(sentence(1))
    with (
        pytest.raises(StoreError, match="postgresql://") as raised,
        mem.store.deciding("update", actor="test", scopes=["global"], about=[kept.id]) as deciding,
    ):
        if when == "before":
            terminate(database)
        deciding.put(kept.replace(rationale="half a decision"))
        deciding.put(Memory(deciding.new_id(clock()), sentence(2), created=clock()))
        terminate(database)
    assert "password" not in str(raised.value)
    assert mem.list() == [kept]
    assert mem.update(kept.id, rationale="a whole one").rationale == "a whole one"
    assert disagreements(database, tenant) == []


# -- the answer to a commit

CUTS: dict[str, Cut] = {"the commit": before_it_is_sent, "its answer": after_it_was_sent}


AT_EVERY_COMMIT = ("learn", "add_batch", "purge")


@pytest.mark.parametrize("lost", CUTS)
@pytest.mark.parametrize("verb", AT_EVERY_COMMIT)
def test_whichever_commit_of_a_write_is_cut_the_write_is_told_as_it_is(
    shared_database: str, tenant: str, verb: str, lost: str
) -> None:
    """After an error a caller may try again, and nothing is there twice; after none, all of it is there."""
    told: list[int] = []
    with wire(shared_database) as laid:
        while laid.cut is None:
            told.append(_cut(laid, shared_database, f"{tenant}-{len(told)}", WRITES[verb], lost, spared=len(told)))
    assert told[-1] == 1, "the last one was cut nowhere"
    assert lost == "its answer" or 0 in told


@pytest.mark.parametrize("verb", [verb for verb in WRITES if verb not in AT_EVERY_COMMIT])
def test_where_the_commit_of_a_write_is_cut_the_write_is_told_as_it_is(
    shared_database: str, tenant: str, verb: str
) -> None:
    with wire(shared_database) as laid:
        for number, lost in enumerate(CUTS):
            told = _cut(laid, shared_database, f"{tenant}-{number}", WRITES[verb], lost, statement=WRITES[verb].mark)
            assert laid.happened.is_set(), "nothing was cut"
            laid.happened.clear()
            assert told == (lost == "its answer")


def _cut(laid: Wire, url: str, tenant: str, write: Write, lost: str, **which: Any) -> int:
    """Carry out a write whose commit is cut; 1 if it was told as done. What is told is what is there."""
    with Engram.open(url=url, tenant=tenant) as watching, Engram.open(url=laid.through(url), tenant=tenant) as mem:
        state = write.prepare(watching)
        assert write.traces(watching, state) == 0
        laid.arm(CUTS[lost], **which)
        try:
            write.carry_out(mem, state)
            told = 1
        except StoreError as error:
            assert "postgresql://" in str(error)
            told = 0
        assert write.traces(watching, state) == told
        if not told:
            laid.cut = None
            write.carry_out(mem, state)
            assert write.traces(watching, state) == 1
    return told


# -- the server


@pytest.fixture(scope="module")
def own_server(postgres_server: Server) -> Iterator[Server]:
    """A server that may be crashed; whoever crashes it leaves it running."""
    with durable_server(postgres_server.kept) as server:
        yield server


@pytest.fixture
def own_database(own_server: Server) -> Iterator[str]:
    """A database on a server that may be crashed."""
    with ordinary_role(own_server) as role, fresh_database(role) as url:
        yield url


def kill_a_backend(server: Server) -> None:
    """One process of the server dies; the server recovers from its log, without a new start."""
    with pytest.raises(psycopg.OperationalError), server.admin() as admin:
        os.kill(admin.info.backend_pid, signal.SIGKILL)
        while True:
            admin.execute("SELECT 1")

    def answers() -> bool:
        with contextlib.suppress(psycopg.OperationalError), server.admin() as admin:
            return admin.execute("SELECT 1").fetchone() == (1,)
        return False

    wait_for(answers, "the server did not recover")


CRASHES: dict[str, Callable[[Server], None]] = {
    "the server stops at once": lambda server: server.restart("immediate"),
    "one of its processes is killed": kill_a_backend,
}


@pytest.mark.heavy
@pytest.mark.parametrize("crash", CRASHES)
def test_a_crash_at_the_commit_is_not_mistaken_for_the_commit_of_another(
    own_server: Server, own_database: str, tenant: str, crash: str
) -> None:
    """A server that crashed gives the numbers of transactions it had not yet written to disk to others."""
    with own_server.admin() as admin:
        admin.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
    own_server.restart()

    def crash_and_reuse_numbers(link: Link, _: bytes) -> None:
        CRASHES[crash](own_server)
        with own_server.admin() as admin:
            for _number in range(60):
                admin.execute("SELECT pg_current_xact_id()")
        link.close()

    with wire(own_database) as laid, Engram.open(url=laid.through(own_database), tenant=tenant) as mem:
        laid.arm(crash_and_reuse_numbers, "journal")
        with pytest.raises(StoreError):
            mem.learn(sentence(1))
        assert mem.list() == []
        kept = mem.learn(sentence(1)).memory
        assert kept is not None
        assert [memory.id for memory in mem.list()] == [kept.id]
    assert disagreements(own_database, tenant) == []


@pytest.mark.heavy
def test_writers_outlive_a_crash_of_the_server_and_lose_nothing_acknowledged(
    own_server: Server, own_database: str, tenant: str, tmp_path: Path
) -> None:
    with Engram.open(url=own_database, tenant=tenant) as mem:
        shared = mem.add(RATED).id
    with crowd("writing", tmp_path, 2, 4, url=own_database, tenant=tenant, shared=shared) as everyone:
        everyone.begin()
        for _ in range(2):
            wait_for_acknowledgements(everyone, 24)
            own_server.restart("immediate")
        wait_for_acknowledgements(everyone, 24)
        told = everyone.end()
    assert any("failed" in line for line in told)
    assert_kept(own_database, tenant, told, shared)


def test_killed_clients_leave_no_lock_and_nothing_half_written(database: str, tenant: str, tmp_path: Path) -> None:
    with Engram.open(url=database, tenant=tenant) as mem:
        shared = mem.add(RATED).id
    chosen = random.Random(7)
    with crowd("writing", tmp_path, 3, 2, url=database, tenant=tenant, shared=shared) as everyone:
        everyone.begin()
        pids = [line["pid"] for line in everyone.told if "pid" in line]
        for pid in pids[:-1]:
            wait_for_acknowledgements(everyone, 6)
            time.sleep(chosen.random() * 0.05)
            everyone.kill(pid)
        wait_for_acknowledgements(everyone, 12)
        told = everyone.end()
    assert [line for line in told if "failed" in line] == []
    with psycopg.connect(database, autocommit=True) as watching:
        left = f"SELECT count(*) FROM pg_stat_activity WHERE {MINE}".encode()
        wait_for(lambda: watching.execute(left).fetchone() == (0,), "a killed client is still connected")
    assert_kept(database, tenant, told, shared)


# -- forks


@pytest.mark.parametrize("case", CASES)
def test_a_forked_child_is_a_client_of_its_own(database: str, tenant: str, case: str) -> None:
    with start("forking", case, database, tenant) as process:
        [answer] = finish(process)
    assert answer == {"status": 0, "found": True}
    assert disagreements(database, tenant) == []
