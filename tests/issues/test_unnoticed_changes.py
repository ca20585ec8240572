"""Statements that cannot both hold were stored next to each other without a word; things that are many were not to be taken for them."""

import pytest

from engram.model.decision import Outcome
from tests.backends import Backend


@pytest.mark.parametrize(
    ("old", "new"), [("We use Ruff, not Black", "we use black"), ("We use black", "We use Ruff, not Black.")]
)
def test_what_was_denied_is_not_stored_without_a_word(backend: Backend, old: str, new: str) -> None:
    mem = backend.client()
    first = mem.learn(old).memory
    assert first is not None
    decision = mem.learn(new)
    assert decision.outcome in (Outcome.CONTRADICTION, Outcome.SUPERSEDED)
    assert decision.other is not None and decision.other.id == first.id


def test_things_that_are_many_are_stored_next_to_each_other(backend: Backend) -> None:
    mem = backend.client()
    facts = [
        "Room 12 seats 8 people",
        "Room 14 seats 20 people",
        "Widget 3 weighs 40 grams",
        "Widget 4 weighs 55 grams",
    ]
    assert {fact: mem.learn(fact).outcome for fact in facts} == dict.fromkeys(facts, Outcome.CREATED)
