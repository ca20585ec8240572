"""The words of a question with their positions, and the table of the words that time phrases consist of.

A text is split once, from left to right, at white space, and a rule looks only at a few words around one position.
Reading therefore takes linear time for any text. A text too long for a question is a document with a question before or
after it, so only its two ends are read.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain

from engram.model.lazy import dataclass, lazy_pattern, replace
from engram.text.words import read_table, word_class

__all__ = ["Word", "is_plain", "key_at", "lead_at", "may_start", "value_of", "word_classes", "words"]

_READ_CHARS = 2000
_CHUNK = lazy_pattern(r"[^\s—…]+")
_OPENING = "\"'“”‘’([{<*_`¿¡"
_CLOSING = "\"'“”‘’)]}>*_`?!.,;:"
_STOPS = frozenset("?!.,;:)")
_SHORTENED_TITLES = frozenset(("dr", "mr", "mrs", "ms", "prof", "st", "mt", "vs", "no", "approx"))
_DASHES = ("—", "…")
_LONE = frozenset("-–?!.,;:()\"'")
_HYPHENS = lazy_pattern(r"[-‐‑–]")
_SPLIT_FIRST = frozenset(
    (
        "mid",
        "early",
        "late",
        "twenty",
        "thirty",
        "forty",
        "fifty",
        "sixty",
        "seventy",
        "eighty",
        "ninety",
        "pre",
        "post",
    )
)
_ENDS = lazy_pattern(r"(\d{1,2}(?:st|nd|rd|th)?|[a-z]{3,9})([-‐‑–/])(\d{1,2}(?:st|nd|rd|th)?|[a-z]{3,9})")
_SHORT_YEAR = lazy_pattern(r"['’](\d\d)[?!.,;:)]*", re.ASCII)
_CENTURY_TURNS = 50
_COUNTED = lazy_pattern(r"(\d{1,4})(h|hrs?|d|days?|w|wks?|weeks?|mins?|secs?|months?|years?|yrs?)", re.ASCII)
_SHORTENED = frozenset(
    (
        "it's",
        "that's",
        "what's",
        "who's",
        "where's",
        "when's",
        "how's",
        "there's",
        "let's",
        "he's",
        "she's",
        "which's",
        "why's",
    )
)


_SHORT_TEXT = 600
"""The maximum number of characters of a text whose words are cached."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word as written in a text."""

    key: str
    """The word lower-cased, with straight apostrophes, without the possessive ending."""
    start: int
    end: int
    owner: bool = False
    """Whether it is possessive: "yesterday's"."""
    closed: bool = False
    """Whether a mark that ends a clause follows."""
    capital: bool = False
    shouted: bool = False
    """Whether it is in capitals, at least two letters: more often a name than an ordinary word."""


def words(text: str) -> list[Word]:
    """Every word of the text in order. Hyphens separate words only within a time ("mid-March")."""
    return list(_short_text_words(text)) if len(text) <= _SHORT_TEXT else _text_words(text)


@lru_cache(maxsize=64)
def _short_text_words(text: str) -> tuple[Word, ...]:
    """The same, cached because a question is read a dozen times before it is answered."""
    return tuple(_text_words(text))


def _text_words(text: str) -> list[Word]:
    found: list[Word] = []
    for match in _chunks(text):
        cut = _words_of(text, match.start(), match.end())
        if (not cut or text[match.end() : match.end() + 1] in _DASHES) and (found or cut):
            last = cut or [found.pop()]  # a free-standing dash ends a clause as a comma does
            cut = [*last[:-1], replace(last[-1], closed=True)]
        found.extend(cut)
    return _apart(found)


def _apart(found: list[Word]) -> list[Word]:
    """The words with "Jan-Mar", "Mon–Wed", and "3-5" next to its month, as "Jan to Mar"; other figures are scores or
    versions.
    """
    apart: list[Word] = []
    for place, word in enumerate(found):
        ends = _ENDS.fullmatch(word.key)
        if ends and _is_time_range(ends[1], ends[3], {near.key for near in found[max(0, place - 1) : place + 2]}):
            middle, behind = word.start + ends.end(1), word.start + ends.start(3)
            first = replace(word, key=ends[1], end=middle, owner=False, closed=False)
            apart += [first, Word("to", middle, behind)]
            word = replace(word, key=ends[3], start=behind)
        apart.append(word)
    return apart


def _is_time_range(first: str, last: str, near: set[str]) -> bool:
    months, weekdays = word_classes()["month"], word_classes()["weekday"]
    if first[0].isdigit() and last[0].isdigit():
        return not near.isdisjoint(months)
    return (first in months and last in months) or (first in weekdays and last in weekdays)


def _chunks(text: str) -> Iterator[re.Match[str]]:
    if len(text) <= 2 * _READ_CHARS:
        return _CHUNK.finditer(text)
    return chain(_CHUNK.finditer(text, 0, _READ_CHARS), _CHUNK.finditer(text, len(text) - _READ_CHARS))


def _words_of(text: str, start: int, end: int) -> list[Word]:
    chunk = text[start:end]
    inner = chunk.lstrip(_OPENING)
    start += len(chunk) - len(inner)
    body = "" if set(inner) <= _LONE else inner.rstrip(_CLOSING)
    after = inner[len(body) :]
    closed = not _STOPS.isdisjoint(after) and not (after == "." and body.lower() in _SHORTENED_TITLES)
    if not body:
        return []
    if short := _SHORT_YEAR.fullmatch(chunk):
        century = "20" if int(short[1]) < _CENTURY_TURNS else "19"
        return [Word(century + short[1], start, start + len(body), closed=closed)]
    if counted := _COUNTED.fullmatch(body):
        cut = start + counted.end(1)
        return [Word(counted[1], start, cut), Word(counted[2], cut, start + len(body), closed=closed)]
    pieces = _HYPHENS.split(body, maxsplit=3) if len(body) < 40 else [body]
    if len(pieces) == 2 and pieces[0].lower() in _SPLIT_FIRST and pieces[1].isalnum():
        cut = start + len(pieces[0])
        return [_word(pieces[0], start, False), _word(pieces[1], cut + 1, closed)]
    return [_word(body, start, closed)]


def _word(body: str, start: int, closed: bool) -> Word:
    key = body.lower().replace("’", "'").replace("ʼ", "'")
    # Lower-casing can lengthen a word (İ); its position is that of the word as written.
    owner = key.endswith("'s") and key not in _SHORTENED
    if owner:
        key = key[:-2]
    capital, shouted = body[:1].isupper(), len(body) > 1 and body.isupper() and body.isalpha()
    return Word(key, start, start + len(body), owner, closed, capital, shouted)


@lru_cache(maxsize=1)
def word_classes() -> dict[str, dict[str, str]]:
    """The words of time phrases by class, each with its value."""
    table: dict[str, dict[str, str]] = {}
    for kind, value, *surfaces in read_table("timewords.txt"):
        table.setdefault(kind, {}).update(dict.fromkeys(surfaces, value))
    return table


def key_at(found: list[Word], place: int) -> str:
    """The word at a position; "" beyond either end."""
    return found[place].key if 0 <= place < len(found) else ""


@lru_cache(maxsize=1)
def _starts() -> frozenset[str]:
    """Every first word of an entry that can begin a time phrase."""
    kinds = (kind for kind in word_classes() if kind not in ("plain", "unit", "relation"))
    entries = {surface.partition("_")[0] for kind in kinds for surface in word_classes()[kind]}
    return frozenset(entries | word_class("asking", "begins_time") | {"calendar"})


def may_start(word: Word) -> bool:
    """Whether a time phrase can begin with this word; a fast test that skips most words of a text."""
    return (
        word.key in _starts() or word.key[:1] in "0123456789'" or word.key[:2] in ("q1", "q2", "q3", "q4", "h1", "h2")
    )


def value_of(kind: str, key: str) -> str | None:
    """The value of a word of this class: ("month", "mar") → "3"; None if it is not in the class."""
    return word_classes()[kind].get(key)


def is_plain(found: list[Word], place: int) -> bool:
    """Whether a complete time phrase may end before this position: at the end, at a mark, or before a plain word."""
    if place >= len(found) or (place > 0 and found[place - 1].closed):
        return True
    key = found[place].key
    return key in word_classes()["plain"] or value_of("lead", key) is not None or value_of("step", key) is not None


def lead_at(found: list[Word], place: int, kind: str = "lead", longest: int = 4) -> tuple[int, str] | None:
    """The longest entry of this class, of one to four words, that starts at a position: its end and its value."""
    entries = word_classes()[kind]
    for length in range(min(longest, len(found) - place), 0, -1):
        run = found[place : place + length]
        if any(word.closed for word in run[:-1]):
            continue
        if value := entries.get("_".join(word.key for word in run)):
            return place + length, value
    return None
