"""update, pin, feedback, reinforce, verify, undo."""

import pytest

from .conftest import Console


def test_update_changes_fields_and_shows_what_changed(cli: Console) -> None:
    known = cli.learned("Use tabs, not spaces", "--tag", "style")
    result = cli("update", known, "--tag", "format", "--importance", "0.9")
    assert "tags: style → format" in result.stdout
    assert cli.json("show", known)["importance"] == 0.9


def test_update_without_a_field_is_wrong_usage(cli: Console) -> None:
    known = cli.learned("Use tabs, not spaces")
    assert cli("update", known).exit_code == 2


def test_update_of_a_form_renders_the_statement_anew(cli: Console) -> None:
    parts = ("--subject", "The API", "--predicate", "listens on", "--object", "port 8080")
    known = cli.json("learn", "fact", "--situation", "calling the API", *parts)["memory"]["id"]
    assert cli.json("update", known, "--object", "port 9090")["statement"] == "The API listens on port 9090"
    assert cli.json("revise", known, "--object", "port 80")["statement"] == "The API listens on port 80"


def test_a_dormant_memory_is_not_injected(cli: Console) -> None:
    known = cli.learned("Deploys go through staging first", "--type", "convention")
    cli("update", known, "--status", "dormant")
    assert cli.json("inject", "deploys through staging")["directives"] == []


def test_update_cannot_put_a_candidate_in_force(cli: Console) -> None:
    waiting = cli.json("learn", "The patient is allergic to penicillin", "--type", "health")["memory"]["id"]
    result = cli("update", waiting, "--status", "active")
    assert result.exit_code == 1
    assert "engram review" in result.stderr
    assert cli.json("show", waiting)["status"] == "candidate"


def test_pin_and_unpin(cli: Console) -> None:
    known = cli.learned("Use tabs, not spaces")
    assert cli.json("pin", known)["pinned"] is True
    assert cli("list").stdout.count("★") == 1
    assert cli.json("pin", known, "--unpin")["pinned"] is False


def test_feedback_counts_and_lifts(cli: Console) -> None:
    known = cli.learned("Use tabs, not spaces")
    before = cli.json("show", known)["strength"]
    memory = cli.json("feedback", known, "positive")
    assert memory["feedback"]["positive"] == 1
    assert memory["strength"] > before


def test_an_unknown_signal_is_wrong_usage(cli: Console) -> None:
    known = cli.learned("Use tabs, not spaces")
    result = cli("feedback", known, "great")
    assert result.exit_code == 2
    assert "positive, negative or neutral" in result.stderr


def test_reinforce_strengthens(cli: Console) -> None:
    known = cli.learned("Use tabs, not spaces")
    assert cli.json("reinforce", known)["strength"] > 0.75


def test_verify_of_a_candidate_says_that_it_still_waits(cli: Console) -> None:
    waiting = cli.learned("The patient is allergic to penicillin", "--type", "health")
    assert f"{waiting} still waits for review; `engram promote {waiting}`" in cli("verify", waiting).stderr
    assert "still waits" not in cli("verify", cli.learned("Use tabs, not spaces")).stderr


@pytest.mark.usefixtures("person")
def test_verify_confirms(cli: Console) -> None:
    known = cli.learned("Use tabs, not spaces")
    memory = cli.json("verify", known)
    assert memory["verification"] == "user_confirmed"
    assert memory["last_verified"] is not None


def test_a_program_that_verifies_makes_it_fresh_and_not_a_persons_word(cli: Console) -> None:
    memory = cli.json("verify", cli.learned("Use tabs, not spaces"))
    assert memory["verification"] == "unverified"
    assert memory["last_verified"] is not None


def test_undo_takes_the_last_decision_back(cli: Console) -> None:
    known = cli.learned("Use tabs, not spaces")
    cli("update", known, "--statement", "Use spaces, not tabs")
    assert cli.json("undo", known)["statement"] == "Use tabs, not spaces"


def test_undo_can_be_undone(cli: Console) -> None:
    known = cli.learned("Use tabs, not spaces")
    cli("forget", known)
    assert cli.json("undo", known)["status"] == "active"
    assert cli.json("undo", known)["status"] == "retired"


@pytest.mark.usefixtures("person")
def test_the_journal_names_the_person_who_changed_it(cli: Console) -> None:
    known = cli.learned("Use tabs, not spaces")
    cli("pin", known)
    assert cli.json("history", known)[-1]["actor"] == "human"


def test_names_and_aliases_will_do(cli: Console) -> None:
    known = cli.learned("Use tabs, not spaces", "--name", "indent")
    assert cli.json("pin", "indent")["id"] == known
    assert cli.json("feedback", "indent", "neutral")["feedback"]["neutral"] == 1
