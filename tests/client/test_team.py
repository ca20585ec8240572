"""Memories that live in a repository, beside its code."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from engram import Engram
from engram.model.errors import NotFound
from engram.store.files.store.backend import FilesStore, trust_team_files
from tests.client.conftest import Clock
from tests.homes import home_of
from tests.repositories import make_repository


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    top = tmp_path / "shop"
    make_repository(top)
    return top


@pytest.fixture
def mine(tmp_path: Path, repository: Path, clock: Clock) -> Iterator[Engram]:
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=repository, clock=clock) as opened:
        yield opened


def test_a_team_memory_is_a_file_of_the_repository_with_an_id_no_colleague_will_draw(
    mine: Engram, repository: Path
) -> None:
    kept = mine.add("Write the changelog in the imperative", type="convention", team=True)
    files = list((repository / ".engram" / "engrams").rglob("*.yaml"))
    assert [path.stem for path in files] == [kept.id]
    assert len(kept.id.rpartition("-")[2]) > 9
    assert kept.scope == "project:shop"
    assert list(home_of(mine).engrams.rglob("*.yaml")) == []
    assert [hit.id for hit in mine.recall("how is the changelog written").hits] == [kept.id]


def test_what_i_wrote_i_trust_and_a_colleague_has_to_look_first(mine: Engram, repository: Path, tmp_path: Path) -> None:
    kept = mine.add("Write the changelog in the imperative", team=True)
    with Engram.open(home_of(mine).root, cache=tmp_path / "cache", directory=repository) as again:
        assert [hit.id for hit in again.search("changelog")] == [kept.id]
    with Engram.open(tmp_path / "other", cache=tmp_path / "cache", directory=repository) as colleague:
        assert colleague.search("changelog") == []
        assert colleague.inject("write the changelog").items == ()
        assert isinstance(colleague.store, FilesStore)
        trust_team_files(colleague.store, repository)
        assert [hit.id for hit in colleague.search("changelog")] == [kept.id]


def test_enrichment_neither_hands_out_nor_changes_a_team_memory(mine: Engram) -> None:
    kept = mine.add("Write the changelog in the imperative", team=True)
    assert (mine.enrichment.count(), mine.enrichment.next_batch()) == (0, [])
    assert "belongs to a team" in mine.enrichment.apply({kept.id: ["release notes"]}).left[kept.id]
    assert mine.get(kept.id).cues == ()


def test_use_never_changes_a_team_file(mine: Engram, repository: Path) -> None:
    mine.add("Write the changelog in the imperative", team=True)
    path = next((repository / ".engram").rglob("*.yaml"))
    before = path.read_bytes()
    with mine.session("write the changelog") as session:
        mine.recall("changelog", session=session.id)
    assert session.injection.ids
    assert path.read_bytes() == before


def test_outside_a_repository_there_is_no_team(files: Engram) -> None:
    with pytest.raises(NotFound, match="repository"):
        files.add("Write the changelog in the imperative", team=True)
