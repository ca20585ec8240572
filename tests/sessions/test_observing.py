"""What a caller observed, before it reaches a store: checked, redacted, and made of what every store can hold."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.model.errors import InvalidInput
from engram.sessions.observations import MAX_CONTENT, json_data, make_storable, new_event
from tests.tables import table

NOW = datetime(2026, 3, 1, tzinfo=UTC)
ANY_TEXT = st.text(st.characters(exclude_categories=()))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(text=ANY_TEXT)
def test_any_text_becomes_one_of_the_same_length_that_can_be_stored(text: str) -> None:
    kept = make_storable(text)
    assert len(kept) == len(text)
    assert "\0" not in kept
    assert kept.encode().decode() == kept
    assert make_storable(kept) == kept


@given(data=st.dictionaries(ANY_TEXT, JSON, max_size=4))
def test_captured_json_is_kept_without_what_no_store_can_hold(data: dict[str, Any]) -> None:
    kept = json_data("it", data, captured=True)
    assert json_data("it", kept) == kept
    assert "\0" not in repr(kept).replace("\\x00", "\0")


@given(data=st.dictionaries(ANY_TEXT, JSON, max_size=4))
def test_a_callers_json_is_kept_as_it_is_or_refused(data: dict[str, Any]) -> None:
    try:
        kept = json_data("it", data)
    except InvalidInput as refused:
        assert "NUL" in str(refused)
    else:
        assert kept == data


@table("given_", [[1], "text", 5, {"at": NOW}, {"x": float("inf")}, {"x": b"bytes"}])
def test_what_json_cannot_hold_is_refused(given_: Any) -> None:
    with pytest.raises(InvalidInput, match="the payload"):
        json_data("the payload", given_)


def test_an_event_is_of_now_unless_it_says_when() -> None:
    assert new_event({"role": " user ", "content": "hi"}, NOW).at == NOW
    assert new_event({"role": "user", "content": "hi", "at": "2025-01-01T00:00:00Z"}, NOW).at.year == 2025
    assert new_event({"role": " user ", "content": "hi"}, NOW).role == "user"


def test_what_is_too_long_for_an_event_is_sent_to_ingest() -> None:
    with pytest.raises(InvalidInput, match="engram ingest"):
        new_event({"role": "user", "content": "x" * (MAX_CONTENT + 1)}, NOW)
