"""Shape and size."""

from hypothesis import given
from hypothesis import strategies as st

from engram.gates.proposal import (
    MAX_ADDED_BYTES,
    MAX_STATEMENT_CHARS,
    GateSettings,
    added_problem,
    scope_problem,
    statement_problem,
)
from engram.model.memory import Memory
from tests.tables import table

SETTINGS = GateSettings()


def memory(statement: str = "Use tabs", **fields: object) -> Memory:
    return Memory(id="", statement=statement).replace(**fields)


@table(
    "statement",
    ["Use tabs", "用制表符", "使用 ✅", "🎉", "line one\n\tline two", "ي", "x = {'a': 1}", "a\u200bb", "é\u0301"],
)
def test_any_writable_text_has_shape(statement: str) -> None:
    assert statement_problem(memory(statement), SETTINGS) == ""


@table("statement", ["", " ", "\n\t ", "\u200b", "\u200b \ufeff", "\u3164", "\u2800\u2800"])
def test_a_statement_nobody_can_see_is_empty(statement: str) -> None:
    assert statement_problem(memory(statement), SETTINGS) == "the statement is empty"


@table("bad", ["\x00", "\x07", "\x1b[31m", "\x7f", "\x9f", "\ud800", "\uffff"])
@table("field", ["statement", "situation", "rationale", "context", "tags", "metadata"])
def test_control_characters_are_refused_in_every_field(field: str, bad: str) -> None:
    text = f"some {bad} text"
    value = {"tags": (text,), "metadata": {"note": {"deep": [text]}}}.get(field, text)
    problem = statement_problem(memory().replace(**{field: value}), SETTINGS)
    assert field in problem and f"U+{ord(bad[0]):04X}" in problem


def test_learn_refuses_what_add_accepts_and_add_has_a_limit_too() -> None:
    long = memory("word " * (MAX_STATEMENT_CHARS // 5 + 1))
    assert "ingest" in statement_problem(long, SETTINGS)
    assert added_problem(long, SETTINGS) == ""
    assert added_problem(memory("x" * 5_000_000), SETTINGS) == ""
    assert "bytes" in added_problem(memory("端" * (MAX_ADDED_BYTES // 3 + 1)), SETTINGS)


def test_an_unknown_type_is_named_with_the_known_ones() -> None:
    assert "unknown type 'nonsense'" in statement_problem(memory(type="nonsense"), SETTINGS)


@table(
    "scope",
    [
        "global",
        "user",
        "local",
        "project:acme",
        "project:acme/api",
        "user:alice",
        "project:github.com/acme/api",
        "agent:x-1",
        "project:我的",
        "project:My App",
        "session:2026-01-01",
        "project:.hidden",
        "project:a..b",
    ],
)
def test_scopes_of_the_grammar_are_accepted(scope: str) -> None:
    assert scope_problem(scope) == ""


@table(
    "scope",
    ["", " ", "project", "project:", ":acme", "project:/etc", "project:acme/", "project:acme//api", "project:..", "project:../x", "project:a/../b", "project:.", "project:...", "/etc/passwd", "C:\\x", "project:a\\b", "project:a\nb", "project:a\x00", "project:~root", "project:\u202eevil", "project: a", "Project:a", "project:" + "x" * 300, "project:" + "a/" * 400 + "a", "../global", "project:a/ b"],
)  # fmt: skip
def test_scopes_that_could_leave_their_place_are_refused(scope: str) -> None:
    assert scope_problem(scope)
    assert statement_problem(memory(scope=scope), SETTINGS)


@given(st.text(max_size=40))
def test_an_accepted_scope_never_holds_a_path_out(name: str) -> None:
    scope = f"project:{name}"
    if scope_problem(scope) == "":
        parts = name.split("/")
        assert all(part and part.strip(".") for part in parts)
        assert "\\" not in name and "\x00" not in name
