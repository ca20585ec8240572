"""Calendar dates in a question: the span of time each names, and the question without them.

A date narrows a question in time; as words its parts only mislead ("May" is in many sentences). Relative phrases need to know
when the question was asked and are not read here.
"""

import re
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_MONTH = r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_LEAD = r"(?:\b(?:on|in|of|during|since|around|by|the)\s+)*"
_FORMS = (
    rf"{_YEAR}-(?P<number>[01]\d)-{_DAY}",
    rf"{_DAY}\s+(?:of\s+)?{_MONTH},?\s+{_YEAR}",
    rf"{_MONTH}\s+{_DAY},?\s+{_YEAR}",
    rf"{_MONTH},?\s+{_YEAR}",
)
_HAS_YEAR = re.compile(r"(?:19|20)\d\d")


@dataclass(frozen=True, slots=True)
class DateSpan:
    """A half-open span of time, in seconds, and where its words stand."""

    since: float
    until: float
    start: int
    end: int


def date_spans(text: str) -> list[DateSpan]:
    """The dates a text names, in order; a phrase is read once, by the form that says most."""
    found: list[DateSpan] = []
    if not _HAS_YEAR.search(text):
        return found
    read = bytearray(len(text))
    for form in _forms():
        for match in form.finditer(text):
            start, end = match.span()
            if not any(read[start:end]) and (named := list(_span(match))):
                found += named
                read[start:end] = b"\1" * (end - start)
    return sorted(found, key=lambda span: span.start)


@cache
def _forms() -> tuple[re.Pattern[str], ...]:
    """Compiled when a text first names a year: most questions do not."""
    return tuple(re.compile(rf"{_LEAD}\b{form}\b", re.IGNORECASE) for form in _FORMS)


def without_dates(text: str, found: list[DateSpan]) -> str:
    """The text with the words of these dates taken out."""
    for span in reversed(found):
        text = f"{text[: span.start]} {text[span.end :]}"
    return text


def _span(match: re.Match[str]) -> Iterator[DateSpan]:
    parts = match.groupdict()
    year, month = int(parts["year"]), _month(parts)
    if not 1 <= month <= 12:
        return
    days = monthrange(year, month)[1]
    day = int(parts["day"]) if parts.get("day") else 0
    if not 0 <= day <= days:
        return
    since = datetime(year, month, day or 1, tzinfo=UTC)
    until = since + timedelta(days=1 if day else days)
    yield DateSpan(since.timestamp(), until.timestamp(), match.start(), match.end())


def _month(parts: dict[str, str | None]) -> int:
    if parts.get("number"):
        return int(parts["number"] or 0)
    name = (parts.get("month") or "").lower()[:3]
    return next(number for number, month in enumerate(_MONTHS, 1) if month.startswith(name))
