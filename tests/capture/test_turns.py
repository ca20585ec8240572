"""Whole turns: every fact that was decided beforehand is taken, once, and nothing else."""

from datetime import UTC, datetime

import pytest

from engram.capture.extraction import ExtractedFact, extract
from tests.capture.test_extraction import MOST_CANDIDATES, MOST_JUNK
from tests.capture.turns import LAST, LATER, TURNS
from tests.tables import table

AT = datetime(2026, 3, 4, 10, 0, tzinfo=UTC)
"""A Wednesday."""


def taken(text: str) -> list[ExtractedFact]:
    return extract([{"role": "user", "content": text}], at=AT)


ALL = [*TURNS, *LATER, *LAST]


def test_a_turn_without_facts_leaves_nothing_but_for_the_errors_of_the_model() -> None:
    found = [fact for said, facts in ALL if not facts for fact in taken(said)]
    empty = sum(not facts for _, facts in ALL)
    proposed = [fact.statement for fact in found if not fact.tentative]
    assert len(proposed) <= MOST_JUNK * empty, proposed
    assert len(found) <= MOST_CANDIDATES * empty, [fact.statement for fact in found]


@table(("said", "facts"), [row for row in ALL if row[1]])
def test_a_turn_leaves_its_facts_and_no_more(said: str, facts: tuple[str, ...]) -> None:
    statements = [one.statement for one in taken(said)]
    assert len(statements) == len(facts)
    assert [fact for fact in facts if not any(fact.lower() in each.lower() for each in statements)] == []


@table(
    ("said", "statement", "since"),
    [
        ("I moved to Porto last month", "The user lives in Porto.", (2026, 2, 1)),
        ("I quit smoking in 2019", "The user quit smoking.", (2019, 1, 1)),
        ("We switched to pnpm in January", "We switched to pnpm.", (2026, 1, 1)),
        ("I got promoted to staff engineer yesterday", "The user was promoted to staff engineer.", (2026, 3, 3)),
        ("I became a dad last summer", "The user became a dad.", (2025, 6, 1)),
        ("My father passed away last year", "The user's father passed away.", (2025, 1, 1)),
        ("Our repo was renamed to atlas last month", "Our repo was renamed to atlas.", (2026, 2, 1)),
        ("I've been vegan since 2018", "The user has been vegan since 2018.", (2018, 1, 1)),
    ],
)
def test_what_a_change_says_of_its_time_is_kept(said: str, statement: str, since: tuple[int, int, int]) -> None:
    (found,) = taken(said)
    assert (found.statement, found.since) == (statement, datetime(*since, tzinfo=UTC))


@pytest.mark.parametrize(
    "said", ["I live in Lisbon", "I moved to Porto", "I prefer tea over coffee", "We use pnpm now"]
)
def test_what_names_no_time_has_none(said: str) -> None:
    assert [one.since for one in taken(said)] == [None]


@table(
    "said",
    [
        "You should never eat raw chicken",
        "You should always drink enough water",
        "You can never have too many tests",
        "People should always be kind",
        "One must never give up",
        "I always forget how to exit vim",
        "I never manage to finish early",
        "I usually miss the obvious",
        "I always lose my keys",
    ],
)
def test_advice_to_the_world_and_a_sigh_are_neither_orders_nor_preferences(said: str) -> None:
    assert taken(said) == []


@table(
    ("said", "statement"),
    [
        ("You should never push to main", "Never push to main."),
        ("You must always run the linter", "Always run the linter."),
        ("You should always ask before you delete a branch", "Always ask before you delete a branch."),
        ("I always take the night train", "The user always takes the night train."),
        ("I never drink coffee", "The user never drinks coffee."),
    ],
)
def test_an_order_and_a_habit_are_taken_still(said: str, statement: str) -> None:
    assert [one.statement for one in taken(said)] == [statement]


def test_the_place_of_a_fact_before_a_remark_is_its_clause() -> None:
    said = "Hi! I moved to Porto last month, still unpacking."
    (found,) = taken(said)
    assert said[slice(*found.span)] == "I moved to Porto last month, still unpacking."


def test_a_question_tagged_on_is_still_a_question() -> None:
    assert taken("I live in Lisbon, right?") == []
    assert [one.statement for one in taken("I live in Lisbon, what is there to see at night?")] == [
        "The user lives in Lisbon."
    ]
