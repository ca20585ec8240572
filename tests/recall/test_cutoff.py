"""Floors under relevance: what answers, what is only near, and how many things a question asks for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.model.errors import InvalidInput
from engram.model.hit import Hit, Hits
from engram.recall.cutoff import (
    ABOUT_FLOOR,
    INJECT_FLOOR,
    MAX_NEAREST,
    MIN_SHARE_OF_BEST,
    NEAREST_FLOOR,
    SURE_RELEVANCE,
    apply_floor,
    asks_for_several,
    check_relevance,
    keep_relevant,
    mark_looked_up,
    nearest_hits,
)
from tests.tables import table

ONE, SEVERAL = "Who is my dentist?", "Which dentists do I know?"
relevances = st.lists(st.floats(0, 1), max_size=12)


def hits(*found: float) -> Hits:
    return Hits([Hit(str(place), "memory", 1.0, "x", relevance=relevance) for place, relevance in enumerate(found)])


def ids(found: list[Hit]) -> list[str]:
    return [hit.id for hit in found]


def test_the_floors_stand_in_their_order() -> None:
    assert 0 < NEAREST_FLOOR < INJECT_FLOOR < ABOUT_FLOOR < SURE_RELEVANCE < 1


def test_what_is_below_the_floor_is_no_answer_and_named_with_its_relevance() -> None:
    found = keep_relevant(hits(0.3, 0.04, 0.2), ONE)
    assert ids(found) == ["0", "2"]
    assert [(left.id, left.reason) for left in found.filtered] == [("1", "relevance 0.04, below 0.08")]


def test_one_thing_asked_for_gets_what_is_at_least_half_as_likely_as_the_best() -> None:
    found = keep_relevant(hits(0.3, 0.8, 0.41, 0.2), ONE)
    assert ids(found) == ["1", "2"]
    assert found.filtered[-1].reason == "relevance 0.20, less than half of the best one's 0.80"
    assert ids(keep_relevant(hits(0.3, 0.8, 0.41, 0.2), SEVERAL)) == ["0", "1", "2", "3"]


def test_a_floor_of_nothing_cuts_nothing() -> None:
    assert ids(keep_relevant(hits(0.9, 0.0), ONE, 0.0)) == ["0", "1"]


def test_the_nearest_are_a_few_below_the_floor_the_nearest_first() -> None:
    near = nearest_hits(hits(0.03, 0.07, 0.001, 0.05, 0.06, 0.5))
    assert ids(near) == ["1", "4", "3"]
    assert len(near) == MAX_NEAREST


def test_what_was_looked_up_is_about_the_question_and_says_so() -> None:
    hit = mark_looked_up(hits(0.01)[0], "key")
    assert hit.relevance == 1.0
    assert hit.trace is not None and "key" in hit.trace.found_by


@table("value", [-0.1, 1.1, float("nan"), float("inf"), True, "0.5", None])
def test_a_relevance_lies_between_0_and_1(value: object) -> None:
    with pytest.raises(InvalidInput, match=r"min_relevance .* must be a number from 0 to 1"):
        check_relevance(value)


@given(relevances, st.floats(0, 1))
def test_a_cut_keeps_the_order_and_loses_nothing(found: list[float], floor: float) -> None:
    before = hits(*found)
    for after in (apply_floor(before, floor), keep_relevant(before, ONE, floor)):
        assert sorted(ids(after) + [left.id for left in after.filtered], key=int) == ids(before)
        assert ids(after) == sorted(ids(after), key=int)
        assert all(hit.relevance >= floor for hit in after)


@given(relevances)
def test_answers_and_nearest_never_share_a_hit(found: list[float]) -> None:
    before = hits(*found)
    answer = keep_relevant(before, ONE)
    assert set(ids(answer)).isdisjoint(ids(nearest_hits(before)))
    assert all(hit.relevance >= MIN_SHARE_OF_BEST * max(found) for hit in answer)


SINGLE = """
Who is my dentist?
What does Anna want for her birthday?
When does the lease run out?
What goes into a commit message?
Who leads the design team?
staging db password rotation
How does Winifred want the receipts?
Is it all right to merge on Fridays?
Who comes first in the author list?
what happens when the build fails
Which editor do I use?
How old was I when we moved?
Where do I park?
What do we do with old invoices?
When do the invoices go out?
What bus does Anna take?
"""
MANY = """
Which servers do we run?
What are my allergies?
Who were the reviewers?
Where are the feature flags?
How many tests failed last week?
List my open invoices
all the restaurants I liked
everything about the launch
Postgres vs SQLite for the cache
What is the difference between the two plans?
Compare the offers of both suppliers
Who is my supervisor and when do we meet?
Where do my sisters live?
What do the children play?
Which foreign languages do I speak?
What languages can Ana speak?
"""


def test_whether_a_question_asks_for_one_thing_or_several() -> None:
    wrong = [line for line in SINGLE.strip().splitlines() if asks_for_several(line)]
    missed = [line for line in MANY.strip().splitlines() if not asks_for_several(line)]
    assert (wrong, missed) == ([], [])
