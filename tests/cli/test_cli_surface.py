"""What every verb shares: global options, help, exit codes, the reference."""

import inspect
import json
from pathlib import Path
from typing import Any

import pytest
import typer

from engram.cli import program
from engram.cli.declared import Group, Verb
from engram.cli.exits import code_of
from engram.cli.main import VERBS, verb_of
from engram.cli.plain_text import ago, line, shown
from engram.cli.reference import described, markdown
from engram.cli.surface import Surface
from engram.model import errors

from .conftest import Console

DOCS = Path(__file__).parents[2] / "docs" / "cli.md"


def functions() -> list[tuple[str, Verb]]:
    found: list[tuple[str, Verb]] = []
    for name in VERBS:
        verb = verb_of(name)
        assert verb is not None
        found += (
            [(f"{name} {own}", each) for own, each in verb.verbs.items()] if isinstance(verb, Group) else [(name, verb)]
        )
    return found


def test_home_and_json_stand_before_or_after_the_verb(cli: Console) -> None:
    other = str(cli.folder / "other")
    after = json.loads(cli("add", "Use tabs", "--home", other, "--json").stdout)
    before = json.loads(cli("--json", "--home", other, "show", after["id"]).stdout)
    assert before["statement"] == "Use tabs"
    assert cli("show", after["id"]).exit_code == 3


@pytest.mark.parametrize("words", [("nonsense",), ("recall",), ("list", "--nonsense"), ("list", "--limit", "many")])
def test_wrong_usage_is_exit_2(cli: Console, words: tuple[str, ...]) -> None:
    assert cli(*words).exit_code == 2


def test_a_near_miss_is_named(cli: Console) -> None:
    assert "recall" in cli("recal", "x").stderr


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.NotFound("x"), 3),
        (errors.InvalidInput("x"), 2),
        (errors.Refused("x"), 1),
        (errors.SecretRefused("x"), 1),
        (errors.StoreBusy("x"), 1),
        (errors.StoreReadOnly("x"), 1),
        (errors.UnknownVersion("x"), 1),
        (errors.EmbedderError("x"), 1),
        (OSError("x"), 1),
    ],
)
def test_every_error_has_its_exit_code(error: Exception, code: int) -> None:
    assert code_of(error) == code


def test_the_help_lists_every_verb_in_full_sentences(cli: Console) -> None:
    rows = [row for row in cli("--help").stdout.partition("Commands:")[2].splitlines() if row.startswith("  ")]
    assert set(VERBS) <= {row.split()[0] for row in rows}
    assert not [row for row in rows if row.endswith("...")]


@pytest.mark.parametrize(("name", "function"), functions())
def test_every_verb_and_every_option_has_help(name: str, function: Verb) -> None:
    assert inspect.getdoc(function)
    for _, shown_as, text in described(function):
        assert text, f"{name} {shown_as}"
        assert shown_as, name


@pytest.fixture(scope="module")
def built() -> Any:
    """The program as typer sees it; making it takes longer than asking it."""
    return typer.main.get_command(program.build())


@pytest.mark.parametrize("name", [name for name, _ in functions() if name != "hook"])
def test_every_verb_takes_json_and_home(cli: Console, name: str, built: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "build", lambda: built)
    text = cli(*name.split(), "--help").stdout
    assert "--json" in text
    assert "--home" in text


def test_the_reference_is_up_to_date() -> None:
    assert DOCS.read_text("utf-8") == markdown(), "run: python -m engram.cli.reference > docs/cli.md"


def test_the_reference_names_every_verb() -> None:
    text = DOCS.read_text("utf-8")
    for name, _ in functions():
        assert f"# engram {name}\n" in text


def test_text_is_shown_without_what_would_move_the_cursor() -> None:
    assert shown("a\x1b[2Jb\u202ec\td\ne") == "a\\x1b[2Jb\\u202ec\td\ne"
    assert line("  a \n b\t c ") == "a b c"
    assert line("abcdefgh", 5) == "abcd…"


def test_times_are_said_as_people_say_them() -> None:
    from datetime import UTC, datetime, timedelta

    now = datetime(2026, 1, 31, tzinfo=UTC)
    assert ago(now - timedelta(seconds=5), now) == "just now"
    assert ago(now - timedelta(minutes=1), now) == "1 minute ago"
    assert ago(now - timedelta(days=3), now) == "3 days ago"
    assert ago(now + timedelta(hours=2), now) == "in 2 hours"
    assert ago(None, now) == "never"


def test_under_json_an_error_is_an_object_too(cli: Console) -> None:
    result = cli("show", "nothing", "--json")
    error = json.loads(result.stdout)
    assert error["code"] == result.exit_code == 3
    assert result.stderr == f"engram: {error['error']}\n"


def test_under_json_wrong_usage_is_an_object_too(cli: Console) -> None:
    result = cli("list", "--nonsense", "--json")
    assert json.loads(result.stdout)["code"] == result.exit_code == 2
    assert "--nonsense" in json.loads(result.stdout)["error"]
    assert cli("list", "--nonsense").stdout == ""


def test_a_refused_learn_prints_its_decision_and_nothing_else(cli: Console) -> None:
    result = cli("learn", "The key is AKIA" + "IOSFODNN7ABCDEFG" + " and more", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["outcome"] == "REJECTED"


@pytest.mark.parametrize("value", ["NaN", "-Infinity", "1e999", "[1, NaN]"])
def test_a_number_json_does_not_know_is_refused(cli: Console, value: str) -> None:
    result = cli("add", "Use tabs", "--meta", f"a={value}")
    assert result.exit_code == 2
    assert cli.json("list") == []


def test_json_on_stdout_is_always_json(capsys: pytest.CaptureFixture[str]) -> None:
    Surface(as_json=True).json({"a": float("nan"), "b": [float("inf")]})
    assert json.loads(capsys.readouterr().out, parse_constant=pytest.fail) == {"a": "nan", "b": ["inf"]}


@pytest.mark.parametrize("words", [("--home", "", "add", "x"), ("add", "x", "--home", " "), ("add", "x", "--home=")])
def test_an_empty_home_is_refused_and_makes_no_store(cli: Console, words: tuple[str, ...]) -> None:
    result = cli(*words)
    assert result.exit_code == 2
    assert "--home" in result.stderr
    assert list(Path.cwd().iterdir()) == []
    assert not (cli.folder / "home").exists()


def test_a_relative_home_that_was_asked_for_lies_here(cli: Console) -> None:
    assert cli.json("init", "--home", "stores/mine")["store"] == str(Path.cwd() / "stores" / "mine")


def test_an_empty_variable_means_the_usual_store(cli: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGRAM_HOME", "")
    monkeypatch.setenv("XDG_DATA_HOME", str(cli.folder / "data"))
    assert cli.json("init")["store"] == str(cli.folder / "data" / "engram")


def test_a_relative_xdg_directory_is_ignored(cli: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ENGRAM_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    monkeypatch.setenv("HOME", str(cli.folder / "me"))
    assert cli.json("init")["store"] == str(cli.folder / "me" / ".local" / "share" / "engram")


def test_a_relative_home_variable_is_refused(cli: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ENGRAM_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "relative")
    result = cli("init")
    assert result.exit_code == 2
    assert "$HOME" in result.stderr
    assert list(Path.cwd().iterdir()) == []
