"""What a review of the one reconciliation of index, journal and files found."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from engram import Engram
from engram.model.errors import StoreCorrupt
from engram.store.files.log.journal import JournalLine, Position
from engram.store.files.reconcile import recovery
from engram.store.files.reconcile.file_repair import FileHistory, FileRepair, finish_files
from engram.store.files.reconcile.index_state import IndexContext
from engram.store.records import image
from tests.faults.consistency import store_of


@pytest.fixture
def mem(tmp_path: Path) -> Iterator[Engram]:
    with Engram.open(home=tmp_path / "home", cache=tmp_path / "cache") as opened:
        yield opened


def test_what_is_written_while_an_index_is_filled_without_the_lock_is_left_for_later(mem: Engram) -> None:
    for text in ("The api listens on port 8080", "The console listens on port 9090"):
        mem.add(text)
    context = store_of(mem).context
    lines = list(context.journal.read(Position()))
    readings: Iterator[list[JournalLine]] = iter([lines[:-1], lines])
    with context.index.writing() as writer:
        recovery._index_journal(context, writer, lambda: next(readings))
    assert mem.search("api port", limit=1)[0].text == "The api listens on port 8080"


def test_a_save_between_the_judgement_and_the_repair_of_a_file_stays(
    mem: Engram, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = mem.add("The api listens on port 8080")
    context = store_of(mem).context
    path = context.path(store_of(mem).file_of(memory.id))
    edited = path.read_text("utf-8").replace("8080", "7070")

    def saved_meanwhile(*_: object) -> bool:
        path.write_text(edited, "utf-8")
        return True

    path.write_text("", "utf-8")
    monkeypatch.setattr(FileHistory, "is_crash_leftover", saved_meanwhile)
    assert not FileRepair(context.home).repair(path, FileHistory({memory.id: image(memory)}))
    assert path.read_text("utf-8") == edited


def test_a_damaged_line_far_back_stops_nobody_from_following_the_journal(
    mem: Engram, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = mem.add("The api listens on port 8080")
    mem.update(memory.id, statement="The api listens on port 8081")
    context = store_of(mem).context
    path = context.path(store_of(mem).file_of(memory.id))
    path.unlink()

    def damaged(*_: object) -> None:
        raise StoreCorrupt("a line is damaged")

    monkeypatch.setattr(IndexContext, "image_before", damaged)
    finish_files(context, list(context.journal.read(Position()))[-1:], teams=True)
    assert "8081" in path.read_text("utf-8")


def test_a_lost_file_of_several_memories_is_written_with_all_of_them(tmp_path: Path) -> None:
    home, cache = tmp_path / "home", tmp_path / "cache"
    with Engram.open(home=home, cache=cache) as mem:
        ids = [mem.add(f"Widget {n} weighs {n} kg").id for n in (3, 4)]
        context = store_of(mem).context
        paths = [context.path(store_of(mem).file_of(one)) for one in ids]
        together = paths[0].with_name("widgets.yaml")
        together.write_text("".join(path.read_text("utf-8") for path in paths), "utf-8")
        for path in paths:
            path.unlink()
        mem.upkeep.sync()
        assert {store_of(mem).file_of(one).rpartition("/")[2] for one in ids} == {"widgets.yaml"}
    together.unlink()
    shutil.rmtree(cache)
    for _ in range(2):
        with Engram.open(home=home, cache=cache) as mem:
            assert sorted(memory.id for memory in mem.list()) == ids
            assert all(one in together.read_text("utf-8") for one in ids)
        shutil.rmtree(cache)
