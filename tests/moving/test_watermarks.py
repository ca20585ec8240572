"""Uses get new positions where they arrive: each memory's watermark must stand behind the same uses as before."""

from array import array
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engram.model.errors import StoreError
from engram.model.memory import Activation, Memory
from engram.store.records import image
from engram.store.watermarks import Watermarks, watermark

positions = st.lists(st.integers(1, 10**18), unique=True, max_size=30).map(sorted)


def used(seq: int) -> dict[str, Any]:
    """The image of a memory with a watermark."""
    return image(Memory("ENG-1", "a fact", activation=Activation(frequency=3, seq=seq)))


@given(positions, st.integers(1, 10**18), st.data())
@settings(deadline=None)
def test_what_was_folded_stays_folded_and_nothing_else(here: list[int], seq: int, data: st.DataObject) -> None:
    there = sorted(data.draw(st.sets(st.integers(1, 10**18), min_size=len(here), max_size=len(here))))
    after = Watermarks(array("q", here), array("q", there), "here").translated(used(seq))
    assert [p < watermark(after) for p in there] == [p < seq for p in here]


def test_the_next_use_is_not_covered() -> None:
    after = Watermarks(array("q", [5, 9]), array("q", [70, 71]), "here").translated(used(10))
    assert watermark(after) == 72


def test_an_image_without_a_watermark_stays_to_the_letter() -> None:
    before = {"id": "ENG-1", "statement": "a fact", "unknown": {"seq": 7}}
    assert Watermarks(array("q", [1]), array("q", [9]), "here").translated(before) is before


def test_a_log_that_lost_uses_is_refused() -> None:
    with pytest.raises(StoreError, match="pruned or purged"):
        Watermarks(array("q", [1, 2]), array("q", [1]), "here")


def test_a_record_of_a_newer_engram_only_changes_in_that_place() -> None:
    newer = {**used(5), "version": 99, "new": 1}
    after = Watermarks(array("q", [4]), array("q", [40]), "here").translated(newer)
    assert after == {**newer, "activation": {**newer["activation"], "seq": 41}}
