"""Weekdays that name a day of every week."""

from datetime import UTC, datetime

import pytest

from engram.recall.parse import parse
from tests.backends import Backend

AT = datetime(2026, 11, 19, 12, tzinfo=UTC)
OF_EVERY_WEEK = (
    "can I ship on Friday?",
    "may I deploy on friday afternoon?",
    "is it okay to change configuration on Saturday?",
    "should I push a release this Friday?",
    "does the on-call rotation change on Monday?",
)
OF_THE_CALENDAR = (
    "did we ship on Friday?",
    "am I free on Friday?",
    "do I have a meeting on Friday?",
    "is the bakery delivering on Monday?",
    "can I ship next Friday?",
    "can I still ship today?",
    "could you show me Friday's commits?",
    "what happens on Friday?",
)


@pytest.mark.parametrize("question", OF_EVERY_WEEK)
def test_a_question_about_a_rule_names_no_time(question: str) -> None:
    read = parse(question, AT)
    assert read.window is None and read.subject == question


@pytest.mark.parametrize("question", OF_THE_CALENDAR)
def test_other_questions_name_a_day_of_the_calendar(question: str) -> None:
    assert parse(question, AT).window is not None


def test_a_rule_answers_a_question_about_a_weekday(backend: Backend) -> None:
    mem = backend.client()
    rule = mem.learn("Deploys are forbidden on Fridays after 3 pm", source="user", scope="global").memory
    mem.learn("The standup is at 9:15", source="user", scope="global")
    assert rule is not None
    found = mem.recall("may I deploy on Friday afternoon?", scope="global")
    assert [hit.id for hit in found.hits] == [rule.id] and not found.warnings
