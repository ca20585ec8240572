"""Recall reads a question with each memory that was found: what answers it in other words is found, and comes first."""

from collections.abc import Iterator

import pytest

from engram import Engram
from engram.recall import search

TOLD = (
    "I go to work by tram.",
    "The office is above the bakery.",
    "Our standup is at half past nine.",
    "My daughter plays the clarinet.",
    "Karen signs my holidays.",
    "We deploy from GitHub Actions.",
)


@pytest.fixture
def mem() -> Iterator[Engram]:
    with Engram.open(ephemeral=True) as opened:
        yield opened


@pytest.fixture
def told(mem: Engram) -> Engram:
    for text in TOLD:
        mem.add(text)
    return mem


def test_an_answer_in_other_words_is_found(told: Engram, monkeypatch: pytest.MonkeyPatch) -> None:
    found = told.recall("How do I commute?")
    assert found.hits[0].text == "I go to work by tram."
    monkeypatch.setattr(search, "_answering", lambda _, considered: list(considered))
    assert told.recall("How do I commute?").hits == []


def test_what_nothing_answers_finds_nothing(told: Engram) -> None:
    for question in ("What is my shoe size?", "Who is the landlord of the bakery?"):
        assert told.recall(question).hits == [], question


def test_the_parts_of_a_hit_add_up_with_what_it_answers(told: Engram) -> None:
    first = told.recall("How do I commute?", explain=True).hits[0]
    assert first.trace is not None
    assert "answers" in [part.name for part in first.trace.parts]
    assert first.trace.replay() == pytest.approx(first.score)
    assert first.score == pytest.approx(told.recall("How do I commute?").hits[0].score)


def test_only_questions_about_what_holds_now_are_read_so(told: Engram, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def noted(question: str, considered: list[object]) -> list[object]:
        asked.append(question)
        return considered

    monkeypatch.setattr(search, "_answering", noted)
    told.search("How do I commute?")
    told.inject("How do I commute?")
    told.recall("When did I start to go by tram?")
    assert asked == []
    told.recall("How do I commute?")
    assert set(asked) == {"How do I commute?"}


def test_a_long_memory_keeps_its_relevance(mem: Engram) -> None:
    long = mem.add("The tram goes past the harbour. " + "It stops at the market, too. " * 12)
    question = "Where does the tram go past?"
    assert mem.recall(question).hits[0].relevance == pytest.approx(mem.search(question)[0].relevance)
    assert mem.recall(question).hits[0].id == long.id
