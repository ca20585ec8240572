"""Factors of the score, and what a scope sees."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.model.errors import InvalidInput
from engram.model.memory import Feedback
from engram.rules.lifecycle import anchor_boost, confidence_weight, feedback_weight, recency_boost, schema_boost
from engram.rules.scopes import ancestors, parse_scope, wider_scopes
from tests.tables import table

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@table(
    ("positive", "negative", "weight"),
    [(0, 0, 1.0), (1, 0, 1.05), (20, 0, 1.30), (0, 1, 0.9), (0, 50, 0.5), (3, 3, 1.0), (2, 4, 0.8)],
)
def test_feedback_lifts_a_little_and_lowers_more(positive: int, negative: int, weight: float) -> None:
    assert feedback_weight(Feedback(positive, negative)) == pytest.approx(weight)


def test_confidence_runs_from_three_quarters_to_five_quarters() -> None:
    assert [confidence_weight(c) for c in (0.0, 0.5, 1.0)] == [0.75, 1.0, 1.25]


def test_an_anchor_counts_when_it_shares_two_words_and_four_are_enough() -> None:
    query = ["deploy", "database", "pods"]
    assert anchor_boost(query, [["deploy", "pods"], ["pods"]]) == 0.5
    assert anchor_boost(query, [["deploy", "pods"]] * 9) == 2.0
    assert anchor_boost(["deploy"], [["deploy"]]) == 0.5


def test_recency_halves_in_thirty_days_and_stays_small() -> None:
    assert recency_boost(NOW, NOW) == pytest.approx(0.2)
    assert recency_boost(NOW - timedelta(days=30), NOW) == pytest.approx(0.1)
    assert recency_boost(None, NOW) == 0


def test_a_schema_boosts_by_the_share_of_its_other_members() -> None:
    assert schema_boost(2, 3) == 2.0
    assert schema_boost(1, 3) == 1.0
    assert schema_boost(0, 3) == 0.0


def test_a_scope_sees_its_ancestors_then_global() -> None:
    assert ancestors("project:acme/api/v2") == ("project:acme/api/v2", "project:acme/api", "project:acme")
    assert wider_scopes(["project:acme/api", "user"]) == ("project:acme/api", "project:acme", "user", "global")


@table(
    "scope",
    ["project:../etc", "project:/etc", "project:a//b", "project:", "acme", "project:a\\b", "project:a\x00", "p" * 300, "",
     "project:a/./b", "PROJECT:x", "project:a\u202eb"],
)  # fmt: skip
def test_a_scope_cannot_be_a_path_or_a_trick(scope: str) -> None:
    with pytest.raises(InvalidInput):
        parse_scope(scope)


@given(st.text(max_size=60))
def test_any_text_is_a_scope_or_a_clear_error(text: str) -> None:
    try:
        assert parse_scope(text) == text.strip()
    except InvalidInput as error:
        assert str(error)
