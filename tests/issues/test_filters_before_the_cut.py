"""A filter narrows what is searched, before anything is cut to a limit."""

from typing import Any

import pytest

from engram import Engram
from engram.model.errors import InvalidInput
from tests.backends import Backend
from tests.clock import Clock

CROWD = 90
"""More documents of the same words than a retriever hands over."""


@pytest.mark.parametrize("wanted", [{"a": 1}, ["x", {"b": 2}], None], ids=["a mapping", "a list", "nothing"])
def test_a_structured_value_is_found_behind_a_crowd_of_better_matches(backend: Backend, wanted: Any) -> None:
    mem = backend.client()
    rare = mem.add("The zebra crossed the wide river before noon on a dusty road", metadata={"k": wanted})
    mem.add_batch([{"statement": f"zebra river {n}", "metadata": {"k": {"a": n + 2}}} for n in range(CROWD)])
    assert [hit.id for hit in mem.search("zebra river", metadata={"k": wanted}, limit=3)] == [rare.id]
    assert [memory.id for memory in mem.list(metadata={"k": wanted}, limit=3)] == [rare.id]


def test_a_mapping_does_not_crowd_out_the_text_it_contains(backend: Backend) -> None:
    """SQLite looks into a mapping as it does into a list."""
    mem = backend.client()
    rare = mem.add("The zebra crossed the wide river before noon on a dusty road", metadata={"k": "x"})
    mem.add_batch([{"statement": f"zebra river {n}", "metadata": {"k": {"inner": "x"}}} for n in range(CROWD)])
    assert [hit.id for hit in mem.search("zebra river", metadata={"k": "x"}, limit=3)] == [rare.id]


def test_what_json_cannot_hold_is_refused_as_a_filter(backend: Backend) -> None:
    mem = backend.client()
    with pytest.raises(InvalidInput, match="metadata"):
        mem.search("zebra", metadata={"k": object()})


def test_the_review_of_one_memory_is_found_behind_any_number_of_others(backend: Backend, clock: Clock) -> None:
    mem = backend.client()
    first = waiting(mem, "The user was born in 1980")
    for year in range(3):
        clock.forward(hours=1)
        waiting(mem, f"The user's sister {year} was born in 199{year}")
    assert [item.memory.id for item in mem.review.queue(1, about=first)] == [first]


def waiting(mem: Engram, statement: str) -> str:
    memory = mem.learn(statement, type="identity", source="agent").memory
    assert memory is not None and memory.status == "candidate"
    return memory.id
