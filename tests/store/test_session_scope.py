"""The scope of a session whose folder may be gone since."""

from pathlib import Path

import pytest

from engram import Engram
from engram.rules.scopes import parse_scope
from engram.store.scopes import scope_of, session_scope
from tests.repositories import make_repository


def test_a_folder_that_exists_has_its_own_scope(tmp_path: Path) -> None:
    make_repository(tmp_path / "api")
    assert session_scope(str(tmp_path / "api")) == "project:api"
    assert session_scope(str(tmp_path)) is None


def test_a_folder_that_is_gone_is_known_by_its_remote_or_its_name() -> None:
    assert session_scope("/gone/api", "git@github.com:acme/api.git") == "project:github.com:acme/api"
    assert session_scope("/gone/my api") == "project:my-api"
    assert session_scope("") is None


def test_a_relative_folder_is_not_the_one_engram_runs_in() -> None:
    assert session_scope(".") is None
    assert session_scope("src") == "project:src"


@pytest.mark.parametrize("name", ["x" * 250, "漢字" * 40, "my project " * 22])
def test_a_very_long_name_makes_a_scope_in_which_memories_are_kept(tmp_path: Path, name: str) -> None:
    make_repository(tmp_path / name)
    scope = scope_of(tmp_path / name)
    assert scope == session_scope(f"/gone/{name}") == parse_scope(scope or "")
    with Engram.open(tmp_path / "home", directory=tmp_path / name) as mem:
        kept = mem.add("The staging server is called nightshift", scope="here")
        assert [hit.id for hit in mem.search("staging server")] == [kept.id]


def test_two_long_names_that_begin_alike_make_two_scopes() -> None:
    assert session_scope("/gone/" + "x" * 250) != session_scope("/gone/" + "x" * 251)
    assert session_scope("/gone/a", f"https://host/{'x' * 150}/{'y' * 150}.git") != session_scope(
        "/gone/a", f"https://host/{'x' * 150}/{'y' * 151}.git"
    )
