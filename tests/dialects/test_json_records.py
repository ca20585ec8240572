"""Memories as JSON and back."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engram.dialects.json_records import dump_json, load_json
from engram.model.errors import StoreCorrupt, UnknownVersion
from engram.model.memory import Memory
from tests.tables import table

from .memories import memories


@given(st.lists(memories, max_size=2))
@settings(deadline=None, max_examples=40)
def test_memories_survive_json(many: list[Memory]) -> None:
    text = dump_json(many)
    assert load_json(text) == many
    assert len(json.loads(text)) == len(many)


def test_half_a_surrogate_pair_survives_as_an_escape() -> None:
    memory = Memory(id="ENG-1", statement="half \ud83d")
    assert load_json(dump_json([memory]).encode().decode()) == [memory]


def test_text_is_readable_and_each_record_has_its_line() -> None:
    text = dump_json([Memory(id="ENG-1", statement="日本語"), Memory(id="ENG-2", statement="b")])
    assert "日本語" in text
    assert len(text.splitlines()) == 4


@pytest.mark.parametrize(
    "text",
    ['[{"id": "a", "statement": "s"}]', '{"id": "a", "statement": "s"}', '\n{"id": "a", "statement": "s"}\n\n'],
)
def test_a_list_an_object_and_lines_of_objects_are_read(text: str) -> None:
    assert load_json(text) == [Memory(id="a", statement="s")]
    assert load_json('{"id": "a", "statement": "s"}\n{"id": "b", "statement": "t"}\n')[1].id == "b"


@table(
    ("text", "complaint"),
    [
        ("", r"f\.json:1:1: "),
        ('[\n{"id": }]', r"f\.json:2:8: "),
        ("[3]", r"f\.json record 1: must be an object"),
        ('[{"id": "a", "statement": "s"}, {"id": "b"}]', r"f\.json record 2: statement of b: is missing"),
        ('{"id": "a", "id": "b"}', r"the key 'id' stands twice"),
        ("[" * 100_000, r"f\.json: nested too deep"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, complaint: str) -> None:
    with pytest.raises(StoreCorrupt, match=complaint):
        load_json(text, where="f.json")


def test_a_newer_record_is_refused_as_such() -> None:
    with pytest.raises(UnknownVersion):
        load_json('{"id": "a", "statement": "s", "version": 9}')
