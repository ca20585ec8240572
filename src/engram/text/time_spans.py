"""Spans of the calendar in wall time: days, weeks from Monday, months, quarters, seasons, years, and parts of them.

All values are naive and mean the wall clock of the asker's zone; `time_phrases` puts the zone to them at the end, so that a day
is a day of that zone even where the clocks change within it.
"""

from calendar import monthrange
from datetime import datetime, timedelta
from typing import NamedTuple

__all__ = [
    "LENGTHS",
    "Span",
    "day_of",
    "holding",
    "hour_from",
    "iso_week",
    "middle_of",
    "monthly",
    "part_of_day",
    "shifted",
    "third",
    "week_around",
    "within",
]

_MONTHS_IN = {"month": 1, "quarter": 3, "season": 3, "half": 6, "year": 12, "decade": 120}
_DAYS_IN = {"day": 1, "night": 1, "week": 7, "weekend": 7, "fortnight": 14, "sprint": 14}
LENGTHS = {"second": timedelta(seconds=1), "minute": timedelta(minutes=1), "hour": timedelta(hours=1)}
"""The units that are counted on the clock, not on the calendar."""

_EVENING, _MORNING = timedelta(hours=18), timedelta(hours=29)
_CUTS_OF_MONTH = (0, 10, 20)
_HALF_MONTH = 15
_CUTS_OF_WEEK = (0, 2, 4)


class Span(NamedTuple):
    """A half-open stretch of wall time and the unit it is one of."""

    since: datetime
    until: datetime
    grain: str


def day_of(moment: datetime) -> datetime:
    """Midnight at the start of that day."""
    return moment.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)


def monthly(year: int, month: int, count: int, grain: str) -> Span:
    """A span of whole months; month may lie outside 1–12 and then counts on."""
    return Span(_month_start(year, month), _month_start(year, month + count), grain)


def _month_start(year: int, month: int) -> datetime:
    years, index = divmod(month - 1, 12)
    return datetime(year + years, index + 1, 1)


def shifted(moment: datetime, unit: str, count: float) -> datetime:
    """The same wall time so many units later; the 31st of a shorter month is its last day. Half units are half as long."""
    if unit in _DAYS_IN:
        return moment + timedelta(days=_DAYS_IN[unit] * count)
    months = _MONTHS_IN[unit] * count
    whole = int(months // 1)
    start = _month_start(moment.year, moment.month + whole)
    day = min(moment.day, monthrange(start.year, start.month)[1])
    return moment.replace(year=start.year, month=start.month, day=day) + timedelta(days=round((months - whole) * 30))


def holding(moment: datetime, unit: str) -> Span:
    """The unit of the calendar that holds this moment; a weekend is that of its week, a night the one that starts that day."""
    day = day_of(moment)
    if unit == "hour":
        start = moment.replace(minute=0, second=0, microsecond=0)
        return Span(start, start + LENGTHS["hour"], "hour")
    if unit == "day":
        return Span(day, day + timedelta(days=1), "day")
    if unit == "night":
        return Span(day + _EVENING, day + _MORNING, "night")
    monday = day - timedelta(days=day.weekday())
    if unit in ("week", "fortnight"):
        return Span(monday, monday + timedelta(days=7), "week")
    if unit == "weekend":
        return Span(monday + timedelta(days=5), monday + timedelta(days=7), "weekend")
    size = _MONTHS_IN[unit]
    year = day.year - day.year % 10 if unit == "decade" else day.year
    month = (day.month - 1) // size * size + 1
    return monthly(year, month, size, unit)


def iso_week(year: int, number: int) -> Span:
    """The week of that number; those that hold a year's 4 January are its first."""
    monday = datetime.fromisocalendar(year, number, 1)
    return Span(monday, monday + timedelta(days=7), "week")


def middle_of(span: Span) -> datetime:
    """The moment halfway through."""
    return span.since + (span.until - span.since) / 2


def week_around(span: Span) -> Span:
    """The calendar week that holds the middle of some days: of Christmas that of the 25th, of Easter that of its Sunday."""
    return holding(middle_of(span), "week")


def part_of_day(day: Span, hours: str) -> Span:
    """The hours "5-12" of the day a span starts on; hours past 24 are those of the next day."""
    first, last = (timedelta(hours=int(hour)) for hour in hours.split("-"))
    return Span(day_of(day.since) + first, day_of(day.since) + last, "daypart")


def hour_from(day: Span, time: timedelta) -> Span:
    """The hour that begins at this time of the day."""
    return Span(day.since + time, day.since + time + LENGTHS["hour"], "hour")


def third(span: Span, which: int) -> Span:
    """The early, middle or late part: days 1–10, 11–20 and the rest of a month; Mon–Tue, Wed–Thu and Fri–Sun of a week; whole
    months of what is longer. A day or less has no parts.
    """
    if span.grain in ("quarter", "season", "year", "half", "decade"):
        size = _MONTHS_IN[span.grain] // 3
        return monthly(span.since.year, span.since.month + which * size, size, "part")
    cuts = {"month": _CUTS_OF_MONTH, "week": _CUTS_OF_WEEK}.get(span.grain)
    if cuts is None:
        return span
    since = span.since + timedelta(days=cuts[which])
    until = span.until if which == 2 else span.since + timedelta(days=cuts[which + 1])
    return Span(since, until, "part")


def within(span: Span, unit: str, which: int) -> Span | None:
    """The first, second … or last (-1) day, week, month, quarter or half inside a longer span."""
    if unit == "half" and span.grain == "month":
        middle = span.since + timedelta(days=_HALF_MONTH)
        return Span(middle, span.until, "part") if which else Span(span.since, middle, "part")
    if unit in ("day", "week"):
        step = timedelta(days=_DAYS_IN[unit])
        since = span.until - step if which < 0 else span.since + step * which
        inner = Span(since, since + step, unit)
    else:
        size = _MONTHS_IN[unit]
        anchor = span.until if which < 0 else span.since
        inner = monthly(anchor.year, anchor.month + size * which, size, unit)
    return inner if span.since <= inner.since and inner.until <= span.until else None
