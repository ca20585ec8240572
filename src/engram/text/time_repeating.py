"""Times that come round again: Monday, March, May 5, Q3, the summer, Christmas; and which of them is meant.

Without a year, the most recent one that has begun is meant; where the question looks ahead, the first that is not over. "Last" is
the most recent that is over, "next" the first that has not begun, "this" the one of the present year. A weekday named on
that same weekday is the one a week away: of today one says "today".
"""

from calendar import monthrange
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from engram.text.time_holidays import holiday_in
from engram.text.time_spans import Span, day_of, monthly

__all__ = ["Repeating", "in_span", "in_year", "resolved", "weekday_near"]

_YEARS_AROUND = 9  # 29 February comes back within eight years


class Repeating(NamedTuple):
    """Something that each week (weekday), month (monthday) or year has one of."""

    kind: str
    """weekday, monthday, month, date, quarter, half, season or holiday."""
    first: int = 0
    second: int = 0
    """The day of a date; of a monthday the weekday it was named with, counted from 1."""
    rule: str = ""
    """Of a holiday: how `time_holidays` finds its days."""


def in_year(what: Repeating, year: int) -> Span | None:
    """The one of that year; None where the year has none (29 February, 31 April)."""
    if what.kind == "month":
        return monthly(year, what.first, 1, "month")
    if what.kind == "quarter":
        return monthly(year, 3 * what.first - 2, 3, "quarter")
    if what.kind == "half":
        return monthly(year, 6 * what.first - 5, 6, "half")
    if what.kind == "season":
        return monthly(year, what.first, 3, "season")
    if what.kind == "holiday":
        return holiday_in(what.rule, year)
    if not 1 <= what.second <= monthrange(year, what.first)[1]:
        return None
    since = datetime(year, what.first, what.second)
    return Span(since, since + timedelta(days=1), "day")


def in_span(what: Repeating, outer: Span) -> Span | None:
    """The one inside a week, a month or a year: "Tuesday last week", "the 3rd of last month", "March two years ago"."""
    if what.kind == "weekday" and outer.grain == "week":
        since = outer.since + timedelta(days=what.first)
        return Span(since, since + timedelta(days=1), "day")
    if what.kind == "monthday" and outer.grain == "month":
        since = outer.since + timedelta(days=what.first - 1)
        return Span(since, since + timedelta(days=1), "day") if since < outer.until else None
    if what.kind not in ("weekday", "monthday") and outer.grain == "year":
        return in_year(what, outer.since.year)
    return None


def weekday_near(weekday: int, at: datetime, step: int) -> Span:
    """The last (-1), this week's (0) or the next (1) weekday; today is neither the last nor the next."""
    today = day_of(at)
    if step == 0:
        offset = weekday - today.weekday()
    elif step < 0:
        offset = -((today.weekday() - weekday - 1) % 7 + 1)
    else:
        offset = (weekday - today.weekday() - 1) % 7 + 1
    since = today + timedelta(days=offset)
    return Span(since, since + timedelta(days=1), "day")


def resolved(what: Repeating, at: datetime, step: int | None, ahead: bool) -> Span | None:
    """Which one is meant, by "last", "this", "next" (a step) or by where the question looks."""
    if what.kind == "weekday":
        return weekday_near(what.first, at, step if step is not None else 1 if ahead else -1)
    spans = _around(what, at)
    if step == 0:
        running = next((span for span in spans if span.since <= at < span.until), None)
        return running or next((span for span in spans if span.since.year == at.year), None)
    if step == 1 or (step is None and ahead):
        return next((span for span in spans if (span.since > at if step == 1 else span.until > at)), None)
    past = [span for span in spans if (span.until <= at if step == -1 else span.since <= at)]
    return past[-1] if past else None


def _around(what: Repeating, at: datetime) -> list[Span]:
    if what.kind == "monthday":
        spans = list(_monthdays(what.first, at))
        return [span for span in spans if span.since.weekday() == what.second - 1] or spans
    years = range(max(at.year - _YEARS_AROUND, 1), min(at.year + _YEARS_AROUND, 9998))
    found = (in_year(what, year) for year in years)
    return [span for span in found if span is not None]


def _monthdays(day: int, at: datetime) -> Iterator[Span]:
    for shift in range(-3, 4):
        month = monthly(at.year, at.month + shift, 1, "month")
        span = in_span(Repeating("monthday", day), month)
        if span is not None:
            yield span
