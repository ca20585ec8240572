"""Dates that a text names outright, and times it names that bound nothing.

A date with its year narrows a question in time; as words its parts only mislead ("May" is in many sentences). Relative phrases
depend on when the question was asked; `windows` reads those. A window left out in silence would answer another question than the
one asked; so what looks like a time and was not read as one (a day there is not, a date that could be two, a year beyond the
calendar) is named, for a surface to say.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo

from engram.model.lazy import dataclass, lazy_pattern
from engram.text.time.calendar import Span, containing_span, monthly
from engram.text.time.numbers import amount, is_fiscal, repeating, written_date, year_after, year_at
from engram.text.time.words import Word, is_plain, key_at, lead_at, value_of, words

__all__ = ["DateSpan", "date_spans", "unread_times", "without_dates"]

_HAS_YEAR = lazy_pattern(r"(?:19|20)\d\d")
_LEADS = frozenset(("on", "in", "of", "during", "since", "around", "by", "the"))


@dataclass(frozen=True, slots=True)
class DateSpan:
    """A half-open time span, in seconds, and the place of its words in the text."""

    since: float
    until: float
    start: int
    end: int


def date_spans(text: str, zone: tzinfo = UTC) -> list[DateSpan]:
    """The days and months with a year that a text names, in order, as those of a zone."""
    spans: list[DateSpan] = []
    if not _HAS_YEAR.search(text):
        return spans
    found, place, behind = words(text), 0, 0
    while place < len(found):
        date = _date_at(found, place)
        if date is None:
            place += 1
            continue
        first = place
        while first > behind and found[first - 1].key in _LEADS and not found[first - 1].closed:
            first -= 1
        place = behind = date[0]
        since, until = (moment.replace(tzinfo=zone).timestamp() for moment in (date[1].since, date[1].until))
        spans.append(DateSpan(since, until, found[first].start, found[place - 1].end))
    return spans


def _date_at(found: list[Word], place: int) -> tuple[int, Span] | None:
    """Where a day or a month with its year ends, and its span."""
    written = written_date(found, place)
    if written is not None:
        return written if written[1].grain in ("day", "month") else None
    named = repeating(found, place, named=False)
    year = year_after(found, named[0]) if named is not None and named[1].kind in ("date", "month") else None
    if named is None or year is None or not _HAS_YEAR.fullmatch(str(year[1])):
        return None
    if named[1].kind == "month":
        return year[0], monthly(year[1], named[1].first, 1, "month")
    try:
        return year[0], containing_span(datetime(year[1], named[1].first, named[1].second), "day")
    except ValueError:
        return None  # "30 February 2024"


def without_dates(text: str, found: list[DateSpan]) -> str:
    """The text without the words of these dates."""
    for span in reversed(found):
        text = f"{text[: span.start]} {text[span.end :]}"
    return text


_FIGURES = lazy_pattern(
    r"\d{4}[-/.]\d{1,2}(?:[-/.]\d{1,2})?|\d{1,2}[-/]\d{1,2}[-/]\d{2,4}|\d{1,2}\.\d{1,2}\.\d{4}", re.ASCII
)
_SHORT = lazy_pattern(r"\d{1,2}[/.]\d{1,2}", re.ASCII)
_DAY_OF_MONTH = lazy_pattern(r"(\d{1,3})(?:st|nd|rd|th)", re.ASCII)
_PERIOD = lazy_pattern(r"q[05-9]|h[03-9]", re.ASCII)
_QUARTER = lazy_pattern(r"q[1-4]", re.ASCII)
_OTHER_YEARS = frozenset(("fiscal", "financial", "tax", "school", "academic"))
_YEAR_LEADS = frozenset(("in", "since", "before", "after", "until", "during"))
_BEYOND = 1000
_LOWER_TOO = frozenset(("may", "march", "mar", "sat", "sun", "second"))


def unread_times(text: str, read: tuple[int, int] | None) -> tuple[str, ...]:
    """The times named in a text outside of the stretch that was read, as they stand there."""
    found, unread, place = words(text), [], 0
    while place < len(found):
        end = next((end for rule in _RULES if (end := rule(found, place)) is not None), None)
        if end is not None:
            start, stop = found[place].start, found[end - 1].end
            if read is None or stop <= read[0] or start >= read[1]:
                unread.append(text[start:stop])
        place = end or place + 1
    return tuple(dict.fromkeys(unread))


def _figures(found: list[Word], place: int) -> int | None:
    short = key_at(found, place - 1) == "on" and _SHORT.fullmatch(found[place].key)
    return place + 1 if short or _FIGURES.fullmatch(found[place].key) else None


def _match_date(found: list[Word], place: int) -> int | None:
    """A month with a day or a year: "Feb 30", "the 32nd of May", "December 9999"."""
    if found[place].key in _LOWER_TOO and not found[place].capital:
        return None
    read = repeating(found, place, named=True)
    if read is None or read[1].kind not in ("date", "month"):
        return None
    year = year_after(found, read[0])
    if year is not None:
        return year[0]
    return read[0] if read[1].kind == "date" else None


def _ago(found: list[Word], place: int) -> int | None:
    read = amount(found, place)
    if read is None:
        return None
    end, counted = read
    if key_at(found, end) == "ago":
        return end + 1
    return end if key_at(found, place - 1) == "in" and counted.number >= _BEYOND else None


def _year(found: list[Word], place: int) -> int | None:
    bound = key_at(found, place - 1) in _YEAR_LEADS and is_plain(found, place + 1)
    return place + 1 if bound and year_at(found, place, any_of=True) else None


def _day_of_month(found: list[Word], place: int) -> int | None:
    match = _DAY_OF_MONTH.fullmatch(found[place].key)
    on = (key_at(found, place - 2), key_at(found, place - 1)) == ("on", "the")
    return place + 1 if match and on and int(match[1]) > 31 else None


def _period(found: list[Word], place: int) -> int | None:
    if not _PERIOD.fullmatch(found[place].key):
        return None
    year = year_after(found, place + 1)
    return year[0] if year else place + 1 if key_at(found, place - 1) == "in" else None


def _match_uncomputed(found: list[Word], place: int) -> int | None:
    """A holiday of a calendar that is not computed, and a sprint, which nobody has said the length of."""
    named = lead_at(found, place, "uncomputed", longest=3)
    if named is not None:
        year = year_after(found, named[0])
        return year[0] if year else named[0]
    stepped = value_of("step", found[place].key) and key_at(found, place + 1) == "sprint"
    return place + 2 if stepped else None


def _of_another_year(found: list[Word], place: int) -> int | None:
    """A year that begins when somebody says: "FY25", "Q3 FY25", "last fiscal year", "fiscal 2025"."""
    after = place
    if value_of("step", found[place].key) or _QUARTER.fullmatch(found[place].key):
        after += 1
    bound = after > place or value_of("lead", key_at(found, place - 1)) is not None
    if is_fiscal(key_at(found, after)):
        return after + 1
    if key_at(found, after) == "fy" and year_at(found, after + 1):
        return after + 2
    if key_at(found, after) not in _OTHER_YEARS or not bound:
        return None
    behind = after + 1 + (key_at(found, after + 1) in ("year", "quarter"))
    if year_at(found, behind):
        return behind + 1
    return behind if behind > after + 1 else None


def _pointed_at(found: list[Word], place: int) -> int | None:
    """A time that was spoken of before: "that day", "later that week"."""
    named = value_of("unit", key_at(found, place + 1)) or value_of("daypart", key_at(found, place + 1))
    pointed = found[place].key == "that" and named and not key_at(found, place + 1).endswith("s")
    return place + 2 if pointed and is_plain(found, place + 2) else None


_RULES: tuple[Callable[[list[Word], int], int | None], ...] = (
    _figures,
    _match_date,
    _ago,
    _year,
    _day_of_month,
    _period,
    _match_uncomputed,
    _of_another_year,
    _pointed_at,
)
