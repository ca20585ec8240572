"""Times from one to another: "between March and May", "from 3 to 10 June", "April 3-5, 2025", "between 2 and 4pm"."""

from engram.text.time_grammar import INSTANT, Found, Grammar
from engram.text.time_numbers import day_of_month, repeating, year_after
from engram.text.time_repeating import resolved
from engram.text.time_spans import Span
from engram.text.time_words import is_plain

__all__ = ["range_at", "with_next"]

_JOINS = {
    "between": ("and",),
    "from": ("to", "till", "until", "til", "through", "thru", "up"),
    "": ("to", "through", "thru"),
}
_LONGEST_LIST = 6
_ON = frozenset(("on", "during", "over", "in"))


def range_at(grammar: Grammar, place: int) -> Found | None:
    """From one time to another: "between March and May", "from Monday to Wednesday", "June 3rd to June 10th"."""
    word = grammar.words[place].key
    opener = word if word in ("between", "from") else ""
    start = place + 1 if opener or word in _ON else place
    if opener and (hours := grammar.hours(place)) is not None:
        return hours
    if (days := _days_of_one_month(grammar, start, _JOINS[opener])) is not None:
        return days
    first = grammar.moment(start, "in" if start > place else "") or (_opened(grammar, start) if opener else None)
    if first is None or first[0] >= len(grammar.words) or grammar.words[first[0]].key not in _JOINS[opener]:
        return None
    behind = first[0] + 1
    if grammar.words[behind - 1].key == "up" and behind < len(grammar.words):
        behind += 1
    second = _same_month(grammar, behind, first[1]) or _the_present(grammar, behind) or grammar.moment(behind, "in")
    if second is None and first[1].grain == "hour":
        second = _hour(grammar, behind)
    if second is None:
        return None
    since = _first_of(grammar, start, first, second[1]).since
    until = second[1].since if second[1].grain == "hour" else second[1].until
    return (second[0], Span(since, until, "range")) if since < until else None


def _opened(grammar: Grammar, place: int) -> Found | None:
    """What only "between" or "from" makes a time: an hour, and "now" in "between now and Friday"."""
    now = place < len(grammar.words) and grammar.words[place].key == "now"
    return _the_present(grammar, place) if now else _hour(grammar, place)


def _the_present(grammar: Grammar, place: int) -> Found | None:
    """The end of "from 2023 up to now", "from May to date", "from March to the present day"."""
    keys = [word.key for word in grammar.words[place : place + 3]]
    article = keys[:1] == ["the"]
    if keys[article : article + 1] not in (["now"], ["date"], ["present"]):
        return None
    end = place + article + (2 if keys[article + 1 : article + 2] == ["day"] else 1)
    return (end, Span(grammar.at, grammar.at + INSTANT, "rolling")) if is_plain(grammar.words, end) else None


def _hour(grammar: Grammar, place: int) -> Found | None:
    """A time of the clock, or an hour with its day: "between 10 last night and 6 this morning"."""
    return grammar.clock_today(place) or grammar.bare_hour(place, alone=False)


def with_next(grammar: Grammar, start: int, end: int, span: Span) -> Found:
    """Some of a kind are one time, from the first to the last: "in January and February", "on Monday, Wednesday and Friday last week"."""
    joint = _behind_list(grammar, end)
    if joint + 1 >= len(grammar.words) or grammar.words[joint].key not in ("and", "or"):
        return end, span
    behind = joint + 2 if grammar.words[joint + 1].key in _ON else joint + 1
    other = grammar.moment(behind, "in")
    if other is None or other[1].grain != span.grain:
        return end, span
    told = other[0] > behind + 1 or other[1].since < span.since  # they are named in the order they came in
    first = _first_of(grammar, start, (end, span), other[1]) if told else span
    since, until = min(first.since, other[1].since), max(first.until, other[1].until)
    return other[0], Span(since, until, "range")


def _behind_list(grammar: Grammar, end: int) -> int:
    """Where the list that goes on behind a comma comes to its "and"; the same place where none does."""
    place = end
    while grammar.words[place - 1].closed and place < min(end + _LONGEST_LIST, len(grammar.words)):
        if grammar.words[place].key in ("and", "or"):
            return place
        named = repeating(grammar.words, place, named=False)
        if named is None or named[1].kind not in ("weekday", "month"):
            return len(grammar.words)
        place = named[0]
    return place


def _days_of_one_month(grammar: Grammar, place: int, joins: tuple[str, ...]) -> Found | None:
    """Two days whose month follows the second: "between 1 and 5 April", "from the 3rd to the 7th of June"."""
    first = day_of_month(grammar.words, place)
    if first is None or first[0] >= len(grammar.words) or grammar.words[first[0]].key not in joins:
        return None
    last = grammar.moment(first[0] + 1, "in")
    if last is None or last[1].grain != "day" or first[1] >= last[1].since.day or last[0] < first[0] + 3:
        return None
    return last[0], Span(last[1].since.replace(day=first[1]), last[1].until, "range")


def _first_of(grammar: Grammar, start: int, first: Found, second: Span) -> Span:
    """The first end of a range, taken from the second where it names no year of its own: "between March and May 2023"."""
    start += grammar.words[start].key == "the"
    what = repeating(grammar.words, start, named=True)
    if what is not None and what[0] == first[0] and year_after(grammar.words, what[0]) is None:
        return resolved(what[1], second.since, None, False) or first[1]
    clocked = grammar.clock_today(start)
    if first[1].grain == second.grain == "hour" and clocked is not None and clocked[0] == first[0]:
        clock = first[1].since - first[1].since.replace(hour=0, minute=0)
        since = second.since.replace(hour=0, minute=0) + clock
        return Span(since, first[1].until, "hour")
    return first[1]


def _same_month(grammar: Grammar, place: int, first: Span) -> Found | None:
    """The second day of "between May 3 and 10", which is one of the first one's month, and of the year behind it."""
    read = day_of_month(grammar.words, place)
    if first.grain != "day" or read is None or not first.since.day < read[1] <= 31:
        return None
    dated = repeating(grammar.words, read[0] - 1, named=False)
    if dated is not None and dated[1].kind == "date":
        return None  # "between May 3 and 10 June"
    end, year = year_after(grammar.words, read[0]) or (read[0], first.since.year)
    since = first.since.replace(year=year, day=read[1])
    return end, Span(since, since + (first.until - first.since), "day")
