"""Two parsers, one meaning: what `quick` reads is what typer reads, and what it leaves is an error or a wish for help."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from engram.cli import program, quick
from engram.cli.main import verb_of

PLAIN = (
    ["recall", "how do deploys work?"],
    ["--json", "recall", "x"],
    ["--home", "a b", "recall", "x", "--json"],
    ["recall", "x", "--home=elsewhere", "--limit", "3", "-s", "project:a", "--scope", "global", "--explain"],
    ["recall", "--limit=7", "x", "--type", "fact", "-t", "preference"],
    ["recall", "-n", "2", "--", "--json"],
    ["recall", "-"],
    ["learn", "fact", "--subject", "a", "--predicate", "-b", "--object", "c"],
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
    ["prepare", "x", "--by-type", "--header", "# H"],
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

NOT_PLAIN: tuple[list[str], ...] = (
    [],
    ["--help"],
    ["-h"],
    ["nonsense"],
    ["recall"],
    ["recall", "a", "b"],
    ["recall", "x", "--limit"],
    ["recall", "x", "--limit", "many"],
    ["recall", "x", "--no-such-option"],
    ["recall", "x", "--explain=yes"],
    ["recall", "x", "-n5"],
    ["list", "--help"],
    ["session"],
    ["session", "nonsense"],
    ["--no-such-option", "list"],
)


def read_by_typer(words: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> tuple[Any, dict[str, Any]]:
    seen: list[tuple[Any, dict[str, Any]]] = []
    monkeypatch.setattr(program, "perform", lambda function, given: seen.append((function, given)))
    get_command(program.build()).main(list(words), prog_name="engram", standalone_mode=False)
    return seen[0]


@pytest.mark.parametrize("words", PLAIN, ids=" ".join)
def test_both_parsers_read_the_same(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    read = quick.read(words, verb_of)
    assert read is not None
    verb, given = read
    expected_verb, expected = read_by_typer(words, monkeypatch)
    assert verb is expected_verb
    assert {k: v or None for k, v in given.items()} == {k: v or None for k, v in expected.items()}


@pytest.mark.parametrize("words", NOT_PLAIN, ids=" ".join)
def test_what_is_not_plainly_right_is_left_to_typer(words: list[str]) -> None:
    assert quick.read(words, verb_of) is None


def test_a_session_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGRAM_SESSION", "S-7")
    read = quick.read(["recall", "x"], verb_of)
    assert read is not None and read[1]["session"] == "S-7"
    assert read_by_typer(["recall", "x"], monkeypatch)[1]["session"] == "S-7"
    assert quick.read(["session", "end"], verb_of) is not None


def test_a_task_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGRAM_TASK", "TASK-7")
    read = quick.read(["task", "show"], verb_of)
    assert read is not None and read[1]["task_id"] == "TASK-7"
    assert read_by_typer(["task", "show"], monkeypatch)[1]["task_id"] == "TASK-7"


def test_values_have_their_types() -> None:
    read = quick.read(["--home", "h", "backup", "f"], verb_of)
    assert read is not None
    assert (read[1]["home"], read[1]["target"]) == ("h", Path("f"))
