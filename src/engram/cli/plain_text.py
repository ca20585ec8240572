"""Text as it may be shown: one line where one is wanted, control characters visible, never obeyed."""

from contextlib import suppress
from datetime import datetime

from engram.text.shown import one_line, shown

__all__ = ["age", "ago", "count", "line", "moment", "shown"]


def line(text: str, width: int = 0) -> str:
    """The text on one line, cut to a width if one is given."""
    flat = one_line(text)
    return flat if not width or len(flat) <= width else flat[: max(1, width - 1)].rstrip() + "…"


def ago(moment: datetime | None, now: datetime) -> str:
    """How long ago, as people say it."""
    if moment is None:
        return "never"
    seconds = (now - moment).total_seconds()
    if seconds < 0:
        return f"in {_span(-seconds)}"
    return "just now" if seconds < 45 else f"{_span(seconds)} ago"


def age(moment: datetime | None, now: datetime) -> str:
    """How old, in as few characters as a table has: `now`, `5m`, `3h`, `12d`, `2y`."""
    if moment is None:
        return ""
    seconds = max(0.0, (now - moment).total_seconds())
    for size, letter in ((365 * 86400, "y"), (86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{letter}"
    return "now"


_SPANS = ((365 * 86400.0, "year"), (30 * 86400.0, "month"), (86400.0, "day"), (3600.0, "hour"), (60.0, "minute"))


def _span(seconds: float) -> str:
    for size, name in _SPANS:
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {name}{'s' if count != 1 else ''}"
    return "a minute"


def moment(value: datetime | None) -> str:
    """A time in the reader's own zone, or in its own where the reader's calendar does not reach."""
    if value is None:
        return ""
    with suppress(OverflowError, ValueError, OSError):
        value = value.astimezone()
    return value.strftime("%Y-%m-%d %H:%M")


def count(number: int, noun: str, plural: str = "") -> str:
    """`1 memory`, `2 memories`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
