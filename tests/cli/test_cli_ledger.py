"""ledger verify, show, redact."""

import json
from pathlib import Path

import pytest

from .conftest import Console

WORDS = "The launch code of the drill is swordfish"


@pytest.fixture
def session(cli: Console) -> str:
    session = str(cli.json("session", "start", "drill")["id"])
    for words in ("hello", WORDS, "goodbye"):
        cli.json("session", "observe", session, "user", words)
    return session


def ledger_of(cli: Console, name: str) -> Path:
    return next(path for path in (cli.folder / "home").rglob("*.jsonl") if path.stem == name)


def rewritten(path: Path, change: "list[str]") -> None:
    path.write_text("".join(f"{line}\n" for line in change), "utf-8")


def test_a_whole_store_is_exit_0_with_a_count(cli: Console, session: str) -> None:
    task = cli.json("task", "start", "x")["id"]
    cli.json("task", "event", task, "user", "please")
    result = cli("ledger", "verify")
    assert result.exit_code == 0
    assert result.stdout.startswith("whole  4 events")
    assert cli.json("ledger", "verify") == {"whole": True, "events": 4, "redacted": 0, "problems": []}


def test_an_empty_store_is_whole(cli: Console) -> None:
    assert cli.json("ledger", "verify")["events"] == 0


@pytest.mark.parametrize("harm", ["altered", "reordered", "dropped from the middle", "dropped from the end", "gone"])
def test_any_change_by_hand_is_exit_1_and_named(cli: Console, session: str, harm: str) -> None:
    path = ledger_of(cli, session)
    first, second, third = path.read_text("utf-8").splitlines()
    kept = {
        "altered": [first, second.replace("swordfish", "herring"), third],
        "reordered": [first, third, second],
        "dropped from the middle": [first, third],
        "dropped from the end": [first, second],
        "gone": [],
    }[harm]
    if kept:
        rewritten(path, kept)
    else:
        path.unlink()
    result = cli("ledger", "verify", "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == 1
    assert not found["whole"]
    assert found["problems"] and all(session in problem for problem in found["problems"])
    assert session in cli("ledger", "verify").stdout


def test_every_problem_is_named_not_only_the_first(cli: Console, session: str) -> None:
    task = cli.json("task", "start", "x")["id"]
    cli.json("task", "event", task, "user", "please")
    for name in (session, task):
        path = ledger_of(cli, name)
        rewritten(path, [line.replace('"user"', '"tool"') for line in path.read_text("utf-8").splitlines()])
    found = json.loads(cli("ledger", "verify", "--json").stdout)["problems"]
    assert any(session in problem for problem in found) and any(task in problem for problem in found)


def test_show_tells_the_events_in_order_with_their_chain(cli: Console, session: str) -> None:
    events = cli.json("ledger", "show", session)
    assert [event["seq"] for event in events] == [1, 2, 3]
    assert [event["prev"] for event in events[1:]] == [event["digest"] for event in events[:-1]]
    assert WORDS in cli("ledger", "show", session).stdout
    assert [event["seq"] for event in cli.json("ledger", "show", session, "--last", "1")] == [3]
    assert [event["seq"] for event in cli.json("ledger", "show", session, "--after", "1")] == [2, 3]


def test_a_ledger_that_is_not_there_is_exit_3(cli: Console) -> None:
    assert cli("ledger", "show", "S-nope").exit_code == 3
    assert cli("ledger", "redact", "EVT-20200101-000000000000", "--yes").exit_code == 3


def test_a_task_without_events_has_an_empty_ledger(cli: Console) -> None:
    task = cli.json("task", "start", "x")["id"]
    result = cli("ledger", "show", task)
    assert (result.exit_code, result.stdout) == (0, "")


def test_redacting_destroys_the_words_and_the_chain_still_verifies(cli: Console, session: str) -> None:
    event = cli.json("ledger", "show", session)[1]["id"]
    result = cli("ledger", "redact", event, "--yes")
    assert result.exit_code == 0
    assert "proof" in result.stdout
    assert "still verifies" in result.stderr
    stored = b"".join(path.read_bytes() for path in cli.folder.rglob("*") if path.is_file())
    assert b"swordfish" not in stored
    assert cli.json("ledger", "verify") == {"whole": True, "events": 3, "redacted": 1, "problems": []}
    assert cli("ledger", "verify").stdout == "whole  3 events, 1 redacted, the others unchanged\n"
    shown = cli.json("ledger", "show", session)
    assert [one["redacted"] for one in shown] == [False, True, False]
    assert "user: redacted" in cli("ledger", "show", session).stdout


def test_who_else_says_the_same_words_is_named_with_what_to_do(cli: Console, session: str) -> None:
    cli.json("session", "observe", session, "user", f"As I said: {WORDS}!")
    events = cli.json("ledger", "show", session)
    result = cli("ledger", "redact", events[1]["id"], "--yes")
    assert result.exit_code == 1
    other = events[3]["id"]
    assert f"{other}: contains the same words; `engram ledger redact {other}` redacts it, too" in result.stdout
    assert [one["redacted"] for one in cli.json("ledger", "show", session)] == [False, True, False, False]
    assert cli("ledger", "redact", other, "--yes").exit_code == 0


def test_redacting_without_a_terminal_needs_yes(cli: Console, session: str) -> None:
    event = cli.json("ledger", "show", session)[1]["id"]
    result = cli("ledger", "redact", event)
    assert result.exit_code == 2
    assert "--yes" in result.stderr
    assert cli.json("show", event)["content"] == WORDS


@pytest.mark.usefixtures("person")
def test_a_person_may_say_no(cli: Console, session: str) -> None:
    event = cli.json("ledger", "show", session)[1]["id"]
    result = cli("ledger", "redact", event, stdin="n\n")
    assert result.exit_code == 1
    assert "nothing was destroyed" in result.stderr
    assert cli.json("show", event)["content"] == WORDS


def test_a_memory_is_not_redacted_but_purged(cli: Console) -> None:
    known = cli.learned(WORDS)
    result = cli("ledger", "redact", known, "--yes")
    assert result.exit_code == 2
    assert "forget" in result.stderr
    assert cli.json("show", known)["statement"] == WORDS


def test_a_number_that_cannot_be_is_exit_2(cli: Console, session: str) -> None:
    assert cli("ledger", "show", session, "--last", "0").exit_code == 2


def test_a_line_that_cannot_be_read_is_exit_1_and_named(cli: Console, session: str) -> None:
    path = ledger_of(cli, session)
    first, _, third = path.read_text("utf-8").splitlines()
    rewritten(path, [first, "{broken", third])
    result = cli("ledger", "verify")
    assert result.exit_code == 1
    assert f"{path.name}:2" in result.stdout + result.stderr
