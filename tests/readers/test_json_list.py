"""A JSON list read item by item says what the whole text says."""

import json
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.model.errors import UnreadableData
from engram.readers import json_list
from engram.readers.json_list import json_items
from tests.tables import table

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
items = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5)


@given(st.lists(items), st.sampled_from([None, 1]), st.integers(1, 9))
def test_items_are_the_same_wherever_the_text_is_cut(wanted: list[Any], indent: int | None, step: int) -> None:
    text = json.dumps(wanted, indent=indent).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_list, "_FIRST_STEP", step)
        assert list(json_items(BytesIO(text), "x.json")) == wanted


@table("text", ["[1 2]", "[1,]", "[,1]", "[1,,2]", '["a" "b"]', "[1", "[1,", "[", "", "{}", "[1}"])
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(UnreadableData, match=r"x\.json"):
        list(json_items(BytesIO(text.encode()), "x.json"))
