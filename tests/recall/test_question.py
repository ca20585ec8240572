"""What a question asks for, of which time, and what to search for."""

import time
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engram.recall.question import INTENTS, understand
from tests.recall.questions import Expected, questions

AT = datetime(2024, 6, 12, 15, 30, tzinfo=ZoneInfo("Europe/Berlin"))
TABLES = ("questions.txt", "questions_held_out.txt", "questions_second_held_out.txt", "questions_third_held_out.txt")
BAR = 0.95


def miss(expected: Expected) -> str:
    """What was misread of a question; empty where nothing was."""
    read = understand(expected.text, expected.at)
    wrong = []
    if read.intent != expected.intent:
        wrong.append(f"intent {read.intent} ({read.reason}), not {expected.intent}")
    if (read.window, read.anchor, read.relation) != (expected.window, expected.anchor, expected.relation):
        wrong.append(
            f"{read.phrase!r} is {read.window} {read.relation} {read.anchor}, not {expected.window} {expected.anchor}"
        )
    return f"{expected.text}: {'; '.join(wrong)}" if wrong else ""


def test_at_least_95_of_100_hand_written_questions_are_understood() -> None:
    asked = [row for table in TABLES for row in questions(table)]
    misses = [missed for row in asked if (missed := miss(row))]
    assert len(asked) >= 150
    assert len(misses) <= (1 - BAR) * len(asked), "\n".join(misses)


def test_every_intent_is_asked_for_often_enough_to_count() -> None:
    asked = [row.intent for table in TABLES for row in questions(table)]
    assert all(asked.count(intent) >= 20 for intent in INTENTS)


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("What did I say yesterday about the release?", "What did I say about the release?"),
        ("Last week, what did Anna decide?", "what did Anna decide?"),
        ("What did we ship in March?", "What did we ship?"),
        ("Where did I live before I moved?", "Where did I live?"),
        ("What is my allergy?", "What is my allergy?"),
        ("yesterday", "yesterday"),
    ],
)
def test_the_subject_is_the_question_without_its_time(text: str, subject: str) -> None:
    assert understand(text, AT).subject == subject


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("How has my target changed over time?", "over time"),
        ("What was my previous number?", "previous"),
        ("What did I promise Anna?", "did promise"),
        ("What is my allergy?", "nothing speaks of another time"),
    ],
)
def test_the_reason_names_the_words_that_decided(text: str, reason: str) -> None:
    assert understand(text, AT).reason == reason


@pytest.mark.parametrize(
    ("asked", "intent"),
    [
        ("What is my target?", "current"),
        ("What was my target last week?", "historical"),
        ("What did I decide last week?", "event"),
        ("How did my target change last week?", "lineage"),
    ],
)
def test_the_verb_decides_and_not_the_window(asked: str, intent: str) -> None:
    assert understand(asked, AT).intent == intent


def test_politeness_capitals_and_a_missing_mark_change_nothing() -> None:
    for text in (
        "Could you please tell me what I promised Anna",
        "WHAT DID I PROMISE ANNA",
        "hey, what did I promise Anna?",
    ):
        assert understand(text, AT).intent == "event"


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=300))
def test_any_text_has_a_reading(text: str) -> None:
    read = understand(text, AT)
    assert read.intent in INTENTS
    assert read.phrase in text
    assert read.reason


@pytest.mark.parametrize(
    "piece", ["could you ", "please ", "what ", "did ", "used to ", "history ", "was, ", "x", "all my old "]
)
def test_a_hundred_thousand_characters_are_read_at_once(piece: str) -> None:
    text = (piece * 100_000)[:100_000]
    started = time.process_time()
    understand(text, AT)
    assert time.process_time() - started < 2.0


def test_the_question_behind_a_long_document_is_the_one_that_is_read() -> None:
    read = understand("The build was green. " * 2000 + "What did I promise Anna yesterday?", AT)
    assert (read.intent, read.phrase) == ("event", "yesterday")
