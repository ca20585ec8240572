"""inject --block: a block for a prompt."""

import pytest

from .conftest import Console


def test_the_block_quotes_what_the_query_needs(cli: Console) -> None:
    known = cli.json("add", "Deploys go through the staging cluster first")["id"]
    result = cli("inject", "--block", "how do deploys work?", "--header", "# What is known")
    assert result.stdout.splitlines()[0] == "# What is known"
    assert f"[{known}]" in result.stdout and "“Deploys go through the staging cluster first”" in result.stdout


@pytest.mark.usefixtures("person")
def test_critical_facts_are_there_whatever_is_asked(cli: Console) -> None:
    critical = cli.json("add", "The user is allergic to peanuts")["id"]
    assert f"[{critical}]" in cli("inject", "--block", "how do deploys work?").stdout


def test_the_budget_holds(cli: Console) -> None:
    for i in range(30):
        cli.json("add", f"Deploy step number {i} runs the check called {chr(97 + i % 26) * 9}")
    found = cli.json("inject", "--block", "deploy step checks", "--tokens", "150")
    assert 0 < found["tokens"] <= found["budget"] == 150
    assert cli("inject", "--block", "deploys", "--tokens", "0").exit_code == 2


def test_by_type_gives_each_type_a_heading(cli: Console) -> None:
    cli.json("add", "Deploys go through the staging cluster first", "--type", "convention")
    cli.json("add", "I prefer deploys in the morning", "--type", "preference")
    text = cli("inject", "--block", "deploys", "--by-type").stdout
    assert "## Convention" in text and "## Preference" in text


def test_the_summary_of_the_session_comes_first(cli: Console) -> None:
    session = cli.json("session", "start", "x")["id"]
    cli.json("session", "observe", session, "user", "We decided to deploy with the blue cluster.")
    cli.json("session", "summarise", session)
    text = cli("inject", "--block", "deploys", "--session", session).stdout
    assert text.index("blue cluster") > text.index("Conversation so far")


def test_a_session_that_only_has_a_ledger_has_no_summary_yet(cli: Console) -> None:
    cli.json("session", "observe", "my-own-name", "user", "hello")
    assert cli("inject", "--block", "deploys", "--session", "my-own-name").exit_code == 0
    assert cli("inject", "--block", "deploys", "--session", "S-nope").exit_code == 3


def test_other_scopes_are_not_told(cli: Console) -> None:
    cli.json("add", "Deploys go through the staging cluster first", "--scope", "project:acme")
    result = cli("inject", "--block", "deploys")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "no memory is relevant" in result.stderr
    assert "staging" in cli("inject", "--block", "deploys", "--scope", "project:acme").stdout


def test_it_notes_no_use(cli: Console) -> None:
    known = cli.json("add", "Deploys go through the staging cluster first")["id"]
    session = cli.json("session", "start")["id"]
    cli("inject", "--block", "deploys", "--session", session)
    cli("session", "end", session)
    assert cli.json("show", known)["activation"]["frequency"] == 0
