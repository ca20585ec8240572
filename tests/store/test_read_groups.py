"""Reads in a group share one refresh of the index."""

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from engram import Engram
from engram.store.files.store.backend import FilesStore
from engram.store.home import open_home
from engram.store.protocol import Filters

ALL = Filters()


class LookingStore(FilesStore):
    """Counts how often it looks for what other processes wrote."""

    looked = 0

    def _catch_up_if_free(self) -> None:
        self.looked += 1
        super()._catch_up_if_free()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LookingStore]:
    with closing(LookingStore(open_home(tmp_path / "home", tmp_path / "cache"))) as opened:
        yield opened


def test_reads_in_a_group_look_once_and_those_after_it_look_again(store: LookingStore) -> None:
    with store.reading():
        store.count(ALL)
        with store.reading():
            store.count(ALL)
        store.count(ALL)
    assert store.looked == 1
    store.count(ALL)
    store.count(ALL)
    assert store.looked == 3


def test_a_group_that_fails_ends(store: LookingStore) -> None:
    with pytest.raises(LookupError), store.reading():
        store.count(ALL)
        raise LookupError
    store.count(ALL)
    assert store.looked == 2


def test_a_group_of_one_thread_does_not_keep_another_from_looking(store: LookingStore) -> None:
    with store.reading():
        store.count(ALL)
        thread = threading.Thread(target=lambda: store.count(ALL))
        thread.start()
        thread.join()
    assert store.looked == 2


def test_what_is_missing_in_a_group_is_looked_for_again(store: LookingStore, tmp_path: Path) -> None:
    with (
        closing(Engram.open(home=tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path)) as other,
        store.reading(),
    ):
        store.count(ALL)
        added = other.add("The ferry leaves at nine.")
        found = store.get(added.id)
    assert found is not None and found.statement == added.statement


def test_a_recall_looks_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[FilesStore] = []
    with closing(Engram.open(home=tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path)) as mem:
        mem.add("The ferry to Ulm leaves at nine.")
        monkeypatch.setattr(FilesStore, "_catch_up_if_free", lambda store: looked.append(store))
        assert mem.recall("When does the ferry to Ulm leave?").hits
    assert len(looked) == 1
