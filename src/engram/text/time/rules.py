"""The meanings of time phrases: the rules of the grammar, in the order in which they are tried.

Each rule has its groups, its patterns (separated by slashes; `grammar` describes their syntax) and its meaning: a
function of the grammar and the values of the elements. It returns the span, or None if the words mean something else
here.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from engram.text.time import dates as count
from engram.text.time.calendar import (
    LENGTHS,
    Repeating,
    Span,
    add_units,
    containing_span,
    day_of,
    hour_from,
    in_year,
    iso_week,
    middle_of,
    monthly,
    nth_within,
    part_of_day,
    resolve_repeating,
    third,
    week_around,
    weekday_near,
)
from engram.text.time.dates import Amount, ClockRange
from engram.text.time.words import value_of
from engram.text.words import word_class

if TYPE_CHECKING:
    from engram.text.time.grammar import Grammar

__all__ = ["FINER", "INSTANT", "RULES"]

INSTANT = timedelta(microseconds=1)
"""The difference between the time of the question and the end of a window that reaches up to it."""
FINER = {"decade": "year", "year": "month", "quarter": "week", "month": "week", "week": "day"}
"""The unit of precision for a time counted in a longer unit."""
_RECENT_DAYS = 14
_OTHER_DAY = 7
_SOME = 3.0  # "the closing months"
_TO_DATE = {"ytd": "year", "qtd": "quarter", "mtd": "month", "wtd": "week"}
_DAYS = {"today": 0, "yesterday": -1, "tomorrow": 1}
_OVER_LEADS = frozenset(("in", "over", "during", "within", "for", "throughout", "across"))
_CALENDAR_AFTER_THE = frozenset(("weekend", "quarter", "night", "sprint"))
_BEING_PART = frozenset(("was", "were", "is", "are", "be", "been", "too", "so", "running"))
_GOING = word_class("asking", "going")
_BESIDE = ("day", "week", "month", "year")
_COMPARED = frozenset(("most", "more", "less", "how", "until", "till", "as"))
_NEEDS_OF = frozenset(("beginning", "start", "middle", "end"))


def _hour_in(span: Span, hour: timedelta) -> Span:
    """The hour with this number in a day, by daylight; in a part of a day, the one within that part."""
    day = Span(day_of(span.since), span.until, "day")
    if span.grain == "day":
        return hour_from(day, count.by_daylight(hour))
    rounds = [hour_from(day, hour % count.HALF_DAY + count.HALF_DAY * turn) for turn in (0, 1, 2)]
    return next((each for each in rounds if span.since <= each.since <= span.until), rounds[1])


def _hours(g: "Grammar", clocks: ClockRange, day: Span | None = None) -> Span | None:
    """From one time of day to another, on the day that follows or else today."""
    if not clocks.sure and (day is None or g.before in _GOING):
        return None  # "did it go from 3 to 5 on Monday"; two bare numbers and no day
    if day is None or day.grain == "day":
        since = (day or g.last_of_day(lambda today: hour_from(today, clocks.first))).since
        since = since if day else since - clocks.first
        return Span(since + clocks.first, since + clocks.last, "hours")
    if day.grain not in ("daypart", "night"):
        return None
    hours = _hour_in(day, clocks.first).since, _hour_in(day, clocks.last).since
    return Span(*hours, "hours") if hours[0] < hours[1] else None


def _hour_of_day(g: "Grammar", hour: timedelta, day: Span) -> Span | None:
    fits = day.grain in ("day", "daypart", "night") and not g.is_numbered()
    return _hour_in(day, hour) if fits else None


def _hour_alone(g: "Grammar", hour: timedelta) -> Span | None:
    alone = g.key(g.start).isdigit() and not g.is_numbered()
    return g.last_of_day(lambda day: _hour_in(day, hour)) if alone else None


def _beyond(g: "Grammar", side: str, amount: Amount) -> Span:
    """The time more than an amount ago, which has no start, or less than that ago."""
    moment = g.back(amount.unit, amount.number)
    return g.until_now(moment) if side in ("less", "under") else Span(datetime.min, moment, "open")


def _from_day(g: "Grammar", amount: Amount, side: str, day: Span) -> Span | None:
    counts = amount.unit not in LENGTHS and (side == "from" or (amount.unit == "week" and bool(g.ahead)))
    return containing_span(add_units(day.since, amount.unit, amount.number), "day") if counts else None


def _same_time(g: "Grammar", unit: str, number: float) -> Span | None:
    """This time some units ago: for years the same month, for months the week, for weeks the day."""
    return containing_span(add_units(g.at, unit, number), FINER[unit]) if unit in FINER and number else None


def _rounds_ago(g: "Grammar", number: float, what: Repeating) -> Span | None:
    last = resolve_repeating(what, g.at, -1, False) if number == int(number) else None
    if last is None:
        return None
    if what.kind == "weekday":
        return containing_span(add_units(last.since, "week", 1 - number), "day")
    return in_year(what, last.since.year + 1 - int(number))


def _up_to_now(g: "Grammar", side: str, outer: Span) -> Span | None:
    if outer.since > g.at:
        return None
    return g.until_now(outer.since) if side == "earlier" and outer.until > g.at else g.from_now(outer)


def _part(g: "Grammar", which: str, outer: Span) -> Span | None:
    if g.before in _BEING_PART:
        return None  # "who was late | on Monday"
    joined = g.key(g.start + 1) in ("of", "in", "on") or g.key(g.start) not in _NEEDS_OF
    return third(outer, int(which)) if joined else None


def _at_end(number: int, unit: str, amount: float, outer: Span) -> Span | None:
    """Some days, weeks or months at one end of something longer."""
    if number > 0 or unit not in ("day", "week", "month", "quarter"):
        return None
    edge = outer.until if number else outer.since
    other = add_units(edge, unit, -amount if number else amount)
    inside = outer.since <= other <= outer.until
    return Span(min(edge, other), max(edge, other), "part") if inside else None


def _nth_of(g: "Grammar", number: int, unit: str, outer: Span) -> Span | None:
    several = _at_end(number, unit, _SOME, outer) if g.key(g.start + 1).endswith("s") else None
    return several or (nth_within(outer, unit, number) if unit in ("day", "week", "month", "quarter", "half") else None)


def _nth_weekday(g: "Grammar", number: int, weekday: str, outer: Span) -> Span | None:
    if outer.grain not in ("month", "quarter", "season", "half", "year"):
        return None
    edge = outer.until if number < 0 else outer.since - INSTANT
    day = weekday_near(int(weekday), edge, -1 if number < 0 else 1)
    since = add_units(day.since, "week", max(number, 0))
    return containing_span(since, "day") if since < outer.until else None


def _weekday_beside(g: "Grammar", weekday: str, side: str, base: Span) -> Span | None:
    edge = base.since if side == "before" else middle_of(base)  # the Monday after Easter is Easter Monday
    return weekday_near(int(weekday), edge, -1 if side == "before" else 1) if g.article else None


def _beside(g: "Grammar", unit: str, number: float, side: str, base: Span) -> Span | None:
    """A time before or after a day: the whole time with an article, otherwise the day at its far end."""
    if unit not in _BESIDE:
        return None
    since = base.until if side == "after" else base.since
    other = add_units(since, unit, number if side == "after" else -number)
    if g.article:
        return Span(min(since, other), max(since, other), "range")
    return containing_span(other - INSTANT if side == "after" else other, "day")


def _numbered_week(g: "Grammar", number: int, year: int | None = None) -> Span:
    span = iso_week(year or g.at.year, number)
    past = year is None and not g.ahead and span.since > g.at
    return iso_week(g.at.year - 1, number) if past else span


def _to_date(g: "Grammar", unit: str) -> Span | None:
    unit = _TO_DATE.get(unit, unit)
    return g.until_now(containing_span(g.at, unit).since) if unit in _TO_DATE.values() else None


def _count_span(g: "Grammar", step: str, length: Amount) -> Span | None:
    """A length of time up to the question, or from the question on."""
    key = "past" if step == "past" else g.key(g.start)
    back = key == "past" or step == "-1"
    if step == "0" or g.is_owned() or (length.bare and not _counts_back(g, key, back, length.unit)):
        return None
    if back:
        return g.until_now(g.back(length.unit, length.number))
    return Span(g.at, g.back(length.unit, -length.number), "rolling")


def _counts_back(g: "Grammar", key: str, back: bool, unit: str) -> bool:
    """Whether "the last UNIT" counts back from now: "at the last minute" and "the last quarter" do not."""
    if g.key(g.end) == "of" or unit in _CALENDAR_AFTER_THE or key in ("previous", "preceding"):
        return False
    return key == "past" or (g.article and back and (unit not in (*LENGTHS, "day") or g.lead in _OVER_LEADS))


def _stepped_unit(g: "Grammar", step: int, unit: str) -> Span | None:
    key, before = g.key(g.end - 1), g.key(g.end - 2)
    if g.is_owned() or unit in LENGTHS or key.endswith("s") or key in ("d", "w"):
        return None
    if key == "evening":
        return part_of_day(g.day(step), "18-24") if step <= 0 else None
    if unit == "day":
        return g.day(step) if step == 0 or (before in ("previous", "next") and g.article) else None
    if unit == "sprint" or (unit == "fortnight" and step == 0):
        return None  # the start of a sprint is known only to its team; a number of them is a length
    if unit == "fortnight":
        return g.until_now(g.back(unit, 1)) if step < 0 else Span(g.at, g.back(unit, -1), "rolling")
    soon = containing_span(g.at, "weekend")
    if unit == "weekend" and step > 0 and before in ("coming", "upcoming") and soon.since > g.at:
        return soon
    return containing_span(add_units(g.at, "day" if unit == "night" else unit, step), unit)


def _unit_two_away(g: "Grammar", unit: str, side: str) -> Span | None:
    away = 2 if side == "after" else -2
    counts = unit not in LENGTHS and unit != "sprint"
    return containing_span(add_units(g.at, "day" if unit == "night" else unit, away), unit) if counts else None


def _named_two_away(g: "Grammar", what: Repeating, side: str) -> Span | None:
    step = 1 if side == "after" else -1
    near = resolve_repeating(what, g.at, step, False) if g.end == g.start + 3 else None
    if near is None:
        return None
    moved = add_units(near.since, "week" if what.kind == "weekday" else "year", step)
    return Span(moved, moved + (near.until - near.since), near.grain)


def _week_from(since: datetime) -> Span:
    return Span(since, add_units(since, "week", 1), "week")


def _weekend(g: "Grammar") -> Span | None:
    span = containing_span(g.at, "weekend")
    if not g.ahead and span.since > g.at:
        span = containing_span(add_units(g.at, "week", -1), "weekend")
    return span if g.article else None


def _week_of_holiday(g: "Grammar", what: Repeating) -> tuple[int, Span] | None:
    found = g.resolve_named(g.end, what)
    return None if found is None else (found[0], week_around(found[1]))


RULES: tuple[tuple[str, str, Callable[..., Span | tuple[int, Span] | None]], ...] = (
    # Times of day: "noon on Monday", "the morning of May 5th", "by EOD Friday"
    ("time", "<clock> on? <day>", lambda g, clock, day: hour_from(day, clock)),
    ("time", "<daypart> of|on <day>", lambda g, hours, day: part_of_day(day, hours)),
    ("time", "<day_end> on? <day>", lambda g, _, day: day if value_of("lead", g.before) else None),
    ("time", "<day_end> .", lambda g, _: g.day(0) if value_of("lead", g.before) else None),
    # … and those that need a lead or a range: "since 9am", "between 2 and 4pm yesterday", "by 5 on Friday", "since 9"
    ("clock_today", "<clock>", lambda g, clock: g.last_of_day(lambda day: hour_from(day, clock))),
    ("hours", "<clocks> on? <any> / <clocks>", _hours),
    ("hour", "<hour> in the <daypart> on? <day>", lambda g, hour, part, day: _hour_of_day(g, hour, part_of_day(day, part))),
    ("hour", "<hour> in the <daypart>", lambda g, hour, part: _hour_of_day(g, hour, part_of_day(g.day(0), part))),
    ("hour", "<hour> on? <any>", _hour_of_day),
    ("hour_alone", "<hour> .", _hour_alone),
    ("beyond", "{more|longer|less} than <amount> ago / {over|under} <amount> ago", _beyond),
    # Counted from a day: "two weeks from tomorrow", "Friday week", "this time last year", "three Fridays ago"
    ("time ago", "<amount> from now|today", lambda g, amount: g.distant(amount, 1)),
    ("time", "<amount> {from|on} <day>", _from_day),
    ("time", "<weekday> week .", lambda g, weekday: containing_span(add_units(weekday_near(int(weekday), g.at, 1).since, "week", 1), "day") if g.ahead else None),
    ("time", "this|same time <step> <unit>", lambda g, step, unit: _same_time(g, unit, int(step))),
    ("time", "this|same time <amount> ago", lambda g, amount: _same_time(g, amount.unit, -amount.number)),
    ("time", "this|same time <named_day>", lambda g, day: hour_from(day, containing_span(g.at, "hour").since - day_of(g.at)) if day.grain == "day" else None),
    ("time", "<quantity> <plural> ago", lambda g, quantity, what: _rounds_ago(g, quantity[0], what)),
    # Parts of something longer: "earlier today", "the rest of the week", "early March", "the first ten days of May"
    ("time", "{earlier|later} in|on? <outer>", _up_to_now),
    ("time", "all|most|much|whole|bulk|entirety of <outer>", lambda g, outer: outer),
    ("time", "rest|remainder of <outer>", lambda g, outer: g.from_now(outer)),
    ("time", "<part> of|in|on <outer> / <part> <outer>", _part),
    ("time", "<nth> <amount> of <outer>", lambda g, number, amount, outer: _at_end(number, amount.unit, amount.number, outer)),
    ("time", "<nth> <unit> of <outer> / <nth> {half} of <outer>", _nth_of),
    ("time", "<nth> <weekday> of|in <outer>", _nth_weekday),
    ("time", "<nth> {quarter|half}", lambda g, number, unit: g.resolve_named(g.end, Repeating(unit, number + 1)) if 0 <= number < 4 and g.key(g.end) != "of" else None),
    # Counted from a date: "the Tuesday before Easter", "the week before Easter", "two days before Christmas", "week 42"
    ("time", "<weekday> {before|after} <days>", _weekday_beside),
    ("time", "<unit> {before|after} <days> / <unit> {leading} up to <days>", lambda g, unit, side, base: _beside(g, unit, 1, side, base) if g.article else None),
    ("time", "<amount> {before|after} <days> / <amount> {leading} up to <days>", lambda g, amount, side, base: _beside(g, amount.unit, amount.number, side, base)),
    ("time", "calendar? week|wk <week_number> <year_of> / calendar? week|wk <week_number>", _numbered_week),
    # Counted from the question: "the day before yesterday", "recently", "month to date", "a few days ago", "the past week"
    ("time named_day", "day before yesterday", lambda g: g.day(-2)),
    ("time named_day", "day after tomorrow", lambda g: g.day(2)),
    ("time named_day", "tonight", lambda g: containing_span(g.at, "night")),
    ("time named_day", "overnight", lambda g: containing_span(add_units(g.at, "day", -1), "night")),
    ("time named_day", "{today|yesterday|tomorrow}", lambda g, key: g.day(_DAYS[key])),
    ("time", "of late", lambda g: g.until_now(add_units(g.at, "day", -_RECENT_DAYS))),
    ("time", "recently|lately", lambda g: None if g.key(g.start - 1 - g.article) in _COMPARED else g.until_now(add_units(g.at, "day", -_RECENT_DAYS))),
    ("time", "other day|night|evening|morning|afternoon", lambda g: Span(g.day(-_OTHER_DAY).since, g.day(0).since, "rolling")),
    ("time", "just now / a moment ago", lambda g: g.until_now(g.back("hour", 1))),
    ("time", "{ytd|qtd|mtd|wtd} / <unit> to date", _to_date),
    ("time", "so far <stepped> / so far <named_day>", lambda g, span: g.until_now(span.since)),
    ("time ago", "<amount> ago today", lambda g, amount: None if amount.unit == "sprint" else containing_span(g.back(amount.unit, amount.number), "day")),
    ("time ago", "<amount> ago / <amount> back .", lambda g, amount: g.distant(amount, -1)),
    ("time ago", "<amount> ~time", lambda g, amount: g.distant(amount, 1) if g.before == "in" else None),
    ("time ago", "<amount> .", lambda g, amount: g.distant(amount, 1) if g.before == "in" and g.ahead else None),
    ("time", "recent <unit>", lambda g, unit: g.until_now(g.back(unit, 3))),
    ("time", "this? {past} <length> / <step> <length>", _count_span),
    # The last, this, the next: "last week", "this morning", "next March", "the week before last", "the week of May 5th"
    ("time stepped", "<which> <unit>", _stepped_unit),
    ("time stepped", "<which> <daypart>", lambda g, step, hours: None if step or g.is_owned() else part_of_day(g.day(0), hours)),
    ("time stepped", "<which> <named>", lambda g, step, what: None if g.is_owned() else resolve_repeating(what, g.at, step, False)),
    ("time before_last", "<unit> {before} last", _unit_two_away),
    ("time before_last", "<named> {before} last", _named_two_away),
    ("time", "<unit> {after} next", _unit_two_away),
    ("time", "<named> {after} next", _named_two_away),
    ("time", "week|weeks|wk of <days>", lambda g, days: week_around(days)),
    ("time", "week|weeks|wk ending <day>", lambda g, day: _week_from(add_units(day.until, "week", -1))),
    ("time", "week|weeks|wk beginning|commencing|starting <day>", lambda g, day: _week_from(day.since)),
    ("time", "weekend", _weekend),
    # By name: "Christmas week", "2024-05-01", "the years 2020"
    ("time", "<holiday> week", _week_of_holiday),
    ("time", "<written>", lambda g, span: span),
    ("time", "year|years <year>", lambda g, year: monthly(year, 1, 12, "year")),
)  # fmt: skip
