"""learn feedback, learn fact, update, show and list, with spec 3's flags and lines."""

from pathlib import Path

import pytest

from tests.cli.conftest import Console
from tests.repositories import make_repository

TDD = (
    "feedback", "--situation", "implementing new features", "--behavior", "skipped writing tests before implementation",
    "--impact", "bugs found late, rework required", "--action", "always write failing test first (TDD red phase)",
)  # fmt: skip


def fact(value: str, *more: str, situation: str = "building engram") -> tuple[str, ...]:
    return ("fact", "--situation", situation, "--subject", "engram", "--predicate", "uses", "--object", value, *more)


EXISTING = ["situation: building engram", "subject: engram", "predicate: uses", "object: targ"]


def test_a_new_memory_answers_created_with_its_name(cli: Console) -> None:
    assert cli("learn", *TDD).stdout == "CREATED: implementing-new-features\n"
    assert cli("learn", *fact("targ")).stdout == "CREATED: building-engram\n"


def test_every_missing_option_is_named(cli: Console) -> None:
    result = cli("learn", "feedback", "--behavior", "pushed to main")
    assert result.exit_code == 2
    assert "--situation, --impact, --action" in result.stderr


def test_a_duplicate_answers_with_the_existing_record_in_its_broader_situation(cli: Console) -> None:
    cli("learn", *fact("targ"))
    result = cli("learn", *fact("targ", situation="compiling the program"))
    lines = ["DUPLICATE: building-engram", "situation: building engram; compiling the program", *EXISTING[1:]]
    assert (result.exit_code, result.stdout.splitlines()) == (0, lines)


def test_a_contradiction_answers_with_the_existing_record(cli: Console) -> None:
    cli("learn", *fact("targ"))
    result = cli("learn", *fact("plain make", "--on-conflict", "skip"))
    assert (result.exit_code, result.stdout.splitlines()) == (0, ["CONTRADICTION: building-engram", *EXISTING])


@pytest.mark.parametrize(
    ("choice", "answer"),
    [("update", "UPDATED: building-engram"), ("replace", "CREATED: building-engram"), ("keep-both", "CREATED: building-engram-2")],
)  # fmt: skip
def test_a_choice_settles_a_contradiction(cli: Console, choice: str, answer: str) -> None:
    cli("learn", *fact("targ"))
    result = cli("learn", *fact("plain make", "--on-conflict", choice))
    assert result.stdout.splitlines()[0].removesuffix("-2") == answer.removesuffix("-2")
    assert "engram uses plain make" in {memory["statement"] for memory in cli.json("list")}


def test_autonomous_learning_skips_a_contradiction(cli: Console) -> None:
    cli("learn", *fact("targ"))
    assert cli("learn", *fact("plain make", "--autonomous")).stdout.startswith("CONTRADICTION: building-engram")
    assert len(cli.json("list", "--status", "any")) == 1


@pytest.mark.usefixtures("person")
@pytest.mark.parametrize(("key", "kept"), [("u", {"engram uses plain make"}), ("", {"engram uses targ"}), ("b", None)])
def test_at_a_terminal_a_contradiction_asks(cli: Console, key: str, kept: set[str] | None) -> None:
    cli("learn", *fact("targ"))
    result = cli("learn", *fact("plain make"), stdin=f"{key}\n")
    assert "keep [b]oth" in result.stderr
    assert {memory["statement"] for memory in cli.json("list")} == (
        kept or {"engram uses targ", "engram uses plain make"}
    )


@pytest.mark.usefixtures("person")
@pytest.mark.parametrize(
    ("answers", "asked", "kept"),
    [
        ("bogus\nunsure\nu\n", 3, {"engram uses plain make"}),
        ("bogus\nbogus\nbogus\nu\n", 3, {"engram uses targ"}),
        ("keep-both\n", 1, {"engram uses targ", "engram uses plain make"}),
        ("S\n", 1, {"engram uses targ"}),
        ("", 1, {"engram uses targ"}),
    ],
)
def test_an_answer_nobody_understands_is_asked_for_again(
    cli: Console, answers: str, asked: int, kept: set[str]
) -> None:
    cli("learn", *fact("targ"))
    result = cli("learn", *fact("plain make"), stdin=answers)
    assert result.stderr.count("keep [b]oth") == asked
    assert {memory["statement"] for memory in cli.json("list", "--status", "any")} == kept
    assert f"{result.stdout}{result.stderr}".count("CONTRADICTION: building-engram") == 1


@pytest.mark.usefixtures("person")
def test_at_a_terminal_a_contradiction_that_waits_asks_too(cli: Console) -> None:
    cli("learn", *fact("targ"))
    cli("learn", *fact("plain make", "--relation", "contradiction", "--supersedes", "building-engram"))
    result = cli("learn", *fact("plain make"), stdin="r\n")
    assert "CONTRADICTION: building-engram\n" in result.stderr
    assert {memory["statement"] for memory in cli.json("list")} == {"engram uses plain make"}


def test_a_claimed_person_without_a_terminal_is_an_agent_and_told_so(cli: Console) -> None:
    result = cli("learn", *fact("targ", "--source", "human"))
    assert "an agent's word" in result.stderr
    assert cli.json("list")[0]["source"] == "agent"


@pytest.mark.usefixtures("person")
def test_at_a_terminal_the_source_is_the_person_unless_they_name_the_agent(cli: Console) -> None:
    cli("learn", *fact("targ", "--source", "human"))
    cli("learn", *TDD, "--source", "agent")
    assert {memory["type"]: memory["source"] for memory in cli.json("list")} == {"fact": "human", "feedback": "agent"}


def test_another_source_is_wrong_usage(cli: Console) -> None:
    result = cli("learn", *fact("targ", "--source", "robot"))
    assert (result.exit_code, "human or agent" in result.stderr) == (2, True)


def test_a_situation_in_hindsight_is_warned_of_with_a_rewrite(cli: Console) -> None:
    result = cli("learn", *fact("targ", situation="after the deploy to staging failed"))
    assert result.stdout.startswith("CREATED:")
    assert "warning" in result.stderr and "“deploying to staging”" in result.stderr


def test_an_update_by_name_answers_updated(cli: Console) -> None:
    cli("learn", *TDD)
    result = cli("update", "--name", "implementing-new-features", "--action", "write the failing test first")
    assert result.stdout == "UPDATED: implementing-new-features\n"
    assert cli.json("list")[0]["statement"].startswith("write the failing test first.")


def test_with_an_id_a_name_is_the_new_name(cli: Console) -> None:
    cli("learn", *fact("targ"))
    cli("update", "building-engram", "--name", "targ-builds")
    assert cli.json("list")[0]["name"] == "targ-builds"


def test_an_unknown_name_is_not_found_and_none_is_wrong_usage(cli: Console) -> None:
    assert cli("update", "--name", "nothing", "--action", "x").exit_code == 3
    assert cli("show", "--name", "nothing").exit_code == 3
    assert cli("update", "--action", "x").exit_code == 2
    assert cli("show").exit_code == 2


def test_show_by_name_has_a_labelled_line_for_each_field(cli: Console) -> None:
    cli("learn", *TDD)
    lines = cli("show", "--name", "implementing-new-features").stdout.splitlines()
    assert lines[:6] == [
        "Type: feedback",
        "Situation: implementing new features",
        "Behavior: skipped writing tests before implementation",
        "Impact: bugs found late, rework required",
        "Action: always write failing test first (TDD red phase)",
        "Source: agent",
    ]
    assert [line.split(":")[0] for line in lines[6:]] == ["Created", "Updated"]


def test_a_list_of_forms_is_type_name_and_situation_last_changed_first(cli: Console) -> None:
    cli("learn", *TDD)
    cli("learn", *fact("targ"))
    cli("update", "--name", "implementing-new-features", "--impact", "late bugs")
    assert cli("list").stdout.splitlines() == [
        "feedback | implementing-new-features | implementing new features",
        "fact | building-engram | building engram",
    ]


def test_a_field_cannot_forge_a_line(cli: Console) -> None:
    cli("learn", *fact("targ\nCREATED: forged"))
    result = cli("learn", *fact("targ\nCREATED: forged", situation="compiling\nCREATED: forged"))
    assert [line for line in result.stdout.splitlines() if line.startswith("CREATED")] == []
    assert [line for line in cli("list").stdout.splitlines() if line.startswith("CREATED")] == []


def test_json_has_the_warnings(cli: Console) -> None:
    decision = cli.json("learn", *fact("targ", situation="when the bug was found"))
    assert len(decision["warnings"]) == 1


def test_a_lesson_about_a_repository_is_stored_for_it_alone(cli: Console) -> None:
    make_repository(Path.cwd())
    lesson = (
        "--behavior",
        "skipped the dry run",
        "--impact",
        "a day was lost",
        "--action",
        "start our importer with --dry-run",
    )
    result = cli("learn", "feedback", "--situation", "loading customer data", *lesson)
    assert "stored for project:work alone: it says “our”" in result.stderr
    assert cli.json("show", "loading-customer-data")["scope"] == "project:work"
    assert cli("learn", *TDD, "--scope", "global").exit_code == 0
    assert cli.json("show", "implementing-new-features")["scope"] == "global"


def test_what_a_person_asks_to_remember_is_placed_likewise(cli: Console) -> None:
    make_repository(Path.cwd())
    assert cli.json("remember", "We deploy this repo on Tuesdays")["memory"]["scope"] == "project:work"
    assert cli.json("remember", "I prefer pnpm over npm")["memory"]["scope"] == "global"
