"""init, config, version, mcp."""

import sys
from pathlib import Path

import pytest

from engram import __version__

from .conftest import Console


def test_init_makes_a_store_once(cli: Console) -> None:
    assert cli.json("init")["created"] is True
    assert cli.json("init")["created"] is False
    assert (cli.folder / "home" / "store.json").exists()


def test_config_shows_gets_and_sets(cli: Console) -> None:
    assert cli.json("config")["budget"] == 2000
    assert cli("config", "budget").stdout == "2000\n"
    assert cli("config", "set", "budget", "900").exit_code == 0
    assert cli("config", "get", "budget").stdout == "900\n"
    assert cli.json("config", "autopromote_harvest", "yes") == {"autopromote_harvest": True}
    assert "budget = 900" in (cli.folder / "home" / "config.toml").read_text()


@pytest.mark.parametrize(
    "words",
    [
        ("config", "colour"),
        ("config", "budget", "many"),
        ("config", "set", "budget"),
        ("config", "get", "budget", "1"),
        ("config", "budget", "1", "2"),
    ],
)
def test_config_refuses_what_it_does_not_know(cli: Console, words: tuple[str, ...]) -> None:
    assert cli(*words).exit_code == 2


def test_an_embedder_nobody_answers_to_is_not_set(cli: Console) -> None:
    assert cli("config", "embedder", "telepathy").exit_code == 1
    assert cli("config", "embedder").stdout == "static\n"


def test_a_wrong_embedder_in_the_file_can_be_set_right(cli: Console) -> None:
    cli("init")
    (cli.folder / "home" / "config.toml").write_text('embedder = "telepathy"\n')
    assert cli("list").exit_code == 1
    assert cli("config", "embedder", "static").exit_code == 0
    assert cli("list").exit_code == 0


def test_version(cli: Console) -> None:
    assert cli("version").stdout == f"engram {__version__}\n"
    assert cli.json("version")["engram"] == __version__


def test_mcp_names_the_extra_when_the_package_is_missing(cli: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anyio", None)
    result = cli("mcp")
    assert result.exit_code == 1
    assert "pip install 'engram[mcp]'" in result.stderr


def test_bench_hands_its_options_on(cli: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    from engram.bench import run

    seen: list[tuple[str, dict[str, object]]] = []
    monkeypatch.setattr(run, "main", lambda kind, options: seen.append((kind, dict(options))))
    cli("bench", "locomo", "data.json", "--mode", "keyword", "--fusion", "rrf", "--json")
    cli("bench", "speed", "--n", "1000,2000")
    assert seen == [
        ("locomo", {"file": Path("data.json"), "mode": "keyword", "fusion": "rrf", "limit": None, "json": True}),
        ("speed", {"n": "1000,2000", "json": False}),
    ]


def test_bench_says_what_it_cannot_use(cli: Console) -> None:
    assert cli("bench", "speed", "--n", "many").exit_code == 2
    missing = cli("bench", "longmemeval", "nowhere.json")
    assert missing.exit_code in (1, 2, 3)
    assert missing.stderr.startswith("engram: ")
