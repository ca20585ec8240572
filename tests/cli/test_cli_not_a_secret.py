"""`--not-a-secret`: a person at a terminal says that what looks like a secret is not one."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Console
from tests.repositories import make_repository

LABEL = "A7f!kQ2z#Lp9"
STATEMENT = f"The key of the prototype is {LABEL} on every drawing"


def is_refused(cli: Console, statement: str) -> bool:
    answer = cli("learn", statement, "--json")
    return answer.exit_code != 0 and json.loads(answer.stdout)["gate"] == "secrets"


def test_without_a_terminal_the_option_is_refused_and_allows_nothing(cli: Console) -> None:
    for verb in ("learn", "remember", "add"):
        refused = cli(verb, STATEMENT, "--not-a-secret")
        assert refused.exit_code != 0 and "terminal" in refused.stderr
        assert cli(verb, STATEMENT).exit_code != 0


def test_an_mcp_client_has_no_such_argument() -> None:
    from engram.mcp.tools import TOOLS

    assert "not_a_secret" not in json.dumps([str(tool) for tool in TOOLS])


@pytest.mark.usefixtures("person")
@pytest.mark.parametrize("verb", ["learn", "remember", "add"])
def test_what_a_person_allows_is_stored_and_passes_from_then_on(cli: Console, tmp_path: Path, verb: str) -> None:
    shown = cli(verb, STATEMENT)
    assert "after “of the prototype is”" in shown.stdout + shown.stderr and LABEL not in shown.stdout + shown.stderr
    stored = cli(verb, STATEMENT, "--not-a-secret")
    assert stored.exit_code == 0 and LABEL not in stored.stderr
    assert LABEL in json.dumps(cli.json("recall", "prototype drawing"))
    # The value passes elsewhere, too, and the state has only its digest.
    event = cli.json("session", "observe", "S-1", "user", f"who drew {LABEL}?")[0]
    assert LABEL in event["content"]
    states = [file.read_text("utf-8", "replace") for file in (tmp_path / "home" / "state").rglob("*") if file.is_file()]
    assert not any(LABEL in text for text in states if "sha256:" in text)
    agents = cli("gen-context", "AGENTS.md")
    assert agents.exit_code == 0 and LABEL in Path("AGENTS.md").read_text("utf-8")


def test_a_pattern_in_the_owners_settings_allows_values(cli: Console, tmp_path: Path) -> None:
    assert is_refused(cli, STATEMENT)
    (tmp_path / "home" / "config.toml").write_text('[secrets]\nallow = ["A7f!kQ2z#*"]\n', "utf-8")
    assert cli.json("learn", STATEMENT)["outcome"] == "CREATED"
    assert is_refused(cli, "The portal password is hunter" + "2!x")


def test_a_repository_cannot_allow_values(cli: Console) -> None:
    make_repository(Path())
    Path(".engram").mkdir()
    Path(".engram/config.toml").write_text('[secrets]\nallow = ["A7f!kQ2z#*"]\n', "utf-8")
    assert is_refused(cli, STATEMENT)


@pytest.mark.parametrize("allow", ['["*"]', '["??*"]', '["[a-z]*"]', '"zq*"', "[1]", f'["{"a" * 201}"]'])
def test_a_pattern_that_would_allow_everything_is_a_mistake_in_the_settings(
    cli: Console, tmp_path: Path, allow: str
) -> None:
    cli("status")
    (tmp_path / "home" / "config.toml").write_text(f"[secrets]\nallow = {allow}\n", "utf-8")
    refused = cli("learn", STATEMENT)
    assert refused.exit_code != 0 and "secrets.allow" in refused.stderr
