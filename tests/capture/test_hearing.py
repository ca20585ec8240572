"""What is heard in passing, in a stream of statements, and where a mistake could do harm."""

from datetime import UTC, datetime

import pytest

from engram.capture.extraction.extractor import consider
from engram.models.worth import MAYBE_ALONE, REVIEW_PROBABILITY, judge
from tests.backends import Backend

AT = datetime(2026, 3, 4, 10, 0, tzinfo=UTC)
TOLD = (
    "Mirela teaches pottery at the community centre.",
    "Our bakery closes at two on Saturdays.",
    "Oskar's kindergarten moved to the old post office.",
    "The choir pays 120 euros a month for the hall.",
    "Tariq took over the night shift from Beate.",
    "My sister-in-law is a locksmith in Porto.",
    "We get our flour from the mill in Zell.",
    "Anselm is allergic to latex.",
)


def test_a_stream_of_statements_is_no_story() -> None:
    judged = judge([("user", [each]) for each in TOLD])
    likely = [one.worth for turn in judged for one in turn]
    assert sum(worth >= REVIEW_PROBABILITY for worth in likely) > len(TOLD) / 2, likely


def test_a_short_statement_is_not_unlikely_for_being_short() -> None:
    short = ("Mirela is vegetarian.", "We drive a Kangoo.", "My oven runs on gas.", "Jan teaches chemistry.")
    likely = [judge([("user", [each])])[0][0].worth for each in short]
    assert sum(worth >= MAYBE_ALONE for worth in likely) >= 3, likely


@pytest.mark.parametrize(
    "said", ["my daughter reacts badly to amoxicillin", "My kid threw up after eating cashews, ER said it's an allergy"]
)
def test_what_could_do_harm_is_at_least_put_before_a_person(said: str) -> None:
    (heard,) = consider([{"role": "user", "content": said}, {"role": "assistant", "content": "Okay."}], at=AT)
    assert heard.facts, heard.reason


def test_what_begins_with_somebody_unnamed_waits() -> None:
    said = "Need a birthday card idea. He turns 70 on 4 May and collects old radios."
    facts = [fact for one in consider([{"role": "user", "content": said}], at=AT) for fact in one.facts]
    assert [fact.tentative for fact in facts] == [True]


@pytest.mark.parametrize("said", ["Forget that I'm allergic to mussels.", "please forget that we live in Graz"])
def test_a_request_to_forget_is_never_a_fact(said: str) -> None:
    (heard,) = consider([{"role": "user", "content": said}], at=AT)
    assert [fact.operation for fact in heard.facts] == ["forget"]


def test_the_assistant_of_a_boss_is_not_the_boss(backend: Backend) -> None:
    mem = backend.client()
    boss = mem.add("My boss is Philippa.", source="human")
    mem.add("My boss's assistant is Yara.", source="human")
    assert mem.get(boss.id).status == "active"


def test_a_question_about_the_past_is_not_answered_with_the_newest_turn(backend: Backend) -> None:
    mem = backend.client()
    for said in ("I ran the 5k in 27 minutes today.", "I ran the 5k in 29 minutes today, legs heavy."):
        mem.observe("runs", "user", said)
    first = mem.recall("What was my first 5k time?", session="runs").hits[0]
    assert "27" in first.text
