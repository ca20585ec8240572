"""What is written reads back as it was: as plain data, as JSON, as YAML, by every kind of YAML reader."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from ryaml import loads as read_yaml_1_2  # type: ignore[attr-defined]

from engram.dialects.engram_yaml import dump, from_mapping, load, load_mappings, to_mapping
from engram.dialects.yaml_writer import flow_scalar, key_scalar, text_scalar
from engram.model.errors import InvalidInput
from engram.model.memory import Memory
from tests.properties import examples
from tests.tables import table

from .memories import MISREAD, memories, multiline, text


@given(memories)
@examples(50)
def test_a_memory_survives_plain_data(memory: Memory) -> None:
    assert from_mapping(to_mapping(memory)) == memory


@given(memories)
@examples(50)
def test_plain_data_is_json_safe(memory: Memory) -> None:
    assert from_mapping(json.loads(json.dumps(to_mapping(memory)))) == memory


@given(st.lists(memories, max_size=3))
@examples(50)
def test_memories_survive_a_yaml_file(many: list[Memory]) -> None:
    assert load(dump(many)) == many


@given(memories)
@examples(50)
def test_a_file_is_parsed_as_the_data_it_was_written_from(memory: Memory) -> None:
    assert load_mappings(dump([memory])) == [to_mapping(memory)]


@given(memories)
@examples(50)
def test_a_yaml_1_1_reader_reads_the_same_data(memory: Memory) -> None:
    assert yaml.safe_load(dump([memory])) == [to_mapping(memory)]


@given(st.lists(multiline, min_size=1), text)
@examples(50)
def test_text_is_read_alike_by_1_1_and_1_2_readers(values: list[str], key: str) -> None:
    lines = [f"- {text_scalar(value, '')}" for value in values]
    lines += [f"- [{flow_scalar(value)}]" for value in values]
    lines += [f"- {key_scalar(key)}: {text_scalar(value, '  ')}" for value in values if len(key) < 1000]
    document = "\n".join(lines) + "\n"
    expected: list[Any] = [*values, *([value] for value in values)]
    expected += [{key: value} for value in values if len(key) < 1000]
    assert yaml.safe_load(document) == expected
    assert read_yaml_1_2(document) == expected
    assert yaml.load(document, Loader=yaml.BaseLoader) == expected


@table("value", MISREAD)
def test_every_text_a_reader_could_misread_comes_back(value: str) -> None:
    memory = Memory(id="ENG-1", statement=value, tags=(value, "b"), domain=value, form={value: value})
    written = dump([memory])
    assert load(written) == [memory]
    assert yaml.safe_load(written)[0]["statement"] == value
    assert read_yaml_1_2(written)[0]["form"] == {value: value}


@pytest.mark.parametrize("value", ["\ud800", "a\udfffb", "\ud83d\n"])
def test_half_a_surrogate_pair_is_refused_by_name_because_no_utf8_file_can_hold_it(value: str) -> None:
    with pytest.raises(InvalidInput, match=r"ENG-1.*surrogate"):
        dump([Memory(id="ENG-1", statement=value)])


@given(st.floats(allow_nan=False) | st.integers())
@example(1e22)
@example(5e-324)
@example(10**40)
def test_numbers_come_back_as_the_same_number(value: float) -> None:
    memory = Memory(id="ENG-1", statement="s", metadata={"n": value})
    written = dump([memory])
    assert load(written) == [memory]
    assert yaml.safe_load(written)[0]["data"] == {"n": value}


@table(
    ("value", "written"),
    [
        ("plain words: none", '"plain words: none"'),
        ("plain words:none", "plain words:none"),
        ("project:acme/api", "project:acme/api"),
        ("y", '"y"'),
        ("N", '"N"'),
        ("yes", '"yes"'),
        ("yes, indeed", "yes, indeed"),
        ("12:30:45", '"12:30:45"'),
        ("3 times", '"3 times"'),
        ("a\ufeffb", r'"a\ufeffb"'),
        ("a\x85b", r'"a\x85b"'),
        ("a \nb", r'"a \nb"'),
        ("a\nb\t", r'"a\nb\t"'),
        ("it's", "it's"),
        ("日本語", "日本語"),
    ],
)
def test_only_text_no_reader_can_misread_stands_without_quotes(value: str, written: str) -> None:
    assert text_scalar(value, "") == written


def test_a_very_long_key_is_still_one_key() -> None:
    memory = Memory(id="ENG-1", statement="s", metadata={"k" * 3000: {"l" * 1200: "deep"}}, extra={"x: " * 500: 1})
    assert load(dump([memory])) == [memory]


def test_a_statement_of_five_megabytes_comes_back() -> None:
    memory = Memory(id="ENG-1", statement="Lots of words: here.\n" * 250_000)
    assert load(dump([memory])) == [memory]


def test_several_lines_are_written_as_a_literal_block_people_can_edit() -> None:
    written = dump([Memory(id="ENG-1", statement="First line.\n  indented\n\nlast\n", rationale="one\ntwo")])
    assert "  statement: |\n    First line.\n      indented\n\n    last\n" in written
    assert "  rationale: |-\n    one\n    two\n" in written


def test_an_empty_list_is_written_as_one() -> None:
    assert dump([]) == "[]\n"
    assert load("[]\n") == []
