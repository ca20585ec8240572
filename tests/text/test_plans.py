"""What is planned is told from what is."""

import pytest

from engram.text.statements import asks_about_now, is_only_planned, is_plan

NOW = "The office is in Malmö."


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("The office will move to Hamburg in 2028.", True),
        ("The office is going to move to Hamburg.", True),
        ("The lease is planned to end in May.", True),
        ("From now on we will use tabs.", False),
        ("I will never work on Sundays.", False),
        ("The office moved to Hamburg.", False),
    ],
)
def test_a_plan_says_what_will_be(statement: str, expected: bool) -> None:
    assert is_plan(statement) is expected


def test_only_a_plan_beside_what_is_leaves_it_current() -> None:
    assert is_only_planned("The office will move to Hamburg.", NOW)
    assert not is_only_planned("The office will move to Bonn.", "The office will move to Hamburg.")
    assert not is_only_planned("The office moved to Hamburg.", NOW)


def test_a_question_says_that_it_is_about_now() -> None:
    assert asks_about_now("Which database do we use today?")
    assert not asks_about_now("Which database do we use?")
    assert not asks_about_now("Will the office move today?")
