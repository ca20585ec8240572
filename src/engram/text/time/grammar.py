"""The grammar of times: "the day before yesterday", "March last year", "early March", "the last Friday of the quarter".

A rule (`rules`) is a pattern and its meaning. In a pattern, a word matches itself, `a|b` matches one of several words,
`{a|b}` also passes the matched word to the meaning, `<element>` reads a value and passes it to the meaning, and `x?` is
optional. A dot at the end requires that no word follows that would make the time part of a name ("2000 rows"). No
punctuation mark or possessive may separate two parts of a pattern, except before `~`. The first rule that matches at a
position and has a meaning there is used.

Elements are classes of `timewords.txt`, numbers and names (`numbers`), rules of a group, or a whole time. Rules
therefore nest, to a depth of three, and the work per position stays bounded.
"""

from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from functools import lru_cache, partial
from typing import Any, NamedTuple

from engram.text.time import dates as count
from engram.text.time.calendar import (
    LENGTHS,
    Repeating,
    Span,
    add_units,
    containing_span,
    hour_from,
    in_span,
    in_year,
    monthly,
    part_of_day,
    resolve_repeating,
)
from engram.text.time.dates import Amount
from engram.text.time.rules import FINER, INSTANT, RULES
from engram.text.time.words import Word, is_plain, key_at, lead_at, value_of, word_classes
from engram.text.words import word_class

__all__ = ["INSTANT", "FoundTime", "Grammar"]

FoundTime = tuple[int, Span]
"""The end of a time, and its span."""
_DEEPEST = 3  # "at noon | on the first day | of | last month": a time inside a time inside a time
_OWNING = frozenset(("my", "your", "his", "her", "our", "their", "every", "each", "any", "no"))
_ARTICLES = _OWNING | {"a", "an", "the"}
_PRONOUNS = frozenset(("i", "we", "you", "he", "she", "they", "it"))
_SHORT_MONTHS = frozenset(("jan", "feb", "apr", "jun", "jul", "aug", "sep", "oct", "nov", "dec"))
_MODAL_MONTHS = frozenset(("may", "march"))
_LOOK_AHEAD_NOW = frozenset(("weekday", "monthday", "date", "holiday"))
_SPENT = frozenset(("spend", "spent", "spending", "celebrate", "celebrated", "celebrating"))
_DATES_DAYS = frozenset(("on", "since", "by", "before", "after", "until"))
_DATES_YEARS = frozenset(("in", "since", "before", "after", "until", "by", "during"))
_NUMBERED = word_class("asking", "numbered")


class _Reader(NamedTuple):
    """Reads an element, which can begin with words of these classes, these words, or figures."""

    read: Callable[[list[Word], int], tuple[int, Any] | None]
    classes: str = ""
    words: str = ""
    figures: bool = False


_NAMES = "holiday weekday month season ordinal"
_READERS = {
    "amount": _Reader(count.amount, "number roughly", "few several half like", figures=True),
    "clock": _Reader(count.clock, "", "noon midday midnight half quarter", figures=True),
    "clocks": _Reader(count.clocks),
    "day_end": _Reader(partial(lead_at, kind="day_end", longest=3), "day_end"),
    "holiday": _Reader(count.holiday, "holiday"),
    "hour": _Reader(count.bare_hour),
    "length": _Reader(partial(count.amount, bare=True)),
    "named": _Reader(partial(count.repeating, named=True), _NAMES, figures=True),
    "nth": _Reader(count.nth, "ordinal", "last final closing latter opening"),
    "plural": _Reader(count.one_of),
    "quantity": _Reader(count.quantity, "number", "few several half", figures=True),
    "week_number": _Reader(count.week_number),
    "which": _Reader(count.which, "step"),
    "written": _Reader(count.written_date, figures=True),
    "year": _Reader(count.year_at),
    "year_of": _Reader(count.year_after),
}
_TIMES: dict[str, "Callable[[Grammar, int], FoundTime | None]"] = {
    "any": lambda g, place: g.moment(place, "on"),
    "day": lambda g, place: g.moment_of(place, "day"),
    "days": lambda g, place: g.moment_of(place, "day", "holiday"),
    "outer": lambda g, place: g.outer(place),
    "named_day": lambda g, place: g.first("named_day", place),
    "stepped": lambda g, place: g.first("stepped", place),
}
_TIME = "time"
"""The group of rules that match a complete time."""


class _Part(NamedTuple):
    """One part of a pattern: its reader, the words it can begin with, whether its value is passed to the meaning, and
    whether a punctuation mark may precede it.
    """

    read: "Callable[[Grammar, int], tuple[int, Any] | None]"
    first: frozenset[str] = frozenset()
    figures: bool = False
    given: bool = True
    loose: bool = False


class _Rule(NamedTuple):
    parts: tuple[_Part, ...]
    whole: bool
    meaning: Callable[..., Span | FoundTime | None]


def _choices(pattern: list[str]) -> list[list[str]]:
    """The pattern with and without its optional parts."""
    for place, part in enumerate(pattern):
        if part.endswith("?"):
            rest = _choices(pattern[place + 1 :])
            return [[*pattern[:place], *option, *each] for option in ([part[:-1]], []) for each in rest]
    return [pattern]


def _part(written: str) -> _Part:
    if not written.startswith("<"):
        keys = frozenset(written.strip("~{}").split("|"))
        read = partial(_one_of, keys=keys)
        return _Part(read, keys, given=written.startswith("{"), loose=written.startswith("~"))
    name = written.strip("<>")
    if name in _TIMES:
        return _Part(_TIMES[name])
    if name not in _READERS:
        return _Part(lambda g, place: _word(place, value_of(name, g.key(place))), frozenset(word_classes()[name]))
    reader = _READERS[name]
    first = {entry.partition("_")[0] for kind in reader.classes.split() for entry in word_classes()[kind]}
    return _Part(
        partial(_read, reader=reader.read),
        frozenset(first | set(reader.words.split())),
        reader.figures,
        loose=name == "year_of",
    )


def _one_of(g: "Grammar", place: int, keys: frozenset[str]) -> tuple[int, str] | None:
    return (place + 1, g.key(place)) if g.key(place) in keys else None


def _read(
    g: "Grammar", place: int, reader: Callable[[list[Word], int], tuple[int, Any] | None]
) -> tuple[int, Any] | None:
    return reader(g.words, place)


def _word(place: int, value: str | None) -> tuple[int, str] | None:
    return None if value is None else (place + 1, value)


@lru_cache(maxsize=1)
def _rules() -> dict[str, tuple[_Rule, ...]]:
    """The rules of each group, compiled on first use."""
    rules: dict[str, tuple[_Rule, ...]] = {}
    for groups, patterns, meaning in RULES:
        for pattern in patterns.split(" / "):
            parts = _choices(pattern.removesuffix(" .").split())
            compiled = (_Rule(tuple(map(_part, each)), pattern.endswith(" ."), meaning) for each in parts)
            added = tuple(compiled)
            for group in groups.split():
                rules[group] = (*rules.get(group, ()), *added)
    return rules


@lru_cache(maxsize=1)
def _rules_by_word() -> tuple[dict[str, tuple[_Rule, ...]], tuple[_Rule, ...]]:
    """The rules for a time that can begin with each word, and those that can begin with a figure."""
    rules = _rules()[_TIME]
    words = frozenset[str]().union(*(rule.parts[0].first for rule in rules))
    by_word = {word: tuple(rule for rule in rules if word in rule.parts[0].first) for word in words}
    return by_word, tuple(rule for rule in rules if rule.parts[0].figures)


class Grammar:
    """Reads times from the words of one question.

    `ahead` says which way the question looks: 0 back, 1 at the present (its weekdays are in the future), 2 ahead. While
    the meaning of a rule is computed, `start`, `end`, `lead` and `article` say where it matched, which lead precedes
    it, and whether an article does.
    """

    def __init__(self, found: list[Word], at: datetime, ahead: int = 0) -> None:
        self.words, self.ahead = found, ahead
        self.zone: tzinfo | None = at.tzinfo
        self.at = at.replace(tzinfo=None)
        self.start, self.end, self.lead, self.article = 0, 0, "", False
        self._aware = at
        self._depth = 0

    def moment(self, place: int, lead: str = "") -> FoundTime | None:
        """The time that starts at this position; after a lead ("in", "since"), bare months, weekdays and years count
        too.
        """
        if self._depth >= _DEEPEST:
            return None
        start = place + (self.key(place) == "the" and self.key(place + 1) != "holidays")
        article = start > place
        by_word, of_figures = _rules_by_word()
        self._depth += 1
        try:
            found = self._match_rules(by_word.get(self.key(start), of_figures), start, lead, article)
            found = found or self._read_repeating(start, lead, article) or self._year(start, lead)
        finally:
            self._depth -= 1
        return None if found is None else self._narrow_span(*found)

    def moment_of(self, place: int, *grains: str) -> FoundTime | None:
        """The time that starts at this position, if it has one of these units."""
        found = self.moment(place, "on")
        return found if found is not None and found[1].grain in grains else None

    def first(self, group: str, place: int) -> FoundTime | None:
        """The meaning of the first rule of a group that matches here."""
        return self._match_rules(_rules()[group], place)

    def outer(self, place: int) -> FoundTime | None:
        """The longer time that a part belongs to; "the month" is the current one."""
        if self.key(place) in ("the", "this") and (unit := value_of("unit", self.key(place + 1))):
            if unit not in ("day", "week", "month", "quarter", "year", "decade"):
                return None
            if self.key(place) == "this" or not self._keys(place + 2, "before", "last"):
                return place + 2, containing_span(self.at, unit)
        return self.moment(place, "in")

    def key(self, place: int) -> str:
        """The word at a position; "" beyond either end."""
        return key_at(self.words, place)

    @property
    def before(self) -> str:
        """The word before the rule that matched."""
        return self.key(self.start - 1)

    def _match_rules(
        self, rules: tuple[_Rule, ...], start: int, lead: str = "", article: bool = False
    ) -> FoundTime | None:
        for rule in rules:
            match = self._match(rule, start)
            if match is None:
                continue
            self.start, self.end, self.lead, self.article = start, match[0], lead, article
            meant = rule.meaning(self, *match[1])
            if meant is not None:
                return (match[0], meant) if isinstance(meant, Span) else meant
        return None

    def _match(self, rule: _Rule, start: int) -> tuple[int, list[Any]] | None:
        place, values = start, []
        for part in rule.parts:
            if place > start and not part.loose and not self._open(place):
                return None
            read = part.read(self, place)
            if read is None:
                return None
            place, value = read
            if part.given:
                values.append(value)
        return None if rule.whole and not is_plain(self.words, place) else (place, values)

    def _keys(self, place: int, *keys: str) -> bool:
        """Whether these words are here, with no punctuation mark between them."""
        run = self.words[place : place + len(keys)]
        return [word.key for word in run] == list(keys) and not any(word.closed or word.owner for word in run[:-1])

    def _open(self, place: int) -> bool:
        """Whether the phrase may continue here, with no punctuation mark or possessive before it."""
        return 0 < place < len(self.words) and not self.words[place - 1].closed and not self.words[place - 1].owner

    # Places on the calendar, counted from the question

    def day(self, offset: float) -> Span:
        """The day at this offset from the question's day."""
        return containing_span(add_units(self.at, "day", offset), "day")

    def until_now(self, since: datetime) -> Span:
        """From a moment up to the question, including its own instant."""
        return Span(since, self.just_after, "rolling")

    @property
    def just_after(self) -> datetime:
        """The instant after the question's; if the local time occurs twice, in the same occurrence."""
        moved = self._aware.astimezone(UTC) + INSTANT
        return moved.astimezone(self.zone).replace(tzinfo=None)

    def from_now(self, span: Span) -> Span:
        """The remaining part of a span that has begun."""
        return Span(self.at, span.until, "rolling") if span.since <= self.at < span.until else span

    def clock_back(self, unit: str, number: float) -> datetime:
        """The moment this many hours, minutes or seconds before the question."""
        moved = self._aware.astimezone(UTC) - LENGTHS[unit] * number
        return moved.astimezone(self.zone).replace(tzinfo=None)

    def back(self, unit: str, number: float) -> datetime:
        """The moment this many units before the question: hours by the clock, days and longer by the calendar."""
        return self.clock_back(unit, number) if unit in LENGTHS else add_units(self.at, unit, -number)

    def last_of_day(self, hour_in: Callable[[Span], Span]) -> Span:
        """A time of today, or of yesterday if today's is in the future and the question looks back."""
        today = hour_in(self.day(0))
        return hour_in(self.day(-1)) if not self.ahead and today.since > self.at else today

    def distant(self, amount: Amount, sign: int) -> Span | None:
        """From the unit at the least distance to the one at the greatest, both included; `sign` is -1 for back, 1 for
        ahead.
        """
        unit, (nearest, furthest) = amount.unit, sorted((sign * amount.least, sign * amount.most))
        if unit == "sprint":
            return None
        if unit in LENGTHS:
            distance = abs(nearest + furthest) / 2
            slack = max(min(0.5, distance / 2), distance / 4)
            return Span(self.clock_back(unit, -nearest + slack), self.clock_back(unit, -furthest - slack), unit)
        step = "week" if unit == "fortnight" else unit
        if nearest == furthest and nearest != int(nearest):
            step = FINER.get(unit, "day")  # "half a year ago"
        first, last = (
            containing_span(add_units(self.at, unit, nearest), step),
            containing_span(add_units(self.at, unit, furthest), step),
        )
        return Span(first.since, last.until, first.grain)

    def is_owned(self) -> bool:
        """Whether the matched words belong to somebody, not to the calendar: "my last week", "Anna's last day"."""
        return self.before in _OWNING or (self.start > 0 and self.words[self.start - 1].owner)

    def is_numbered(self) -> bool:
        """Whether the matched number belongs to something else: a version, a floor, a page."""
        return self.words[self.start].owner or any(word.key in _NUMBERED for word in self.words)

    # Names of recurring times

    def _read_repeating(self, place: int, lead: str, article: bool) -> FoundTime | None:
        read = count.repeating(self.words, place, named=bool(lead))
        if read is None or not self._is_time(place, read[0], read[1], lead, article):
            return None
        return self.resolve_named(*read)

    def resolve_named(self, end: int, what: Repeating) -> FoundTime | None:
        """The intended occurrence of a recurring time, including a year after it."""
        year = count.year_after(self.words, end)
        if year is not None and what.kind not in ("weekday", "monthday"):
            span = in_year(what, year[1])
            return None if span is None else (year[0], span)
        if self._open(end) and (outer := self._container(end)) is not None:
            inner = in_span(what, outer[1])
            if inner is not None or what.kind == "weekday":
                return None if inner is None else (outer[0], inner)
        span = self._nearest_occurrence(what)
        return None if span is None else (end, span)

    def _nearest_occurrence(self, what: Repeating) -> Span | None:
        """The occurrence in the direction the question looks; in the present tense, the nearer month or season."""
        if self.ahead != 1 or what.kind in _LOOK_AHEAD_NOW:
            return resolve_repeating(what, self.at, None, self.ahead > 0)
        last, coming = resolve_repeating(what, self.at, None, False), resolve_repeating(what, self.at, None, True)
        if last is None or coming is None:
            return last or coming
        return coming if coming.since - self.at < self.at - last.until else last

    def _container(self, place: int) -> FoundTime | None:
        """The span that contains a named time: "of last year", "two weeks ago"."""
        after = place + (self.key(place) in ("of", "in"))
        start = after + (self.key(after) == "the")
        return self.first("ago", start) or self.first("stepped", start) or self.first("before_last", start)

    def _is_time(self, place: int, end: int, what: Repeating, lead: str, article: bool) -> bool:
        """Whether the word is a time here, and not a name, a verb or a celestial body ("in the sun")."""
        word, dated = self.words[place], self._is_date(end)
        plain = dated or is_plain(self.words, end)
        shouted = end < len(self.words) and self.words[end].shouted and not self.words[end - 1].closed
        named_twice = what.kind == "monthday" and what.second  # Monday the 5th
        if what.kind in ("date", "quarter") or named_twice or dated or word.owner:
            return word.owner is False or what.kind != "month"
        if what.kind == "holiday" and plain and self.key(place - 1) in _SPENT:
            return True  # "where did we spend Christmas"
        if what.kind in ("monthday", "season", "holiday"):
            return bool(lead) and plain and (article or what.kind != "monthday") and (article or word.key != "fall")
        if article or shouted or self.key(place - 1) in _ARTICLES:
            return what.kind == "weekday" and article and bool(lead) and plain and len(word.key) > 4
        if what.kind == "weekday":
            named = bool(lead) and end < len(self.words) and self.words[end].capital
            return (plain or named) and (word.capital or len(word.key) > 4 or lead in _DATES_DAYS)
        if not lead or (word.key in _MODAL_MONTHS and not word.capital and self.key(end) in _PRONOUNS):
            return False
        return (word.capital or len(word.key) > 3 or word.key in _SHORT_MONTHS) and (plain or lead != "for")

    def _is_date(self, end: int) -> bool:
        if count.year_after(self.words, end) is not None:
            return True
        return self._open(end) and (self._container(end) is not None or value_of("daypart", self.key(end)) is not None)

    def _year(self, place: int, lead: str) -> FoundTime | None:
        if decade := count.decade_at(self.words, place, self.at.year):
            return place + 1, monthly(decade, 1, 120, "decade")
        read = count.year_at(self.words, place, any_of=lead in _DATES_YEARS)
        if read is None or not (self.words[place].owner or (lead and is_plain(self.words, place + 1))):
            return None
        return read[0], monthly(read[1], 1, 12, "year")

    def _narrow_span(self, end: int, span: Span) -> FoundTime:
        """Narrow a time by what follows it: "yesterday morning", "Monday at 3pm", "last week on Tuesday", "last year in
        May".
        """
        if not self._open(end):
            return end, span
        if self._keys(end, "so", "far") and span.since <= self.at < span.until:
            return end + 2, self.until_now(span.since)
        after = end + (self.key(end) in ("at", "in", "on", "around", "about"))
        after += after > end and self.key(after) == "the"
        if span.grain == "day":
            if (between := count.clocks(self.words, end)) is not None:
                return between[0], Span(span.since + between[1].first, span.since + between[1].last, "hours")
            if (hours := value_of("daypart", self.key(after))) is not None:
                return after + 1, part_of_day(span, hours)
            if (time := count.clock(self.words, after)) is not None:
                return time[0], hour_from(span, time[1])
        elif span.grain in ("week", "year", "month"):
            read = count.repeating(self.words, after, named=True)
            inner = in_span(read[1], span) if read is not None else None
            if read is not None and inner is not None:
                return self._narrow_span(read[0], inner)
        return end, span
