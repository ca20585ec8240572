"""The grammar of one time: "the day before yesterday", "March last year", "early March", "the last Friday of the quarter".

Each rule looks at a place in the words and returns where its phrase ends and the span it names, or None. A rule reads a bounded
number of words and calls only rules further on, so the work per place is bounded.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator

from engram.text.time import numbers as count
from engram.text.time.calendar import (
    LENGTHS,
    Repeating,
    Span,
    day_of,
    holding,
    hour_from,
    in_span,
    in_year,
    iso_week,
    middle_of,
    monthly,
    part_of_day,
    resolved,
    shifted,
    third,
    week_around,
    weekday_near,
    within,
)
from engram.text.time.clock import Clocked
from engram.text.time.counts import FINER, INSTANT, OWNING, Found
from engram.text.time.words import is_plain, value_of

__all__ = ["INSTANT", "Found", "Grammar", "Parted"]

_WHOLE = frozenset(("all", "most", "much", "whole", "bulk", "entirety", "rest", "remainder"))
_FIRST, _LAST = frozenset(("opening",)), frozenset(("last", "final", "closing", "latter"))
_SOME = 3.0  # "the closing months"
_BEING_PART = frozenset(("was", "were", "is", "are", "be", "been", "too", "so", "running"))


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
        if which is not None and self._key(place - 1) in _BEING_PART:
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


_ARTICLES = OWNING | {"a", "an", "the"}
_PRONOUNS = frozenset(("i", "we", "you", "he", "she", "they", "it"))
_SHORT_MONTHS = frozenset(("jan", "feb", "apr", "jun", "jul", "aug", "sep", "oct", "nov", "dec"))
_MODAL_MONTHS = frozenset(("may", "march"))
_LOOK_AHEAD_NOW = frozenset(("weekday", "monthday", "date", "holiday"))
_SPENT = frozenset(("spend", "spent", "spending", "celebrate", "celebrated", "celebrating"))
_BEGINNING = ("beginning", "commencing", "starting")
_DATES_DAYS = frozenset(("on", "since", "by", "before", "after", "until"))
_DATES_YEARS = frozenset(("in", "since", "before", "after", "until", "by", "during"))
_DEEPEST = 3  # "at noon | on the first day | of | last month": a time inside a time inside a time


class Grammar(Parted):
    """Reads times out of the words of one question."""

    _depth = 0

    def moment(self, place: int, lead: str = "") -> Found | None:
        """The time that starts at this place; behind a lead ("in", "since") bare months, weekdays and years count too."""
        if self._depth >= _DEEPEST:
            return None
        start = place + 1 if self._key(place) == "the" and self._key(place + 1) != "holidays" else place
        self._depth += 1
        try:
            read = next((read for read in self._rules(start, place, lead) if read is not None), None)
        finally:
            self._depth -= 1
        return None if read is None else self._narrowed(*read)

    def _rules(self, start: int, place: int, lead: str) -> Iterator[Found | None]:
        yield self._clocked(start)
        yield self._daypart_of(start)
        yield self._day_end(start)
        yield self._day_from(start)
        yield self._week_on(start)
        yield self._same_time(start)
        yield self._rounds_ago(start)
        yield self._part(start)
        yield self._offset(start, article=start > place)
        yield self._numbered_week(start)
        yield self._named_day(start)
        yield self._vague(start, place)
        yield self._so_far(start)
        yield self._ago(start)
        yield self._counted(start, lead, article=start > place)
        yield self._stepped(start, article=start > place)
        yield self._before_last(start)
        yield self._week_of_holiday(start)
        yield count.written_date(self.words, start)
        yield self._repeating(start, lead, article=start > place)
        yield self._year(start, lead)

    # The last, this, the next

    def _stepped(self, place: int, article: bool = False) -> Found | None:
        step = value_of("step", self._key(place))
        if step is None or not self._open(place + 1) or self._owned(place):
            return None
        after = place + 1
        if int(step) == 0 and self._key(after) in ("past", "last", "coming"):
            step, after = ("1" if self._key(after) == "coming" else "-1"), after + 1
        key = self._key(after)
        if (unit := value_of("unit", key)) and not key.endswith("s") and unit not in LENGTHS and key not in ("d", "w"):
            return self._stepped_unit(after, int(step), unit, article)
        if (hours := value_of("daypart", key)) and step == "0":
            return after + 1, part_of_day(self._day(0), hours)
        read = count.repeating(self.words, after, named=True)
        if read is None:
            return None
        span = resolved(read[1], self.at, int(step), False)
        return None if span is None else (read[0], span)

    def _stepped_unit(self, place: int, step: int, unit: str, article: bool) -> Found | None:
        key = self._key(place)
        if key == "evening":
            return (place + 1, part_of_day(self._day(step), "18-24")) if step <= 0 else None
        if unit == "day":
            return (
                (place + 1, self._day(step))
                if step == 0 or (self._key(place - 1) in ("previous", "next") and article)
                else None
            )
        if unit == "sprint" or (unit == "fortnight" and step == 0):
            return None  # where a sprint begins only its team knows; so many of them are a length
        span = holding(
            shifted(self.at, "day" if unit == "night" else unit, step), "week" if unit == "fortnight" else unit
        )
        if unit == "fortnight":
            return place + 1, self._until_now(self.back("fortnight", 1)) if step < 0 else Span(
                self.at, self.back(unit, -1), "rolling"
            )
        if unit == "weekend" and step > 0 and self._key(place - 1) in ("coming", "upcoming"):
            soon = holding(self.at, "weekend")
            span = soon if soon.since > self.at else span
        return place + 1, span

    def _before_last(self, place: int) -> Found | None:
        """Two away, or told by a day: "the week before last", "the Monday before last", "the week of May 5th", "the weekend"."""
        key = self._key(place)
        unit = value_of("unit", key)
        if self._keys(place + 1, "before", "last") or self._keys(place + 1, "after", "next"):
            step = -2 if self._key(place + 1) == "before" else 2
            return self._two_away(place, unit, step)
        if unit == "week" and (week := self._week_of_day(place)) is not None:
            return week
        if unit == "weekend" and self._key(place - 1) == "the":
            span = holding(self.at, "weekend")
            if not self.ahead and span.since > self.at:
                span = holding(shifted(self.at, "week", -1), "weekend")
            return place + 1, span
        return None

    def _week_of_day(self, place: int) -> Found | None:
        """The week of May 5th, the week ending May 5th, the week commencing May 5th."""
        side = self._key(place + 1)
        read = self.moment(place + 2, "on") if side in ("of", "ending", *_BEGINNING) else None
        if read is None or read[1].grain not in (("day", "holiday") if side == "of" else ("day",)):
            return None
        if side == "of":
            return read[0], week_around(read[1])
        since = read[1].since if side in _BEGINNING else shifted(read[1].until, "week", -1)
        return read[0], Span(since, shifted(since, "week", 1), "week")

    def _two_away(self, place: int, unit: str | None, step: int) -> Found | None:
        if unit is not None and unit not in LENGTHS and unit != "sprint":
            return place + 3, holding(shifted(self.at, "day" if unit == "night" else unit, step), unit)
        read = count.repeating(self.words, place, named=True)
        if read is None:
            return None
        near = resolved(read[1], self.at, step // 2, False)
        if near is None:
            return None
        away = "week" if read[1].kind == "weekday" else "year"
        moved = shifted(near.since, away, step // 2)
        return place + 3, Span(moved, moved + (near.until - near.since), near.grain)

    def _so_far(self, place: int) -> Found | None:
        read = self._stepped(place + 2) or self._named_day(place + 2) if self._keys(place, "so", "far") else None
        return None if read is None else (read[0], self._until_now(read[1].since))

    def _offset(self, place: int, *, article: bool) -> Found | None:
        """Counted from a day: "two days before Christmas", "a week after May 5th", "the week before Easter"."""
        unit = value_of("unit", self._key(place)) if article else None
        read = None if unit else count.amount(self.words, place)
        unit, end, number = (
            (unit, place + 1, 1.0) if unit else (read.unit, read.end, read.number) if read else ("", 0, 0.0)
        )
        leading = self._keys(end, "leading", "up", "to")
        side, behind = ("before", end + 3) if leading else (self._key(end), end + 1)
        weekday = value_of("weekday", self._key(place)) if article else None
        if weekday is not None:
            return self._weekday_beside(place, int(weekday))
        if unit not in ("day", "week", "month", "year") or side not in ("before", "after") or not self._open(behind):
            return None
        base = self.moment(behind, "on")
        if base is None or base[1].grain not in ("day", "holiday"):
            return None
        since = base[1].since if side == "before" else base[1].until
        if article:
            other = shifted(since, unit, -1 if side == "before" else 1)
            return base[0], Span(min(since, other), max(since, other), "range")
        day = shifted(since, unit, number if side == "after" else -number)
        return base[0], holding(day if side == "before" else day - INSTANT, "day")

    def _weekday_beside(self, place: int, weekday: int) -> Found | None:
        """The Tuesday before Easter, the Friday after May 5th."""
        side = self._key(place + 1)
        if side not in ("before", "after") or not self._open(place + 2):
            return None
        base = self.moment(place + 2, "on")
        if base is None or base[1].grain not in ("day", "holiday"):
            return None
        edge = base[1].since if side == "before" else middle_of(base[1])  # the Monday after Easter is Easter Monday
        return base[0], weekday_near(weekday, edge, -1 if side == "before" else 1)

    # Names that come round again

    def _rounds_ago(self, place: int) -> Found | None:
        """So many of what comes round: "three Fridays ago", "two summers ago"."""
        read = count.quantity(self.words, place)
        if read is None or not self._open(read[0]) or self._key(read[0] + 1) != "ago" or read[1] != int(read[1]):
            return None
        what = count.one_of(self._key(read[0]))
        last = None if what is None else resolved(what, self.at, -1, False)
        if what is None or last is None:
            return None
        further = int(read[1]) - 1
        if what.kind == "weekday":
            return read[0] + 2, holding(shifted(last.since, "week", -further), "day")
        span = in_year(what, last.since.year - further)
        return None if span is None else (read[0] + 2, span)

    def _repeating(self, place: int, lead: str, article: bool) -> Found | None:
        read = count.repeating(self.words, place, named=bool(lead))
        if read is None or not self._meant(place, read[0], read[1], lead, article):
            return None
        return self._repeated(*read)

    def _repeated(self, end: int, what: Repeating) -> Found | None:
        year = count.year_after(self.words, end)
        if year is not None and what.kind not in ("weekday", "monthday"):
            span = in_year(what, year[1])
            return None if span is None else (year[0], span)
        if self._open(end) and (outer := self._container(end)) is not None:
            inner = in_span(what, outer[1])
            if inner is not None or what.kind == "weekday":
                return None if inner is None else (outer[0], inner)
        span = self._meant_one(what)
        return None if span is None else (end, span)

    def _meant_one(self, what: Repeating) -> Span | None:
        """By where the question looks; in the present tense a month or a season is the nearer one."""
        if self.ahead != 1 or what.kind in _LOOK_AHEAD_NOW:
            return resolved(what, self.at, None, self.ahead > 0)
        last, coming = resolved(what, self.at, None, False), resolved(what, self.at, None, True)
        if last is None or coming is None:
            return last or coming
        return coming if coming.since - self.at < self.at - last.until else last

    def _container(self, place: int) -> Found | None:
        after = place + 1 if self._key(place) in ("of", "in") else place
        start = after + 1 if self._key(after) == "the" else after
        return self._ago(start) or self._stepped(start) or self._before_last_only(start)

    def _before_last_only(self, place: int) -> Found | None:
        return self._before_last(place) if self._keys(place + 1, "before", "last") else None

    def _meant(self, place: int, end: int, what: Repeating, lead: str, article: bool) -> bool:
        """Whether the word is a time here, and not a name, a verb or something heavenly ("in the sun")."""
        word, plain = self.words[place], is_plain(self.words, end) or self._dated(end)
        shouted = end < len(self.words) and self.words[end].shouted and not self.words[end - 1].closed
        named_twice = what.kind == "monthday" and what.second  # Monday the 5th
        if what.kind in ("date", "quarter") or named_twice or self._dated(end) or word.owner:
            return word.owner is False or what.kind != "month"
        if what.kind == "holiday" and plain and self._key(place - 1) in _SPENT:
            return True  # "where did we spend Christmas"
        if what.kind in ("monthday", "season", "holiday"):
            return bool(lead) and plain and (article or what.kind != "monthday") and (article or word.key != "fall")
        if article or shouted or self._key(place - 1) in _ARTICLES:
            return what.kind == "weekday" and article and bool(lead) and plain and len(word.key) > 4
        if what.kind == "weekday":
            named = bool(lead) and end < len(self.words) and self.words[end].capital
            return (plain or named) and (word.capital or len(word.key) > 4 or lead in _DATES_DAYS)
        if not lead or (word.key in _MODAL_MONTHS and not word.capital and self._key(end) in _PRONOUNS):
            return False
        return (word.capital or len(word.key) > 3 or word.key in _SHORT_MONTHS) and (plain or lead != "for")

    def _dated(self, end: int) -> bool:
        if count.year_after(self.words, end) is not None:
            return True
        return self._open(end) and (self._container(end) is not None or value_of("daypart", self._key(end)) is not None)

    def _year(self, place: int, lead: str) -> Found | None:
        if self._key(place) in ("year", "years") and (year := count.year_at(self.words, place + 1)):
            return place + 2, monthly(year, 1, 12, "year")
        if decade := count.decade_at(self.words, place, self.at.year):
            return place + 1, monthly(decade, 1, 120, "decade")
        year = count.year_at(self.words, place, any_of=lead in _DATES_YEARS)
        if (
            not year
            or not (lead or self.words[place].owner)
            or not (is_plain(self.words, place + 1) or self.words[place].owner)
        ):
            return None
        return place + 1, monthly(year, 1, 12, "year")
