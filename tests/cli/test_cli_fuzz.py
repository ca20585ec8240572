"""Whatever stands on a command line, a verb answers or says what is wrong with it: never a traceback, never another exit code."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from engram.cli.main import LONG_RUNNING_VERBS, PROGRAM, Parameter, parameters
from engram.verbs.declaration import Group, Option, Verb
from tests.cli.conftest import Console
from tests.properties import examples

DEEP = "[" * 900 + "]" * 900
DEEP_MAPPING = '{"a":' * 900 + "1" + "}" * 900
HOSTILE = (
    "", " ", "-", "--", "-1", "0", "1", "99999999999999999999", "1e400", "NaN", "²", "0001-01-01T00:00:00+14:00", "0001-01-01",
    "9999-12-31T23:59:59-12:00", "9999-12-31", "2026-02-30", "yesterday", "\ud800", "a\u202eb", "‮", "x" * 5_000, "a=b", "=", "a=\ud800", DEEP,
    DEEP_MAPPING, f"k={DEEP}", '{"role": "user"}', "[1, 2", "../../x", "/dev/null", "~", ".", "missing.json", "ENG-2026-0101-001", "TASK-1",
    "human", "global", "project:", "any", "'; DROP TABLE docs; --", "%s%n", "{}", "${HOME}", "*", "(", "[", "\\", "\n", "\t\n", "🤦🏽‍♂️" * 50,
)  # fmt: skip
"""What people, programs and attackers type where something else is meant."""
SKIPPED = LONG_RUNNING_VERBS | {"demo"}
"""Verbs that go on working or show something long; what they take is read by the same parser."""
CODES = frozenset({0, 1, 2, 3})


def verbs() -> Iterator[tuple[tuple[str, ...], Verb]]:
    """Every verb with the words that call it."""
    for name, found in PROGRAM.verbs.items():
        if name in SKIPPED:
            continue
        if isinstance(found, Group):
            yield from (((name, inner), verb) for inner, verb in found.verbs.items() if not isinstance(verb, Group))
        else:
            yield (name,), found


ALL = tuple(verbs())


def spelled(parameter: Parameter, value: str) -> list[str]:
    """A parameter as it stands on a command line."""
    if not isinstance(parameter.spec, Option):
        return [value]
    name = parameter.spec.names[0]
    return [name] if parameter.kind.is_flag else [name, value]


@st.composite
def lines(draw: st.DrawFn) -> list[str]:
    """A verb with what it needs and some of what it takes, each value hostile."""
    words, verb = draw(st.sampled_from(ALL))
    taken = list(parameters(verb))
    needed = [one for one in taken if one.is_required]
    others = [one for one in taken if not one.is_required]
    chosen = needed + (
        draw(st.lists(st.sampled_from(others), max_size=3, unique_by=lambda one: one.name)) if others else []
    )
    return [*words, *(word for one in chosen for word in spelled(one, draw(st.sampled_from(HOSTILE))))]


@examples(150, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    line=lines(),
    stdin=st.sampled_from(("", "I prefer tabs.", DEEP, DEEP_MAPPING, '{"role": "user", "content": "hi"}\n', "\0\x80")),
)
def test_no_command_line_ends_in_a_traceback(cli: Console, line: list[str], stdin: str) -> None:
    result = cli(*line, stdin=stdin.encode("utf-8", "surrogatepass"))
    assert result.exit_code in CODES, (line, result)
    assert "Traceback" not in result.stderr, (line, result.stderr)


def test_the_fuzz_reaches_every_verb() -> None:
    assert {words[0] for words, _ in ALL} == set(PROGRAM.verbs) - SKIPPED


@pytest.mark.parametrize("when", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"])
def test_a_time_outside_the_calendar_is_refused_with_what_to_write(cli: Console, when: str) -> None:
    result = cli("list", "--since", when)
    assert (result.exit_code, "year from 2 to 9998" in result.stderr) == (2, True)


def test_a_number_no_store_can_count_to_is_refused(cli: Console) -> None:
    cli.learned("The deploy runs on Thursdays")
    for words in (
        ("list",),
        ("search", "deploy"),
        ("history", "x"),
        ("session", "list"),
        ("task", "list"),
        ("review",),
    ):
        result = cli(*words, "--limit", str(2**70))
        assert result.exit_code in (2, 3), (words, result)


def test_the_hook_answers_json_whatever_it_is_handed(cli: Console) -> None:
    cli.learned("The deploy runs on Thursdays")
    for stdin in (DEEP, DEEP_MAPPING, '{"prompt": ' + DEEP + "}", "\ud800"):
        result = cli("hook", "recall", stdin=stdin.encode("utf-8", "surrogatepass"))
        assert (result.exit_code, result.stdout[:1]) == (0, "{"), result


def test_an_error_nobody_foresaw_is_one_line_unless_its_traceback_is_asked_for(
    cli: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("nobody foresaw this")

    monkeypatch.setattr("engram.client.Engram.open", broken)
    with pytest.raises(ZeroDivisionError):
        cli("list")
    monkeypatch.delenv("ENGRAM_DEBUG")
    result = cli("list", "--json")
    assert (result.exit_code, "ZeroDivisionError" in result.stderr, "ENGRAM_DEBUG" in result.stderr) == (1, True, True)
    assert '"code": 1' in result.stdout


def test_a_person_reads_times_at_the_edge_of_the_calendar(cli: Console, tmp_path: Path) -> None:
    kept = cli.learned("The licence never ends", "--valid-until", "9999-12-31")
    assert cli("show", kept).exit_code == 0
    assert "9999-12-31" in cli("show", kept, "--json").stdout
