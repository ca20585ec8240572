"""The index of sources: what is read, when it is read again, and what happens where it cannot be kept."""

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta

import pytest

from engram.agents.sources.documents import MAX_SOURCE_BYTES, Source
from engram.agents.sources.places import SourcePlaces
from engram.recall.context import KINDS
from engram.recall.query import SearchQuery
from engram.recall.search import with_terms
from engram.recall.sources.catalog import INDEX_VERSION, SourceCatalog, key_of
from engram.recall.sources.reader import ReadSource, read_source
from engram.text.time.zone import SYSTEM
from tests.recall.sources.home import NOW, SourceHome
from tests.repositories import make_repository

KEY = "sk-ant-api03-" + "AbCdEfGh12345678" * 6 + "-AbCdEfAA"


def refreshed(catalog: SourceCatalog) -> SourceCatalog:
    catalog.refresh(lambda *_: None, lambda: False)
    return catalog


def texts(catalog: SourceCatalog, query: str, kinds: Sequence[Sequence[str]] = tuple(KINDS.values())) -> list[str]:
    found = refreshed(catalog).search(with_terms(SearchQuery(query), SYSTEM), kinds)
    return [hit.passage.text for hit in found if hit.relevance > 0.05]


def test_a_passage_knows_the_headings_above_it(user: SourceHome) -> None:
    user.in_project(
        "CLAUDE.md", "# Acme\n\n## Build\n\n```\n# no heading\n```\nRun make all.\n\n## Tests\nRun pytest.\n"
    )
    catalog = refreshed(user.catalog())
    [hit] = [
        one
        for one in catalog.search(with_terms(SearchQuery("make all"), SYSTEM), [("instructions",)])
        if "make" in one.passage.text
    ]
    assert hit.passage.section == "Acme › Build"


def test_a_changed_file_is_read_again_and_a_removed_one_is_gone(user: SourceHome) -> None:
    path = user.in_project("CLAUDE.md", "Deploys go through staging.")
    assert texts(user.catalog(), "deploys") == ["Deploys go through staging."]
    path.write_text("Deploys go straight to production now.")
    assert texts(user.catalog(), "deploys") == ["Deploys go straight to production now."]
    path.unlink()
    assert texts(user.catalog(), "deploys") == []


def test_an_unchanged_file_is_not_read_again(user: SourceHome, monkeypatch: pytest.MonkeyPatch) -> None:
    user.in_project("CLAUDE.md", "Deploys go through staging.")
    user.session("s", [("user", "When do deploys happen?")])
    refreshed(user.catalog())
    monkeypatch.setattr("engram.recall.sources.reader.read_source", lambda *_: pytest.fail("read again"))
    assert texts(user.catalog(), "deploys")


def test_what_is_gone_from_other_projects_leaves_the_index(user: SourceHome) -> None:
    path = user.in_project("CLAUDE.md", "Deploys go through staging.")
    refreshed(user.catalog())
    path.unlink()
    elsewhere = user.write("code/other/CLAUDE.md", "Other").parent
    later = user.catalog(elsewhere)
    later.clock = lambda: NOW + timedelta(hours=2)
    refreshed(later).close()
    with closing(sqlite3.connect(user.folder / "cache" / "sources" / f"v{INDEX_VERSION}" / "index.db")) as db:
        names = [name for (name,) in db.execute("SELECT name FROM sources")]
    assert names == [str(elsewhere / "CLAUDE.md")]


def test_secrets_are_not_in_the_index(user: SourceHome) -> None:
    user.in_project("CLAUDE.md", f"# Keys\nThe key is {KEY} for staging.")
    user.session("s", [("user", f"use {KEY} for staging")])
    refreshed(user.catalog()).close()
    for path in (user.folder / "cache").rglob("*"):
        assert not path.is_file() or KEY[20:60].encode() not in path.read_bytes()


def test_the_index_of_an_earlier_version_is_removed(user: SourceHome) -> None:
    older = user.folder / "cache" / "sources" / "v1"
    older.mkdir(parents=True)
    (older / "index.db").touch()
    user.in_project("CLAUDE.md", "Deploys go through staging.")
    refreshed(user.catalog()).close()
    assert not older.exists()


@pytest.mark.parametrize("before", ["\n", " "])
def test_a_secret_at_the_end_of_what_is_read_is_not_in_the_index(user: SourceHome, before: str) -> None:
    filler = ("deploys go through staging" + before) * 20_000
    token = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
    user.in_project("CLAUDE.md", filler[: MAX_SOURCE_BYTES - 15] + before + token + "\nmore\n")
    refreshed(user.catalog()).close()
    for path in (user.folder / "cache").rglob("*"):
        assert not path.is_file() or token[4:14].encode() not in path.read_bytes()


def test_engrams_own_block_in_a_file_is_not_a_source(user: SourceHome) -> None:
    block = "<!-- engram:begin -->\n- Deploys need approval (ENG-2026-0101-001)\n<!-- engram:end -->\n"
    user.in_project("CLAUDE.md", f"# Acme\nRun make all.\n\n{block}")
    assert texts(user.catalog(), "deploys approval") == []


def test_where_the_index_cannot_be_kept_sources_are_read_for_this_call(user: SourceHome) -> None:
    (user.folder / "cache").write_text("a file where the folder should be")
    user.in_project("CLAUDE.md", "Deploys go through staging.")
    catalog = user.catalog()
    assert texts(catalog, "deploys") == ["Deploys go through staging."]
    assert any("index of sources is not kept" in warning for warning in catalog.warnings)


def test_an_index_that_breaks_while_it_is_filled_costs_only_this_call(
    user: SourceHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    from engram.recall.sources.catalog import SourceIndex

    put = SourceIndex.put

    def failing(self: SourceIndex, *given: object) -> None:
        if self.is_kept:
            raise sqlite3.OperationalError("database or disk is full")
        put(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(SourceIndex, "put", failing)
    user.in_project("CLAUDE.md", "Deploys go through staging.")
    catalog = user.catalog()
    assert texts(catalog, "deploys") == ["Deploys go through staging."]
    assert any("disk is full" in warning for warning in catalog.warnings)


def test_a_damaged_index_is_replaced(user: SourceHome) -> None:
    user.in_project("CLAUDE.md", "Deploys go through staging.")
    refreshed(user.catalog()).close()
    database = user.folder / "cache" / "sources" / f"v{INDEX_VERSION}" / "index.db"
    database.write_bytes(b"not a database" * 100)
    assert texts(user.catalog(), "deploys") == ["Deploys go through staging."]


def test_what_there_is_no_time_for_waits_for_the_next_call(user: SourceHome) -> None:
    user.in_project("CLAUDE.md", "Deploys go through staging.")
    hurried = user.catalog()
    hurried.seconds = -1
    assert texts(hurried, "deploys") == []
    assert any("1 of 1 sources are not read yet" in warning for warning in hurried.warnings)
    assert texts(user.catalog(), "deploys")


def test_broken_bytes_and_huge_files_are_read_as_far_as_possible(user: SourceHome) -> None:
    path = user.in_project("CLAUDE.md")
    path.write_bytes(b"Deploys go through \xff\xfe staging.\n\n" + b"filler text here. " * 200_000)
    assert any("staging" in text for text in texts(user.catalog(), "deploys staging"))


def test_a_session_that_vanishes_while_it_is_read_is_reported(user: SourceHome) -> None:
    path = user.session("s", [("user", "Deploys?")])
    catalog = user.catalog()
    assert len(catalog.sessions) == 1
    path.unlink()
    refreshed(catalog)
    assert any("No such file" in warning for warning in catalog.warnings)


@pytest.mark.parametrize("name", ["with spaces", "ünïcode 😀", "d" * 150 + "/" + "e" * 150])
def test_any_project_path_works(user: SourceHome, name: str) -> None:
    project = user.home / name
    make_repository(project)
    user.write(project / "CLAUDE.md", "Deploys go through staging.")
    from engram.agents.known.claude_code.finders import slug

    user.session(
        "s", [("user", "Deploys on Friday?")], directory=project, folder=user.config / "projects" / slug(str(project))
    )
    assert len(texts(user.catalog(project), "deploys")) == 2


def test_names_and_turns_with_halves_of_characters_are_read(user: SourceHome) -> None:
    path = user.project / ".claude" / "rules" / os.fsdecode(b"\xff.md")
    path.parent.mkdir(parents=True)
    path.write_text("Deploys go through staging.")
    session = user.session("s", [("user", "Deploys happen on Friday HALF")])
    session.write_text(session.read_text().replace("HALF", "\\ud83d"))
    assert len(texts(user.catalog(), "deploys")) == 2


def test_two_catalogs_that_fill_the_index_at_once_agree(user: SourceHome) -> None:
    user.in_project("CLAUDE.md", "Deploys go through staging.")
    one, other = user.catalog(), user.catalog()
    keys = [key_of(source) for source in one.documents]
    assert one.index.indexed_sources(keys) == other.index.indexed_sources(keys) == {}
    assert texts(one, "deploys") == texts(other, "deploys") == ["Deploys go through staging."]
    assert list(one.index.indexed_sources(keys)) == keys


def test_vectors_that_were_lost_are_made_again(user: SourceHome) -> None:
    user.in_project("CLAUDE.md", "Shipping goes through staging.")
    expected = texts(user.catalog(), "shipment")
    for path in (user.folder / "cache").rglob("vectors-*"):
        path.unlink()
    user.in_project("AGENTS.md", "Another file")
    assert texts(user.catalog(), "shipment") == expected != []


def test_no_source_is_begun_that_may_exceed_the_time_for_reading(
    user: SourceHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    user.in_project("CLAUDE.md", "Deploys go through staging.")
    for number in range(4):
        user.in_project(f".claude/rules/rule{number}.md", f"Rule {number} is about deploys.")
    now = [0.0]

    def slow(source: Source, places: SourcePlaces) -> ReadSource:
        now[0] += 6.0
        return read_source(source, places)

    monkeypatch.setattr("engram.recall.sources.catalog.time.monotonic", lambda: now[0])
    monkeypatch.setattr("engram.recall.sources.reader.read_source", slow)
    catalog = refreshed(user.catalog())
    assert now[0] == 12.0 < catalog.seconds
    assert catalog.warnings == ["3 of 5 sources are not read yet; the next recall goes on with them"]
    assert refreshed(user.catalog()).warnings == ["1 of 5 sources are not read yet; the next recall goes on with them"]
