"""What strangers say in passing: what lasts is put down to be read alone, and fits the policies; the rest is left."""

from datetime import UTC, datetime

import pytest

from engram.capture.extraction import extract
from engram.gates.policies import policy_named
from engram.model.memory import Memory
from engram.model.types import memory_type
from tests.capture.everyday import LEFT, TAKEN
from tests.capture.test_extraction import MOST_CANDIDATES, MOST_JUNK
from tests.tables import table

AT = datetime(2026, 3, 4, 10, 0, tzinfo=UTC)
"""A Wednesday."""


def statements(said: str) -> list[str]:
    return [one.statement for one in extract([{"role": "user", "content": said}], at=AT)]


@table(("said", "statement"), TAKEN)
def test_what_a_stranger_says_for_good_is_taken(said: str, statement: str) -> None:
    assert statements(said) == [statement]


def test_what_a_stranger_says_in_passing_is_left_but_for_the_errors_of_the_model() -> None:
    found = [fact for said in LEFT for fact in extract([{"role": "user", "content": said}], at=AT)]
    proposed = [fact.statement for fact in found if not fact.tentative]
    assert len(proposed) <= MOST_JUNK * len(LEFT), proposed
    assert len(found) <= MOST_CANDIDATES * len(LEFT), [fact.statement for fact in found]


ASKED = [
    ("Please remember that the deploy window is Tuesday.", "The deploy window is Tuesday."),
    ("Remember that maybe we move the office.", "Maybe we move the office."),
    ("Remember that Ana said the launch slipped.", "Ana said the launch slipped."),
    ("Can you remember that I parked on level 3?", "The user parked on level 3."),
    ("Keep in mind that I'm seeing the notary tomorrow.", "The user is seeing the notary on 2026-03-05."),
    ("Don't forget that I never answer on Sundays.", "The user never answers on Sundays."),
    ("Note: parcels go to my neighbour.", "Parcels go to the user's neighbour."),
]


@pytest.mark.parametrize(("said", "statement"), ASKED, ids=lambda value: value[:50])
def test_what_is_asked_to_be_remembered_is_taken_whatever_it_says(said: str, statement: str) -> None:
    (one,) = extract([{"role": "user", "content": said}], at=AT)
    assert (one.statement, one.confidence) == (statement, 0.95)
    assert "asked to be remembered" in one.reason


@table(
    "said",
    [
        "Do you remember that the window is Tuesday?",
        "Remember what we did?",
        "Remember when we met in Rome.",
        "Remember that my key is sk-proj-abcdefghijklmnopqrstuvwx1234567890ABCD",
        "Remember to close the file.",
    ],
)
def test_a_recollection_a_reminder_and_a_secret_are_no_requests(said: str) -> None:
    assert statements(said) == []


KEYS = [
    ("default", "I moved to Lisbon last month.", "residence:user"),
    ("default", "I live in Rome now.", "residence:user"),
    ("default", "I started at Contoso as a data engineer.", "employer:user"),
    ("default", "I got promoted to staff engineer.", "job_title:user"),
    ("default", "I switched from npm to pnpm.", "package_manager:js"),
    ("default", "I switched from Vim to Helix last week.", "preferred_editor:user"),
    ("default", "My manager is Priya.", "manager:user"),
    ("default", "Standup is at 9:30.", "meeting:standup"),
    ("default", "I have no allergies.", "allergy_exclusion:user"),
    ("coding_agent", "I just switched from npm to pnpm.", "package_manager:js"),
    ("coding_agent", "We migrated from MySQL to Postgres last spring.", "database"),
    ("coding_agent", "Use ruff for linting.", "linter:python"),
]


@pytest.mark.parametrize(("policy", "said", "key"), KEYS, ids=lambda value: value[:40])
def test_what_changed_gets_the_key_of_what_it_replaces(policy: str, said: str, key: str) -> None:
    (statement,) = statements(said)
    assert policy_named(policy).apply(Memory(id="", statement=statement), typed=False).conflict_key == key


def test_nothing_that_people_say_of_themselves_is_of_a_sensitive_type() -> None:
    read = [one for said, _ in TAKEN for one in extract([{"role": "user", "content": said}], at=AT)]
    assert {one.type for one in read if memory_type(one.type).tier > 1} <= {"constraint"}


@pytest.mark.parametrize("said", ["My passport number is X1234567.", "My national insurance number is QQ 12 34 56 C."])
def test_numbers_that_identify_a_person_are_held_back(said: str) -> None:
    assert [one.type for one in extract([{"role": "user", "content": said}], at=AT)] == ["identity"]
