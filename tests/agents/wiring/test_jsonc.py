"""One member of a JSON file with comments is set and removed; every other byte stays."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.agents.wiring.jsonc import parse, with_member, without_member
from engram.model.errors import InvalidInput
from tests.tables import table

PATH = ("mcpServers", "engram")
ENTRY = {"command": "engram", "args": ["mcp"]}
FILES = [
    '{\n  "mcpServers": {\n    "other": {"command": "x"}\n  }\n}\n',
    '{\n  // servers\n  "mcpServers": {\n    "other": {"command": "x"} // the last one\n  }\n}\n',
    '{\n\t"mcpServers": {\n\t\t"other": {"command": "x"}, /* kept */\n\t},\n}\n',
    '{"theme": "dark"}',
    '{\r\n    "theme": "dark" // mine\r\n}\r\n',
    '\ufeff{\n  "a": [1, 2, {"b": "// no comment", "c": "}"}],\n  "b": null\n}',
    '{\n  "a": [1, [2, /* two */ 3], // three\n  ], "b": [[]]\n}\n',
    '// all of it\n{\n  "a": {},\n  "b": "\\"quoted\\\\"\n}\n// the end\n',
]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@table("text", FILES)
def test_removing_what_was_added_restores_every_byte(text: str) -> None:
    made = with_member(text, PATH, ENTRY)
    assert parse(made).data["mcpServers"]["engram"] == ENTRY
    assert without_member(made, PATH) == text


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=4), st.sampled_from([None, 2, 4, "\t"]))
def test_everything_else_says_what_it_said(data: dict[str, Any], indent: int | str | None) -> None:
    data.pop("mcpServers", None)
    made = with_member(json.dumps(data, indent=indent), PATH, ENTRY)
    assert parse(made).data == {**data, "mcpServers": {"engram": ENTRY}}
    assert parse(without_member(made, PATH)).data == data


def test_an_entry_is_renewed_where_it_is() -> None:
    made = with_member('{"mcpServers": {"engram": {"command": "old"}, "z": 1}}', PATH, ENTRY)
    assert list(parse(made).data["mcpServers"]) == ["engram", "z"]
    assert parse(made).data["mcpServers"]["engram"] == ENTRY


def test_an_empty_file_becomes_an_object() -> None:
    assert parse(with_member("", PATH, ENTRY)).data == {"mcpServers": {"engram": ENTRY}}


def test_a_comment_before_the_entry_does_not_swallow_what_follows_it() -> None:
    made = '{\n  "a": 1, // one\n  "mcpServers": {"engram": {}}, "b": 2\n}\n'
    assert parse(without_member(made, PATH)).data == {"a": 1, "b": 2}
    assert parse(without_member('{\n  // mine\n  "mcpServers": {"engram": {}}}', PATH)).data == {}


def test_an_emptied_object_with_a_comment_stays() -> None:
    text = '{\n  "mcpServers": {\n    // none yet\n  },\n  "a": 1\n}\n'
    assert without_member(with_member(text, PATH, ENTRY), PATH) == text


def test_what_is_not_there_is_not_removed() -> None:
    assert without_member('{"a": 1}', PATH) == '{"a": 1}'


@table(
    ("text", "line"),
    [
        ('{\n "a": 1\n "b": 2\n}', 3),
        ('{"a": }', 1),
        ('{"a": 1', 1),
        ("{\n\n'a': 1}", 3),
        ('{"a": 1} x', 1),
        ('{"a": /* never closed', 1),
        ("[" * 500, 1),
    ],
)
def test_what_is_not_json_is_named_by_its_line(text: str, line: int) -> None:
    with pytest.raises(InvalidInput, match=f"line {line} "):
        parse(text)


@pytest.mark.parametrize("text", ["[]", '{"mcpServers": []}'])
def test_a_file_of_another_shape_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="object"):
        with_member(text, PATH, ENTRY)
