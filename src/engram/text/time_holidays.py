"""Holidays by rule: a date, a weekday of a month, or so many days from Easter; the table is in `data/timewords.txt`.

A rule is one of `12-25` (25 December), `11-4thu` (the fourth Thursday of November), `11-4thu+1` (the day after it), `5-lastmon`
(the last Monday of May) and
`easter-2` (two days before Easter Sunday); `x3` behind it makes it three days long.
"""

import re
from calendar import monthrange
from datetime import datetime, timedelta

from engram.text.time_spans import Span

__all__ = ["holiday_in"]

_RULE = re.compile(
    r"(?:easter(?P<offset>[+-]\d+)|(?P<month>\d+)-(?P<day>\w+?)(?:\+(?P<later>\d+))?)(?:x(?P<days>\d+))?", re.ASCII
)
_WEEKDAY_OF = re.compile(r"(\d|last)(mon|tue|wed|thu|fri|sat|sun)", re.ASCII)
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def holiday_in(rule: str, year: int) -> Span:
    """The days of a holiday in one year."""
    match = _RULE.fullmatch(rule)
    if match is None:
        raise LookupError(f"{rule!r} in timewords.txt is no rule of a holiday")
    if match["offset"]:
        since = easter(year) + timedelta(days=int(match["offset"]))
    elif match["day"].isdigit():
        since = datetime(year, int(match["month"]), int(match["day"]))
    else:
        since = _weekday_of(year, int(match["month"]), match["day"]) + timedelta(days=int(match["later"] or 0))
    days = int(match["days"] or 1)
    return Span(since, since + timedelta(days=days), "day" if days == 1 else "holiday")


def easter(year: int) -> datetime:
    """Easter Sunday of the Gregorian calendar (the algorithm of Meeus, Jones and Butcher)."""
    golden, (century, rest) = year % 19, divmod(year, 100)
    epact = (19 * golden + century - century // 4 - (century - (century + 8) // 25 + 1) // 3 + 15) % 30
    weekday = (32 + 2 * (century % 4) + 2 * (rest // 4) - epact - rest % 4) % 7
    late = (golden + 11 * epact + 22 * weekday) // 451
    month, day = divmod(epact + weekday - 7 * late + 114, 31)
    return datetime(year, month, day + 1)


def _weekday_of(year: int, month: int, written: str) -> datetime:
    match = _WEEKDAY_OF.fullmatch(written)
    if match is None:
        raise LookupError(f"{written!r} in timewords.txt is no weekday of a month")
    length = monthrange(year, month)[1]
    first = length - 6 if match[1] == "last" else 7 * int(match[1]) - 6
    start = datetime(year, month, first)
    return start + timedelta(days=(_WEEKDAYS.index(match[2]) - start.weekday()) % 7)
