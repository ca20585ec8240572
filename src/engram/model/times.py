"""Times from callers."""

from datetime import UTC, datetime
from typing import Any

from engram.model.errors import InvalidInput


def aware(value: Any) -> datetime | None:
    """A time with its zone: naive ones are local time, text is ISO 8601. Raises `InvalidInput` for anything else."""
    if value is None:
        return None
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise InvalidInput(f"{value!r} is not a time; write it as 2026-01-31 or 2026-01-31T12:00:00Z") from None
    if not isinstance(value, datetime):
        raise InvalidInput(f"{value!r} is not a time")
    try:
        known = value if value.tzinfo else value.astimezone()
        known.astimezone(UTC)
    except (OverflowError, ValueError, OSError):
        raise InvalidInput(f"{value} is outside the calendar; use a year from 2 to 9998") from None
    return known
