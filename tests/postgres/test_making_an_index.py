"""Making an HNSW index: one at a time however many ask for it, and whatever a broken build left behind goes first."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest
from psycopg import sql

from engram.model.errors import StoreBusy
from engram.store.postgres import neighbours
from engram.store.postgres.setup import open_store
from engram.store.postgres.sql import statement
from engram.store.postgres.store import PostgresStore
from tests.clock import Clock
from tests.faults.processes import PATIENCE, ROOT, ending, environment
from tests.postgres.test_nearest import DIM, FILL, RARE, Points

COMMAND = [sys.executable, "-m", "engram", "index", "--nearest"]


@pytest.fixture
def two(shared_database: str, tenant: str, clock: Clock) -> Iterator[list[PostgresStore]]:
    """Two tenants of a thousand vectors."""
    opened = []
    for number in (1, 2):
        store = open_store(shared_database, f"{tenant}-{number}", Points(), clock=clock)
        with store.context.database.transaction() as connection:
            name = store.context.database.tenant
            connection.execute(FILL, {"count": 1_000, "dim": DIM, "tenant": name, "rare": RARE})
        opened.append(store)
    yield opened
    for store in opened:
        neighbours.drop_all(store.context.database)
        store.close()


@pytest.fixture
def store(two: list[PostgresStore]) -> PostgresStore:
    return two[0]


def valid(store: PostgresStore) -> list[bool]:
    """Whether each of the tenant's indexes is whole."""
    return list(neighbours._index_validity(store.context.database).values())


@contextmanager
def another_at_it(url: str) -> Iterator[psycopg.Connection]:
    """Somebody else has the turn."""
    with psycopg.connect(url) as other:
        assert other.execute(statement("try_turn")).fetchone() == (True,)
        yield other


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set once somebody has found the turn taken."""
    found = threading.Event()
    held = neighbours._try_lock

    def noted(holding: psycopg.Connection) -> bool:
        took = held(holding)
        if not took:
            found.set()
        return took

    monkeypatch.setattr(neighbours, "_try_lock", noted)
    return found


def test_many_at_once_take_turns(two: list[PostgresStore]) -> None:
    met = threading.Barrier(4)

    def build(store: PostgresStore) -> str:
        met.wait(PATIENCE)
        return store.build_nearest()

    with ThreadPoolExecutor(4) as threads:
        made = [building.result(PATIENCE) for building in [threads.submit(build, store) for store in (*two, *two)]]
    assert made[:2] == made[2:] == [neighbours.index_name(store.context.database.tenant, 1) for store in two]
    assert [valid(store) for store in two] == [[True], [True]]


def test_processes_at_once_take_turns(two: list[PostgresStore], shared_database: str) -> None:
    started = [
        subprocess.Popen(
            COMMAND,
            cwd=ROOT,
            env={**environment(), "ENGRAM_URL": shared_database, "ENGRAM_TENANT": store.context.database.tenant},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        for store in (*two, *two)
    ]
    with ending(*started):
        said = [process.communicate(timeout=PATIENCE)[0] for process in started]
    assert [process.returncode for process in started] == [0] * 4, said
    assert [valid(store) for store in two] == [[True], [True]]


def test_what_another_one_has_just_made_is_not_made_again(
    store: PostgresStore, shared_database: str, waiting: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    build, made = neighbours._build, []

    def counted(*asked: object) -> None:
        made.append(asked)
        build(*asked)  # type: ignore[arg-type]

    with ThreadPoolExecutor(1) as threads:
        with another_at_it(shared_database):
            building = threads.submit(store.build_nearest)
            assert waiting.wait(PATIENCE)
            name = neighbours.index_name(store.context.database.tenant, 1)
            neighbours._build(store.context.database, name, ("engram", "memory_vectors"), DIM, 1)
            monkeypatch.setattr(neighbours, "_build", counted)
        assert building.result(PATIENCE) == name
    assert made == []
    assert store.context.settings.get("hnsw") == 1


def test_who_waited_makes_its_own_where_the_other_made_none(
    store: PostgresStore, shared_database: str, waiting: threading.Event
) -> None:
    with ThreadPoolExecutor(1) as threads:
        with another_at_it(shared_database):
            building = threads.submit(store.build_nearest)
            assert waiting.wait(PATIENCE)
        building.result(PATIENCE)
    assert valid(store) == [True]


def test_waiting_has_an_end_and_says_what_to_do(
    store: PostgresStore, shared_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours, "BUILD_LOCK_SECONDS", 0.5)
    with (
        another_at_it(shared_database),
        pytest.raises(StoreBusy, match=r"building or dropping a vector index.*run the command again"),
    ):
        store.build_nearest()
    assert valid(store) == []
    store.build_nearest()
    assert valid(store) == [True]


def test_a_turn_ends_with_whoever_had_it(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(neighbours, "_build", broken)
        with pytest.raises(KeyboardInterrupt):
            store.build_nearest()
    monkeypatch.setattr(neighbours, "BUILD_LOCK_SECONDS", 0.0)
    store.build_nearest()
    assert valid(store) == [True]


def test_old_indexes_that_cannot_be_dropped_now_are_named(
    store: PostgresStore, shared_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours, "BUILD_LOCK_SECONDS", 0.1)
    name = store.build_nearest()
    with another_at_it(shared_database):
        neighbours.drop_others(store.context, 2)
    assert valid(store) == [True]
    assert any(f"DROP INDEX engram.{name}" in warning for warning in store.warnings)


def leave_broken(store: PostgresStore, url: str, generation: int) -> None:
    """A build that fails half-way, as one that is killed does, leaves an index that is not valid."""
    name = neighbours.index_name(store.context.database.tenant, generation)
    making = sql.SQL(
        "CREATE INDEX CONCURRENTLY {} ON engram.memory_vectors USING hnsw ((vector::halfvec(7)) halfvec_ip_ops) WHERE tenant = {}"
    ).format(sql.Identifier(name), sql.Literal(store.context.database.tenant))
    with psycopg.connect(url, autocommit=True) as owner, pytest.raises(psycopg.DataError):
        owner.execute(making)


def test_what_a_broken_build_left_is_named_and_goes_before_the_next(store: PostgresStore, shared_database: str) -> None:
    leave_broken(store, shared_database, 1)
    leave_broken(store, shared_database, 7)
    assert valid(store) == [False, False]
    (told,) = [check for check in store.examine() if check.name == "indexes"]
    assert not told.ok
    assert neighbours.index_name(store.context.database.tenant, 1) in told.detail
    store.build_nearest()
    assert valid(store) == [True]
    assert all(check.ok for check in store.examine() if check.name == "indexes")


def test_an_index_that_a_server_keeps_for_a_part_of_the_table_is_not_touched(
    store: PostgresStore, shared_database: str
) -> None:
    part = f"{neighbours.index_name(store.context.database.tenant, 1)}_102008"
    with psycopg.connect(shared_database, autocommit=True) as owner:
        owner.execute(sql.SQL("CREATE INDEX {} ON engram.terms (tenant)").format(sql.Identifier(part)))
        store.build_nearest()
        neighbours.drop_all(store.context.database)
        assert owner.execute("SELECT 1 FROM pg_class WHERE relname = %s", (part,)).fetchone() == (1,)
        owner.execute(sql.SQL("DROP INDEX engram.{}").format(sql.Identifier(part)))
