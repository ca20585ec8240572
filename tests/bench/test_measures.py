"""Measures of a ranking, on rankings whose worth is plain."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.bench.retrieval import Tally, all_hit, any_hit, fraction, ndcg, reciprocal_rank, sessions_in_order

RANKING = ["a", "b", "c", "d", "e", "f"]
keys = st.lists(st.sampled_from("abcdefgh"), unique=True)


def test_any_hit_needs_one_and_all_hit_needs_every_one() -> None:
    assert any_hit(RANKING, ["b", "z"], 5) == 1
    assert all_hit(RANKING, ["b", "z"], 5) == 0
    assert all_hit(RANKING, ["b", "e"], 5) == 1


def test_what_stands_behind_the_cut_does_not_count() -> None:
    assert any_hit(RANKING, ["f"], 5) == 0
    assert fraction(RANKING, ["a", "f"], 5) == 0.5


def test_ndcg_is_one_for_the_best_order_and_less_for_a_later_place() -> None:
    assert ndcg(["a", "b"], ["a", "b"], 10) == 1
    assert ndcg(["x", "a"], ["a"], 10) == pytest.approx(1 / math.log2(3))


def test_the_ideal_of_ndcg_holds_no_more_than_the_cut_has_room_for() -> None:
    assert ndcg(["a", "b"], ["a", "b", "c"], 2) == 1


def test_the_reciprocal_rank_is_that_of_the_first_wanted_key() -> None:
    assert reciprocal_rank(RANKING, ["e", "c"], 5) == pytest.approx(1 / 3)
    assert reciprocal_rank(RANKING, ["f"], 5) == 0


def test_sessions_stand_in_the_order_of_their_best_turn() -> None:
    assert sessions_in_order(["2b", "1a", "2a", "3a"], {"1a": "1", "2a": "2", "2b": "2", "3a": "3"}) == ["2", "1", "3"]


def test_a_tally_averages_over_questions_not_over_categories() -> None:
    tally = Tally()
    tally.add("easy", ["a"], ["a"])
    tally.add("easy", ["a"], ["a"])
    tally.add("hard", ["a"], ["z"])
    assert tally.means()["any@5"] == pytest.approx(2 / 3)
    assert tally.by_category("any@5") == {"easy": 1.0, "hard": 0.0}
    assert tally.questions == 3


def test_a_level_sets_its_measures_apart() -> None:
    tally = Tally()
    tally.add("easy", ["a"], ["a"])
    tally.add("easy", ["s"], ["t"], level="session")
    assert tally.means()["any@10"] == 1
    assert tally.means()["session any@10"] == 0


@given(keys, keys.filter(bool), st.integers(1, 10))
def test_all_hit_never_exceeds_the_fraction_and_the_fraction_never_any_hit(
    ranking: list[str], wanted: list[str], cut: int
) -> None:
    assert all_hit(ranking, wanted, cut) <= fraction(ranking, wanted, cut) <= any_hit(ranking, wanted, cut)
    assert 0 <= ndcg(ranking, wanted, cut) <= 1
