"""Uses get new positions where they arrive: each memory's watermark must come after the same uses as before."""

from array import array
from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from engram.model.memory import Activation, Memory
from engram.store.migration.records import Image, JournalRecord, MemoryImage, make_local, make_portable, watermark
from engram.store.records import image

positions = st.lists(st.integers(1, 10**18), unique=True, max_size=30).map(sorted)


def used(seq: int) -> dict[str, Any]:
    """The image of a memory with a watermark."""
    return image(Memory("ENG-1", "a fact", activation=Activation(frequency=3, seq=seq)))


def moved(after: Image, here: list[int], there: list[int]) -> Image:
    """An image as a target that numbers its uses in another way keeps it."""
    one = MemoryImage("ENG-1", make_portable(after, array("q", here)))
    record = JournalRecord(datetime(2026, 3, 1, tzinfo=UTC), "add", "test", "", "", (one,), "1")
    return make_local(record, array("q", there)).images[0].after


@given(positions, st.integers(1, 10**18), st.data())
@settings(deadline=None)
def test_what_was_folded_stays_folded_and_nothing_else(here: list[int], seq: int, data: st.DataObject) -> None:
    there = sorted(data.draw(st.sets(st.integers(1, 10**18), min_size=len(here), max_size=len(here))))
    after = moved(used(seq), here, there)
    assert [p < watermark(after) for p in there] == [p < seq for p in here]


def test_the_next_use_is_not_covered() -> None:
    assert watermark(moved(used(10), [5, 9], [70, 71])) == 72


def test_an_image_without_a_watermark_stays_to_the_letter() -> None:
    before = {"id": "ENG-1", "statement": "a fact", "unknown": {"seq": 7}}
    assert moved(before, [1], [9]) is before


def test_a_record_of_a_newer_engram_only_changes_in_that_place() -> None:
    newer = {**used(5), "version": 99, "new": 1}
    assert moved(newer, [4], [40]) == {**newer, "activation": {**newer["activation"], "seq": 41}}
