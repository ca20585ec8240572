"""Calendar dates with a year in a question: the time span each names, and the question without them.

A date narrows a question in time; as words its parts only mislead ("May" is in many sentences). Relative phrases depend on
when the question was asked; `windows` reads those.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from engram.text.time.calendar import Span, holding, monthly
from engram.text.time.numbers import repeating, written_date, year_after
from engram.text.time.words import Word, words

__all__ = ["DateSpan", "date_spans", "without_dates"]

_HAS_YEAR = re.compile(r"(?:19|20)\d\d")
_LEADS = frozenset(("on", "in", "of", "during", "since", "around", "by", "the"))


@dataclass(frozen=True, slots=True)
class DateSpan:
    """A half-open time span, in seconds, and the place of its words in the text."""

    since: float
    until: float
    start: int
    end: int


def date_spans(text: str) -> list[DateSpan]:
    """The days and months with a year that a text names, in order."""
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
        since, until = (moment.replace(tzinfo=UTC).timestamp() for moment in (date[1].since, date[1].until))
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
        return year[0], holding(datetime(year[1], named[1].first, named[1].second), "day")
    except ValueError:
        return None  # "30 February 2024"


def without_dates(text: str, found: list[DateSpan]) -> str:
    """The text without the words of these dates."""
    for span in reversed(found):
        text = f"{text[: span.start]} {text[span.end :]}"
    return text
