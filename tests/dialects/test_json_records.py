"""Memories as JSON, and strict reading of JSON."""

import json
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from engram.dialects.engram_yaml import dump_json, from_mapping
from engram.model.memory import Memory
from tests.properties import examples

from .memories import memories


def read(text: str) -> Sequence[Memory]:
    return [from_mapping(record) for record in json.loads(text)]


@given(st.lists(memories, max_size=2))
@examples(40)
def test_memories_survive_json(many: list[Memory]) -> None:
    assert read(dump_json(many)) == many


def test_half_a_surrogate_pair_survives_as_an_escape() -> None:
    memory = Memory(id="ENG-1", statement="half \ud83d")
    assert read(dump_json([memory]).encode().decode()) == [memory]


def test_text_is_readable_and_each_record_has_its_line() -> None:
    text = dump_json([Memory(id="ENG-1", statement="日本語"), Memory(id="ENG-2", statement="b")])
    assert "日本語" in text
    assert len(text.splitlines()) == 4
