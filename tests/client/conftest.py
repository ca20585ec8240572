"""A store in a temporary directory, with a clock the test moves."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from engram import Engram


class Clock:
    """Time as the test wants it."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(milliseconds=1)
        return self.now

    def forward(self, **amount: float) -> datetime:
        """Let time pass."""
        self.now += timedelta(**amount)
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def mem(tmp_path: Path, clock: Clock) -> Iterator[Engram]:
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path, clock=clock) as opened:
        yield opened
