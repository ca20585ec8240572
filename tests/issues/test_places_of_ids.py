"""Ids where they do not belong: links to other owners' memories, and an id that a hand edit gave to a second file."""

from pathlib import Path
from typing import TypedDict

import pytest

from engram import Engram, Purged
from tests.backends import Backend


class Named(TypedDict):
    """An owner, as every call takes one."""

    agent_id: str
    user_id: str


ANA: Named = {"agent_id": "bot", "user_id": "ana"}
BOB: Named = {"agent_id": "bot", "user_id": "bob"}


@pytest.fixture
def linked(backend: Backend) -> tuple[Engram, str, str]:
    """A store with a global memory that is linked to one of Ana's, and both ids."""
    mem = backend.client()
    known = mem.add("Everyone drinks tea at four")
    foreign = mem.add("Ana prefers coffee from the corner shop", **ANA)
    mem.relate(known.id, foreign.id)
    return mem, known.id, foreign.id


@pytest.mark.parametrize("verb", ["get", "get_current", "lineage", "history", "explain_memory"])
def test_a_named_owner_sees_no_link_to_a_memory_of_another(linked: tuple[Engram, str, str], verb: str) -> None:
    mem, known, foreign = linked
    assert foreign in repr(getattr(mem, verb)(known))
    assert foreign in repr(getattr(mem, verb)(known, **ANA))
    assert foreign not in repr(getattr(mem, verb)(known, **BOB))


def test_a_link_that_an_owner_does_not_see_is_kept(linked: tuple[Engram, str, str]) -> None:
    mem, known, foreign = linked
    mem.get(known, **BOB)
    assert [link.target for link in mem.get(known).associations] == [foreign]


FIRST, SECOND = "We deploy on Tuesdays after the review", "The harbour bridge opens at noon"


def opened(folder: Path) -> Engram:
    return Engram.open(folder / "store", cache=folder / "cache", embedder="none")


def file_of(folder: Path, statement: str) -> Path:
    (path,) = (one for one in (folder / "store" / "engrams").rglob("*.yaml") if statement in one.read_text())
    return path


@pytest.mark.parametrize("is_rebuilt", [False, True])
def test_a_hand_edit_that_takes_the_id_of_another_memory_retires_none(tmp_path: Path, is_rebuilt: bool) -> None:
    with opened(tmp_path) as mem:
        first, second = mem.add(FIRST), mem.add(SECOND)
    path = file_of(tmp_path, FIRST)
    before = path.read_text()
    path.write_text(before.replace(first.id, second.id))
    with opened(tmp_path) as mem:
        if is_rebuilt:
            mem.rebuild_index()
        report = mem.store.sync()
        assert any(f"id {second.id} is already taken" in problem for problem in report.problems)
        assert report.removed == []
        assert [(mem.get(one.id).status, mem.get(one.id).statement) for one in (first, second)] == [
            (first.status, FIRST),
            (second.status, SECOND),
        ]
        path.write_text(before)
        assert mem.store.sync().problems == []
        assert mem.get(first.id).statement == FIRST


def test_a_purge_takes_the_words_out_of_a_file_whose_id_is_another_memorys(tmp_path: Path) -> None:
    with opened(tmp_path) as mem:
        first, second = mem.add(FIRST), mem.add(SECOND)
    path = file_of(tmp_path, FIRST)
    path.write_text(path.read_text().replace(first.id, second.id))
    with opened(tmp_path) as mem:
        mem.store.sync()
        purged = mem.forget(first.id, purge=True, actor="human")
        assert isinstance(purged, Purged) and purged.remaining == ()
        assert not path.exists()
        assert mem.get(second.id).statement == SECOND
        assert mem.store.sync().problems == []


def test_of_two_memories_in_a_file_with_one_id_both_stay(tmp_path: Path) -> None:
    with opened(tmp_path) as mem:
        first, second = mem.add(FIRST), mem.add(SECOND)
        one, other = file_of(tmp_path, FIRST), file_of(tmp_path, SECOND)
        one.write_text(one.read_text() + other.read_text())
        other.unlink()
        mem.store.sync()
        both = one.read_text()
        one.write_text(both.replace(second.id, first.id))
        assert mem.store.sync().removed == []
        assert mem.get(second.id).status == second.status
        one.write_text(both)
        assert mem.store.sync().problems == []


def test_a_memory_that_is_taken_out_of_a_file_is_listed_as_removed(tmp_path: Path) -> None:
    with opened(tmp_path) as mem:
        first, second = mem.add(FIRST), mem.add(SECOND)
        one, other = file_of(tmp_path, FIRST), file_of(tmp_path, SECOND)
        alone = one.read_text()
        one.write_text(alone + other.read_text())
        other.unlink()
        mem.store.sync()
        one.write_text(alone)
        assert mem.store.sync().removed == [second.id]
        assert mem.get(first.id).status == first.status
