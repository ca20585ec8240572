"""The figure for the event loop's lag counts what it should, and can be measured."""

import asyncio
import time

import pytest

from benchmarks import loop

pytestmark = pytest.mark.heavy


def test_a_block_makes_every_beat_it_swallowed_late() -> None:
    lag = loop.lag_of([0.0] * 50 + [0.050])
    assert (lag.p50, lag.beats) == (0.0, 101)
    assert 48 <= lag.p99 <= lag.longest == 50


def test_a_loop_that_is_blocked_shows() -> None:
    async def blocking() -> None:
        await asyncio.sleep(0)
        time.sleep(0.030)  # the very thing that is measured
        await asyncio.sleep(0)

    async def main() -> loop.Lag:
        return await loop._lag_during(blocking())

    assert asyncio.run(main()).longest >= 25


def test_the_figures_are_measured_beside_a_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "BASELINE_SECONDS", 0.05)
    told = loop.measure(60, callers=4, seconds=0.3, threads=2)
    assert told["backend"] == "files"
    assert told["baseline_ms"]["beats"] > 0
    assert told["lag_ms"]["p50"] <= told["lag_ms"]["p99"] <= told["lag_ms"]["longest"]
    assert told["calls"]["search"]["calls"] > 0
    assert told["passed"] == (told["lag_ms"]["p99"] <= told["bar_ms"])
