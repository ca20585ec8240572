"""The scope of a session whose folder may be gone since."""

from pathlib import Path

from engram.store.scopes import session_scope


def test_a_folder_that_exists_has_its_own_scope(tmp_path: Path) -> None:
    (tmp_path / "api" / ".git").mkdir(parents=True)
    assert session_scope(str(tmp_path / "api")) == "project:api"
    assert session_scope(str(tmp_path)) is None


def test_a_folder_that_is_gone_is_known_by_its_remote_or_its_name() -> None:
    assert session_scope("/gone/api", "git@github.com:acme/api.git") == "project:acme/api"
    assert session_scope("/gone/my api") == "project:my-api"
    assert session_scope("") is None


def test_a_relative_folder_is_not_the_one_engram_runs_in() -> None:
    assert session_scope(".") is None
    assert session_scope("src") == "project:src"


def test_a_very_long_name_still_makes_a_scope() -> None:
    assert len(session_scope("/gone/" + "x" * 250) or "") < 200
