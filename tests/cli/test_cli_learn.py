"""learn, remember, add."""

import pytest

from engram import Engram
from tests.repositories import make_repository

from .conftest import Console

GITHUB_TOKEN = "ghp_" + "4kQz9Lw2Xr7Vn1Tb8Jc5Md3Hs6Fg0Py2Aw9E"


def test_learn_says_what_became_of_it_and_why(cli: Console) -> None:
    result = cli("learn", "Use tabs, not spaces", "--type", "preference")
    assert result.exit_code == 0
    assert result.stdout.startswith("CREATED  ENG-")
    assert "Use tabs, not spaces" in result.stdout


def test_learn_answers_in_json_with_gate_and_reason(cli: Console) -> None:
    decision = cli.json("learn", "Use tabs, not spaces", "--type", "preference", "--scope", "project:acme")
    assert decision["outcome"] == "CREATED"
    assert decision["gate"] and decision["reason"]
    assert decision["memory"]["scope"] == "project:acme"
    assert decision["memory"]["state"] == "active"


def test_every_field_of_a_memory_can_be_given(cli: Console) -> None:
    memory = cli.json(
        "learn", "The staging cluster is rebuilt on Mondays", "--type", "factual", "--tag", "ops", "--tag", "ci",
        "--cue", "when is staging down", "--cue", "Mondays, rebuilt",
        "--domain", "ops/staging", "--when", "planning a release", "--why", "cheap machines", "--context", "a chat",
        "--confidence", "0.9", "--importance", "0.8", "--name", "monday", "--pin", "--at", "2026-01-02",
        "--valid-from", "2026-01-01", "--valid-until", "2027-01-01", "--meta", "ticket=42", "--meta", "by=ann",
    )["memory"]  # fmt: skip
    assert memory["tags"] == ["ops", "ci"]
    assert memory["cues"] == ["when is staging down", "Mondays, rebuilt"]
    assert memory["domain"] == "ops/staging"
    assert memory["situation"] == "planning a release"
    assert memory["rationale"] == "cheap machines"
    assert memory["context"] == "a chat"
    assert (memory["confidence"], memory["importance"]) == (0.9, 0.8)
    assert memory["name"] == "monday"
    assert memory["pinned"] is True
    assert memory["metadata"] == {"ticket": 42, "by": "ann"}
    assert memory["valid_until"] is not None


def test_a_statement_comes_from_stdin(cli: Console) -> None:
    decision = cli.json("learn", "-", stdin="Releases are cut on Thursdays\n")
    assert decision["memory"]["statement"] == "Releases are cut on Thursdays"


def test_stdin_that_is_not_utf8_is_wrong_usage(cli: Console) -> None:
    result = cli("learn", "-", stdin=b"\xff\xfe\x00")
    assert result.exit_code == 2
    assert "not UTF-8" in result.stderr


def test_feedback_is_a_form_that_renders_the_statement(cli: Console) -> None:
    memory = cli.json(
        "learn", "feedback", "--situation", "merging a branch", "--behavior", "Merged without a review",
        "--impact", "The build broke for a day", "--action", "Ask for one review first",
    )["memory"]  # fmt: skip
    assert memory["form"]["action"] == "Ask for one review first"
    assert memory["type"] == "feedback"
    assert memory["statement"] == "Ask for one review first. Merged without a review: The build broke for a day."


def test_a_fact_is_a_form_of_subject_predicate_and_object(cli: Console) -> None:
    parts = ("--subject", "The API", "--predicate", "listens on", "--object", "port 8080")
    memory = cli.json("learn", "fact", "--situation", "calling the API", *parts)
    assert memory["memory"]["statement"] == "The API listens on port 8080"
    assert memory["memory"]["form"] == {"subject": "The API", "predicate": "listens on", "object": "port 8080"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("learn", "fact", "--subject", "The API"), "--predicate, --object"),
        (("learn", "feedback"), "needs --situation, --behavior, --impact, --action"),
        (("learn", "fact", "--behavior", "x"), "belongs to the other form"),
        (("learn", "Some text", "--subject", "x"), "belongs to a form"),
        (("learn", "A thing", "--type", "nonsense"), "unknown type"),
        (("learn", "A thing", "--scope", "../etc"), "scope"),
        (("learn", "A thing", "--confidence", "7"), "between 0 and 1"),
        (("learn", "A thing", "--meta", "novalue"), "must be KEY=VALUE"),
        (("learn", "A thing", "--scope", "here"), "is not in a repository"),
        (("learn", "A thing", "--at", "yesterday"), "not a time"),
    ],
)
def test_wrong_usage_says_what_is_right(cli: Console, words: tuple[str, ...], message: str) -> None:
    result = cli(*words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.startswith("engram: ")


def test_a_secret_is_refused_with_exit_1_and_not_written(cli: Console) -> None:
    result = cli("learn", f"The token is {GITHUB_TOKEN}")
    assert result.exit_code == 1
    assert result.stdout.startswith("REJECTED")
    assert cli.json("list", "--status", "any") == []
    assert GITHUB_TOKEN not in "".join(p.read_text("utf-8", "replace") for p in cli.folder.rglob("*") if p.is_file())


def test_a_secret_given_to_add_is_refused_with_exit_1(cli: Console) -> None:
    result = cli("add", f"The token is {GITHUB_TOKEN}")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("engram: ")


def test_a_duplicate_is_an_answer(cli: Console) -> None:
    first = cli.learned("Deploys go through staging first")
    decision = cli.json("learn", "Deploys go through staging first!")
    assert decision["outcome"] == "DUPLICATE"
    assert decision["memory"]["id"] == first


def test_a_contradiction_is_an_answer_that_says_how_to_settle_it(cli: Console) -> None:
    cli.learned("The API listens on port 8080", "--type", "factual")
    result = cli("learn", "The API listens on port 9090", "--type", "factual")
    assert result.exit_code == 0
    assert result.stdout.startswith("CONTRADICTION")
    assert "engram review ENG-" in result.stderr


def test_without_a_terminal_learn_speaks_for_an_agent(cli: Console) -> None:
    assert cli.json("learn", "Use tabs, not spaces")["memory"]["source"] == "agent"


def test_without_a_terminal_remember_speaks_for_a_tool(cli: Console) -> None:
    assert cli.json("remember", "I prefer pnpm")["memory"]["source"] == "tool:remember"


@pytest.mark.usefixtures("person")
def test_a_person_at_a_terminal_is_human(cli: Console) -> None:
    assert cli.json("learn", "Use tabs, not spaces")["memory"]["source"] == "human"
    assert cli.json("remember", "I prefer pnpm")["memory"]["source"] == "human"


def test_no_option_claims_a_source(cli: Console) -> None:
    result = cli("learn", "Use tabs", "--source", "human")
    assert result.exit_code == 2


def test_what_only_a_person_may_decide_waits(cli: Console) -> None:
    result = cli("learn", "The patient is allergic to penicillin", "--type", "health")
    assert result.exit_code == 0
    assert result.stdout.startswith("PENDING")
    assert "--approve" in result.stderr


def test_add_returns_the_memory_and_the_same_one_again(cli: Console) -> None:
    first = cli.json("add", "Nightly builds run at two", "--type", "factual")
    again = cli.json("add", "Nightly builds run at two")
    assert first["id"] == again["id"]
    assert (first["source"], first["status"]) == ("agent", "active")


def test_autonomous_capture_meets_the_quality_gates(cli: Console) -> None:
    result = cli("learn", "ok thanks", "--autonomous")
    assert result.exit_code == 1
    assert result.stdout.startswith("REJECTED")


def test_here_is_the_scope_of_the_repository(cli: Console) -> None:
    make_repository(cli.folder / "work")
    memory = cli.json("learn", "Run the linter before pushing", "--scope", "here")["memory"]
    assert memory["scope"] == "project:work"


def test_every_related_memory_comes_with_the_command_that_replaces_it(cli: Console) -> None:
    old = cli.learned("The fax listens on extension 4410")
    new = cli("learn", "The fax listens on extension 4422")
    command = f"engram learn 'The fax listens on extension 4422' --supersedes {old}"
    assert command in " ".join(new.stdout.split())
    assert cli.json("learn", "The fax listens on extension 4422", "--supersedes", old)["outcome"] == "SUPERSEDED"


def test_the_next_step_is_one_that_helps(cli: Console) -> None:
    cli.learned("The API listens on port 8080", "--type", "factual")
    told = cli("learn", "The API listens on port 9090", "--type", "factual").stderr
    assert "the older one stays current" in told and "also activates it" in told


def test_forgetting_the_older_one_is_not_offered_where_only_a_person_may_approve(cli: Console) -> None:
    with Engram.open(cli.folder / "home") as mem:
        mem.add("The user's salary is 4000 euros.", source="human", scope="global")
    told = cli("learn", "The user's salary is 5000 euros.").stderr
    assert "--keep new" in told and "also activates it" not in told


def test_of_two_that_wait_neither_is_called_current(cli: Console) -> None:
    older = cli.json("learn", "The user's salary is 4000 euros.")["memory"]
    assert older["status"] == "candidate"
    told = cli("learn", "The user's salary is 5000 euros.").stderr
    assert "both wait for review" in told and older["id"] in told
    assert "stays current" not in told and "--keep" not in told


@pytest.mark.usefixtures("person")
def test_add_tells_what_it_superseded(cli: Console) -> None:
    old = cli.json("add", "The user lives in Berlin.")["id"]
    told = cli("add", "The user moved to Lisbon.").stderr
    assert f"it superseded {old}; `engram undo " in told
    assert cli.json("show", old)["status"] == "superseded"
