"""Which store `Engram.open` opens: a directory, or a tenant of a server. No server is needed to ask that."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from engram import Engram
from engram.model.errors import EngramError, InvalidInput
from engram.settings import load_settings, parse_setting, save_setting
from tests.served import URL, Backend, plugged_in


@pytest.fixture
def backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Backend:
    for name in ("ENGRAM_URL", "ENGRAM_TENANT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ENGRAM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ENGRAM_CACHE", str(tmp_path / "cache"))
    return plugged_in(tmp_path, monkeypatch)


def test_a_url_in_the_place_of_a_home_is_a_url(
    backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Engram.open(URL, tenant="acme"):
        pass
    assert [(call["url"], call["tenant"]) for call in backend.asked] == [(URL, "acme")]
    assert not list(tmp_path.glob("postgres*"))


def test_a_url_opens_the_server_for_the_default_tenant(backend: Backend) -> None:
    with Engram.open(url=URL) as mem:
        assert mem.home is None
        mem.add("The staging server is called nightshift")
        assert [hit.text for hit in mem.search("staging")] == ["The staging server is called nightshift"]
    assert [(call["url"], call["tenant"], call["create"]) for call in backend.asked] == [(URL, "default", True)]


def test_nothing_of_a_server_is_kept_in_the_owners_home(backend: Backend) -> None:
    with Engram.open(url=URL):
        assert not (backend.folder / "home").exists()


def test_clock_and_create_reach_the_server(backend: Backend) -> None:
    def clock() -> datetime:
        return datetime.fromisoformat("2026-03-01T09:00:00Z")

    with Engram.open(url=URL, clock=clock, create=False):
        assert (backend.asked[0]["clock"], backend.asked[0]["create"]) == (clock, False)


@pytest.mark.parametrize(
    ("argument", "variable", "tenant"),
    [("acme", "other", "acme"), (None, "other", "other"), (None, "", "default"), (None, None, "default")],
)
def test_the_tenant_is_the_argument_or_the_variable_or_default(
    backend: Backend, monkeypatch: pytest.MonkeyPatch, argument: str | None, variable: str | None, tenant: str
) -> None:
    if variable is not None:
        monkeypatch.setenv("ENGRAM_TENANT", variable)
    with Engram.open(url=URL, tenant=argument):
        assert backend.asked[0]["tenant"] == tenant


def test_the_variable_opens_the_server_where_nothing_else_is_named(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENGRAM_URL", URL)
    with Engram.open() as mem:
        assert (mem.home, len(backend.asked)) == (None, 1)


@pytest.mark.parametrize("options", [{"ephemeral": True}, {"home": "mine"}])
def test_what_names_files_beats_the_variable(
    backend: Backend, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    monkeypatch.setenv("ENGRAM_URL", URL)
    monkeypatch.chdir(backend.folder)
    with Engram.open(**options) as mem:
        assert (mem.home is None, backend.asked) == (False, [])


def test_an_empty_variable_means_files(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGRAM_URL", " ")
    with Engram.open() as mem:
        assert (mem.store.place, backend.asked) == (str(backend.folder / "home"), [])


@pytest.mark.parametrize(
    "options",
    [
        {"home": "mine", "url": URL},
        {"ephemeral": True, "url": URL},
        {"ephemeral": True, "home": "mine"},
        {"home": "mine", "tenant": "acme"},
        {"tenant": "acme"},
        {"url": URL, "tenant": " "},
        {"url": ""},
        {"url": "mysql://ada:hunter2hunter2@db.example/memory"},
        {"url": "host=db.example password=hunter2hunter2"},
    ],
)
def test_a_store_that_cannot_be_meant_is_refused_without_its_password(
    backend: Backend, options: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput) as refused:
        Engram.open(**options)
    assert "hunter2" not in str(refused.value)
    assert (backend.asked, list(backend.folder.iterdir())) == ([], [])


def test_the_owners_settings_hold_for_a_server_too(backend: Backend) -> None:
    (backend.folder / "home").mkdir()
    (backend.folder / "home" / "config.toml").write_text('embedder = "none"\nbudget = 77\n', "utf-8")
    with Engram.open(url=URL) as mem:
        assert (mem.settings.budget, backend.asked[0]["embedder"]) == (77, None)
    assert [path.name for path in (backend.folder / "home").iterdir()] == ["config.toml"]


def test_without_any_home_directory_the_defaults_hold(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ENGRAM_HOME")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", "relative")
    with Engram.open(url=URL) as mem:
        assert mem.settings.embedder == "static"


def test_a_team_store_is_refused_with_what_to_do_instead(backend: Backend) -> None:
    with Engram.open(url=URL) as mem, pytest.raises(InvalidInput, match="open a home instead"):
        mem.add("Indent with tabs", team=True)


@pytest.mark.parametrize(
    ("text", "line", "advice", "mended"),
    [
        ("budget = 2000\nfoo === 3\n", 2, "Fix or remove that line in an editor", "budget = 2000\n"),
        ('colour = "red"\n', 1, "Fix or remove that line in an editor", ""),
        ('policies = "mine"\n', 1, "Fix or remove that line in an editor", ""),
        ('budget = "many"\n', 1, "`engram config budget VALUE` fixes it", "budget = 900\n"),
    ],
)
def test_settings_that_cannot_be_read_say_what_helps(
    tmp_path: Path, text: str, line: int, advice: str, mended: str
) -> None:
    home = tmp_path / "home"
    with Engram.open(home, cache=tmp_path / "cache", directory=tmp_path):
        pass
    (home / "config.toml").write_text(text)
    with pytest.raises(InvalidInput) as refused:
        Engram.open(home, cache=tmp_path / "cache", directory=tmp_path)
    assert f"config.toml:{line}: " in str(refused.value)
    assert advice in str(refused.value)
    (home / "config.toml").write_text(mended)
    with Engram.open(home, cache=tmp_path / "cache", directory=tmp_path):
        pass


def test_the_advice_for_a_wrong_value_is_true(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('budget = "many"\n')
    save_setting(path, "budget", parse_setting("budget", "900"))
    assert load_settings(path).budget == 900


@pytest.mark.parametrize(
    ("options", "config"),
    [
        ({"policy": "bogus"}, ""),
        ({"embedder": "bogus"}, ""),
        ({}, "policy = "),
        ({}, "colour = 'red'"),
        ({}, "policy = 'bogus'"),
        ({}, "embedder = 'bogus'"),
    ],
)
def test_what_cannot_be_used_is_told_before_a_store_is_made(
    tmp_path: Path, options: dict[str, Any], config: str
) -> None:
    home = tmp_path / "fresh"
    if config:
        home.mkdir()
        (home / "config.toml").write_text(config, "utf-8")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(EngramError):
        Engram.open(home, cache=tmp_path / "cache", directory=tmp_path, **options)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_policy_nobody_knows_makes_no_tenant(backend: Backend) -> None:
    with pytest.raises(InvalidInput, match="unknown policy 'bogus'"):
        Engram.open(url=URL, policy="bogus")
    assert backend.asked == []


def test_an_ephemeral_store_that_cannot_be_opened_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(InvalidInput, match="unknown policy 'bogus'"):
        Engram.open(ephemeral=True, policy="bogus")
    assert list(tmp_path.iterdir()) == []
