"""`engram init HARNESS` and the doctor's row about it, as processes of the user's meet them."""

from pathlib import Path

import pytest

from tests.repositories import make_repository

from .conftest import Console


@pytest.fixture
def program(cli: Console, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The `engram` that is on the PATH of this user, whose home is empty; what it does is up to the test."""
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(cli.folder / "user"))
    program = cli.folder / "bin" / "engram"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return program


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("#!/nonexistent\n", "cannot be started"),
        ("garbage", "cannot be started"),
        ("#!/bin/sh\necho '[1]'\n", "no answer of an MCP server"),
        ("#!/bin/sh\necho boom >&2\nexit 3\n", "with exit status 3: boom"),
    ],
)
def test_a_bad_server_is_one_row_of_the_doctors_report(cli: Console, program: Path, content: str, why: str) -> None:
    cli("init", "codex")
    program.write_text(content)
    examined = cli("doctor")
    assert examined.exit_code == 1
    rows = {line.split()[1]: line for line in examined.stdout.splitlines() if line[:1] in "✓!✗"}
    assert why in rows["wiring"]
    assert {"settings", "journal"} <= set(rows)


@pytest.mark.usefixtures("program")
def test_the_store_in_use_is_part_of_the_users_own_entry(cli: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGRAM_HOME", "~/notes")
    monkeypatch.setenv("ENGRAM_TENANT", "ada")
    diff = cli.json("init", "codex")["diff"]
    assert f'ENGRAM_HOME = "{cli.folder / "user" / "notes"}"' in diff
    assert f'ENGRAM_CACHE = "{cli.folder / "cache"}"' in diff
    assert 'ENGRAM_TENANT = "ada"' in diff
    assert cli.json("init", "windsurf")["entry"]["mcpServers"]["engram"]["env"]["ENGRAM_TENANT"] == "ada"


@pytest.mark.usefixtures("program")
def test_a_given_home_takes_the_place_of_the_store_in_use(cli: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGRAM_URL", "postgresql://localhost/engram")
    diff = cli.json("--home", str(cli.folder / "elsewhere"), "init", "codex")["diff"]
    assert f'ENGRAM_HOME = "{cli.folder / "elsewhere"}"' in diff
    assert "ENGRAM_URL" not in diff


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize(
    ("url", "is_written"),
    [
        ("postgresql://ada@db.example/engram", True),
        ("postgresql:///engram?host=/run/postgresql", True),
        ("postgresql://ada:hunter2@db.example/engram", False),
        ("postgresql://ada@db.example/engram?password=hunter2", False),
        ("postgresql://db.example/engram?pass%77ord=hunter2", False),
    ],
)
def test_no_password_is_written_to_a_file(
    cli: Console, url: str, is_written: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENGRAM_URL", url)
    result = cli("init", "cursor")
    written = (cli.folder / "user" / ".cursor" / "mcp.json").read_text()
    assert ("ENGRAM_URL" in written) is is_written
    assert ("~/.pgpass" in result.stderr) is not is_written
    assert "hunter2" not in written + result.stdout + result.stderr


def test_the_store_of_one_person_is_not_written_to_a_file_that_others_share(cli: Console, program: Path) -> None:
    make_repository(cli.folder / "work")
    result = cli("init", "codex", "--project")
    assert "ENGRAM_HOME and ENGRAM_CACHE" in result.stderr
    assert "ENGRAM" not in (cli.folder / "work" / ".codex" / "config.toml").read_text()


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize(
    ("word", "meant"), [("claude", "claude-code"), ("codx", "codex"), ("open-code", "opencode"), ("Cursr", "cursor")]
)
def test_a_misspelt_harness_is_an_error_that_names_the_right_one(cli: Console, word: str, meant: str) -> None:
    result = cli("init", word)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"did you mean {meant}?" in result.stderr


@pytest.mark.usefixtures("program")
def test_a_harness_may_be_written_in_capitals(cli: Console) -> None:
    assert cli.json("init", "Codex", "--dry-run")["harness"] == "codex"


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize(("client", "key"), [("zed", "context_servers"), ("claude-desktop", "mcpServers")])
def test_the_printed_entry_is_below_the_key_that_the_client_reads(cli: Console, client: str, key: str) -> None:
    assert list(cli.json("init", client)["entry"]) == [key]


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize(
    ("harness", "variable"),
    [("codex", "CODEX_HOME"), ("claude-code", "CLAUDE_CONFIG_DIR"), ("opencode", "XDG_CONFIG_HOME")],
)
def test_a_tilde_in_a_harnesss_own_variable_is_the_users_home(
    cli: Console, harness: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "~/cx")
    assert cli.json("init", harness, "--dry-run")["file"].startswith(f"{cli.folder / 'user' / 'cx'}/")
    assert list((cli.folder / "work").iterdir()) == []


@pytest.mark.usefixtures("program")
def test_undo_names_no_backup_that_does_not_exist(cli: Console) -> None:
    assert cli.json("init", "codex")["backup"] is None
    assert cli.json("init", "codex", "--undo")["backup"] is None
