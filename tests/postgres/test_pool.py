"""A connection goes from hand to hand and never takes a tenant along."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from engram.model.errors import EngramError
from engram.model.memory import Memory
from engram.store.postgres.connections import FIRST_PAUSE, LONGEST_PAUSE, Attempts, Texts
from engram.store.postgres.setup import open_store
from engram.store.postgres.store import PostgresStore
from engram.store.protocol import Store
from tests.clock import Clock
from tests.conformance.keeping import ANY, Keep

WORKERS, ROUNDS = 8, 12
PATIENCE = 120.0


class Stop(Exception):
    """Something went wrong in the middle."""


@pytest.fixture
def stores(shared_database: str, tenant: str, clock: Clock) -> Iterator[list[PostgresStore]]:
    """Stores of three tenants in one process."""
    opened = [open_store(shared_database, f"{tenant}-{n}", None, clock=clock) for n in range(3)]
    yield opened
    for store in opened:
        store.close()


def tenant_left_on(store: PostgresStore) -> list[str | None]:
    """What the next user of each pooled connection would find set."""
    pool = store.context.database.connections.pool
    taken = [pool.getconn() for _ in range(4)]
    found = [connection.execute("SELECT current_setting('engram.tenant', true)").fetchone() for connection in taken]
    for connection in taken:
        connection.rollback()
        pool.putconn(connection)
    return [row[0] if row else None for row in found]


def test_a_connection_that_comes_back_belongs_to_nobody(stores: list[PostgresStore], clock: Clock) -> None:
    store = stores[0]
    Keep(store, clock)("zebra")
    store.listing(ANY)
    assert not any(tenant_left_on(store))


def test_a_connection_comes_back_clean_from_an_error_in_mid_transaction(
    stores: list[PostgresStore], clock: Clock
) -> None:
    store = stores[0]
    with pytest.raises(Stop), store.deciding("add", actor="test", scopes=["global"]) as deciding:
        deciding.put(Memory(deciding.new_id(clock()), "zebra", created=clock()))
        raise Stop
    with pytest.raises(EngramError), store.context.database.transaction() as connection:
        connection.execute("SELECT 1 / 0")
    assert not any(tenant_left_on(store))
    assert store.listing(ANY) == []
    Keep(store, clock)("quagga")
    assert [memory.statement for memory in store.listing(ANY)] == ["quagga"]


def test_many_threads_and_tenants_never_mix_also_after_errors(stores: list[PostgresStore], clock: Clock) -> None:
    barrier = threading.Barrier(WORKERS)

    def work(number: int) -> None:
        barrier.wait(PATIENCE)
        for turn in range(ROUNDS):
            place = (number + turn) % len(stores)
            _one_turn(stores[place], place, f"{number}-{turn}", clock)

    with ThreadPoolExecutor(WORKERS) as threads:
        for done in [threads.submit(work, number) for number in range(WORKERS)]:
            done.result(PATIENCE)
    for place, store in enumerate(stores):
        expected = {f"of {place}: {n}-{t}" for n in range(WORKERS) for t in range(ROUNDS)
                    if (n + t) % len(stores) == place and t % 4 != 3}  # fmt: skip
        assert {memory.statement for memory in store.listing(ANY)} == expected
        assert store.count(ANY) == len(expected)
        assert not any(tenant_left_on(store))


def _one_turn(store: Store, place: int, label: str, clock: Clock) -> None:
    """Write one memory, or fail half-way every fourth time; then read and find only what is this tenant's."""
    fails = int(label.partition("-")[2]) % 4 == 3
    try:
        with store.deciding("add", actor="test", scopes=[f"scope:{label}"]) as deciding:
            memory_id = deciding.new_id(clock())
            deciding.put(Memory(memory_id, f"of {place}: {label}", f"scope:{label}", created=clock()))
            if fails:
                raise Stop
    except Stop:
        assert fails
    assert all(memory.statement.startswith(f"of {place}:") for memory in store.listing(ANY))


def test_a_store_that_is_closed_leaves_no_connection(shared_database: str, tenant: str, clock: Clock) -> None:
    store = open_store(shared_database, tenant, None, clock=clock)
    Keep(store, clock)("zebra")
    with psycopg.connect(shared_database, autocommit=True) as watching:
        mine = (
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'engram' AND datname = current_database()"
        )
        before = watching.execute(mine).fetchone()
        store.close()
        deadline = time.monotonic() + PATIENCE
        while (left := watching.execute(mine).fetchone()) != (0,) and time.monotonic() < deadline:
            time.sleep(0.01)
    assert before is not None
    assert before[0] >= 1
    assert left == (0,)


@pytest.mark.parametrize("texts", [[], [""], ["a", "", "é日\U0001f600", 'quo"te,\\ {}', "NULL"]])
def test_texts_arrive_as_they_were_sent(stores: list[PostgresStore], texts: list[str]) -> None:
    assert stores[0].context.database.query("SELECT %(texts)b::text[]", {"texts": Texts(texts)}) == [(texts,)]


def test_a_question_among_statements_whose_answers_come_later_is_refused(stores: list[PostgresStore]) -> None:
    database = stores[0].context.database
    with database.transaction() as connection, connection.pipeline(), pytest.raises(AssertionError, match="pipeline"):
        database.run_on(connection, "SELECT 1", {})


# -- a server that is away


class Pauses(threading.Event):
    """Notes how long it was waited for; nobody waits."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.seconds.append(timeout or 0.0)
        return False


def away() -> None:
    raise psycopg.OperationalError("connection refused")


def test_a_server_that_is_away_is_tried_after_pauses_that_grow_and_differ() -> None:
    meant = [min(FIRST_PAUSE * 2**times, LONGEST_PAUSE) for times in range(11)]
    seen = []
    for _ in range(20):
        attempts = Attempts()
        attempts._ended = pauses = Pauses()
        for _ in range(12):
            with pytest.raises(psycopg.OperationalError):
                attempts.make(away)
        assert all(0.5 * m <= s <= 1.5 * m for s, m in zip(pauses.seconds, meant, strict=True))
        assert str(attempts.error) == "connection refused"
        seen.append(tuple(pauses.seconds))
        assert attempts.make(lambda: "connected") == "connected"
        assert attempts.error is None
        assert attempts.make(lambda: "connected") == "connected"
        assert len(pauses.seconds) == 12, "whoever reaches the server pauses no more"
    assert len(set(seen)) == len(seen)


def test_connections_lost_together_are_tried_again_one_at_a_time() -> None:
    attempts, together = Attempts(), threading.Barrier(WORKERS)
    attempts._ended = Pauses()
    with pytest.raises(psycopg.OperationalError):
        attempts.make(away)
    trying, most, turn = 0, 0, threading.Lock()

    def refused() -> None:
        nonlocal trying, most
        with turn:
            trying, most = trying + 1, max(most, trying + 1)
        time.sleep(0.01)
        with turn:
            trying -= 1
        away()

    def work() -> None:
        together.wait(PATIENCE)
        with pytest.raises(psycopg.OperationalError):
            attempts.make(refused)

    with ThreadPoolExecutor(WORKERS) as threads:
        for done in [threads.submit(work) for _ in range(WORKERS)]:
            done.result(PATIENCE)
    assert most == 1
