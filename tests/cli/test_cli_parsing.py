"""The one reader of command lines: what it reads, what it refuses, what it suggests."""

from pathlib import Path
from typing import Any

import pytest

from engram.cli.main import PROGRAM, HelpRequested, UsageError, read

PLAIN = (
    ["recall", "how do deploys work?"],
    ["--json", "recall", "x"],
    ["--home", "a b", "recall", "x", "--json"],
    ["recall", "x", "--home=elsewhere", "--limit", "3", "-s", "project:a", "--scope", "global", "--explain"],
    ["recall", "--limit=7", "x", "--type", "fact", "-t", "preference"],
    ["recall", "-n", "2", "--", "--json"],
    ["recall", "-"],
    ["learn", "fact", "--situation", "s", "--subject", "a", "--predicate", "-b", "--object", "c"],
    ["learn", "text", "--confidence", "0.5", "--meta", "a=b", "--meta", "c=d", "--pin"],
    ["show", "ENG-1"],
    ["list"],
    ["forget", "x", "--purge", "-y"],
    ["config"],
    ["config", "set", "budget", "3"],
    ["session", "start"],
    ["session", "start", "a task", "--budget", "100"],
    ["session", "observe", "S-1", "user", "hello", "--key", "k"],
    ["--json", "session", "list", "-n", "3"],
    ["session", "summarise", "S-1", "--style", "structured", "--tokens", "100"],
    ["revise", "ENG-1", "a new text", "--reason", "r"],
    ["lineage", "ENG-1"],
    ["relate", "a", "b", "-t", "supports", "--weight", "2"],
    ["traverse", "a", "b", "--depth", "1", "--prompt", "--tokens", "50"],
    ["recall", "x", "--trace", "--expect", "a", "--expect", "b", "--tokens", "9"],
    ["search", "x", "--deep", "--queries", "3"],
    ["inject", "x", "--block", "--by-type", "--header", "# H"],
    ["recall"],
    ["task", "start", "a goal", "--meta", "a=b"],
    ["task", "event", "TASK-1", "user", "hello", "--key", "k"],
    ["task", "turn", "TASK-1", "--user", "a", "--assistant", "b", "--no-derive"],
    ["task", "checkpoint", "TASK-1", "s", "--done", "a", "--done", "b", "--todo", "c"],
    ["task", "context", "TASK-1", "q", "--tokens", "9", "--recent", "3", "--no-graph"],
    ["task", "search", "q", "--task", "TASK-1", "--role", "user"],
    ["ledger", "verify"],
    ["ledger", "redact", "EVT-1", "-y"],
    ["worker", "--once"],
    ["worker", "--list"],
    ["worker", "--retry", "derive:EVT-1"],
    ["capture", "--user", "a", "--assistant", "b", "--dry-run"],
    ["ingest", "some folder", "--facts", "0", "--kind", "text"],
    ["cite", "ENG-1"],
    ["backup", "some file.tar.gz"],
    ["review", "--keep", "new", "x"],
    ["bench", "speed", "--n", "10,20"],
    ["trust"],
    ["export", "-f", "plur", "dir", "--status", "any"],
)

WRONG: tuple[tuple[list[str], str], ...] = (
    (["nonsense"], "Unknown verb 'nonsense'"),
    (["recal", "x"], "did you mean recall"),
    (["prepare"], "TASK is missing"),
    (["recall", "a", "b"], "Unexpected argument 'b'"),
    (["recall", "x", "--limit"], "--limit needs a value: N"),
    (["recall", "x", "--limit", "many"], "--limit must be a whole number, not 'many'"),
    (["recall", "x", "--limit", "9" * 30], "--limit must be a whole number up to"),
    (["learn", "x", "--confidence", "high"], "--confidence must be a number from 0 to 1, not 'high'"),
    (["recall", "x", "--no-such-option"], "Unknown option --no-such-option"),
    (["recall", "x", "--limt", "3"], "did you mean --limit"),
    (["recall", "x", "--explain=yes"], "--explain takes no value"),
    (["session", "nonsense"], "Unknown verb 'nonsense'"),
    (["session", "strat", "x"], "did you mean start"),
    (["--no-such-option", "list"], "Unknown option --no-such-option"),
    (["traverse"], "ID… is missing"),
)


def values(*words: str) -> dict[str, Any]:
    return read(words, PROGRAM)[1]


def test_every_right_line_is_read() -> None:
    for words in PLAIN:
        verb, given = read(words, PROGRAM)
        path = " ".join(word for word in words if not word.startswith("-"))
        assert {"home", "as_json"} <= set(given), (verb, path)


def test_every_wrong_line_is_refused_with_what_is_wrong() -> None:
    missed = []
    for words, expected in WRONG:
        with pytest.raises(UsageError) as caught:
            read(words, PROGRAM)
        if expected not in str(caught.value):
            missed.append((words, str(caught.value)))
    assert missed == []


def test_help_can_be_requested_anywhere_and_a_missing_verb_asks_for_it() -> None:
    for words, path, missing in (
        ([], "", True),
        (["--help"], "", False),
        (["-h"], "", False),
        (["list", "--help"], "list", False),
        (["session"], "session", True),
        (["session", "start", "x", "-h"], "session start", False),
    ):
        with pytest.raises(HelpRequested) as caught:
            read(words, PROGRAM)
        assert (caught.value.path, caught.value.missing) == (path, missing)


def test_only_what_was_given_is_passed_on() -> None:
    given = values("recall", "x", "--limit=7", "-t", "fact", "--type", "preference", "-s", "here", "--explain")
    assert given == {
        "question": "x", "limit": 7, "types": ["fact", "preference"], "scope": ["here"], "explain": True, "home": None,
        "as_json": False,
    }  # fmt: skip
    given = values("learn", "text", "--confidence", "0.5", "--meta", "a=b", "--meta", "n=1", "--why", "", "--pin")
    assert (given["metadata"], given["rationale"], given["pinned"]) == ({"a": "b", "n": 1}, "", True)
    assert "cues" not in given


def test_a_default_of_the_command_line_alone_is_passed_on() -> None:
    assert values("list")["limit"] == 50


def test_values_stand_after_a_short_option_and_flags_together() -> None:
    assert values("list", "-n5")["limit"] == 5
    assert values("forget", "x", "-y")["yes"] is True


def test_what_follows_two_dashes_is_an_argument() -> None:
    assert values("recall", "-n", "2", "--", "--json")["question"] == "--json"


def test_a_session_and_a_task_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGRAM_SESSION", "S-7")
    monkeypatch.setenv("ENGRAM_TASK", "TASK-7")
    assert values("recall", "x")["session"] == "S-7"
    assert values("recall", "x", "--session", "S-8")["session"] == "S-8"
    assert values("task", "show")["task_id"] == "TASK-7"


def test_values_have_their_types() -> None:
    given = values("--home", "h", "backup", "f")
    assert (given["home"], given["target"]) == ("h", Path("f"))
