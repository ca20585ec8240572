"""Task vectors in the engine: the newest are made first, and a later process finds them made."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from engram import Engram
from engram.models.task_vectors import TaskTable
from engram.store.sqlite import task_neighbours
from engram.store.sqlite.search import TASKS
from engram.store.sqlite.stored_tasks import StoredTasks, TasksState, index_number
from engram.store.sqlite.task_neighbours import TaskNeighbours

NOTES = (
    ("deploying to production", "Dana signs off"),
    ("closing the books", "The ledger of the branch comes first"),
    ("planning a holiday", "No flights before July"),
    ("", "The dog is called Bittern"),
)


class IndexedFolder:
    """A store, and its index as another process sees it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mem = Engram.open(folder / "home", cache=folder / "cache", directory=folder)
        for situation, statement in NOTES:
            self.mem.add(statement, situation=situation, scope="global")
        (self.path,) = folder.rglob("index.db")
        self.db = sqlite3.connect(self.path)
        self.neighbours = self.another()

    def another(self) -> TaskNeighbours:
        """Those of a process that starts now."""
        return TaskNeighbours(self.path.parent)

    def nearest(self, prompt: str, neighbours: TaskNeighbours | None = None) -> list[int]:
        """The memories nearest to a prompt, by number."""
        meta = dict(self.db.execute("SELECT key, value FROM meta").fetchall())
        state = TasksState(
            index_number(meta["name"]), int(meta.get("generation", 1)), int(meta["change"]), self.neighbours.model
        )
        task = TaskTable().prompt(prompt)
        return [n for n, _ in (neighbours or self.neighbours).nearest(self.db, state, task, 10)]

    def close(self) -> None:
        """Close both."""
        self.db.close()
        self.mem.close()


@pytest.fixture
def indexed(tmp_path: Path) -> Iterator[IndexedFolder]:
    opened = IndexedFolder(tmp_path)
    yield opened
    opened.close()


def test_the_memory_of_that_situation_is_nearest(indexed: IndexedFolder) -> None:
    first, second, third, fourth = sorted(indexed.nearest("ship it to prod"))
    assert indexed.nearest("ship it to prod")[0] == first
    assert indexed.nearest("which ledger do we close")[0] == second
    assert indexed.nearest("book the summer holidays")[0] == third
    assert indexed.nearest("walk the dog")[0] == fourth


def test_what_one_search_leaves_the_next_ones_embed(indexed: IndexedFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_neighbours, "EMBEDDED_PER_SEARCH", 3)
    assert [len(indexed.nearest("ship it")) for _ in range(3)] == [3, 4, 4]


def test_a_changed_memory_has_its_new_vector_and_is_there_once(indexed: IndexedFolder) -> None:
    before = indexed.nearest("polish the silver spoons")
    (memory,) = [memory for memory in indexed.mem.list() if memory.situation == "planning a holiday"]
    indexed.mem.update(memory.id, situation="polishing silver spoons")
    after = indexed.nearest("polish the silver spoons")
    assert sorted(after) == sorted(before)
    assert after[0] != before[0]


def test_a_later_process_finds_them_made(indexed: IndexedFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_neighbours, "MIN_SAVED_MEMORIES", 4)
    expected = indexed.nearest("ship it to prod")
    monkeypatch.delattr(TaskTable, "encode_notes")
    assert indexed.nearest("ship it to prod", indexed.another()) == expected


def test_a_few_are_not_worth_saving(indexed: IndexedFolder) -> None:
    indexed.nearest("ship it to prod")
    assert not list(indexed.folder.rglob(TASKS))


def test_a_later_process_adds_what_is_new(indexed: IndexedFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_neighbours, "MIN_SAVED_MEMORIES", 1)
    indexed.nearest("ship it to prod")
    indexed.mem.add("Spoons come last", situation="polishing silver spoons", scope="global")
    found = indexed.nearest("polish the silver spoons", indexed.another())
    assert (len(found), found[0]) == (5, max(found))


def test_what_is_purged_does_not_come_back_with_the_next_save(
    indexed: IndexedFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_neighbours, "MIN_SAVED_MEMORIES", 1)
    before = indexed.nearest("ship it to prod")
    indexed.mem.forget(next(m.id for m in indexed.mem.list() if m.situation == "deploying to production"), purge=True)
    indexed.mem.add("Spoons come last", situation="polishing silver spoons", scope="global")
    after = indexed.nearest("ship it to prod")
    assert len(after) == len(before) == 4
    assert before[0] not in after
    (file,) = indexed.folder.rglob(TASKS)
    assert before[0] not in StoredTasks.read(file).codes
