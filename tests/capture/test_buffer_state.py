"""When a buffer's turns are to be read, as pure values; and how a buffer is stored."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.capture.buffer_state import BufferState, WaitingTurn, decode_buffer, encode_buffer
from engram.model.errors import StoreCorrupt
from engram.model.lazy import replace
from engram.settings import Settings

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
EMPTY = BufferState("user:ann", "agent", 0, NOON)


def turn(seq: int = 1, minutes: int = 0, level: str = "none", **fields: Any) -> WaitingTurn:
    return WaitingTurn(seq, NOON + timedelta(minutes=minutes), level, "agent", **fields)


def buffer(*turns: WaitingTurn, **fields: Any) -> BufferState:
    return replace(EMPTY, turns=turns, **fields)


FIVE = [turn(number) for number in range(5)]
OUT = {"failures": 1, "retry_at": NOON + timedelta(minutes=2)}
TRIGGERS: list[tuple[str, BufferState, str, int, str]] = [
    # mode, buffer, minutes after noon, trigger
    ("nothing waits", EMPTY, "smart", 60, ""),
    ("one turn waits", buffer(turn()), "smart", 14, ""),
    ("the oldest has waited", buffer(turn(), turn(2, 14)), "smart", 15, "time"),
    ("the first is the youngest", buffer(turn(1, 10), turn(2, 0)), "smart", 15, "time"),
    ("a high signal", buffer(turn(), turn(2, level="high")), "smart", 0, "high"),
    ("other signals", buffer(turn(level="medium"), turn(2, level="low")), "smart", 0, ""),
    ("four turns", buffer(*FIVE[:4]), "smart", 0, ""),
    ("five turns", buffer(*FIVE), "smart", 0, "turns"),
    ("only the number: a high signal", buffer(turn(level="high")), "every_n", 60, ""),
    ("only the number: five turns", buffer(*FIVE), "every_n", 0, "turns"),
    ("only the time: five high turns", buffer(*(replace(one, level="high") for one in FIVE)), "time", 14, ""),
    ("only the time: it has come", buffer(turn()), "time", 15, "time"),
    ("the model is out", buffer(turn(level="high", awaits_model=True), **OUT), "smart", 1, ""),
    ("the model may be asked again", buffer(turn(level="high", awaits_model=True), **OUT), "every_n", 2, "retry"),
    ("a high turn while the model is out", buffer(turn(awaits_model=True), turn(2, level="high"), **OUT), "smart", 1, "high"),
    ("turns that wait for the model are not counted", buffer(*(replace(one, awaits_model=True) for one in FIVE), **OUT), "smart", 1, ""),
]  # fmt: skip


def test_each_buffer_is_read_when_it_should_be() -> None:
    found = [
        (what, held.trigger(Settings(capture_mode=mode), NOON + timedelta(minutes=minutes)))
        for what, held, mode, minutes, _ in TRIGGERS
    ]
    assert found == [(what, trigger) for what, *_, trigger in TRIGGERS]


def test_the_next_look_is_when_the_oldest_turn_is_due_or_the_model_may_be_asked() -> None:
    def minutes(held: BufferState, mode: str = "smart") -> float | None:
        due = held.next_due(Settings(capture_mode=mode))
        return None if due is None else (due - NOON) / timedelta(minutes=1)

    assert minutes(EMPTY) is None
    assert minutes(buffer(turn(1, 3), turn(2, 1))) == 16
    assert minutes(buffer(turn()), "every_n") is None
    assert minutes(buffer(turn(awaits_model=True), turn(2), **OUT)) == 2
    assert minutes(buffer(turn(awaits_model=True), **OUT), "every_n") == 2


def test_a_turn_comes_into_a_buffer_once() -> None:
    held = EMPTY.with_turns([turn(3), turn(2)], NOON)
    assert ([one.seq for one in held.turns], held.seen) == ([2, 3], 3)
    read = held.without({2, 3}, (), "")
    assert read.with_turns([turn(2), turn(3)], NOON) == read, "these were read already"
    assert [one.seq for one in read.with_turns([turn(3), turn(4)], NOON).turns] == [4]


def test_what_was_read_leaves_and_what_came_meanwhile_stays() -> None:
    held = buffer(*FIVE, reader="me", reading_until=NOON)
    left = held.without({0, 1}, {2}, "me")
    assert [(one.seq, one.awaits_model) for one in left.turns] == [(2, True), (3, False), (4, False)]
    assert (left.reader, left.reading_until) == ("", None)
    assert held.without({0}, (), "another").reader == "me", "a reader gives back only its own claim"


def test_failures_are_forgotten_when_nothing_waits_for_the_model() -> None:
    held = buffer(turn(awaits_model=True), turn(2), **OUT)
    assert held.without({2}, (), "").failures == 1
    assert (held.without({1}, (), "").failures, held.without({1}, (), "").retry_at) == (0, None)


def test_the_least_trusted_source_counts_for_a_buffer() -> None:
    assert EMPTY.with_source("human").source == "agent"
    assert EMPTY.with_source("harness:codex:acme").source == "harness:codex:acme"


TIMES = st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))
TURNS = st.builds(
    WaitingTurn, st.integers(1, 2**53), TIMES, st.sampled_from(["high", "medium", "low", "none"]), st.text(max_size=20),
    st.booleans(), st.booleans(),
)  # fmt: skip
BUFFERS = st.builds(
    BufferState, st.text(max_size=20), st.text(max_size=20), st.integers(0, 2**53), TIMES, st.lists(TURNS, max_size=4).map(tuple),
    st.integers(0, 9), st.none() | TIMES, st.text(max_size=8), st.none() | TIMES,
)  # fmt: skip


@given(BUFFERS)
def test_a_buffer_is_read_as_it_was_stored(held: BufferState) -> None:
    assert decode_buffer("buffer/x", encode_buffer(held)) == held


@pytest.mark.parametrize("change", [{"seen": "x"}, {"turns": [{}]}, {"turns": 7}, {"used": None}, {"retry_at": "soon"}])
def test_a_state_that_is_no_buffer_is_an_error_that_names_it(change: dict[str, Any]) -> None:
    with pytest.raises(StoreCorrupt, match="buffer/x is no buffer"):
        decode_buffer("buffer/x", {**encode_buffer(buffer(turn())), **change})
