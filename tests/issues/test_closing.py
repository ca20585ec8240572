"""A memory that was closed says so, whatever is asked of it; and only a broken index is thrown away."""

import sqlite3
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from engram import Engram
from engram.aio import AsyncEngram
from engram.model.errors import EngramError, StoreClosed
from engram.model.records import Session
from engram.store.files.reconcile.refresh import explain_error, is_index_damage
from engram.store.home import Home
from tests.backends import Backend
from tests.homes import home_of

NOW = datetime(2026, 11, 16, tzinfo=UTC)
CALLS: dict[str, Callable[[Engram], object]] = {
    "add": lambda mem: mem.add("Beavers build dams in the river"),
    "learn": lambda mem: mem.learn("Beavers build dams in the river"),
    "get": lambda mem: mem.get("ENG-2026-1116-001"),
    "list": lambda mem: mem.list(),
    "search": lambda mem: mem.search("otters"),
    "recall": lambda mem: mem.recall("what do otters do?"),
    "inject": lambda mem: mem.inject("otters"),
    "observe": lambda mem: mem.observe("talk", "user", "hello"),
    "feedback": lambda mem: mem.feedback("ENG-2026-1116-001", "positive"),
    "session": lambda mem: mem.store.load_record(Session, "talk"),
    "save a session": lambda mem: mem.store.save_record(Session("talk", "", ("global",), NOW)),
    "tasks": lambda mem: mem.tasks.list(),
    "start a task": lambda mem: mem.tasks.start("build a dam", scope="global"),
    "jobs": lambda mem: mem.jobs.list(),
    "verdicts": lambda mem: mem.store.verdicts(NOW),
    "doctor": lambda mem: mem.doctor(),
    "purge": lambda mem: mem.upkeep.purge(["ENG-2026-1116-001"]),
    "rebuild": lambda mem: mem.rebuild_index(),
}


def test_every_call_after_closing_says_that_it_is_closed(backend: Backend) -> None:
    mem = backend.client()
    mem.add("Otters hold hands while they sleep")
    mem.close()
    answered = {}
    for name, call in CALLS.items():
        try:
            answered[name] = call(mem)
        except StoreClosed as error:
            assert "open it again" in str(error), name
    assert answered == {}


def test_closing_again_does_nothing(backend: Backend) -> None:
    mem = backend.client()
    kept = mem.add("Otters hold hands while they sleep").id
    for _ in range(3):
        mem.close()
    with backend.client() as again:
        assert again.get(kept).statement == "Otters hold hands while they sleep"


def _open(folder: Path) -> Engram:
    return Engram.open(folder / "home", cache=folder / "cache", directory=folder)


def _index(home: Home) -> tuple[int, int]:
    found = (home.index / "index.db").stat()
    return found.st_ino, found.st_size


def test_use_after_close_leaves_the_index_of_others_alone(tmp_path: Path) -> None:
    with _open(tmp_path) as other:
        kept = other.add("Otters hold hands while they sleep").id
        mem = _open(tmp_path)
        mem.close()
        before = _index(home_of(other))
        for call in CALLS.values():
            with pytest.raises(StoreClosed):
                call(mem)
        assert _index(home_of(other)) == before
        assert other.get(kept).statement.startswith("Otters")


def test_closing_waits_for_what_other_threads_are_doing(tmp_path: Path) -> None:
    mem = _open(tmp_path)
    kept: list[str] = []
    wrong: list[BaseException] = []
    busy = threading.Event()

    def work(number: int) -> None:
        try:
            for count in range(20):
                kept.append(mem.add(f"Dam {number} has {count} beavers of its own").id)
                busy.set()
                mem.search("otters", mode="keyword")
        except StoreClosed:
            pass
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    busy.wait()
    mem.close()
    for thread in threads:
        thread.join()
    assert wrong == []
    with _open(tmp_path) as again:
        assert {memory.id for memory in again.list(limit=None)} == set(kept)


def test_a_store_closed_inside_its_own_decision_writes_nothing(tmp_path: Path) -> None:
    mem = _open(tmp_path)
    kept = mem.add("Otters hold hands while they sleep")
    with pytest.raises(StoreClosed), mem.store.deciding("update", actor="test") as deciding:
        deciding.put(kept.replace(statement="Otters let go"))
        mem.close()
    with _open(tmp_path) as again:
        assert again.get(kept.id).statement.startswith("Otters hold")


async def _used_after_closing(folder: Path) -> None:
    mem = await AsyncEngram.open(folder / "home", cache=folder / "cache", directory=folder)
    await mem.close()
    await mem.list()


def test_the_asynchronous_memory_raises_the_same_error(tmp_path: Path) -> None:
    import asyncio

    with pytest.raises(StoreClosed):
        asyncio.run(_used_after_closing(tmp_path))


# -- what is damage, and what is not


def _failure(*statements: str) -> sqlite3.Error:
    connection = sqlite3.connect(":memory:")
    try:
        for statement in statements:
            connection.execute(statement)
    except sqlite3.Error as error:
        return error
    finally:
        connection.close()
    raise AssertionError("nothing failed")


def _closed() -> sqlite3.Error:
    connection = sqlite3.connect(":memory:")
    connection.close()
    with pytest.raises(sqlite3.ProgrammingError) as caught:
        connection.execute("SELECT 1")
    return caught.value


HARMLESS: dict[str, Callable[[], sqlite3.Error]] = {
    "a closed connection": _closed,
    "a broken constraint": lambda: _failure(
        "CREATE TABLE t (k PRIMARY KEY)", "INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (1)"
    ),
    "a statement that is wrong": lambda: _failure("SELECT nothing FROM nowhere"),
    "too many values": lambda: sqlite3.ProgrammingError("Incorrect number of bindings supplied"),
    "the word corrupt in its text": lambda: sqlite3.OperationalError("a trigger says: corrupt, malformed, disk I/O"),
}


@pytest.mark.parametrize("kind", HARMLESS)
def test_what_sqlite_does_not_call_corrupt_is_no_damage(tmp_path: Path, kind: str) -> None:
    error = HARMLESS[kind]()
    home = Home(tmp_path / "home", "id", tmp_path / "cache")
    assert not is_index_damage(error, home)
    assert isinstance(explain_error(error, home), EngramError) and "free some space" not in str(
        explain_error(error, home)
    )


def test_a_failing_statement_does_not_cost_the_index(tmp_path: Path) -> None:
    with _open(tmp_path) as mem:
        kept = mem.add("Otters hold hands while they sleep")
        before = _index(home_of(mem))[0]
        with pytest.raises(EngramError, match="UNIQUE"), mem.store.deciding("update", actor="test"):
            raise _failure("CREATE TABLE t (k PRIMARY KEY)", "INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (1)")
        assert _index(home_of(mem))[0] == before
        assert mem.get(kept.id).statement.startswith("Otters")


@pytest.mark.parametrize("error", [ConnectionRefusedError(111, "Connection refused"), FileNotFoundError(2, "no", "/x")])
def test_an_error_of_the_callers_own_comes_back_as_it_is(tmp_path: Path, error: OSError) -> None:
    with _open(tmp_path) as mem:
        with pytest.raises(type(error)) as caught, mem.store.deciding("update", actor="test"):
            raise error
        assert caught.value is error


def test_a_file_of_the_store_that_cannot_be_used_is_named_and_no_room_is_asked_for(tmp_path: Path) -> None:
    home = Home(tmp_path / "home", "id", tmp_path / "cache")
    told = explain_error(IsADirectoryError(21, "Is a directory", str(home.ledger / "talk.jsonl")), home)
    assert "talk.jsonl cannot be used: Is a directory" in str(told) and "free some space" not in str(told)


def test_a_full_disk_still_asks_for_room(tmp_path: Path) -> None:
    home = Home(tmp_path / "home", "id", tmp_path / "cache")
    assert "free some space" in str(explain_error(OSError(28, "No space left on device"), home))
