"""The index is derived: damaged, deleted or held by another, it costs one rebuild and never an answer."""

import contextlib
import os
import random
import shutil
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engram import Engram
from tests.faults.consistency import assert_consistent, last_images, store_of
from tests.faults.processes import ending, finish, learners, let_go
from tests.faults.workers.operations import sentence

COUNT = 12


def _filled(tmp_path: Path) -> list[str]:
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as mem:
        made = mem.add_batch([{"statement": sentence(n)} for n in range(COUNT)])
        mem.observe("talk", "user", "an otter was seen")
        return [memory.id for memory in made]


def _index_of(tmp_path: Path) -> Path:
    [path] = (tmp_path / "cache").rglob("index.db")
    return path


def _garble(path: Path, start: int, length: int) -> None:
    with path.open("r+b") as file:
        file.seek(start)
        file.write(random.Random(start).randbytes(length))


def _truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "random bytes at its head": lambda path: _garble(path, 0, 2000),
    "random bytes in its middle": lambda path: _garble(path, 4096, path.stat().st_size - 4096),
    "cut in half": _truncate,
    "emptied": lambda path: os.truncate(path, 0),
    "deleted": lambda path: path.unlink(),
    "its folder deleted": lambda path: shutil.rmtree(path.parent),
    "not a database": lambda path: path.write_bytes(b"hello " * 5000),
    "its vectors deleted": lambda path: next(path.parent.glob("vectors-*.f32")).unlink(),
    "another program's database": lambda path: _foreign(path),
}


def _foreign(path: Path) -> None:
    import sqlite3

    path.unlink()
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE meta (mine TEXT)")
    other.commit()
    other.close()


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_index_is_made_anew_when_the_store_is_opened(tmp_path: Path, damage: str) -> None:
    ids = _filled(tmp_path)
    DAMAGE[damage](_index_of(tmp_path))
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as mem:
        assert {mem.get(memory_id).statement for memory_id in ids} == {sentence(n) for n in range(COUNT)}
        assert mem.search(sentence(3))[0].text == sentence(3)
        assert len(mem.search("otter", kinds=("event",))) == 1
        assert mem.learn(sentence(99)).memory is not None
    assert_consistent(tmp_path / "home", tmp_path / "cache")


@pytest.mark.parametrize("damage", ["random bytes in its middle", "cut in half", "deleted", "its folder deleted"])
@pytest.mark.parametrize("first", ["search", "learn", "observe", "update", "feedback"])
def test_an_index_damaged_while_open_heals_on_the_way(tmp_path: Path, damage: str, first: str) -> None:
    ids = _filled(tmp_path)
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as mem:
        DAMAGE[damage](_index_of(tmp_path))
        if first == "search":
            assert mem.search(sentence(3))[0].text == sentence(3)
        elif first == "learn":
            assert mem.learn(sentence(77)).memory is not None
        elif first == "observe":
            mem.observe("talk", "user", "a second sighting")
        elif first == "update":
            mem.update(ids[0], rationale="because")
        else:
            assert mem.feedback(ids[0], "positive").feedback.positive == 1
        assert mem.get(ids[5]).statement == sentence(5)
        assert len(mem.store.events("talk")) == (2 if first == "observe" else 1)
    assert_consistent(tmp_path / "home", tmp_path / "cache")


def _decisions(home: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in (home / "journal").glob("*.jsonl"))


def test_an_index_deleted_while_others_write_loses_nothing(tmp_path: Path) -> None:
    ids = _filled(tmp_path)
    home, cache = tmp_path / "home", tmp_path / "cache"
    writers = learners(home, cache, 2, 15)
    stop = threading.Event()

    def vandal() -> None:
        """Strikes every time a few more decisions have been made."""
        seen = _decisions(home)
        while not stop.wait(0.01):
            if _decisions(home) >= seen + 6:
                seen = _decisions(home)
                shutil.rmtree(cache, ignore_errors=True)

    thread = threading.Thread(target=vandal)
    thread.start()
    with ending(writers):
        try:
            let_go(writers)
            answers = finish(writers)
        finally:
            stop.set()
            thread.join()
    made = {memory_id for answer in answers for memory_id in answer["made"]}
    assert len(made) == 30 and made | set(ids) == set(last_images(home))
    assert_consistent(home, cache)


def test_vectors_deleted_between_two_decisions_are_made_again_whole(tmp_path: Path) -> None:
    """By the writer, who must not begin a file with his own rows only; a reader that had mapped the old one follows."""
    _filled(tmp_path)
    home, cache = tmp_path / "home", tmp_path / "cache"
    with (
        Engram.open(home, cache=cache, directory=home) as writer,
        Engram.open(home, cache=cache, directory=home) as reader,
    ):
        rows = store_of(reader).context.index.matrix_rows
        rows()
        next(_index_of(tmp_path).parent.glob("vectors-*.f32")).unlink()
        writer.add(sentence(70_000))
        assert np.all(np.any(rows()[1:], axis=1)), "a row is missing"
    assert_consistent(home, cache)


def test_a_process_that_still_writes_to_a_deleted_index_does_not_touch_the_vectors_of_the_next(tmp_path: Path) -> None:
    """It may number its documents otherwise, and its rows would land in the file of the index that is in force."""
    _filled(tmp_path)
    home, cache = tmp_path / "home", tmp_path / "cache"
    with Engram.open(home, cache=cache, directory=home) as behind:
        index = store_of(behind).context.index
        with index.writing() as writer:
            first = next(n for (n,) in index.db.execute("SELECT n FROM docs ORDER BY n"))
            writer.put_vector(first, np.ones(index.matrix_rows().shape[1], dtype=np.float32))
            shutil.rmtree(cache)
            with Engram.open(home, cache=cache, directory=home) as ahead:
                ahead.search(sentence(3))
        assert behind.search(sentence(3))[0].text == sentence(3)
    assert_consistent(home, cache)


def test_an_index_of_before_its_vectors_bore_its_name_is_taken_over(tmp_path: Path) -> None:
    _filled(tmp_path)
    home, cache = tmp_path / "home", tmp_path / "cache"
    with contextlib.closing(sqlite3.connect(_index_of(tmp_path), isolation_level=None)) as index:
        index.execute("DELETE FROM meta WHERE key = 'name'")
    matrix = next(_index_of(tmp_path).parent.glob("vectors-*.f32"))
    matrix.rename(matrix.with_name("vectors-1.f32"))
    with Engram.open(home, cache=cache, directory=home) as mem:
        assert mem.search(sentence(3))[0].text == sentence(3)
    assert_consistent(home, cache)


def test_a_foreign_open_and_close_of_the_database_loses_nothing(tmp_path: Path) -> None:
    """Closing any descriptor of a file drops every POSIX lock its process holds on it, SQLite's too."""
    ids = _filled(tmp_path)
    home, cache = tmp_path / "home", tmp_path / "cache"
    writers = learners(home, cache, 2, 15)
    stop, index = threading.Event(), _index_of(tmp_path)

    def meddler() -> None:
        while not stop.wait(0.001):
            os.close(os.open(index, os.O_RDWR))

    thread = threading.Thread(target=meddler)
    with ending(writers), Engram.open(home, cache=cache, directory=home) as mem:
        thread.start()
        try:
            let_go(writers)
            mine = [mem.add(sentence(70_000 + n)).id for n in range(30)]
            answers = finish(writers)
        finally:
            stop.set()
            thread.join()
    made = {memory_id for answer in answers for memory_id in answer["made"]}
    assert len(made) == 30 and made | set(ids) | set(mine) == set(last_images(home))
    assert_consistent(home, cache)


def test_a_leftover_of_vectors_from_a_killed_rebuild_is_not_used(tmp_path: Path) -> None:
    _filled(tmp_path)
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as mem:
        index = store_of(mem).context.index
        garbage = _index_of(tmp_path).with_name(f"vectors-{index.get('name')}-{index.generation + 1}.f32")
        garbage.write_bytes(random.Random(0).randbytes(256 * 4 * 50))
        mem.rebuild_index()
    assert_consistent(tmp_path / "home", tmp_path / "cache")


def test_eight_processes_may_make_a_store_at_once(tmp_path: Path) -> None:
    home, cache = tmp_path / "home", tmp_path / "cache"
    everyone = learners(home, cache, 8, 2)
    with ending(everyone):
        let_go(everyone)
        answers = finish(everyone)
    made = {memory_id for answer in answers for memory_id in answer["made"]}
    assert made == set(last_images(home)) and len(made) == 16
    assert_consistent(home, cache)
