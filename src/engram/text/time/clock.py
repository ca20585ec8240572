"""Times of the clock (3pm, 15:30, half past three) and the days they belong to."""

import re
from abc import ABC, abstractmethod
from datetime import timedelta

from engram.text.time import numbers as count
from engram.text.time.calendar import (
    LENGTHS,
    Span,
    day_of,
    holding,
    hour_from,
    in_span,
    part_of_day,
    shifted,
    weekday_near,
)
from engram.text.time.counts import Counted, Found
from engram.text.time.words import Word, is_plain, lead_at, value_of
from engram.text.word_tables import word_class

__all__ = ["Clocked", "bare_hour", "by_daylight", "clock", "clocks"]

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


_HALF_DAY = timedelta(hours=12)
_NUMBERED = word_class("asking", "numbered")
_GOING = word_class("asking", "going")


class Clocked(Counted, ABC):
    """Reads times of day; which day one belongs to, the whole grammar says."""

    @abstractmethod
    def moment(self, place: int, lead: str = "") -> Found | None:
        """The time that starts at this place."""

    def _day_end(self, place: int) -> Found | None:
        """The day whose end is named: "by EOD Friday", "by end of day"."""
        read = lead_at(self.words, place, "day_end", longest=3)
        if read is None or value_of("lead", self._key(place - 1)) is None:
            return None
        after = read[0] + 1 if self._key(read[0]) == "on" else read[0]
        day = self.moment(after, "on") if self._open(read[0]) else None
        if day is not None and day[1].grain == "day":
            return day
        return (read[0], self._day(0)) if is_plain(self.words, read[0]) else None

    def _day_from(self, place: int) -> Found | None:
        """Counted on from a day: "two weeks from tomorrow", "a week from Friday", "a week on Friday"."""
        read = count.amount(self.words, place)
        if read is None or read.unit in LENGTHS or self._key(read.end + 1) == "today":
            return None
        if self._key(read.end) != "from" and not (self._key(read.end) == "on" and read.unit == "week" and self.ahead):
            return None
        day = self.moment(read.end + 1, "on")
        if day is None or day[1].grain != "day" or not self._open(read.end + 1):
            return None
        return day[0], holding(shifted(day[1].since, read.unit, read.number), "day")

    def _week_on(self, place: int) -> Found | None:
        """Friday week: the Friday after the next one."""
        weekday = value_of("weekday", self._key(place))
        if weekday is None or not self.ahead or self._key(place + 1) != "week" or not self._open(place + 1):
            return None
        coming = weekday_near(int(weekday), self.at, 1)
        later = holding(shifted(coming.since, "week", 1), "day")
        return (place + 2, later) if is_plain(self.words, place + 2) else None

    def _clocked(self, place: int) -> Found | None:
        """A time of day before its day: "3pm yesterday", "noon on Monday"."""
        time = clock(self.words, place)
        if time is None or not self._open(time[0]):
            return None
        after = time[0] + 1 if self._key(time[0]) == "on" else time[0]
        read = self.moment(after, "on")
        return None if read is None or read[1].grain != "day" else (read[0], hour_from(read[1], time[1]))

    def clock_today(self, place: int) -> Found | None:
        """A time of day alone, as in "since 9am": today's, or yesterday's where today's is to come and the past was asked for."""
        read = clock(self.words, place)
        if read is None:
            return None
        today = hour_from(self._day(0), read[1])
        past = not self.ahead and today.since > self.at
        return read[0], hour_from(self._day(-1), read[1]) if past else today

    def bare_hour(self, place: int, *, alone: bool) -> Found | None:
        """An hour by its number only: "since 9" where it bounds `alone`, else with its day: "at 9 yesterday", "by 5 on Friday"."""
        read = bare_hour(self.words, place)
        if read is None or self.words[place].owner or any(word.key in _NUMBERED for word in self.words):
            return None
        end, hour = read
        if (day := self._day_behind(end)) is not None:
            return day[0], _hour_in(day[1], hour)
        if not alone or not self._key(place).isdigit() or not is_plain(self.words, end):
            return None
        today, past = _hour_in(self._day(0), hour), not self.ahead
        return end, _hour_in(self._day(-1), hour) if past and today.since > self.at else today

    def _day_behind(self, place: int) -> Found | None:
        """The day or the part of one that follows an hour: "yesterday", "this morning", "in the afternoon on Monday"."""
        hours = value_of("daypart", self._key(place + 2)) if self._keys(place, "in", "the") else None
        start = place if hours is None else place + 3
        read = self.moment(start + 1 if self._key(start) == "on" else start, "on") if self._open(start) else None
        if hours is None:
            return read if read is not None and read[1].grain in ("day", "daypart", "night") else None
        end, day = read if read is not None and read[1].grain == "day" else (start, self._day(0))
        return end, part_of_day(day, hours)

    def hours(self, place: int) -> Found | None:
        """From one time of day to another, with the day behind them: "between 2 and 4pm yesterday"; alone, today's."""
        read = clocks(self.words, place)
        if read is None:
            return None
        end, first, last, sure = read
        if not sure and self._key(place - 1) in _GOING:
            return None  # "did it go from 3 to 5 on Monday"
        after = end + 1 if self._key(end) == "on" else end
        day = self.moment(after, "on") if self._open(end) else None
        if day is not None and day[1].grain == "day":
            return day[0], Span(day[1].since + first, day[1].since + last, "hours")
        if day is not None and day[1].grain in ("daypart", "night"):
            hours = _hour_in(day[1], first).since, _hour_in(day[1], last).since
            return (day[0], Span(*hours, "hours")) if hours[0] < hours[1] else None
        if not sure:
            return None  # two bare numbers and no day
        past = not self.ahead and self._day(0).since + first > self.at
        today = self._day(-1 if past else 0).since
        return end, Span(today + first, today + last, "hours")

    def _daypart_of(self, place: int) -> Found | None:
        """A part of the day before its day: "the morning of May 5th", "the night of the 3rd"."""
        hours = value_of("daypart", self._key(place))
        if hours is None or self._key(place + 1) not in ("of", "on"):
            return None
        read = self.moment(place + 2, "on")
        return None if read is None or read[1].grain != "day" else (read[0], part_of_day(read[1], hours))

    def _narrowed(self, end: int, span: Span) -> Found:
        """What follows a time and narrows it: "yesterday morning", "Monday at 3pm", "last week on Tuesday", "last year in May"."""
        if not self._open(end):
            return end, span
        if self._keys(end, "so", "far") and span.since <= self.at < span.until:
            return end + 2, self._until_now(span.since)
        after = end + 1 if self._key(end) in ("at", "in", "on", "around", "about") else end
        after = after + 1 if after > end and self._key(after) == "the" else after
        if span.grain == "day":
            if (between := clocks(self.words, end)) is not None:
                return between[0], Span(span.since + between[1], span.since + between[2], "hours")
            if (hours := value_of("daypart", self._key(after))) is not None:
                return after + 1, part_of_day(span, hours)
            if (time := clock(self.words, after)) is not None:
                return time[0], hour_from(span, time[1])
        elif span.grain in ("week", "year", "month"):
            read = count.repeating(self.words, after, named=True)
            inner = in_span(read[1], span) if read is not None else None
            if read is not None and inner is not None:
                return self._narrowed(read[0], inner)
        return end, span


def _hour_in(span: Span, hour: timedelta) -> Span:
    """The hour of that number in a day, by daylight; in a part of a day, the one that lies there."""
    day = Span(day_of(span.since), span.until, "day")
    if span.grain == "day":
        return hour_from(day, by_daylight(hour))
    rounds = [hour_from(day, hour % _HALF_DAY + _HALF_DAY * turn) for turn in (0, 1, 2)]
    return next((told for told in rounds if span.since <= told.since <= span.until), rounds[1])
