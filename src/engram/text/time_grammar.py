"""The grammar of one time: "the day before yesterday", "March last year", "a couple of weeks ago", "the end of Q3 2024".

Each rule looks at a place in the words and answers where its phrase ends and the span it names, or None. A rule reads a bounded
number of words and calls only rules further on, so the work per place is bounded.
"""

from collections.abc import Iterator

from engram.text import time_numbers as count
from engram.text.time_counted import INSTANT, OWNING, Counted, Found
from engram.text.time_repeating import Repeating, in_span, in_year, resolved
from engram.text.time_spans import LENGTHS, Span, holding, hour_from, monthly, part_of_day, shifted, third, within
from engram.text.time_words import is_plain, value_of

__all__ = ["INSTANT", "Found", "Grammar"]

_ARTICLES = OWNING | {"a", "an", "the"}
_PRONOUNS = frozenset(("i", "we", "you", "he", "she", "they", "it"))
_MODAL_MONTHS = frozenset(("may", "march"))
_LOOK_AHEAD_NOW = frozenset(("weekday", "monthday", "date", "holiday"))
_DEEPEST = 3  # "at noon | on the first day | of | last month": a time inside a time inside a time


class Grammar(Counted):
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
        yield self._part(start)
        yield self._named_day(start)
        yield self._vague(start, place)
        yield self._so_far(start)
        yield self._ago(start)
        yield self._counted(start, lead, article=start > place)
        yield self._stepped(start, article=start > place)
        yield self._before_last(start)
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
        if unit == "fortnight" and step == 0:
            return None
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
        if (
            unit == "week"
            and self._key(place + 1) == "of"
            and (read := self.moment(place + 2, "in"))
            and read[1].grain == "day"
        ):
            return read[0], holding(read[1].since, "week")
        if unit == "weekend" and self._key(place - 1) == "the":
            span = holding(self.at, "weekend")
            if not self.ahead and span.since > self.at:
                span = holding(shifted(self.at, "week", -1), "weekend")
            return place + 1, span
        return None

    def _two_away(self, place: int, unit: str | None, step: int) -> Found | None:
        if unit is not None and unit not in LENGTHS:
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

    # Parts of longer times

    def _part(self, place: int) -> Found | None:
        key = self._key(place)
        if key in ("earlier", "later"):
            return self._earlier(place)
        which = value_of("part", key)
        if which is not None:
            after = place + 1
            if self._key(after) in ("of", "in", "on") and self._open(after):
                after += 1
            elif key in ("beginning", "start", "middle", "end"):
                return None
            read = self._outer(after)
            return None if read is None else (read[0], third(read[1], int(which)))
        return self._ordinal_part(place)

    def _ordinal_part(self, place: int) -> Found | None:
        """Counted inside something longer: "the first week of May", "the last day of last month", "the second half of 2023"."""
        key = self._key(place)
        number = -1 if key == "last" else int(value_of("ordinal", key) or 0) - 1
        if number == -1 and key != "last":
            return None
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

    # Names that come round again

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
        span = resolved(what, self.at, None, self.ahead >= (1 if what.kind in _LOOK_AHEAD_NOW else 2))
        return None if span is None else (end, span)

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
        if what.kind in ("date", "quarter") or self._dated(end) or word.owner:
            return word.owner is False or what.kind != "month"
        if what.kind in ("monthday", "season", "holiday"):
            return bool(lead) and plain and (article or what.kind != "monthday") and (article or word.key != "fall")
        if article or shouted or self._key(place - 1) in _ARTICLES:
            return what.kind == "weekday" and article and bool(lead) and plain and len(word.key) > 4
        if what.kind == "weekday":
            named = bool(lead) and end < len(self.words) and self.words[end].capital
            return (plain or named) and (word.capital or len(word.key) > 4)
        if not lead or (word.key in _MODAL_MONTHS and not word.capital and self._key(end) in _PRONOUNS):
            return False
        return (word.capital or len(word.key) > 3) and (plain or lead != "for")

    def _dated(self, end: int) -> bool:
        if count.year_after(self.words, end) is not None:
            return True
        return self._open(end) and (self._container(end) is not None or value_of("daypart", self._key(end)) is not None)

    def _year(self, place: int, lead: str) -> Found | None:
        if self._key(place) == "year" and (year := count.year_at(self.words, place + 1)):
            return place + 2, monthly(year, 1, 12, "year")
        if decade := count.decade_at(self.words, place, self.at.year):
            return place + 1, monthly(decade, 1, 120, "decade")
        year = count.year_at(self.words, place)
        if (
            not year
            or not (lead or self.words[place].owner)
            or not (is_plain(self.words, place + 1) or self.words[place].owner)
        ):
            return None
        return place + 1, monthly(year, 1, 12, "year")

    # Times of day

    def _clocked(self, place: int) -> Found | None:
        """A time of day before its day: "3pm yesterday", "noon on Monday"."""
        time = count.clock(self.words, place)
        if time is None or not self._open(time[0]):
            return None
        after = time[0] + 1 if self._key(time[0]) == "on" else time[0]
        read = self.moment(after, "on")
        return None if read is None or read[1].grain != "day" else (read[0], hour_from(read[1], time[1]))

    def clock_today(self, place: int) -> Found | None:
        """A time of day alone, as in "since 9am": today's."""
        read = count.clock(self.words, place)
        return None if read is None else (read[0], hour_from(self._day(0), read[1]))

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
            if (hours := value_of("daypart", self._key(after))) is not None:
                return after + 1, part_of_day(span, hours)
            if (time := count.clock(self.words, after)) is not None:
                return time[0], hour_from(span, time[1])
        elif span.grain in ("week", "year", "month"):
            read = count.repeating(self.words, after, named=True)
            inner = in_span(read[1], span) if read is not None else None
            if read is not None and inner is not None:
                return self._narrowed(read[0], inner)
        return end, span
