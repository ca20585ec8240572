"""Calls take turns, and a long one is passed."""

import threading

import pytest

from engram.aio import awaitable as turns
from engram.aio.awaitable import Turns
from tests.aio.bounded import LIMIT, Gate


def standing(order: Turns, gate: Gate, passed: list[str], name: str) -> threading.Thread:
    """A thread that takes its turn, stops at the gate, and says when it went on."""

    def work() -> None:
        with order.take():
            gate.wait()
            passed.append(name)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_a_call_waits_for_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "LONG_CALL_SECONDS", LIMIT)
    order, first, second = Turns(), Gate(), Gate()
    passed: list[str] = []
    threads = [standing(order, first, passed, "first")]
    assert first.reached.wait(LIMIT)
    second.opened.set()
    threads.append(standing(order, second, passed, "second"))
    assert not second.reached.wait(0.05)
    first.opened.set()
    for thread in threads:
        thread.join(LIMIT)
    assert passed == ["first", "second"]


def test_a_long_call_is_passed_and_runs_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "LONG_CALL_SECONDS", 0.001)
    order, long, short = Turns(), Gate(), Gate()
    passed: list[str] = []
    threads = [standing(order, long, passed, "long")]
    assert long.reached.wait(LIMIT)
    short.opened.set()
    threads.append(standing(order, short, passed, "short"))
    threads[1].join(LIMIT)
    assert passed == ["short"]
    long.opened.set()
    threads[0].join(LIMIT)
    assert passed == ["short", "long"]


def test_a_call_that_fails_passes_its_turn_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "LONG_CALL_SECONDS", LIMIT)
    order = Turns()
    for _ in range(3):
        with pytest.raises(ValueError, match="no"), order.take():
            raise ValueError("no")
