"""What every verb shares: global options, help, exit codes, the reference."""

import json
from pathlib import Path

import pytest

from engram.cli.display import ago, escape_hidden, line
from engram.cli.main import PROGRAM, parameters
from engram.cli.reference import describe_parameters, full_help, markdown
from engram.cli.surface import Surface, code_of
from engram.model import errors
from engram.verbs import SECTIONS
from engram.verbs.declaration import Group, Verb
from tests.tables import table

from .conftest import Console

DOCS = Path(__file__).parents[2] / "docs" / "cli.md"


def functions() -> list[tuple[str, Verb]]:
    found: list[tuple[str, Verb]] = []
    for name, verb in PROGRAM.verbs.items():
        if isinstance(verb, Group):
            found += [(f"{name} {own}", each) for own, each in verb.verbs.items() if not isinstance(each, Group)]
        else:
            found.append((name, verb))
    return found


def test_home_and_json_stand_before_or_after_the_verb(cli: Console) -> None:
    other = str(cli.folder / "other")
    after = json.loads(cli("add", "Use tabs", "--home", other, "--json").stdout)
    before = json.loads(cli("--json", "--home", other, "show", after["id"]).stdout)
    assert before["statement"] == "Use tabs"
    assert cli("show", after["id"]).exit_code == 3


@pytest.mark.parametrize("words", [("nonsense",), ("search",), ("list", "--nonsense"), ("list", "--limit", "many")])
def test_wrong_usage_is_exit_2(cli: Console, words: tuple[str, ...]) -> None:
    assert cli(*words).exit_code == 2


def test_a_near_miss_is_named(cli: Console) -> None:
    assert "did you mean recall?" in cli("recal", "x").stderr
    assert "did you mean --limit?" in cli("list", "--limti", "3").stderr


@table(
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


def test_the_help_groups_every_verb(cli: Console) -> None:
    text = cli("--help").stdout
    rows = [row for row in text.splitlines() if row.startswith("  ")]
    assert set(PROGRAM.verbs) <= {row.split()[0] for row in rows}
    places = [text.index(f"\n{title}:\n") for title in SECTIONS]
    assert places == sorted(places)
    assert cli().exit_code == cli("session").exit_code == 2


def test_every_verb_and_every_option_has_help_and_takes_json_and_home(cli: Console) -> None:
    for name, function in functions():
        assert full_help(function), name
        result = cli(*name.split(), "--help")
        assert result.exit_code == 0
        for _, written, text in describe_parameters(parameters(function)):
            assert text and written in result.stdout, f"{name} {written}"
        assert "--json" in result.stdout and "--home" in result.stdout, name


def test_no_help_states_a_default_twice() -> None:
    rows = [text for _, verb in functions() for _, _, text in describe_parameters(parameters(verb))]
    assert [text for text in rows if text.count("Default:") > 1] == []


def test_the_reference_is_up_to_date() -> None:
    assert DOCS.read_text("utf-8") == markdown(), "run: python -m engram.cli.reference > docs/cli.md"


def test_the_reference_names_every_verb() -> None:
    text = DOCS.read_text("utf-8")
    for name, _ in functions():
        assert f"# engram {name}\n" in text


def test_text_is_shown_without_what_would_move_the_cursor() -> None:
    assert escape_hidden("a\x1b[2Jb\u202ec\td\ne") == "a\\x1b[2Jb\\u202ec\td\ne"
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


def test_a_directory_that_was_removed_is_named_as_the_cause(cli: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = cli.folder / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    result = cli("import", "notes.md")
    assert result.exit_code == 1
    assert "the current directory does not exist any more" in result.stderr
