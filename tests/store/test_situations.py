"""Where no memory says when it matters, no search compares a task with situations; the first situation changes that."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from engram import Engram
from engram.store.sqlite import index

PLAIN = ("The dog is called Bittern", "The ledger of the branch comes first", "No flights before July")
TASK = "ship main to prod"


@pytest.fixture
def mem(tmp_path: Path) -> Iterator[Engram]:
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as opened:
        for statement in PLAIN:
            opened.add(statement, scope="global")
        for _ in range(2):
            opened.recall(TASK)
        yield opened


def test_a_store_without_situations_says_so_once_it_is_warm(mem: Engram) -> None:
    assert not mem.store.may_have_situations()


def test_the_first_situation_is_found_at_once(mem: Engram) -> None:
    assert not mem.store.may_have_situations()
    added = mem.add("Dana signs off", situation="when deploying to production", scope="global")
    assert mem.store.may_have_situations()
    assert added.id in [hit.id for hit in mem.recall(TASK).hits]


def test_a_situation_that_an_update_gives_is_found(mem: Engram) -> None:
    assert not mem.store.may_have_situations()
    (memory,) = [one for one in mem.list() if one.statement.startswith("No flights")]
    mem.update(memory.id, situation="when planning a holiday")
    assert mem.store.may_have_situations()


def test_a_situation_of_another_process_is_found(mem: Engram, tmp_path: Path) -> None:
    assert not mem.store.may_have_situations()
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as other:
        other.add("Dana signs off", situation="when deploying to production", scope="global")
    assert mem.store.may_have_situations()


def test_a_large_index_is_taken_to_have_some(mem: Engram, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "MAX_DOCUMENTS_READ", 2)
    assert mem.store.may_have_situations()
