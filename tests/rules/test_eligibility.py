"""One table says what a memory may do."""

from datetime import UTC, datetime, timedelta

import pytest

from engram.model.memory import STATUSES, Activation, Memory
from engram.rules.lifecycle import eligibility, is_stale
from tests.tables import table

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def memory(**fields: object) -> Memory:
    values: dict[str, object] = {"id": "ENG-2026-0301-001", "statement": "x", "created": NOW, "type": "factual"}
    return Memory(**{**values, **fields})  # type: ignore[arg-type]


def days(count: float) -> datetime:
    return NOW + timedelta(days=count)


@pytest.mark.parametrize(
    ("after", "state", "found", "directive", "consider"),
    [
        (0, "active", True, True, True),
        (15, "fading", True, True, True),
        (40, "dormant", True, False, False),
        (90, "retirement candidate", True, False, False),
    ],
)
def test_time_carries_a_memory_through_the_bands(
    after: int, state: str, found: bool, directive: bool, consider: bool
) -> None:
    answer = eligibility(memory(), days(after))
    assert (answer.state, answer.found, answer.directive, answer.consider) == (state, found, directive, consider)


@table("kind", ["preference", "correction", "convention", "constraint", "decision"])
def test_what_states_someones_will_never_sinks_below_fading(kind: str) -> None:
    answer = eligibility(memory(type=kind), days(2000))
    assert (answer.state, answer.consider) == ("fading", True)


def test_a_pinned_memory_never_sinks_below_fading() -> None:
    assert eligibility(memory(pinned=True), days(2000)).state == "fading"


@table("status", [s for s in STATUSES if s != "active"])
def test_only_active_memories_are_injected(status: str) -> None:
    answer = eligibility(memory(status=status), NOW)
    assert not answer.consider
    assert answer.found == (status in ("dormant", "archived"))
    assert answer.reason


def test_validity_is_half_open() -> None:
    held = memory(valid_from=days(1), valid_until=days(2))
    assert [eligibility(held, days(d)).found for d in (0.5, 1, 1.5, 2)] == [False, True, True, False]


def test_a_memory_goes_stale_past_its_horizon_sooner_when_doubted() -> None:
    sure, unsure = memory(decay_days=180, confidence=1.0), memory(decay_days=180, confidence=0.0)
    assert [is_stale(m, days(100)) for m in (sure, unsure)] == [False, True]
    assert not is_stale(memory(), days(5000))
    strong = {"activation": Activation(1.0, 1.0, last_accessed=days(190))}
    stale = eligibility(memory(decay_days=180, confidence=1.0, **strong), days(190))
    assert (stale.state, stale.found, stale.directive, stale.consider) == ("stale", False, False, False)
    verified = memory(decay_days=180, confidence=1.0, last_verified=days(100), **strong)
    assert eligibility(verified, days(190)).state == "active"


def test_a_disputed_memory_is_considered_and_does_not_direct() -> None:
    answer = eligibility(memory(verification="disputed"), NOW)
    assert (answer.directive, answer.consider) == (False, True)


def test_a_stale_memory_that_has_faded_is_stale() -> None:
    answer = eligibility(memory(decay_days=30, confidence=1.0, type="fact"), days(400))
    assert (answer.state, answer.found) == ("stale", False)
