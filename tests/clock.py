"""Time as a test wants it."""

from datetime import UTC, datetime, timedelta


class Clock:
    """Moves by itself a millisecond with every look, and further when told to."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(milliseconds=1)
        return self.now

    def forward(self, **amount: float) -> datetime:
        """Let time pass."""
        self.now += timedelta(**amount)
        return self.now
