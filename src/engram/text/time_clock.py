"""Times of day: alone, before their day ("3pm yesterday"), or behind it ("yesterday morning")."""

from abc import ABC, abstractmethod

from engram.text import time_numbers as count
from engram.text.time_counted import Counted, Found
from engram.text.time_hours import clock, clocks
from engram.text.time_repeating import in_span
from engram.text.time_spans import LENGTHS, Span, holding, hour_from, part_of_day, shifted
from engram.text.time_words import is_plain, lead_at, value_of
from engram.text.word_classes import word_class

__all__ = ["Clocked"]

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
        """Counted on from a day: "two weeks from tomorrow", "a week from Friday"."""
        read = count.amount(self.words, place)
        if read is None or self._key(read.end) != "from" or read.unit in LENGTHS or self._key(read.end + 1) == "today":
            return None
        day = self.moment(read.end + 1, "on")
        if day is None or day[1].grain != "day" or not self._open(read.end + 1):
            return None
        return day[0], holding(shifted(day[1].since, read.unit, read.number), "day")

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
