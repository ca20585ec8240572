"""Recall reads a question with each memory that was found: what answers it in other words is found, and comes first."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from engram import Engram
from engram.models.answers import _known, answering
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
    monkeypatch.setattr(search, "_read_with", lambda _, considered: list(considered))
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

    monkeypatch.setattr(search, "_read_with", noted)
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


def test_what_the_words_show_is_not_lost(mem: Engram) -> None:
    """The model that reads both does not know every wording: it may doubt an answer in the question's own words, not refuse it."""
    for text in ("The cat sleeps on the sofa all day long", "I was born in Ghent", "Ana wrote the parser"):
        mem.add(text)
    for question in ("Where does the cat sleep?", "Who wrote the parser?"):
        by_words = mem.search(question)[0]
        found = mem.recall(question).hits[0]
        assert (found.text, found.relevance > by_words.relevance / 3) == (by_words.text, True)


def test_a_question_with_a_story_around_it_is_read_by_its_words_alone(told: Engram) -> None:
    question = "How do I commute? " + "We had such a lovely day at the lake and the children ate all of the cake. " * 2
    found = told.recall(question, min_relevance=0.0).hits[0]
    known = {hit.id: hit.relevance for hit in told.search(question)}
    assert found.relevance == pytest.approx(known[found.id])


def test_threads_that_ask_the_same_get_the_same(told: Engram) -> None:
    with ThreadPoolExecutor(4) as pool:
        for number in range(5):
            _known.cache_clear()
            start = Barrier(4)

            def ask(
                _: int, start: Barrier = start, question: str = f"How do I commute in week {number}?"
            ) -> list[float]:
                start.wait(60)
                return answering(question, TOLD)

            first, *others = pool.map(ask, range(4))
            assert all(other == pytest.approx(first, abs=1e-6) for other in others)
