"""`min_relevance` on every call that looks something up, and the answer that nothing is known."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from engram import Engram
from engram.model.errors import InvalidInput
from tests.tables import table

SERVER, ROOM, TEA = "The staging server is called nightshift", "The server room is cold", "Anna likes tea"
QUESTION, UNRELATED = "What is the staging server called?", "asdkjhasd"


@pytest.fixture
def office(mem: Engram) -> Engram:
    for statement in (SERVER, ROOM, TEA):
        mem.add(statement, scope="global")
    return mem


def texts(hits: Sequence[Any]) -> list[str]:
    return [hit.text for hit in hits]


@pytest.mark.parametrize("mode", ["hybrid", "semantic", "keyword"])
def test_a_search_returns_what_ranks_and_with_a_floor_what_is_about_it(office: Engram, mode: str) -> None:
    every = office.search(QUESTION, mode=mode)
    assert every[0].text == SERVER and all(0 <= hit.relevance <= 1 for hit in every)
    assert texts(office.search(QUESTION, mode=mode, min_relevance=0.5)) == [SERVER]
    assert office.search(UNRELATED, mode=mode, min_relevance=0.1) == []


def test_the_floor_applies_before_the_limit_cuts(mem: Engram) -> None:
    for number in range(8):
        mem.add(f"The server room {number} is cold", scope="global")
    mem.add(SERVER, scope="global")
    found = mem.search(QUESTION, limit=1, min_relevance=0.5)
    assert texts(found) == [SERVER]
    assert found.filtered and all(left.reason.endswith("below 0.50") for left in found.filtered)


def test_deep_search_has_the_same_floor(office: Engram) -> None:
    assert set(texts(office.deep_search(QUESTION))) > {SERVER}
    assert texts(office.deep_search(QUESTION, min_relevance=0.5)) == [SERVER]


def test_one_thing_asked_for_is_one_thing_answered(office: Engram) -> None:
    found = office.recall(QUESTION)
    assert (texts(found.hits), texts(found.possible)) == ([SERVER], [])
    assert texts(office.recall(QUESTION, min_relevance=0).hits)[:2] == [SERVER, ROOM]


@pytest.mark.parametrize("narrowed", [{}, {"kinds": ("memory",)}, {"status": "active"}, {"as_of": "2030-01-01"}])
def test_a_close_memory_that_does_not_answer_is_only_possible(office: Engram, narrowed: dict[str, Any]) -> None:
    found = office.recall("Where does Anna live?", **narrowed)
    assert (list(found.hits), texts(found.possible)) == ([], [TEA])
    assert found.text.startswith("Possibly related:\n[") and TEA in found.text
    assert 0 < found.possible[0].relevance < 0.15


def test_what_is_only_possible_is_not_strengthened(office: Engram) -> None:
    found = office.recall("Where does Anna live?")
    assert found.possible and office.store.uses([hit.id for hit in found.possible]) == []
    known = office.recall(QUESTION)
    assert [use.kind for use in office.store.uses([known.hits[0].id])] == ["recalled"]


def test_gibberish_matches_nothing(office: Engram) -> None:
    found = office.recall(UNRELATED)
    assert (list(found.hits), list(found.possible)) == ([], [])
    assert found.text == "Nothing is known about this."


def test_a_trace_names_why_a_memory_is_in_no_part_of_the_answer(office: Engram) -> None:
    traced = office.trace_recall(QUESTION)
    shown = {hit.id for hit in (*traced.recall.hits, *traced.recall.possible)}
    reasons = {left.id: left.reason for left in traced.irrelevant}
    [tea] = [memory.id for memory in office.list() if memory.statement == TEA]
    assert reasons[tea].endswith("below 0.15") and shown.isdisjoint(reasons)


def test_a_fact_the_question_names_has_relevance_1(mem: Engram) -> None:
    mem.add("The user moved to Lisbon", scope="global")
    hit = mem.recall("What is my home?").hits[0]
    assert (hit.text, hit.relevance) == ("The user moved to Lisbon", 1.0)
    assert hit.trace is not None and "key" in hit.trace.found_by


def test_blocks_and_injections_hold_what_may_help(office: Engram) -> None:
    task = office.start_task("Name the servers", scope="global").id
    for text in (
        office.inject(QUESTION).text,
        office.get_context_block(QUESTION),
        office.build_context(task, QUESTION).text,
    ):
        assert SERVER in text and TEA not in text
    for text in (
        office.inject(QUESTION, min_relevance=0.99).text,
        office.get_context_block(QUESTION, min_relevance=0.99),
        office.build_context(task, QUESTION, min_relevance=0.99).text,
    ):
        assert SERVER not in text


def test_what_is_pinned_or_critical_is_injected_whatever_the_floor(mem: Engram) -> None:
    mem.add("I am allergic to penicillin", critical_slot="allergy", scope="global")
    mem.pin(mem.add("Answer in English", scope="global").id)
    text = mem.inject("order lunch", min_relevance=1).text
    assert "penicillin" in text and "English" in text


CALLS: dict[str, Callable[[Engram, Any], object]] = {
    "search": lambda mem, floor: mem.search("x", min_relevance=floor),
    "deep_search": lambda mem, floor: mem.deep_search("x", min_relevance=floor),
    "recall": lambda mem, floor: mem.recall("x", min_relevance=floor),
    "trace_recall": lambda mem, floor: mem.trace_recall("x", min_relevance=floor),
    "inject": lambda mem, floor: mem.inject("x", min_relevance=floor),
    "get_context_block": lambda mem, floor: mem.get_context_block("", min_relevance=floor),
    "build_context": lambda mem, floor: mem.build_context(mem.start_task("x").id, memory_limit=0, min_relevance=floor),
}


@table("call", CALLS)
@table("floor", [-1, 1.5, "0.5", True])
def test_a_floor_that_is_none_is_refused(mem: Engram, call: str, floor: object) -> None:
    with pytest.raises(InvalidInput, match="min_relevance"):
        CALLS[call](mem, floor)
