"""Times of the clock: 3pm, 15:30, half past three, "between 2 and 4pm"."""

import re
from datetime import timedelta

from engram.text.time_words import Word, value_of

__all__ = ["bare_hour", "by_daylight", "clock", "clocks"]

_CLOCK = re.compile(r"(\d{1,2})(?::(\d\d))?(am|pm)?", re.ASCII)
_NO_HOURS = frozenset(("a", "an", "couple", "dozen"))
"""Words that say a number and never an hour."""
_AFTERNOON_BEFORE = 6  # "3 o'clock" is in the afternoon, "7 o'clock" in the morning
_HALF_DAY, _BEFORE_WORK = timedelta(hours=12), timedelta(hours=_AFTERNOON_BEFORE)


def _key(found: list[Word], place: int) -> str:
    return found[place].key if 0 <= place < len(found) else ""


def clock(found: list[Word], place: int) -> tuple[int, timedelta] | None:
    """A time of day: 3pm, 3 pm, 15:30, noon; a bare number is none."""
    key = _key(found, place)
    if key in ("noon", "midday", "midnight"):
        return place + 1, timedelta(hours=0 if key == "midnight" else 12)
    if key in ("half", "quarter"):
        return _part_of_hour(found, place)
    match = _CLOCK.fullmatch(key)
    if match is None:
        return None
    half, end = match[3], place + 1
    if half is None and match[2] is None and _key(found, end) == "o'clock":
        return end + 1, by_daylight(timedelta(hours=int(match[1]) % 24))
    if half is None and _key(found, end) in ("am", "pm", "a.m", "p.m") and not found[place].closed:
        half, end = _key(found, end).replace(".", ""), end + 1
    hour, minute = int(match[1]), int(match[2] or 0)
    if (half is None and match[2] is None) or minute > 59 or hour > (12 if half else 23) or (half and hour == 0):
        return None
    hour = hour % 12 + (12 if half == "pm" else 0) if half else hour
    return end, timedelta(hours=hour, minutes=minute)


def _part_of_hour(found: list[Word], place: int) -> tuple[int, timedelta] | None:
    """Half past three, a quarter to nine."""
    side, key = _key(found, place + 1), _key(found, place + 2)
    hour = int(key) if key.isascii() and key.isdigit() else int(value_of("number", key) or 0)
    if side not in ("past", "to") or not 1 <= hour <= 12 or (side == "to" and _key(found, place) == "half"):
        return None
    late = _key(found, place + 3) in ("pm", "p.m") or (
        hour <= _AFTERNOON_BEFORE and _key(found, place + 3) not in ("am", "a.m")
    )
    end = place + 4 if _key(found, place + 3) in ("am", "a.m", "pm", "p.m") else place + 3
    minutes = 30 if _key(found, place) == "half" else 15
    return end, timedelta(hours=hour % 12 + 12 * late, minutes=minutes if side == "past" else -minutes)


def clocks(found: list[Word], place: int) -> tuple[int, timedelta, timedelta, bool] | None:
    """Two times of one day, and whether one is surely a time of the clock: "between 2 and 4pm", "from 9 to 11"."""
    joins = {"between": ("and",), "from": ("to", "till", "until")}.get(_key(found, place), ())
    first = clock(found, place + 1) or bare_hour(found, place + 1)
    if first is None or _key(found, first[0]) not in joins:
        return None
    marked, second = clock(found, first[0] + 1), bare_hour(found, first[0] + 1)
    last = marked or second
    if last is None:
        return None
    since, until = first[1], last[1]
    if not clock(found, place + 1) and marked and until - since >= _HALF_DAY:
        since += _HALF_DAY  # between 2 and 4pm
    if not marked and until <= since:
        until += _HALF_DAY  # from 2pm to 4, from 9 to 5
    sure = bool(marked or clock(found, place + 1))
    if sure and marked and until <= since:
        until += 2 * _HALF_DAY  # from 10pm to 2am
    if not sure and until <= _BEFORE_WORK:
        since, until = since + _HALF_DAY, until + _HALF_DAY
    return (last[0], since, until, sure) if since < until else None


def by_daylight(hour: timedelta) -> timedelta:
    """Which of its two a bare hour is: 1 to 6 lie in the afternoon, 7 to 12 before it."""
    return hour + _HALF_DAY if timedelta() < hour <= _BEFORE_WORK else hour


def bare_hour(found: list[Word], place: int) -> tuple[int, timedelta] | None:
    """A number that can be an hour, 1 to 12, and where it ends; whether it is one, what stands around it must say."""
    key = _key(found, place)
    written = key.isascii() and key.isdigit()
    hour = int(key) if written else 0 if key in _NO_HOURS else int(value_of("number", key) or 0)
    return (place + 1, timedelta(hours=hour)) if 1 <= hour <= 12 else None
