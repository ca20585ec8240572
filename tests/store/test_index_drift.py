"""The doctor notices where the index no longer says what the files say."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from engram import Engram


@pytest.fixture
def mem(tmp_path: Path) -> Iterator[Engram]:
    """A store with two memories."""
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as opened:
        opened.add("The office is in Lyon")
        opened.add("The printer is on the second floor")
        yield opened


def changed(mem: Engram, statement: str) -> None:
    """Change the index behind the store's back."""
    database = mem.store.context.index.db  # type: ignore[attr-defined]
    database.execute(statement)
    database.commit()


def test_an_index_that_agrees_is_healthy(mem: Engram) -> None:
    finding = mem.doctor()["drift"]
    assert finding.ok
    assert "2 files compared" in finding.message


def test_an_edit_that_keeps_time_and_size_is_read(mem: Engram) -> None:
    known = mem.list()[0]
    file = mem.home.root / mem.store.file_of(known.id)  # type: ignore[union-attr]
    before = file.stat()
    with file.open("r+b") as opened:
        data = opened.read().replace(b"printer", b"scanner")
        opened.seek(0)
        opened.write(data)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    finding = mem.doctor()["drift"]
    assert finding.ok
    assert "1 edited" in finding.message


def test_an_edit_by_hand_is_read_and_reported(mem: Engram) -> None:
    known = mem.list()[0]
    file = mem.home.root / mem.store.file_of(known.id)  # type: ignore[union-attr]
    file.write_bytes(file.read_bytes().replace(b"second floor", b"third floor"))
    finding = mem.doctor()["drift"]
    assert finding.ok
    assert "1 edited" in finding.message


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DELETE FROM records WHERE n = 1", "are only partly in the index"),
        ("DELETE FROM places WHERE id = (SELECT id FROM docs LIMIT 1)", "are in the index and have no file"),
        ("INSERT INTO places VALUES ('ENG-2026-0101-001', 'engrams/x.yaml')", "have a file and no entry in the index"),
        ("DELETE FROM words_docsize WHERE id = 1", "the keyword index has 1 of 2 documents"),
    ],
)
def test_a_gap_in_the_index_is_noticed(mem: Engram, statement: str, message: str) -> None:
    changed(mem, statement)
    finding = mem.doctor()["drift"]
    assert not finding.ok
    assert message in finding.message


def test_a_rebuild_ends_the_drift(mem: Engram) -> None:
    changed(mem, "DELETE FROM words_docsize WHERE id = 1")
    mem.rebuild_index()
    assert mem.doctor()["drift"].ok
