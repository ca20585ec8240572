"""init, config, version, mcp."""

import subprocess
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
    assert cli.json("config", "capture_mode", "time") == {"capture_mode": "time"}
    assert "budget = 900" in (cli.folder / "home" / "config.toml").read_text()


TRUSTING = {
    "autopromote_harvest": "true",
    "autopromote_remember": "true",
    "autopromote_kinds": "tooling",
    "harvest_limit": "5000",
    "source_daily_limit": "0",
}


@pytest.mark.parametrize("key", TRUSTING)
def test_no_agent_loosens_what_decides_about_trust(cli: Console, key: str) -> None:
    before = cli.json("config", key)
    refused = cli("config", key, TRUSTING[key])
    assert refused.exit_code == 1
    assert "only a person sets it: run this at a terminal, or edit" in refused.stderr
    assert cli.json("config", key) == before


@pytest.mark.usefixtures("person")
def test_a_person_sets_what_decides_about_trust(cli: Console) -> None:
    assert cli.json("config", "autopromote_harvest", "yes") == {"autopromote_harvest": True}


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
    assert cli("config", "embedder", "telepathy").exit_code == 2
    assert cli("config", "embedder").stdout == "static\n"


@pytest.mark.usefixtures("person")
def test_a_wrong_embedder_in_the_file_can_be_set_right(cli: Console) -> None:
    cli("init")
    (cli.folder / "home" / "config.toml").write_text('embedder = "telepathy"\n')
    assert cli("list").exit_code == 2
    assert cli("config", "embedder", "static").exit_code == 0
    assert cli("list").exit_code == 0


def test_version(cli: Console) -> None:
    assert cli("version").stdout == cli("--version").stdout == f"engram {__version__}\n"
    assert cli.json("version")["engram"] == __version__


def test_mcp_names_the_extra_when_the_package_is_missing(cli: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anyio", None)
    result = cli("mcp")
    assert result.exit_code == 1
    assert "pip install 'engram[mcp]'" in result.stderr


def test_bench_says_what_it_cannot_use(cli: Console) -> None:
    assert cli("bench", "speed", "--n", "many").exit_code == 2
    for kind in ("locomo", "longmemeval", "beam"):
        missing = cli("bench", kind, "nowhere.json")
        assert missing.exit_code in (1, 2, 3)
        assert missing.stderr.startswith("engram: ")
    unknown = cli("bench", "beam", "nowhere.json", "--baseline", "tfidf")
    assert "Unknown baseline 'tfidf'; choose bm25." in unknown.stderr


@pytest.mark.usefixtures("person")
def test_without_an_embedder_nobody_is_sent_to_make_vectors(cli: Console) -> None:
    assert "keyword" in cli("config", "embedder", "none").stderr
    assert "--reembed" not in cli("config", "embedder", "none").stderr
    assert "--reembed" in cli("config", "embedder", "static").stderr


@pytest.mark.parametrize(
    ("text", "line"),
    [('# mine\nbudget = "x"\n', 2), ("\nbudget = = 5\n", 2), ("budget = 5\nbudget = 6\n", 2), ("budget 2000\n", 1)],
)
def test_a_broken_setting_is_named_with_its_line_and_can_be_set_right(cli: Console, text: str, line: int) -> None:
    cli("init")
    file = cli.folder / "home" / "config.toml"
    file.write_text(text + "autopromote_harvest = true\n")
    refused = cli("list")
    assert refused.exit_code == 2
    assert f"{file}:{line}" in refused.stderr
    shown = cli("config", "budget")
    assert (shown.exit_code, shown.stdout) == (0, "2000\n")
    assert f"{file}:{line}" in shown.stderr
    examined = cli("doctor")
    assert examined.exit_code == 1
    assert f"{file}:{line}" in examined.stdout
    assert cli("config", "budget", "900").exit_code == 0
    assert cli.json("config") == {**cli.json("config"), "budget": 900, "autopromote_harvest": True}
    assert cli("doctor").exit_code == cli("list").exit_code == 0


def test_a_setting_that_is_still_broken_is_named_when_another_is_set(cli: Console) -> None:
    cli("init")
    (cli.folder / "home" / "config.toml").write_text('colour = "red"\n[other]\nx = 1\n')
    assert "colour" in cli("config", "budget", "900").stderr
    assert cli("config", "budget").stdout == "900\n"


def test_the_doctor_examines_a_store_whose_embedder_nobody_knows(cli: Console) -> None:
    cli("init")
    (cli.folder / "home" / "config.toml").write_text('embedder = "telepathy"\n')
    examined = cli("doctor")
    assert examined.exit_code == 1
    assert "telepathy" in examined.stdout


@pytest.mark.parametrize(
    ("key", "value"),
    [("budget", "49"), ("keep_usage_days", "-1"), ("keep_journal_days", "99999999999"), ("budget", "²")],
)
def test_config_refuses_numbers_out_of_range(cli: Console, key: str, value: str) -> None:
    assert cli("config", "set", "--", key, value).exit_code == 2
    assert not (cli.folder / "home" / "config.toml").exists()


@pytest.mark.usefixtures("person")
def test_the_policy_is_shown_and_set_and_an_unknown_one_refused(cli: Console) -> None:
    assert cli("config", "policy").stdout == "default\n"
    assert cli("config", "policy", "legal").exit_code == 0
    assert cli.json("config")["policy"] == "legal"
    refused = cli("config", "policy", "nope")
    assert refused.exit_code == 2
    assert "choose default, legal, coding_agent" in refused.stderr
    assert "policies" not in cli.json("config")
    assert "config.toml" in cli("config", "policies").stderr


@pytest.mark.usefixtures("person")
def test_a_broken_policy_is_named_by_config_and_doctor_and_does_not_keep_another_from_being_set(cli: Console) -> None:
    cli("init")
    file = cli.folder / "home" / "config.toml"
    file.write_text("[[policies.shop.types]]\npattern = '('\ntype = 'fact'\n")
    complaint = f"{file}: policy 'shop', type rule 1"
    assert complaint in cli("config", "policy").stderr
    examined = cli("doctor")
    assert examined.exit_code == 1
    assert complaint in examined.stdout
    assert cli("config", "policy", "legal").exit_code == 0
    file.write_text(file.read_text().replace("'('", "'x'"))
    assert cli("config", "policy", "shop").exit_code == 0
    assert cli("doctor").exit_code == 0


def test_only_a_known_harness_can_be_unwired(cli: Console) -> None:
    result = cli("init", "emacs", "--undo")
    assert result.exit_code == 2
    assert "claude-code, codex, copilot-cli, cursor, gemini-cli, opencode, vscode" in result.stderr
    assert result.stdout == ""


def test_a_desktop_application_gets_the_full_path(cli: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    program = cli.folder / "bin" / "engram"
    program.parent.mkdir()
    program.write_text("")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.setenv("HOME", str(cli.folder))
    assert str(program) in cli.json("init", "cursor", "--dry-run")["diff"]
    assert cli.json("init", "windsurf")["entry"]["mcpServers"]["engram"]["command"] == str(program)
    assert str(program) not in cli.json("init", "codex", "--dry-run")["diff"]


def test_a_project_is_wired_only_inside_a_repository(
    cli: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "downloads" / "deep"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    refused = cli("init", "claude-code", "--project")
    assert refused.exit_code == 1
    assert f"{folder} is in no repository" in refused.stderr
    assert list(folder.iterdir()) == []
    subprocess.run(["git", "init", "--quiet", str(folder.parent)], check=True, timeout=120)
    assert cli.json("init", "claude-code", "--project")["file"] == str(folder.parent / ".mcp.json")


def test_an_entry_outside_of_a_repository_can_be_removed(
    cli: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "downloads"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / ".mcp.json").write_text('{"mcpServers": {"engram": {"command": "engram", "args": ["mcp"]}}}')
    assert cli.json("init", "claude-code", "--project", "--undo")["changed"] is True
    assert list(folder.iterdir()) == []
