"""Times of day: alone, before their day ("3pm yesterday"), or behind it ("yesterday morning")."""

from abc import ABC, abstractmethod
from datetime import timedelta

from engram.text import time_numbers as count
from engram.text.time_counted import Counted, Found
from engram.text.time_hours import bare_hour, by_daylight, clock, clocks
from engram.text.time_repeating import in_span, weekday_near
from engram.text.time_spans import LENGTHS, Span, day_of, holding, hour_from, part_of_day, shifted
from engram.text.time_words import is_plain, lead_at, value_of
from engram.text.word_classes import word_class

__all__ = ["Clocked"]

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
