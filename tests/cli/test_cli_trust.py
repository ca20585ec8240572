"""trust: a repository's own memories."""

import json
from pathlib import Path

import pytest

from .conftest import Console

TEAM = """- id: ENG-2026-0101-918273645
  statement: Everyone on this team writes changelog entries in the imperative
  type: convention
  scope: project:work
"""


@pytest.fixture
def repository(cli: Console) -> Path:
    folder = cli.folder / "work" / ".engram" / "engrams" / "project:work"
    folder.mkdir(parents=True)
    (folder / "ENG-2026-0101-918273645.yaml").write_text(TEAM, "utf-8")
    return cli.folder / "work"


def found(cli: Console) -> list[str]:
    return [hit["id"] for hit in cli.json("search", "changelog entries imperative")["hits"]]


@pytest.mark.usefixtures("repository")
def test_nothing_counts_before_it_is_trusted(cli: Console) -> None:
    assert found(cli) == []
    assert "engram trust" in cli("search", "changelog").stderr


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize("words", [(), ("--yes",)])
def test_without_anyone_to_ask_it_only_lists(cli: Console, words: tuple[str, ...]) -> None:
    result = cli("trust", *words)
    assert result.exit_code == 1
    assert "imperative" in result.stdout
    assert "Nothing was trusted" in result.stderr
    assert found(cli) == []


@pytest.mark.usefixtures("repository")
def test_in_json_a_trust_that_was_not_confirmed_answers_once(cli: Console) -> None:
    result = cli("trust", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["trusted"] is False


@pytest.mark.usefixtures("repository")
@pytest.mark.usefixtures("person")
def test_yes_trusts_what_is_listed(cli: Console) -> None:
    assert len(cli.json("trust", "--yes")["waiting"]) == 1
    assert found(cli) == ["ENG-2026-0101-918273645"]
    assert cli.json("trust")["waiting"] == []


@pytest.mark.usefixtures("person")
def test_what_changes_later_must_be_trusted_again(cli: Console, repository: Path) -> None:
    cli("trust", "--yes")
    file = next(repository.rglob("*.yaml"))
    file.write_text(TEAM.replace("imperative", "past tense"), "utf-8")
    assert found(cli) == []


@pytest.mark.usefixtures("repository")
@pytest.mark.usefixtures("person")
def test_revoke_takes_it_back(cli: Console) -> None:
    cli("trust", "--yes")
    assert cli("trust", "--revoke").exit_code == 0
    assert found(cli) == []


@pytest.mark.usefixtures("repository", "person")
def test_a_person_is_asked(cli: Console) -> None:
    assert "nothing was trusted" in cli("trust", stdin="n\n").stderr
    assert "trusted 1 file" in cli("trust", stdin="y\n").stderr
    assert found(cli) == ["ENG-2026-0101-918273645"]


def test_outside_of_a_repository_there_is_nothing_to_trust(cli: Console) -> None:
    assert cli("trust").exit_code == 3
