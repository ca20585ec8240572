"""Parts of longer times: "early March", "the first week of May", "the last Friday of the quarter", "the rest of the week"."""

from abc import ABC, abstractmethod

from engram.text import time_numbers as count
from engram.text.time_clock import Clocked
from engram.text.time_counted import FINER, INSTANT, Found
from engram.text.time_repeating import Repeating, weekday_near
from engram.text.time_spans import Span, day_of, holding, hour_from, iso_week, shifted, third, week_around, within
from engram.text.time_words import value_of

__all__ = ["Parted"]

_WHOLE = frozenset(("all", "most", "much", "whole", "bulk", "entirety", "rest", "remainder"))
_FIRST, _LAST = frozenset(("opening",)), frozenset(("last", "final", "closing", "latter"))
_SOME = 3.0  # "the closing months"
_BEING = frozenset(("was", "were", "is", "are", "be", "been", "too", "so", "running"))


class Parted(Clocked, ABC):
    """Reads parts of a time; which time they are a part of, the whole grammar says."""

    @abstractmethod
    def _repeated(self, end: int, what: Repeating) -> Found | None:
        """The one that is meant of what comes round, with the year behind it."""

    def _numbered_week(self, place: int) -> Found | None:
        read = count.numbered_week(self.words, place)
        if read is None:
            return None
        end, number, year = read
        span = iso_week(year or self.at.year, number)
        return end, iso_week(
            self.at.year - 1, number
        ) if year is None and not self.ahead and span.since > self.at else span

    def _week_of_holiday(self, place: int) -> Found | None:
        """Christmas week, Easter week 2024."""
        if "week" not in (self._key(place + 1), self._key(place + 2), self._key(place + 3)):
            return None
        what = count.repeating(self.words, place, named=True)
        if what is None or what[1].kind != "holiday" or self._key(what[0]) != "week" or not self._open(what[0]):
            return None
        read = self._repeated(what[0] + 1, what[1])
        return None if read is None else (read[0], week_around(read[1]))

    def _same_time(self, place: int) -> Found | None:
        """This time last year: the month the question is asked in, a year ago; of a month ago the week, of a week ago the day."""
        if self._key(place) not in ("this", "same") or self._key(place + 1) != "time":
            return None
        step, unit = value_of("step", self._key(place + 2)), value_of("unit", self._key(place + 3))
        if step in ("-1", "1") and unit in FINER:
            return place + 4, holding(shifted(self.at, unit, int(step)), FINER[unit])
        ago = count.amount(self.words, place + 2)
        if ago is not None and ago.unit in FINER and self._key(ago.end) == "ago":
            return ago.end + 1, holding(self.back(ago.unit, ago.number), FINER[ago.unit])
        day = self._named_day(place + 2)
        if day is None or day[1].grain != "day":
            return None
        return day[0], hour_from(day[1], self.at.replace(minute=0, second=0, microsecond=0) - day_of(self.at))

    def _part(self, place: int) -> Found | None:
        key = self._key(place)
        if key in ("earlier", "later"):
            return self._earlier(place)
        if key in _WHOLE and self._key(place + 1) == "of":
            return self._whole(place)
        which = value_of("part", key)
        if which is not None and self._key(place - 1) in _BEING:
            return None  # "who was late | on Monday"
        if which is not None:
            after = place + 1
            if self._key(after) in ("of", "in", "on") and self._open(after):
                after += 1
            elif key in ("beginning", "start", "middle", "end"):
                return None
            read = self._outer(after)
            return None if read is None else (read[0], third(read[1], int(which)))
        return self._ordinal_part(place)

    def _whole(self, place: int) -> Found | None:
        """All of something longer, or what is left of it: "most of March", "the rest of the week"."""
        read = self._outer(place + 2)
        if (
            read is None
            or self._key(place) not in ("rest", "remainder")
            or not read[1].since <= self.at < read[1].until
        ):
            return read
        return read[0], Span(self.at, read[1].until, "rolling")

    def _ordinal_part(self, place: int) -> Found | None:
        """Counted inside something longer: "the first week of May", "the last day of last month", "the second half of 2023"."""
        key = self._key(place)
        number = -1 if key in _LAST else 0 if key in _FIRST else int(value_of("ordinal", key) or 0) - 1
        if number == -1 and key not in _LAST:
            return None
        if number in (0, -1) and (several := self._several_of(place + 1, last=number < 0)) is not None:
            return several
        if weekday := value_of("weekday", self._key(place + 1)):
            return self._weekday_of(place + 2, int(weekday), number)
        unit = "half" if self._key(place + 1) == "half" else value_of("unit", self._key(place + 1))
        if unit not in ("day", "week", "month", "quarter", "half"):
            return None
        if self._key(place + 2) != "of":
            if unit in ("quarter", "half") and number >= 0 and number < 4:
                return self._repeated(place + 2, Repeating(unit, number + 1))
            return None
        read = self._outer(place + 3)
        inner = None if read is None else within(read[1], unit, number)
        return None if read is None or inner is None else (read[0], inner)

    def _several_of(self, place: int, *, last: bool) -> Found | None:
        """Some days, weeks or months at one end of something longer: "the first ten days of May", "the closing months of 2025"."""
        read = count.amount(self.words, place)
        unit = read.unit if read is not None else value_of("unit", self._key(place)) or ""
        end = read.end if read is not None else place + 1
        plural = self._key(end - 1).endswith("s")
        if unit not in ("day", "week", "month", "quarter") or not plural or self._key(end) != "of":
            return None
        outer = self._outer(end + 1)
        if outer is None:
            return None
        number = read.number if read is not None else _SOME
        edge = outer[1].until if last else outer[1].since
        other = shifted(edge, unit, -number if last else number)
        inside = outer[1].since <= other <= outer[1].until
        return (outer[0], Span(min(edge, other), max(edge, other), "part")) if inside else None

    def _weekday_of(self, place: int, weekday: int, number: int) -> Found | None:
        """The first Monday in March, the last Friday of the quarter."""
        read = self._outer(place + 1) if self._key(place) in ("of", "in") and self._open(place) else None
        if read is None or read[1].grain not in ("month", "quarter", "season", "half", "year"):
            return None
        edge = read[1].until if number < 0 else read[1].since - INSTANT
        day = weekday_near(weekday, edge, -1 if number < 0 else 1)
        since = shifted(day.since, "week", max(number, 0))
        return (read[0], holding(since, "day")) if since < read[1].until else None

    def _outer(self, place: int) -> Found | None:
        """What a part is a part of; "the month" is this one."""
        if self._key(place) in ("the", "this") and (unit := value_of("unit", self._key(place + 1))):
            if unit not in ("day", "week", "month", "quarter", "year", "decade"):
                return None
            if self._key(place) == "this" or not self._keys(place + 2, "before", "last"):
                return place + 2, holding(self.at, unit)
        return self.moment(place, "in")

    def _earlier(self, place: int) -> Found | None:
        after = place + 2 if self._key(place + 1) in ("in", "on") else place + 1
        read = self._outer(after)
        if read is None or not read[1].since <= self.at:
            return None
        end, span = read
        if span.until <= self.at:
            return end, span
        return end, self._until_now(span.since) if self._key(place) == "earlier" else Span(
            self.at, span.until, "rolling"
        )
