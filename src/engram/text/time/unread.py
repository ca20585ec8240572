"""Times that a question names and that bound nothing: days there are not, dates that could be two, years beyond the calendar.

A window left out in silence would answer another question than the one asked; so what looks like a time and was not read as one is
named, for a surface to say.
"""

import re
from collections.abc import Callable

from engram.text.time import numbers as count
from engram.text.time.words import Word, is_plain, lead_at, value_of, words

__all__ = ["unread_times"]

_FIGURES = re.compile(
    r"\d{4}[-/.]\d{1,2}(?:[-/.]\d{1,2})?|\d{1,2}[-/]\d{1,2}[-/]\d{2,4}|\d{1,2}\.\d{1,2}\.\d{4}", re.ASCII
)
_SHORT = re.compile(r"\d{1,2}[/.]\d{1,2}", re.ASCII)
_DAY_OF_MONTH = re.compile(r"(\d{1,3})(?:st|nd|rd|th)", re.ASCII)
_PERIOD = re.compile(r"q[05-9]|h[03-9]", re.ASCII)
_QUARTER = re.compile(r"q[1-4]", re.ASCII)
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


def _key(found: list[Word], place: int) -> str:
    return found[place].key if 0 <= place < len(found) else ""


def _figures(found: list[Word], place: int) -> int | None:
    short = _key(found, place - 1) == "on" and _SHORT.fullmatch(found[place].key)
    return place + 1 if short or _FIGURES.fullmatch(found[place].key) else None


def _dated(found: list[Word], place: int) -> int | None:
    """A month with a day or a year: "Feb 30", "the 32nd of May", "December 9999"."""
    if found[place].key in _LOWER_TOO and not found[place].capital:
        return None
    read = count.repeating(found, place, named=True)
    if read is None or read[1].kind not in ("date", "month"):
        return None
    year = count.year_after(found, read[0])
    if year is not None:
        return year[0]
    return read[0] if read[1].kind == "date" else None


def _ago(found: list[Word], place: int) -> int | None:
    read = count.amount(found, place)
    if read is None or not read.unit:
        return None
    if _key(found, read.end) == "ago":
        return read.end + 1
    return read.end if _key(found, place - 1) == "in" and read.number >= _BEYOND else None


def _year(found: list[Word], place: int) -> int | None:
    year = count.year_at(found, place, any_of=True)
    return place + 1 if year and _key(found, place - 1) in _YEAR_LEADS and is_plain(found, place + 1) else None


def _day_of_month(found: list[Word], place: int) -> int | None:
    match = _DAY_OF_MONTH.fullmatch(found[place].key)
    on = (_key(found, place - 2), _key(found, place - 1)) == ("on", "the")
    return place + 1 if match and on and int(match[1]) > 31 else None


def _period(found: list[Word], place: int) -> int | None:
    if not _PERIOD.fullmatch(found[place].key):
        return None
    year = count.year_after(found, place + 1)
    return year[0] if year else place + 1 if _key(found, place - 1) == "in" else None


def _moving(found: list[Word], place: int) -> int | None:
    """A holiday of a calendar that is not computed, and a sprint, which nobody has said the length of."""
    named = lead_at(found, place, "uncomputed", longest=3)
    if named is not None:
        year = count.year_after(found, named[0])
        return year[0] if year else named[0]
    stepped = value_of("step", found[place].key) and _key(found, place + 1) == "sprint"
    return place + 2 if stepped else None


def _of_another_year(found: list[Word], place: int) -> int | None:
    """A year that begins when somebody says: "FY25", "Q3 FY25", "last fiscal year", "fiscal 2025"."""
    after = place
    if value_of("step", found[place].key) or _QUARTER.fullmatch(found[place].key):
        after += 1
    bound = after > place or value_of("lead", _key(found, place - 1)) is not None
    if count.is_fiscal(_key(found, after)):
        return after + 1
    if _key(found, after) == "fy" and count.year_at(found, after + 1):
        return after + 2
    if _key(found, after) not in _OTHER_YEARS or not bound:
        return None
    behind = after + 1 + (_key(found, after + 1) in ("year", "quarter"))
    if count.year_at(found, behind):
        return behind + 1
    return behind if behind > after + 1 else None


def _pointed_at(found: list[Word], place: int) -> int | None:
    """A time that was spoken of before: "that day", "later that week"."""
    named = value_of("unit", _key(found, place + 1)) or value_of("daypart", _key(found, place + 1))
    pointed = found[place].key == "that" and named and not _key(found, place + 1).endswith("s")
    return place + 2 if pointed and is_plain(found, place + 2) else None


_RULES: tuple[Callable[[list[Word], int], int | None], ...] = (
    _figures,
    _dated,
    _ago,
    _year,
    _day_of_month,
    _period,
    _moving,
    _of_another_year,
    _pointed_at,
)
