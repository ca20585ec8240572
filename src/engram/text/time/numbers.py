"""Numbers and names inside time phrases: "a couple of weeks", "May 5th, 2024", "2024-05-01", "Q3"."""

import re
from datetime import datetime, timedelta
from typing import NamedTuple

from engram.model.lazy import lazy_pattern
from engram.text.time.calendar import Repeating, Span, monthly
from engram.text.time.words import Word, is_plain, lead_at, value_of

__all__ = [
    "Amount",
    "amount",
    "day_of_month",
    "decade_at",
    "is_fiscal",
    "numbered_week",
    "one_of",
    "quantity",
    "repeating",
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
    read = quantity(found, place)
    if read is None:
        unit = value_of("unit", _key(found, place)) if bare else None
        return Amount(place + 1, unit, 1, 1, 1, bare=True) if unit else None
    end, number, least, most = read
    if _key(found, end) == "or" and (other := quantity(found, end + 1)) and value_of("unit", _key(found, other[0])):
        end, most = other[0], max(most, other[3])  # two or three weeks
        least = min(least, other[2])
        number = most
    unit = value_of("unit", _key(found, end))
    if unit is None:
        return None
    end += 1
    if [_key(found, end + n) for n in range(3)] == ["and", "a", "half"]:
        end, number, least, most = end + 3, number + 0.5, least + 0.5, most + 0.5
    elif [_key(found, end + n) for n in range(2)] == ["or", "so"]:
        end += 2
    elif _key(found, end) == "or" and (other := quantity(found, end + 1)) and _key(found, other[0]) in ("ago", "back"):
        end, number, most = other[0], other[1], max(most, other[3])  # a day or two ago
    return Amount(end, unit, number, least, most)


def quantity(found: list[Word], place: int) -> tuple[int, float, float, float] | None:
    """Where a number ends, the number, and between which a vague word leaves it."""
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


def year_at(found: list[Word], place: int, *, any_of: bool = False) -> int | None:
    """A four-digit year of the last or this century; of any other where `any_of` and nothing it could count follows."""
    key = _key(found, place)
    if _YEAR.fullmatch(key) or (any_of and _ANY_YEAR.fullmatch(key) and is_plain(found, place + 1)):
        return int(key)
    return None


def year_after(found: list[Word], place: int) -> tuple[int, int] | None:
    """The year that belongs to what stands before this place: "March 2024", "May 5, 2024", "the summer of 2023"."""
    if 0 < place <= len(found) and found[place - 1].owner:
        return None
    after = place + 1 if _key(found, place) in ("of", "in") else place
    year = year_at(found, after, any_of=True)
    return None if year is None else (after + 1, year)


def decade_at(found: list[Word], place: int, present: int) -> int | None:
    """The first year of "the 2010s" or "the 90s"; without a century the last such decade that has begun."""
    named = value_of("decade", _key(found, place))
    match = _DECADE.fullmatch(named or _key(found, place))
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
    if (match := _MONTH_OF.fullmatch(key)) and 1 <= int(match[1]) <= 12:
        return place + 1, monthly(int(match[2]), int(match[1]), 1, "month")
    if match := _YEARS.fullmatch(key):
        return place + 1, Span(datetime(int(match[1]), 1, 1), datetime(int(match[2]) + 1, 1, 1), "range")
    return None


def numbered_week(found: list[Word], place: int) -> tuple[int, int, int | None] | None:
    """A week by its number in the calendar, and the year where it has one: "week 42", "calendar week 7 of 2024"."""
    start = place + 1 if _key(found, place) == "calendar" else place
    number = _key(found, start + 1)
    if (
        _key(found, start) not in ("week", "wk")
        or not (number.isascii() and number.isdigit())
        or not 1 <= int(number) <= 53
    ):
        return None
    year = year_after(found, start + 2)
    return (year[0], int(number), year[1]) if year else (start + 2, int(number), None)


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
    if holiday := _holiday(found, place):
        return holiday
    if weekday := value_of("weekday", key):
        return _weekday_dated(found, place, int(weekday)) or (place + 1, Repeating("weekday", int(weekday)))
    if month := value_of("month", key):
        return _in_month(found, place, int(month))
    if (quarter := _QUARTER.fullmatch(key)) and not is_fiscal(_key(found, place + 1)):
        return place + 1, Repeating("quarter", int(quarter[1]))
    if (half := _HALF.fullmatch(key)) and (year_after(found, place + 1) or value_of("lead", _key(found, place - 1))):
        return place + 1, Repeating("half", int(half[1]))
    if season := value_of("season", key):
        return place + 1 + (_key(found, place + 1) in _OFF_SEASON), Repeating("season", int(season))
    return _slashed(found, place) or _day_first(found, place, named)


def is_fiscal(key: str) -> bool:
    """Whether a word names a year of somebody's books: FY25. Where it begins the calendar does not say."""
    return key == "fy" or _FISCAL.fullmatch(key) is not None


def one_of(plural: str) -> Repeating | None:
    """What comes round, by its plural: Fridays, summers, Christmases."""
    for name in (plural.removesuffix("s"), plural.removesuffix("es")):
        if name != plural and (weekday := value_of("weekday", name)):
            return Repeating("weekday", int(weekday))
        if name != plural and (season := value_of("season", name)):
            return Repeating("season", int(season))
        if name != plural and (holiday := value_of("holiday", name)):
            return Repeating("holiday", rule=holiday)
    return None


def _weekday_dated(found: list[Word], place: int, weekday: int) -> tuple[int, Repeating] | None:
    """A weekday with its date: "Monday, May 5", "Monday the 5th"."""
    behind = place + 2 if _key(found, place + 1) == "the" else place + 1
    if found[place].owner or value_of("weekday", _key(found, behind)):
        return None
    dated = repeating(found, behind, behind > place + 1)
    if dated is not None and dated[1].kind == "monthday":
        return dated[0], Repeating("monthday", dated[1].first, weekday + 1)
    return dated if dated is not None and dated[1].kind == "date" else None


def day_of_month(found: list[Word], place: int) -> tuple[int, int] | None:
    """The number of a day without its month, and where it ends: "the 3rd", "3"."""
    start = place + 1 if _key(found, place) == "the" else place
    match = _DAY.fullmatch(_key(found, start))
    return (start + 1, int(match[1])) if match and 1 <= int(match[1]) <= 31 else None


def _holiday(found: list[Word], place: int) -> tuple[int, Repeating] | None:
    named = lead_at(found, place, "holiday", longest=3)
    if named is None:
        return None
    very_day = value_of("holiday_on", _key(found, place)) if named[0] == place + 1 else None
    rule = very_day if very_day and _key(found, place - 1) == "on" else named[1]
    return named[0], Repeating("holiday", rule=rule)


def _in_month(found: list[Word], place: int, month: int) -> tuple[int, Repeating]:
    after = place + 2 if _key(found, place + 1) == "the" else place + 1
    day = _DAY.fullmatch(_key(found, after))
    if day is None or found[place].owner or found[place].closed or not _counts_days(found, place, after):
        return place + 1, Repeating("month", month)
    return after + 1, Repeating("date", month, int(day[1]))


def _counts_days(found: list[Word], place: int, after: int) -> bool:
    """Whether the number behind a month is a day of it. "On May 32" means one there is not; "in May 40 people came" none."""
    key = _key(found, after)
    return int(key.rstrip("stndrh")) <= 31 or bool(_ORDINAL_DAY.fullmatch(key)) or _key(found, place - 1) == "on"


def _day_first(found: list[Word], place: int, named: bool) -> tuple[int, Repeating] | None:
    """5 May, the 5th of May, the 5th."""
    key = _key(found, place)
    match = _DAY.fullmatch(key)
    ordinal = value_of("ordinal", key)
    day = int(match[1]) if match else int(ordinal or 0)
    if not day:
        return None
    after = place + 2 if _key(found, place + 1) == "of" else place + 1
    month = value_of("month", _key(found, after))
    if (month and not found[place].closed and _key(found, after) != "mar") or (month and match):
        return after + 1, Repeating("date", int(month), day)
    if named and _ORDINAL_DAY.fullmatch(key):
        return place + 1, Repeating("monthday", day)
    return None


def _slashed(found: list[Word], place: int) -> tuple[int, Repeating] | None:
    """A day and a month in figures behind "on": 14/3 and 3/14 are one day, 3/4 could be two and is none."""
    match = _DAY_AND_MONTH.fullmatch(_key(found, place))
    if match is None or _key(found, place - 1) not in ("on", "since", "by", "before", "after", "until"):
        return None
    first, second = int(match[1]), int(match[2])
    day, month = max(first, second), min(first, second)
    return (place + 1, Repeating("date", month, day)) if day > 12 >= month >= 1 or day == month else None
