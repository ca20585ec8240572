"""Calendar spans in wall time, holidays, and recurring times: Monday, March, May 5, Q3, the summer, Christmas.

All values are naive and mean the wall clock of the asker's zone; `windows` adds the zone at the end, so that a day is a
day of that zone even if the clocks change within it.

Without a year, a recurring time is the most recent one that has begun; if the question looks ahead, the first that is
not over. "Last" is the most recent that is over, "next" the first that has not begun, "this" the one of the present
year. A weekday named on that same weekday is the one a week away: people say "today" for today.
"""

import re
from calendar import monthrange
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from engram.model.lazy import lazy_pattern

__all__ = [
    "LENGTHS",
    "Repeating",
    "Span",
    "add_units",
    "containing_span",
    "day_of",
    "holiday_in",
    "hour_from",
    "in_span",
    "in_year",
    "iso_week",
    "middle_of",
    "monthly",
    "nth_within",
    "part_of_day",
    "resolve_repeating",
    "third",
    "week_around",
    "weekday_near",
]

_MONTHS_IN = {"month": 1, "quarter": 3, "season": 3, "half": 6, "year": 12, "decade": 120}
_DAYS_IN = {"day": 1, "night": 1, "week": 7, "weekend": 7, "fortnight": 14, "sprint": 14}
LENGTHS = {"second": timedelta(seconds=1), "minute": timedelta(minutes=1), "hour": timedelta(hours=1)}
"""The units that are counted by the clock, not the calendar."""

_EVENING, _MORNING = timedelta(hours=18), timedelta(hours=29)
_CUTS_OF_MONTH = (0, 10, 20)
_HALF_MONTH = 15
_CUTS_OF_WEEK = (0, 2, 4)


class Span(NamedTuple):
    """A half-open span of wall time and its unit."""

    since: datetime
    until: datetime
    grain: str


def day_of(moment: datetime) -> datetime:
    """Midnight at the start of that day."""
    return moment.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)


def monthly(year: int, month: int, count: int, grain: str) -> Span:
    """A span of whole months. A month outside 1–12 continues into other years."""
    return Span(_month_start(year, month), _month_start(year, month + count), grain)


def _month_start(year: int, month: int) -> datetime:
    years, index = divmod(month - 1, 12)
    return datetime(year + years, index + 1, 1)


def add_units(moment: datetime, unit: str, count: float) -> datetime:
    """The same wall time this many units later. In a shorter month, the 31st becomes the last day. Half units are half
    as long.
    """
    if unit in _DAYS_IN:
        return moment + timedelta(days=_DAYS_IN[unit] * count)
    months = _MONTHS_IN[unit] * count
    whole = int(months // 1)
    start = _month_start(moment.year, moment.month + whole)
    day = min(moment.day, monthrange(start.year, start.month)[1])
    return moment.replace(year=start.year, month=start.month, day=day) + timedelta(days=round((months - whole) * 30))


def containing_span(moment: datetime, unit: str) -> Span:
    """The calendar unit that contains this moment; for a weekend that of its week, for a night the one that starts that
    day.
    """
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
    """The week with this number; the week that contains 4 January is the first."""
    monday = datetime.fromisocalendar(year, number, 1)
    return Span(monday, monday + timedelta(days=7), "week")


def middle_of(span: Span) -> datetime:
    """The moment halfway through."""
    return span.since + (span.until - span.since) / 2


def week_around(span: Span) -> Span:
    """The calendar week that contains the middle of some days: of Christmas that of the 25th, of Easter that of its
    Sunday.
    """
    return containing_span(middle_of(span), "week")


def part_of_day(day: Span, hours: str) -> Span:
    """The hours "5-12" of the day on which a span starts; hours past 24 are those of the next day."""
    first, last = (timedelta(hours=int(hour)) for hour in hours.split("-"))
    return Span(day_of(day.since) + first, day_of(day.since) + last, "daypart")


def hour_from(day: Span, time: timedelta) -> Span:
    """The hour that begins at this time of day."""
    return Span(day.since + time, day.since + time + LENGTHS["hour"], "hour")


def third(span: Span, which: int) -> Span:
    """The early, middle or late part of a span.

    Of a month: days 1–10, 11–20 and the rest; of a week: Mon–Tue, Wed–Thu and Fri–Sun; of a longer span: whole months.
    A day or less has no parts.
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


def nth_within(span: Span, unit: str, which: int) -> Span | None:
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


_RULE = lazy_pattern(
    r"(?:easter(?P<offset>[+-]\d+)|(?P<month>\d+)-(?P<day>\w+?)(?:\+(?P<later>\d+))?)(?:x(?P<days>\d+))?", re.ASCII
)
_WEEKDAY_OF = lazy_pattern(r"(\d|last)(mon|tue|wed|thu|fri|sat|sun)", re.ASCII)
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


_YEARS_AROUND = 9  # 29 February recurs within eight years


class Repeating(NamedTuple):
    """A recurring time, of which each week (weekday), month (monthday) or year has one."""

    kind: str
    """weekday, monthday, month, date, quarter, half, season or holiday."""
    first: int = 0
    second: int = 0
    """The day of a date; for a monthday, the weekday named with it, counted from 1."""
    rule: str = ""
    """For a holiday: how `time_holidays` finds its days."""


def in_year(what: Repeating, year: int) -> Span | None:
    """The occurrence in that year; None if there is none (29 February, 31 April)."""
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
    """The occurrence inside a week, a month or a year: "Tuesday last week", "the 3rd of last month", "March two years
    ago".
    """
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


def resolve_repeating(what: Repeating, at: datetime, step: int | None, ahead: bool) -> Span | None:
    """The intended occurrence, by "last", "this", "next" (a step) or by whether the question looks back or ahead."""
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
