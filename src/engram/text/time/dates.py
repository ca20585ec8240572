"""Numbers, dates, quarters and times of day in a text, in figures or in words; and the times that could not be read.

A date with its year restricts a question in time; as words its parts are misleading ("May" is in many sentences).
Relative phrases depend on when the question was asked; `windows` reads those. Silently ignoring a time would answer a
different question. Text that looks like a time but was not read as one (a nonexistent day, an ambiguous date, a year
beyond the calendar) is therefore reported, so that the caller can show it.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple

from engram.model.lazy import dataclass, lazy_pattern
from engram.text.time.calendar import Repeating, Span, containing_span, monthly
from engram.text.time.words import Word, is_plain, key_at, lead_at, value_of, words

__all__ = [
    "HALF_DAY",
    "Amount",
    "ClockRange",
    "DateSpan",
    "amount",
    "bare_hour",
    "by_daylight",
    "clock",
    "clocks",
    "date_spans",
    "day_of_month",
    "decade_at",
    "holiday",
    "is_fiscal",
    "nth",
    "one_of",
    "quantity",
    "repeating",
    "unread_times",
    "week_number",
    "which",
    "without_dates",
    "written_date",
    "year_after",
    "year_at",
]

_ISO = lazy_pattern(r"(\d{4})[-/](\d{1,2})(?:[-/](\d{1,2})(?:t[\d:.z+-]{0,30})?)?", re.ASCII)
_SLASHED = lazy_pattern(r"(\d{1,2})[/.](\d{1,2})[/.](\d{4})", re.ASCII)
_DAY = lazy_pattern(r"(\d{1,2})(?:st|nd|rd|th)?", re.ASCII)
_ORDINAL_DAY = lazy_pattern(r"(\d{1,2})(?:st|nd|rd|th)", re.ASCII)
_YEAR = lazy_pattern(r"(19|20)\d\d", re.ASCII)
_ANY_YEAR = lazy_pattern(r"[1-9]\d{3}", re.ASCII)
_DECADE = lazy_pattern(r"(?:(1[0-9]|20)|')?(\d)0s", re.ASCII)
_QUARTER = lazy_pattern(r"q([1-4])", re.ASCII)
_FISCAL = lazy_pattern(r"fy[-']?(?:\d\d|\d{4})", re.ASCII)
_QUARTER_OF = lazy_pattern(r"q([1-4])[-/']?((?:20)?\d\d)|(20\d\d)[-/]?q([1-4])", re.ASCII)
_HALF = lazy_pattern(r"h([12])", re.ASCII)
_YEARS = lazy_pattern(r"((?:19|20)\d\d)[-–]((?:19|20)\d\d)", re.ASCII)
_MONTH_OF = lazy_pattern(r"(\d{1,2})/((?:19|20)\d\d)", re.ASCII)
_DAY_AND_MONTH = lazy_pattern(r"(\d{1,2})[/.](\d{1,2})", re.ASCII)
_NUMBER = lazy_pattern(r"\d{1,6}(?:\.\d{1,3})?", re.ASCII)
_OFF_SEASON = frozenset(("holidays", "holiday", "vacation", "break"))
_CLOCK = lazy_pattern(r"(\d{1,2})(?::(\d\d))?(am|pm)?", re.ASCII)
_NO_HOURS = frozenset(("a", "an", "couple", "dozen"))
"""Words for a number that never mean an hour."""
_AFTERNOON_BEFORE = 6  # "3 o'clock" is in the afternoon, "7 o'clock" in the morning
HALF_DAY, _BEFORE_WORK = timedelta(hours=12), timedelta(hours=_AFTERNOON_BEFORE)
_AT_AN_END = {"last": -1, "final": -1, "closing": -1, "latter": -1, "opening": 0}
_FEW, _SEVERAL = (3.0, 2.0, 4.0), (5.0, 3.0, 7.0)


class Amount(NamedTuple):
    """A number of units, with the lower and upper limit of a vague word ("a few")."""

    unit: str
    number: float
    least: float
    most: float
    bare: bool = False
    """Whether there is no number: "the past week"."""


def _keys_at(found: list[Word], place: int, *keys: str) -> bool:
    return all(key_at(found, place + n) == key for n, key in enumerate(keys))


def amount(found: list[Word], place: int, bare: bool = False) -> tuple[int, Amount] | None:
    """A number and its unit at this position; with `bare`, the unit alone counts as one."""
    for _ in range(2):
        place += bool(value_of("roughly", key_at(found, place)) or key_at(found, place) == "like")
    read = quantity(found, place)
    if read is None:
        unit = value_of("unit", key_at(found, place)) if bare else None
        return (place + 1, Amount(unit, 1, 1, 1, bare=True)) if unit else None
    end, (number, least, most) = read
    other = quantity(found, end + 1) if key_at(found, end) == "or" else None
    if other is not None and value_of("unit", key_at(found, other[0])):
        end, (_, lower, higher) = other  # two or three weeks
        least, most = min(least, lower), max(most, higher)
        number = most
    unit = value_of("unit", key_at(found, end))
    if unit is None:
        return None
    end += 1
    other = quantity(found, end + 1) if key_at(found, end) == "or" else None
    if _keys_at(found, end, "and", "a", "half"):
        end, number, least, most = end + 3, number + 0.5, least + 0.5, most + 0.5
    elif _keys_at(found, end, "or", "so"):
        end += 2
    elif other is not None and key_at(found, other[0]) in ("ago", "back"):
        end, number, most = other[0], other[1][0], max(most, other[1][2])  # a day or two ago
    return end, Amount(unit, number, least, most)


def quantity(found: list[Word], place: int) -> tuple[int, tuple[float, float, float]] | None:
    """The end of a number, the number, and the lower and upper limit of a vague word."""
    key, after = key_at(found, place), place + 1
    if key == "half" and key_at(found, after) in ("a", "an"):
        return after + 1, (0.5, 0.5, 0.5)
    if key == "a":
        after += key_at(found, after) == "good"
        if key_at(found, after) in ("few", "couple", "dozen"):
            key, after = key_at(found, after), after + 1
    if key in ("few", "several", "couple", "dozen"):
        after += key_at(found, after) == "of"
    if key in ("few", "several"):
        return after, _FEW if key == "few" else _SEVERAL
    written = _NUMBER.fullmatch(key)
    number = float(key if written else value_of("number", key) or 0)
    if not number:
        return None
    ones = float(value_of("number", key_at(found, after)) or 0)
    if not written and number >= 20 and number % 10 == 0 and 0 < ones < 10:
        number, after = number + ones, after + 1
    if _keys_at(found, after, "and", "a", "half"):
        number, after = number + 0.5, after + 3
    return after, (number, number, number)


def which(found: list[Word], place: int) -> tuple[int, int] | None:
    """The last (-1), this (0) or the next (1); the second of two words in "this past", "this coming"."""
    step, after = value_of("step", key_at(found, place)), key_at(found, place + 1)
    if step == "0" and after in ("past", "last", "coming"):
        return place + 2, 1 if after == "coming" else -1
    return None if step is None else (place + 1, int(step))


def nth(found: list[Word], place: int) -> tuple[int, int] | None:
    """The first (0), the second (1) … the last (-1)."""
    key = key_at(found, place)
    number = _AT_AN_END.get(key, int(value_of("ordinal", key) or 0) - 1)
    return (place + 1, number) if number >= 0 or key in _AT_AN_END else None


def week_number(found: list[Word], place: int) -> tuple[int, int] | None:
    """The number of a calendar week."""
    key = key_at(found, place)
    return (place + 1, int(key)) if key.isascii() and key.isdigit() and 1 <= int(key) <= 53 else None


def year_at(found: list[Word], place: int, *, any_of: bool = False) -> tuple[int, int] | None:
    """A four-digit year of the last or this century; with `any_of`, of any century, if no countable word follows."""
    key = key_at(found, place)
    if _YEAR.fullmatch(key) or (any_of and _ANY_YEAR.fullmatch(key) and is_plain(found, place + 1)):
        return place + 1, int(key)
    return None


def year_after(found: list[Word], place: int) -> tuple[int, int] | None:
    """The year that belongs to the words before this position: "March 2024", "May 5, 2024", "the summer of 2023"."""
    if 0 < place <= len(found) and found[place - 1].owner:
        return None
    return year_at(found, place + (key_at(found, place) in ("of", "in")), any_of=True)


def decade_at(found: list[Word], place: int, present: int) -> int | None:
    """The first year of "the 2010s" or "the 90s"; without a century, the most recent such decade that has begun."""
    named = value_of("decade", key_at(found, place))
    match = _DECADE.fullmatch(named or key_at(found, place))
    if match is None:
        return None
    if match[1]:
        return int(match[1]) * 100 + int(match[2]) * 10
    year = present // 100 * 100 + int(match[2]) * 10
    return year if year <= present else year - 100


def written_date(found: list[Word], place: int) -> tuple[int, Span] | None:
    """A date in figures. 25/03/2024 and 2024-03-25 are dates; 05/03/2024 is ambiguous and not read."""
    key = key_at(found, place)
    if match := _ISO.fullmatch(key):
        year, month, day = int(match[1]), int(match[2]), int(match[3] or 0)
        if not 1 <= month <= 12 or not 1900 <= year <= 2199 or (not day and len(match[2]) < 2):
            return None
        return _one_day(place, year, month, day) if day else (place + 1, monthly(year, month, 1, "month"))
    if match := _QUARTER_OF.fullmatch(key):
        year = int(match[2] or match[3])
        return place + 1, monthly(year % 100 + 2000, 3 * int(match[1] or match[4]) - 2, 3, "quarter")
    if match := _SLASHED.fullmatch(key):
        one, other, year = int(match[1]), int(match[2]), int(match[3])
        if one != other and one <= 12 and other <= 12:
            return None
        return _one_day(place, year, other if one > 12 else one, one if one > 12 else other)
    if (match := _MONTH_OF.fullmatch(key)) and 1 <= int(match[1]) <= 12:
        return place + 1, monthly(int(match[2]), int(match[1]), 1, "month")
    if match := _YEARS.fullmatch(key):
        return place + 1, Span(datetime(int(match[1]), 1, 1), datetime(int(match[2]) + 1, 1, 1), "range")
    return None


def _one_day(place: int, year: int, month: int, day: int) -> tuple[int, Span] | None:
    try:
        since = datetime(year, month, day)
    except ValueError:
        return None
    return place + 1, Span(since, since + timedelta(days=1), "day")


def repeating(found: list[Word], place: int, named: bool) -> tuple[int, Repeating] | None:
    """A recurring time at this position; with `named`, a bare day of the month ("the 5th") counts too."""
    key = key_at(found, place)
    if not key:
        return None
    if (named_day := holiday(found, place)) is not None:
        return named_day
    if weekday := value_of("weekday", key):
        return _weekday_dated(found, place, int(weekday)) or (place + 1, Repeating("weekday", int(weekday)))
    if month := value_of("month", key):
        return _in_month(found, place, int(month))
    if (quarter := _QUARTER.fullmatch(key)) and not is_fiscal(key_at(found, place + 1)):
        return place + 1, Repeating("quarter", int(quarter[1]))
    if (half := _HALF.fullmatch(key)) and (year_after(found, place + 1) or value_of("lead", key_at(found, place - 1))):
        return place + 1, Repeating("half", int(half[1]))
    if season := value_of("season", key):
        return place + 1 + (key_at(found, place + 1) in _OFF_SEASON), Repeating("season", int(season))
    return _read_slashes(found, place) or _day_first(found, place, named)


def is_fiscal(key: str) -> bool:
    """Whether a word names somebody's fiscal year: FY25. The calendar does not define when it begins."""
    return key == "fy" or _FISCAL.fullmatch(key) is not None


def one_of(found: list[Word], place: int) -> tuple[int, Repeating] | None:
    """A recurring time in the plural: Fridays, summers, Christmases."""
    plural = key_at(found, place)
    for name in {plural.removesuffix("s"), plural.removesuffix("es")} - {plural}:
        for kind in ("weekday", "season"):
            if value := value_of(kind, name):
                return place + 1, Repeating(kind, int(value))
        if rule := value_of("holiday", name):
            return place + 1, Repeating("holiday", rule=rule)
    return None


def _weekday_dated(found: list[Word], place: int, weekday: int) -> tuple[int, Repeating] | None:
    """A weekday with its date: "Monday, May 5", "Monday the 5th"."""
    behind = place + 2 if key_at(found, place + 1) == "the" else place + 1
    if found[place].owner or value_of("weekday", key_at(found, behind)):
        return None
    dated = repeating(found, behind, behind > place + 1)
    if dated is not None and dated[1].kind == "monthday":
        return dated[0], Repeating("monthday", dated[1].first, weekday + 1)
    return dated if dated is not None and dated[1].kind == "date" else None


def day_of_month(found: list[Word], place: int) -> tuple[int, int] | None:
    """The number of a day without its month, and its end: "the 3rd", "3"."""
    start = place + 1 if key_at(found, place) == "the" else place
    match = _DAY.fullmatch(key_at(found, start))
    return (start + 1, int(match[1])) if match and 1 <= int(match[1]) <= 31 else None


def holiday(found: list[Word], place: int) -> tuple[int, Repeating] | None:
    """A holiday at this position; after "on", the exact day."""
    named = lead_at(found, place, "holiday", longest=3)
    if named is None:
        return None
    very_day = value_of("holiday_on", key_at(found, place)) if named[0] == place + 1 else None
    rule = very_day if very_day and key_at(found, place - 1) == "on" else named[1]
    return named[0], Repeating("holiday", rule=rule)


def _in_month(found: list[Word], place: int, month: int) -> tuple[int, Repeating]:
    after = place + 2 if key_at(found, place + 1) == "the" else place + 1
    day = _DAY.fullmatch(key_at(found, after))
    if day is None or found[place].owner or found[place].closed or not _counts_days(found, place, after):
        return place + 1, Repeating("month", month)
    return after + 1, Repeating("date", month, int(day[1]))


def _counts_days(found: list[Word], place: int, after: int) -> bool:
    """Whether the number after a month is a day of it. "On May 32" names a nonexistent day; "in May 40 people came"
    names none.
    """
    key = key_at(found, after)
    return int(key.rstrip("stndrh")) <= 31 or bool(_ORDINAL_DAY.fullmatch(key)) or key_at(found, place - 1) == "on"


def _day_first(found: list[Word], place: int, named: bool) -> tuple[int, Repeating] | None:
    """5 May, the 5th of May, the 5th."""
    key = key_at(found, place)
    match = _DAY.fullmatch(key)
    ordinal = value_of("ordinal", key)
    day = int(match[1]) if match else int(ordinal or 0)
    if not day:
        return None
    after = place + 2 if key_at(found, place + 1) == "of" else place + 1
    month = value_of("month", key_at(found, after))
    if (month and not found[place].closed and key_at(found, after) != "mar") or (month and match):
        return after + 1, Repeating("date", int(month), day)
    if named and _ORDINAL_DAY.fullmatch(key):
        return place + 1, Repeating("monthday", day)
    return None


def _read_slashes(found: list[Word], place: int) -> tuple[int, Repeating] | None:
    """A day and a month in figures after "on": 14/3 and 3/14 are the same day; 3/4 is ambiguous and not read."""
    match = _DAY_AND_MONTH.fullmatch(key_at(found, place))
    if match is None or key_at(found, place - 1) not in ("on", "since", "by", "before", "after", "until"):
        return None
    first, second = int(match[1]), int(match[2])
    day, month = max(first, second), min(first, second)
    return (place + 1, Repeating("date", month, day)) if day > 12 >= month >= 1 or day == month else None


def clock(found: list[Word], place: int) -> tuple[int, timedelta] | None:
    """A time of day: 3pm, 3 pm, 15:30, noon. A bare number is not one."""
    key = key_at(found, place)
    if key in ("noon", "midday", "midnight"):
        return place + 1, timedelta(hours=0 if key == "midnight" else 12)
    if key in ("half", "quarter"):
        return _part_of_hour(found, place)
    match = _CLOCK.fullmatch(key)
    if match is None:
        return None
    half, end = match[3], place + 1
    if half is None and match[2] is None and key_at(found, end) == "o'clock":
        return end + 1, by_daylight(timedelta(hours=int(match[1]) % 24))
    if half is None and key_at(found, end) in ("am", "pm", "a.m", "p.m") and not found[place].closed:
        half, end = key_at(found, end).replace(".", ""), end + 1
    hour, minute = int(match[1]), int(match[2] or 0)
    if (half is None and match[2] is None) or minute > 59 or hour > (12 if half else 23) or (half and hour == 0):
        return None
    hour = hour % 12 + (12 if half == "pm" else 0) if half else hour
    return end, timedelta(hours=hour, minutes=minute)


def _part_of_hour(found: list[Word], place: int) -> tuple[int, timedelta] | None:
    """Half past three, a quarter to nine."""
    side, key = key_at(found, place + 1), key_at(found, place + 2)
    hour = int(key) if key.isascii() and key.isdigit() else int(value_of("number", key) or 0)
    if side not in ("past", "to") or not 1 <= hour <= 12 or (side == "to" and key_at(found, place) == "half"):
        return None
    late = key_at(found, place + 3) in ("pm", "p.m") or (
        hour <= _AFTERNOON_BEFORE and key_at(found, place + 3) not in ("am", "a.m")
    )
    end = place + 4 if key_at(found, place + 3) in ("am", "a.m", "pm", "p.m") else place + 3
    minutes = 30 if key_at(found, place) == "half" else 15
    return end, timedelta(hours=hour % 12 + 12 * late, minutes=minutes if side == "past" else -minutes)


class ClockRange(NamedTuple):
    """Two times of one day, and whether one of them is certainly a clock time."""

    first: timedelta
    last: timedelta
    sure: bool


def clocks(found: list[Word], place: int) -> tuple[int, ClockRange] | None:
    """From one time of day to another: "between 2 and 4pm", "from 9 to 11"."""
    joins = {"between": ("and",), "from": ("to", "till", "until")}.get(key_at(found, place), ())
    first = clock(found, place + 1) or bare_hour(found, place + 1)
    if first is None or key_at(found, first[0]) not in joins:
        return None
    marked, second = clock(found, first[0] + 1), bare_hour(found, first[0] + 1)
    last = marked or second
    if last is None:
        return None
    since, until = first[1], last[1]
    if not clock(found, place + 1) and marked and until - since >= HALF_DAY:
        since += HALF_DAY  # between 2 and 4pm
    if not marked and until <= since:
        until += HALF_DAY  # from 2pm to 4, from 9 to 5
    sure = bool(marked or clock(found, place + 1))
    if sure and marked and until <= since:
        until += 2 * HALF_DAY  # from 10pm to 2am
    if not sure and until <= _BEFORE_WORK:
        since, until = since + HALF_DAY, until + HALF_DAY
    return (last[0], ClockRange(since, until, sure)) if since < until else None


def by_daylight(hour: timedelta) -> timedelta:
    """The more likely reading of a bare hour: 1 to 6 in the afternoon, 7 to 12 in the morning."""
    return hour + HALF_DAY if timedelta() < hour <= _BEFORE_WORK else hour


def bare_hour(found: list[Word], place: int) -> tuple[int, timedelta] | None:
    """A number that can be an hour, 1 to 12, and its end. The words around it must show whether it is one."""
    key = key_at(found, place)
    written = key.isascii() and key.isdigit()
    hour = int(key) if written else 0 if key in _NO_HOURS else int(value_of("number", key) or 0)
    return (place + 1, timedelta(hours=hour)) if 1 <= hour <= 12 else None


_HAS_YEAR = lazy_pattern(r"(?:19|20)\d\d")
_LEADS = frozenset(("on", "in", "of", "during", "since", "around", "by", "the"))


@dataclass(frozen=True, slots=True)
class DateSpan:
    """A half-open time span, in seconds, and the position of its words in the text."""

    since: float
    until: float
    start: int
    end: int


def date_spans(text: str, zone: tzinfo = UTC) -> list[DateSpan]:
    """The days and months with a year that a text names, in order, as those of a zone."""
    spans: list[DateSpan] = []
    if not _HAS_YEAR.search(text):
        return spans
    found, place, behind = words(text), 0, 0
    while place < len(found):
        date = _date_at(found, place)
        if date is None:
            place += 1
            continue
        first = place
        while first > behind and found[first - 1].key in _LEADS and not found[first - 1].closed:
            first -= 1
        place = behind = date[0]
        since, until = (moment.replace(tzinfo=zone).timestamp() for moment in (date[1].since, date[1].until))
        spans.append(DateSpan(since, until, found[first].start, found[place - 1].end))
    return spans


def _date_at(found: list[Word], place: int) -> tuple[int, Span] | None:
    """The end of a day or a month with its year, and its span."""
    written = written_date(found, place)
    if written is not None:
        return written if written[1].grain in ("day", "month") else None
    named = repeating(found, place, named=False)
    year = year_after(found, named[0]) if named is not None and named[1].kind in ("date", "month") else None
    if named is None or year is None or not _HAS_YEAR.fullmatch(str(year[1])):
        return None
    if named[1].kind == "month":
        return year[0], monthly(year[1], named[1].first, 1, "month")
    try:
        return year[0], containing_span(datetime(year[1], named[1].first, named[1].second), "day")
    except ValueError:
        return None  # "30 February 2024"


def without_dates(text: str, found: list[DateSpan]) -> str:
    """The text without the words of these dates."""
    for span in reversed(found):
        text = f"{text[: span.start]} {text[span.end :]}"
    return text


_FIGURES = lazy_pattern(
    r"\d{4}[-/.]\d{1,2}(?:[-/.]\d{1,2})?|\d{1,2}[-/]\d{1,2}[-/]\d{2,4}|\d{1,2}\.\d{1,2}\.\d{4}", re.ASCII
)
_SHORT = lazy_pattern(r"\d{1,2}[/.]\d{1,2}", re.ASCII)
_DAY_OF_MONTH = lazy_pattern(r"(\d{1,3})(?:st|nd|rd|th)", re.ASCII)
_PERIOD = lazy_pattern(r"q[05-9]|h[03-9]", re.ASCII)
_QUARTER_WORD = lazy_pattern(r"q[1-4]", re.ASCII)
_OTHER_YEARS = frozenset(("fiscal", "financial", "tax", "school", "academic"))
_YEAR_LEADS = frozenset(("in", "since", "before", "after", "until", "during"))
_BEYOND = 1000
_LOWER_TOO = frozenset(("may", "march", "mar", "sat", "sun", "second"))


def unread_times(text: str, read: tuple[int, int] | None) -> tuple[str, ...]:
    """The times named in a text outside the part that was read, as written."""
    found, unread, place = words(text), [], 0
    while place < len(found):
        end = next((end for rule in _RULES if (end := rule(found, place)) is not None), None)
        if end is not None:
            start, stop = found[place].start, found[end - 1].end
            if read is None or stop <= read[0] or start >= read[1]:
                unread.append(text[start:stop])
        place = end or place + 1
    return tuple(dict.fromkeys(unread))


def _figures(found: list[Word], place: int) -> int | None:
    short = key_at(found, place - 1) == "on" and _SHORT.fullmatch(found[place].key)
    return place + 1 if short or _FIGURES.fullmatch(found[place].key) else None


def _match_date(found: list[Word], place: int) -> int | None:
    """A month with a day or a year: "Feb 30", "the 32nd of May", "December 9999"."""
    if found[place].key in _LOWER_TOO and not found[place].capital:
        return None
    read = repeating(found, place, named=True)
    if read is None or read[1].kind not in ("date", "month"):
        return None
    year = year_after(found, read[0])
    if year is not None:
        return year[0]
    return read[0] if read[1].kind == "date" else None


def _ago(found: list[Word], place: int) -> int | None:
    read = amount(found, place)
    if read is None:
        return None
    end, counted = read
    if key_at(found, end) == "ago":
        return end + 1
    return end if key_at(found, place - 1) == "in" and counted.number >= _BEYOND else None


def _year(found: list[Word], place: int) -> int | None:
    bound = key_at(found, place - 1) in _YEAR_LEADS and is_plain(found, place + 1)
    return place + 1 if bound and year_at(found, place, any_of=True) else None


def _day_of_month(found: list[Word], place: int) -> int | None:
    match = _DAY_OF_MONTH.fullmatch(found[place].key)
    on = (key_at(found, place - 2), key_at(found, place - 1)) == ("on", "the")
    return place + 1 if match and on and int(match[1]) > 31 else None


def _period(found: list[Word], place: int) -> int | None:
    if not _PERIOD.fullmatch(found[place].key):
        return None
    year = year_after(found, place + 1)
    return year[0] if year else place + 1 if key_at(found, place - 1) == "in" else None


def _match_uncomputed(found: list[Word], place: int) -> int | None:
    """A holiday of a calendar that is not computed, or a sprint of unknown length."""
    named = lead_at(found, place, "uncomputed", longest=3)
    if named is not None:
        year = year_after(found, named[0])
        return year[0] if year else named[0]
    stepped = value_of("step", found[place].key) and key_at(found, place + 1) == "sprint"
    return place + 2 if stepped else None


def _of_another_year(found: list[Word], place: int) -> int | None:
    """A year with a beginning of its own: "FY25", "Q3 FY25", "last fiscal year", "fiscal 2025"."""
    after = place
    if value_of("step", found[place].key) or _QUARTER_WORD.fullmatch(found[place].key):
        after += 1
    bound = after > place or value_of("lead", key_at(found, place - 1)) is not None
    if is_fiscal(key_at(found, after)):
        return after + 1
    if key_at(found, after) == "fy" and year_at(found, after + 1):
        return after + 2
    if key_at(found, after) not in _OTHER_YEARS or not bound:
        return None
    behind = after + 1 + (key_at(found, after + 1) in ("year", "quarter"))
    if year_at(found, behind):
        return behind + 1
    return behind if behind > after + 1 else None


def _pointed_at(found: list[Word], place: int) -> int | None:
    """A reference to a time mentioned before: "that day", "later that week"."""
    named = value_of("unit", key_at(found, place + 1)) or value_of("daypart", key_at(found, place + 1))
    pointed = found[place].key == "that" and named and not key_at(found, place + 1).endswith("s")
    return place + 2 if pointed and is_plain(found, place + 2) else None


_RULES: tuple[Callable[[list[Word], int], int | None], ...] = (
    _figures,
    _match_date,
    _ago,
    _year,
    _day_of_month,
    _period,
    _match_uncomputed,
    _of_another_year,
    _pointed_at,
)
