"""Memories that cover less of a question than another one are not known, only possibly related."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from engram import Engram
from engram.recall.coverage import find_siblings

CLIENT = ["the trucking client"]
STATEMENTS = {
    "Vantor Logistics pays within 30 days.": CLIENT,
    "The contract with Vantor Logistics is in the blue folder.": CLIENT,
    "Vantor Logistics has its head office in Malmö.": CLIENT,
    "The Hartwig microscope has a halogen lamp.": [],
    "The Leitz microscope needs no booking.": [],
    "Rosa Vidal approves changes to the schema.": [],
    "Tom Aldous approves changes to the frontend.": [],
}


@pytest.fixture
def mem(tmp_path: Path) -> Iterator[Engram]:
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as opened:
        for statement, cues in STATEMENTS.items():
            opened.learn(statement, scope="global", source="human", cues=cues)
        yield opened


def known(mem: Engram, question: str) -> list[str]:
    return [hit.text for hit in mem.recall(question).hits]


def test_of_memories_with_one_alias_the_one_that_says_what_is_asked_is_known(mem: Engram) -> None:
    answer = mem.recall("When does the trucking client pay?")
    assert [hit.text for hit in answer.hits] == ["Vantor Logistics pays within 30 days."]
    assert "The contract with Vantor Logistics is in the blue folder." in [hit.text for hit in answer.possible]


def test_a_question_for_several_things_keeps_them(mem: Engram) -> None:
    assert len(known(mem, "Which people approve changes?")) == 2


def test_what_holds_for_a_sibling_is_not_known_of_the_one_asked_about(mem: Engram) -> None:
    question = "Which lamp does the Leitz microscope have?"
    assert "The Hartwig microscope has a halogen lamp." not in known(mem, question)


def test_an_unknown_name_has_no_siblings(mem: Engram) -> None:
    hits = mem.search("the lamp of the Zeiss microscope")
    assert find_siblings("Which lamp does the Zeiss microscope have?", hits) == frozenset()


def test_a_question_with_two_names_has_no_siblings(mem: Engram) -> None:
    hits = mem.search("the lamp of the Leitz microscope")
    assert find_siblings("Which lamp does the Leitz or the Nikon have?", hits) == frozenset()
