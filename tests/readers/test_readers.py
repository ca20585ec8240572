"""Each reader reads what is well-formed, and turns everything else into `UnreadableData` with the file and the line."""

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.model.errors import UnreadableData
from engram.readers.data import (
    MAX_DEPTH,
    MAX_DIGITS,
    parse_json,
    parse_json_at,
    parse_json_object,
    parse_toml,
    read_limited,
    read_text,
)
from engram.readers.json_list import json_items
from engram.readers.yaml_parser import parse_yaml
from tests.tables import table

DIGITS = "9" * 5_000
DEEP = 100_000
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
trees = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)


def reason(read: Any, source: str | bytes, **options: Any) -> str:
    with pytest.raises(UnreadableData) as caught:
        read(source, where="f", **options)
    return str(caught.value)


@given(trees, st.sampled_from([None, 2]))
def test_json_is_read_as_it_was_written(tree: Any, indent: int | None) -> None:
    assert parse_json(json.dumps(tree, indent=indent), characters="any") == tree


@given(st.text())
def test_any_text_is_json_or_unreadable(text: str) -> None:
    try:
        parse_json(text)
    except UnreadableData:
        return
    json.loads(text.lstrip("\ufeff"))


@given(st.text())
def test_any_text_is_toml_or_unreadable(text: str) -> None:
    try:
        parse_toml(text)
    except UnreadableData:
        return
    tomllib.loads(text)


@given(st.binary())
def test_any_bytes_are_read_or_unreadable(data: bytes) -> None:
    for parse in (parse_json, parse_toml):
        try:
            parse(data)
        except UnreadableData:
            continue
        data.decode("utf-8-sig")


@table(
    "text, expected",
    [
        ("", "f:1: not JSON: Expecting value"),
        ('{"a": 1,\n "b": }', "f:2: not JSON: Expecting value"),
        ("[1] [2]", "f:1: not JSON: something follows the value"),
        (f'{{"a": 1,\n\n"b": {DIGITS}}}', "f:3: contains a number of 5,000 digits; at most 4,000 are read"),
        (f"-{DIGITS}", "f:1: contains a number of 5,001 digits; at most 4,000 are read"),
        ("NaN", "f: JSON has no number NaN; put it in quotes to store it as text"),
        ('{"a": -Infinity}', "f: JSON has no number -Infinity; put it in quotes to store it as text"),
        ("1e999", "f: JSON has no number 1e999; put it in quotes to store it as text"),
        ("[" * DEEP, f"f: nested deeper than {MAX_DEPTH} levels"),
        ("[" * DEEP + "]" * DEEP, f"f: nested deeper than {MAX_DEPTH} levels"),
        ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), f"f: nested deeper than {MAX_DEPTH} levels"),
        ('{"a":' * 300 + "1" + "}" * 300, f"f: nested deeper than {MAX_DEPTH} levels"),
        (r'{"path": "a\u0000b"}', "f: contains the character U+0000; remove it"),
        (r'["\ud800"]', "f: contains the character U+D800; remove it"),
        (r'{"\udfff": 1}', "f: contains the character U+DFFF; remove it"),
        ("\x00", "f:1: not JSON: Expecting value"),
        ('"a\x00b"', "f:1: not JSON: Invalid control character at"),
        (b'{"a": "\xff"}', "f:1: not UTF-8 (byte 0xff); save the file as UTF-8"),
        ('{"a": 1}'.encode("utf-16"), "f:1: not UTF-8 (byte 0xff); save the file as UTF-8"),
    ],
)  # fmt: skip
def test_json_that_cannot_be_used_says_why(text: str | bytes, expected: str) -> None:
    assert reason(parse_json, text) == expected


@table(
    "text, expected",
    [
        ("scope = ", "f:1: not TOML: Invalid value"),
        ("a = 1\na = 2", "f:2: not TOML: Cannot overwrite a value"),
        ("when = 2026-02-31", "f:1: not TOML: Invalid date or datetime"),
        ("when = 2026-13-45", "f:1: not TOML: Expected newline"),
        (f"budget = {DIGITS}", "f: not TOML that can be read: Exceeds the limit"),
        (f"budget = 0x{'f' * 5_000}", f"f: contains a number of more than {MAX_DIGITS:,} digits"),
        (f"budget = 0b{'1' * 20_000}", f"f: contains a number of more than {MAX_DIGITS:,} digits"),
        ("a = " + "[" * DEEP, f"f: nested deeper than {MAX_DEPTH} levels"),
        ("a = " + "[" * 150 + "]" * 150, f"f: nested deeper than {MAX_DEPTH} levels"),
        ("x = 1\n" + ".".join("a" * 200_000) + " = 1", f"f:2: a key has more than {MAX_DEPTH} parts"),
        ("x = {" + " . ".join(['"a"'] * 50_000) + " = 1}", f"f:1: a key has more than {MAX_DEPTH} parts"),
        ("[" + ".".join("a" * 50_000) + "]", f"f:1: a key has more than {MAX_DEPTH} parts"),
        ('path = "a\\u0000b"', "f: contains the character U+0000; remove it"),
        ('a = "\\ud800"', "f:1: not TOML"),
        (b"a = '\xe9'", "f:1: not UTF-8 (byte 0xe9); save the file as UTF-8"),
        ("a" * 2_000_000, "f: has 2,000,000 characters, more than 1,048,576"),
    ],
)  # fmt: skip
def test_toml_that_cannot_be_used_says_why(text: str | bytes, expected: str) -> None:
    assert reason(parse_toml, text).startswith(expected)


def test_long_toml_without_long_keys_is_read() -> None:
    text = 'words = "' + "a.b " * 100_000 + '"\n[one.two.three]\nfour = 4.5\n'
    assert parse_toml(text)["one"] == {"two": {"three": {"four": 4.5}}}


@table(
    "text",
    [
        "a: &x [1, 2]\nb: " + "[" * 200,
        "\n".join(["a0: &a0 [x, x, x, x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 30)}]" for n in range(1, 12)]),
        "a: 1\na: 2\n",
        "when: !!python/object:os.system x\n",
        "a: \x00\n",
        "a: \ud800\n",
        "<<: {a: 1}\n",
    ],
)
def test_yaml_that_cannot_be_used_is_unreadable(text: str) -> None:
    assert reason(parse_yaml, text).startswith("f:")


@table(
    "text, expected",
    [(f"a: {DIGITS}", DIGITS), ("a: 9999-99-99", "9999-99-99"), ("a: 2026-02-31T25:61:61Z", "2026-02-31T25:61:61Z"), ("a: 0x" + "f" * 5_000, "0x" + "f" * 5_000)],
)  # fmt: skip
def test_yaml_numbers_and_times_out_of_range_are_text(text: str, expected: str) -> None:
    assert parse_yaml(text).tree == {"a": expected}


def test_a_key_that_appears_twice_is_refused_on_request() -> None:
    assert parse_json('{"a": 1, "a": 2}') == {"a": 2}
    assert reason(parse_json, '[{"a": 1, "a": 2}]', unique_keys=True) == "f: the key 'a' appears twice in one object"


def test_halves_of_characters_are_kept_or_replaced_on_request() -> None:
    text = r'{"a\ud800": ["\udc00", "\u0000", "\ud83d\ude00"]}'
    assert parse_json(text, characters="any") == {"a\ud800": ["\udc00", "\x00", "😀"]}
    assert parse_json(text, characters="repaired") == {"a\ufffd": ["\ufffd", "\x00", "😀"]}


def test_only_an_object_is_an_object() -> None:
    assert parse_json_object('\ufeff{"a": 1}\n') == {"a": 1}
    assert reason(parse_json_object, "[1]") == "f: contains no JSON object"


def test_a_value_in_the_middle_of_a_text_is_read_to_its_end() -> None:
    assert parse_json_at('x{"a": [1]}{}', 1) == ({"a": [1]}, 11)
    with pytest.raises(UnreadableData):
        parse_json_at("x", 0)


def test_the_limits_do_not_depend_on_the_interpreters_setting() -> None:
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        assert "digits" in reason(parse_json, DIGITS)
        assert "digits" in reason(parse_toml, f"a = {DIGITS}")
        assert parse_yaml(f"a: {DIGITS}").tree == {"a": DIGITS}
    finally:
        sys.set_int_max_str_digits(before)


def test_one_item_of_a_list_with_a_long_number_costs_that_item(tmp_path: Path) -> None:
    file = tmp_path / "list.json"
    file.write_text(f'[1, {{"a": {DIGITS}}}, [NaN], 1e999, "last"]')
    with file.open("rb") as stream:
        found = list(json_items(stream, "list.json"))
    assert [one for one in found if not isinstance(one, UnreadableData)] == [1, "last"]
    assert [str(one)[:30] for one in found if isinstance(one, UnreadableData)] == [
        "contains a number of 5,000 dig", "JSON has no number NaN; put it", "JSON has no number 1e999; put ",
    ]  # fmt: skip


def test_a_file_is_not_read_beyond_its_limit(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    with file.open("wb") as sparse:
        sparse.truncate(1 << 40)
    with pytest.raises(UnreadableData, match=r"config\.toml: has more than 100 bytes"):
        read_limited(file, 100)
    file.write_bytes(b"\xef\xbb\xbfa = 1\n")
    assert read_text(file) == "a = 1\n"


def test_an_error_knows_its_file_and_line() -> None:
    with pytest.raises(UnreadableData) as caught:
        parse_json('{\n"a": x}', where="settings.json", line=10)
    error = caught.value
    assert (error.where, error.line, error.reason) == ("settings.json", 11, "not JSON: Expecting value")
