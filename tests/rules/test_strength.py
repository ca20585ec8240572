"""Spec 1's activation model, number by number."""

from datetime import UTC, datetime, timedelta
from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.model.memory import Activation, Association, Memory
from engram.rules.lifecycle import (
    apply_rating,
    band,
    consolidate,
    link_co_accessed,
    link_strength,
    reinforce_memory,
    strength,
)
from engram.rules.numbers import MAX_CO_ACCESS_LINKS
from tests.tables import table

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def memory(**fields: object) -> Memory:
    values: dict[str, object] = {"id": "ENG-2026-0301-001", "statement": "x", "created": NOW}
    return Memory(**{**values, **fields})  # type: ignore[arg-type]


def test_a_new_memory_decays_by_the_formula_of_the_spec() -> None:
    fresh = memory()
    for days in (0, 1, 13.9, 90):
        expected = 0.05 + (0.7 - 0.05) * exp(-0.05 * (1 - 5 / 20) * days)
        assert strength(fresh, NOW + timedelta(days=days)) == pytest.approx(expected)


def test_the_highest_emotional_weight_halves_the_rate() -> None:
    light, heavy = memory(emotional_weight=0), memory(emotional_weight=10)
    later = NOW + timedelta(days=20)
    assert strength(heavy, later) == pytest.approx(strength(light, NOW + timedelta(days=10)))


def test_a_deeply_stored_memory_decays_slower() -> None:
    shallow = memory(activation=Activation(storage_strength=0.5))
    deep = memory(activation=Activation(storage_strength=1.0))
    later = NOW + timedelta(days=30)
    assert strength(deep, later) > strength(shallow, later)


def test_a_clock_set_back_makes_nothing_stronger_than_it_was() -> None:
    assert strength(memory(), NOW - timedelta(days=400)) == pytest.approx(0.7)


@given(st.floats(0, 10_000), st.floats(0, 1), st.floats(0, 1), st.floats(1, 10))
def test_strength_stays_between_floor_and_what_was_stored(days: float, rs: float, ss: float, weight: float) -> None:
    held = memory(activation=Activation(rs, ss), emotional_weight=weight)
    value = strength(held, NOW + timedelta(days=days))
    assert min(rs, 0.05) - 1e-9 <= value <= max(rs, 0.05) + 1e-9


@table(
    ("value", "word"),
    [(0.51, "active"), (0.5, "fading"), (0.31, "fading"), (0.3, "dormant"), (0.1, "retirement candidate")],
)
def test_bands_are_those_of_the_spec(value: float, word: str) -> None:
    assert band(value) == word


def test_reinforcement_raises_both_strengths_and_counts() -> None:
    later = NOW + timedelta(days=10)
    used = reinforce_memory(memory(), later)
    assert used.activation.retrieval_strength == pytest.approx(strength(memory(), later) + 0.10, abs=1e-6)
    assert used.activation.storage_strength == pytest.approx(0.5 + 0.05 * 0.5)
    assert (used.activation.frequency, used.activation.last_accessed) == (1, later)


def test_strengths_never_pass_one() -> None:
    held = memory(activation=Activation(0.99, 0.99))
    for _ in range(20):
        held = reinforce_memory(held, NOW)
    assert held.activation.retrieval_strength == 1.0
    assert held.activation.storage_strength <= 1.0


def test_ratings_move_strength_and_only_praise_verifies() -> None:
    praised, blamed, shrugged = (apply_rating(memory(), signal, NOW) for signal in ("positive", "negative", "neutral"))
    assert praised.activation.retrieval_strength == pytest.approx(0.75)
    assert blamed.activation.retrieval_strength == pytest.approx(0.60)
    assert shrugged.activation == memory().activation
    assert (praised.last_verified, blamed.last_verified) == (NOW, None)
    assert (praised.feedback.positive, blamed.feedback.negative, shrugged.feedback.neutral) == (1, 1, 1)


def test_the_survivor_of_a_contradiction_has_twice_the_storage_strength() -> None:
    survivor = consolidate(memory(activation=Activation(storage_strength=0.3)), NOW)
    assert survivor.consolidated
    assert survivor.activation.storage_strength == pytest.approx(0.6)
    assert consolidate(survivor, NOW).activation.storage_strength == 1.0


def test_memories_injected_together_grow_together_and_apart_again() -> None:
    first = link_co_accessed(memory(), ("B", "C"), NOW)
    assert {link.target: link.strength for link in first.associations} == {"B": 0.1, "C": 0.1}
    again = link_co_accessed(first, ("B",), NOW)
    assert {link.target: link.strength for link in again.associations} == {"B": pytest.approx(0.15), "C": 0.1}
    assert link_strength(first.associations[0], NOW + timedelta(days=13)) == pytest.approx(0.1 * 0.95**13)
    assert link_strength(first.associations[0], NOW + timedelta(days=14)) == 0
    faded = link_co_accessed(again, ("D",), NOW + timedelta(days=15))
    assert {link.target for link in faded.associations} == {"B", "D"}


def test_of_many_learned_links_the_strongest_are_kept_and_of_given_ones_all() -> None:
    given_links = tuple(Association(f"G{place}", "semantic", 0.2) for place in range(40))
    often = link_co_accessed(memory(associations=given_links), ("B", "C"), NOW)
    often = link_co_accessed(often, ("B", "C"), NOW)
    others = tuple(f"D{place:02}" for place in range(50))
    crowded = link_co_accessed(often, others, NOW)
    learned = [link.target for link in crowded.associations if link.type == "co_accessed"]
    assert learned == ["B", "C", *others[: MAX_CO_ACCESS_LINKS - 2]]
    assert crowded.associations[:40] == given_links
    dropped = tuple(target for target in others if target not in learned)
    assert link_co_accessed(crowded, dropped, NOW) == crowded, "folding a session in again changes nothing"


def test_a_learned_link_is_capped_and_a_given_one_does_not_fade() -> None:
    held = memory()
    for _ in range(40):
        held = link_co_accessed(held, ("B",), NOW)
    assert held.associations[0].strength == 0.95
    given_link = Association("B", "semantic", 0.8)
    assert link_strength(given_link, NOW + timedelta(days=999)) == 0.8
