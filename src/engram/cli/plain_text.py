"""Text as it may be shown: one line where one is wanted, control characters visible, never obeyed."""

import re
from datetime import datetime

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def shown(text: str) -> str:
    """The text with control and direction characters as escapes: a memory cannot move the cursor or hide itself."""
    return _CONTROL.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def line(text: str, width: int = 0) -> str:
    """The text on one line, cut to a width if one is given."""
    flat = shown(" ".join(text.split()))
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
    """A time in the reader's own zone."""
    return value.astimezone().strftime("%Y-%m-%d %H:%M") if value else ""


def count(number: int, noun: str, plural: str = "") -> str:
    """`1 memory`, `2 memories`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
