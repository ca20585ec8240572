"""Numbers and names inside time phrases: "a couple of weeks", "May 5th, 2024", "2024-05-01", "Q3"."""

import re
from datetime import datetime, timedelta
from typing import NamedTuple

from engram.text.time_repeating import Repeating
from engram.text.time_spans import Span, monthly
from engram.text.time_words import Word, lead_at, value_of

__all__ = ["Amount", "amount", "clock", "decade_at", "repeating", "written_date", "year_after", "year_at"]

_ISO = re.compile(r"(\d{4})[-/](\d{1,2})(?:[-/](\d{1,2})(?:t[\d:.z+-]{0,30})?)?", re.ASCII)
_SLASHED = re.compile(r"(\d{1,2})[/.](\d{1,2})[/.](\d{4})", re.ASCII)
_DAY = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?", re.ASCII)
_ORDINAL_DAY = re.compile(r"(\d{1,2})(?:st|nd|rd|th)", re.ASCII)
_YEAR = re.compile(r"(19|20)\d\d", re.ASCII)
_DECADE = re.compile(r"(?:(19|20)|')?(\d)0s", re.ASCII)
_QUARTER = re.compile(r"q([1-4])", re.ASCII)
_QUARTER_OF = re.compile(r"q([1-4])[-/']?((?:20)?\d\d)|(20\d\d)[-/]?q([1-4])", re.ASCII)
_HALF = re.compile(r"h([12])", re.ASCII)
_CLOCK = re.compile(r"(\d{1,2})(?::(\d\d))?(am|pm)?", re.ASCII)
_NUMBER = re.compile(r"\d{1,6}(?:\.\d{1,3})?", re.ASCII)
_FEW, _SEVERAL = (3.0, 2.0, 4.0), (5.0, 3.0, 7.0)


class Amount(NamedTuple):
    """So many units, and between which numbers a vague word ("a few") leaves it."""

    end: int
    unit: str
    number: float
    least: float
    most: float
    bare: bool = False
    """No number stands there: "the past week"."""


def _key(found: list[Word], place: int) -> str:
    return found[place].key if 0 <= place < len(found) else ""


def amount(found: list[Word], place: int, bare: bool = False) -> Amount | None:
    """A number and its unit at this place; with `bare`, the unit alone counts as one."""
    for _ in range(2):
        if value_of("roughly", _key(found, place)) or (_key(found, place) == "like" and not bare):
            place += 1
    read = _quantity(found, place)
    if read is None:
        unit = value_of("unit", _key(found, place)) if bare else None
        return Amount(place + 1, unit, 1, 1, 1, bare=True) if unit else None
    end, number, least, most = read
    if _key(found, end) == "or" and (other := _quantity(found, end + 1)) and value_of("unit", _key(found, other[0])):
        end, most = other[0], max(most, other[3])  # two or three weeks
        least = min(least, other[2])
        number = most
    unit = value_of("unit", _key(found, end))
    if unit is None:
        return None
    end += 1
    if [_key(found, end + n) for n in range(3)] == ["and", "a", "half"]:
        end, number, least, most = end + 3, number + 0.5, least + 0.5, most + 0.5
    elif _key(found, end) == "or" and (other := _quantity(found, end + 1)) and _key(found, other[0]) in ("ago", "back"):
        end, number, most = other[0], other[1], max(most, other[3])  # a day or two ago
    return Amount(end, unit, number, least, most)


def _quantity(found: list[Word], place: int) -> tuple[int, float, float, float] | None:
    key = _key(found, place)
    after = place + 1
    if key == "a" and _key(found, after) == "good":
        after += 1
    if key == "a" and _key(found, after) in ("few", "couple", "dozen"):
        key, after = _key(found, after), after + 1
    if key in ("few", "several"):
        if _key(found, after) == "of":
            after += 1
        return after, *(_FEW if key == "few" else _SEVERAL)
    if key == "half" and _key(found, after) in ("a", "an"):
        return after + 1, 0.5, 0.5, 0.5
    number = float(key) if _NUMBER.fullmatch(key) else float(value_of("number", key) or 0)
    if not number:
        return None
    if (
        number >= 20
        and number % 10 == 0
        and (ones := float(value_of("number", _key(found, after)) or 0))
        and 0 < ones < 10
        and not key.isdigit()
    ):
        number, after = number + ones, after + 1
    if key in ("couple", "dozen") and _key(found, after) == "of":
        after += 1
    if [_key(found, after + n) for n in range(3)] == ["and", "a", "half"]:
        number, after = number + 0.5, after + 3
    return after, number, number, number


def year_at(found: list[Word], place: int) -> int | None:
    """A four-digit year of the last or this century."""
    key = _key(found, place)
    return int(key) if _YEAR.fullmatch(key) else None


def year_after(found: list[Word], place: int) -> tuple[int, int] | None:
    """The year that belongs to what stands before this place: "March 2024", "May 5, 2024", "the summer of 2023"."""
    if 0 < place <= len(found) and found[place - 1].owner:
        return None
    after = place + 1 if _key(found, place) in ("of", "in") else place
    year = year_at(found, after)
    return None if year is None else (after + 1, year)


def decade_at(found: list[Word], place: int, present: int) -> int | None:
    """The first year of "the 2010s" or "the 90s"; without a century the last such decade that has begun."""
    match = _DECADE.fullmatch(_key(found, place))
    if match is None:
        return None
    if match[1]:
        return int(match[1]) * 100 + int(match[2]) * 10
    year = present // 100 * 100 + int(match[2]) * 10
    return year if year <= present else year - 100


def written_date(found: list[Word], place: int) -> tuple[int, Span] | None:
    """A date in figures. 05/03/2024 could be two days and is none; 25/03/2024 and 2024-03-25 are one."""
    key = _key(found, place)
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
    return None


def clock(found: list[Word], place: int) -> tuple[int, timedelta] | None:
    """A time of day: 3pm, 3 pm, 15:30, noon; a bare number is none."""
    key = _key(found, place)
    if key in ("noon", "midday", "midnight"):
        return place + 1, timedelta(hours=0 if key == "midnight" else 12)
    match = _CLOCK.fullmatch(key)
    if match is None:
        return None
    half, end = match[3], place + 1
    if half is None and _key(found, end) in ("am", "pm", "a.m", "p.m") and not found[place].closed:
        half, end = _key(found, end).replace(".", ""), end + 1
    hour, minute = int(match[1]), int(match[2] or 0)
    if (half is None and match[2] is None) or minute > 59 or hour > (12 if half else 23) or (half and hour == 0):
        return None
    hour = hour % 12 + (12 if half == "pm" else 0) if half else hour
    return end, timedelta(hours=hour, minutes=minute)


def _one_day(place: int, year: int, month: int, day: int) -> tuple[int, Span] | None:
    try:
        since = datetime(year, month, day)
    except ValueError:
        return None
    return place + 1, Span(since, since + timedelta(days=1), "day")


def repeating(found: list[Word], place: int, named: bool) -> tuple[int, Repeating] | None:
    """Something that comes round at this place; `named`: a bare day of the month ("the 5th") counts too."""
    key = _key(found, place)
    if not key:
        return None
    if weekday := value_of("weekday", key):
        lone = found[place].owner or value_of("weekday", _key(found, place + 1))
        dated = None if lone else repeating(found, place + 1, False)  # Monday, May 5
        return (
            dated if dated is not None and dated[1].kind == "date" else (place + 1, Repeating("weekday", int(weekday)))
        )
    if month := value_of("month", key):
        return _in_month(found, place, int(month))
    if quarter := _QUARTER.fullmatch(key):
        return place + 1, Repeating("quarter", int(quarter[1]))
    if (half := _HALF.fullmatch(key)) and year_after(found, place + 1):
        return place + 1, Repeating("half", int(half[1]))
    if season := value_of("season", key):
        return place + 1, Repeating("season", int(season))
    if holiday := lead_at(found, place, "holiday", longest=3):
        first, second, days = (int(part) for part in holiday[1].split("-"))
        return holiday[0], Repeating("holiday", first, second, days)
    return _day_first(found, place, named)


def _in_month(found: list[Word], place: int, month: int) -> tuple[int, Repeating]:
    after = place + 2 if _key(found, place + 1) == "the" else place + 1
    day = _DAY.fullmatch(_key(found, after))
    if day is None or found[place].owner or found[place].closed or not 1 <= int(day[1]) <= 31:
        return place + 1, Repeating("month", month)
    return after + 1, Repeating("date", month, int(day[1]))


def _day_first(found: list[Word], place: int, named: bool) -> tuple[int, Repeating] | None:
    """5 May, the 5th of May, the 5th."""
    key = _key(found, place)
    match = _DAY.fullmatch(key)
    ordinal = value_of("ordinal", key)
    day = int(match[1]) if match else int(ordinal or 0)
    if not 1 <= day <= 31:
        return None
    after = place + 2 if _key(found, place + 1) == "of" else place + 1
    month = value_of("month", _key(found, after))
    if (month and not found[place].closed and _key(found, after) != "mar") or (month and match):
        return after + 1, Repeating("date", int(month), day)
    if named and _ORDINAL_DAY.fullmatch(key):
        return place + 1, Repeating("monthday", day)
    return None
