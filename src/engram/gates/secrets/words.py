"""Spans of secrets in a text, and the word tables that the detectors share."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from engram.gates.tables import table_text

__all__ = ["Secret", "alternatives", "apart", "columns", "places", "stretches", "words", "words_in"]


@dataclass(frozen=True, slots=True)
class Secret:
    """The kind and span of a secret. The secret itself is never stored."""

    kind: str
    start: int
    end: int


def apart(found: Iterable[Secret]) -> list[Secret]:
    """The secrets in order, with overlapping spans joined; the first and widest determines the kind."""
    joined: list[Secret] = []
    for secret in sorted(found, key=lambda item: (item.start, -item.end)):
        if joined and secret.start < joined[-1].end:
            last = joined[-1]
            joined[-1] = Secret(last.kind, last.start, max(last.end, secret.end))
        else:
            joined.append(secret)
    return joined


_REACH = 20
"""Characters that a word may have before its stem; twice as many after it."""


@lru_cache(maxsize=1)
def _sections() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    current = ""
    for line in table_text("secretwords.txt"):
        if line.startswith("["):
            current = line.strip()[1:-1]
        else:
            found[current] = (*found.get(current, ()), *filter(None, map(str.strip, line.split(","))))
    return found


def words(section: str) -> tuple[str, ...]:
    """The words in a section of `secretwords.txt`."""
    return _sections()[section]


def alternatives(section: str) -> str:
    """The words in a section as alternatives of a pattern."""
    return "|".join(words(section))


@lru_cache(maxsize=4)
def columns(name: str) -> tuple[tuple[str, str, str], ...]:
    """The rows of a table with three columns."""
    return tuple((kind, key, pattern) for kind, key, pattern in (line.split("\t") for line in table_text(name)))


def places(word: str, text: str) -> Iterator[int]:
    """The positions of a word in a text, without overlaps."""
    place = text.find(word)
    while place >= 0:
        yield place
        place = text.find(word, place + len(word))


def stretches(places: Iterable[int], before: int, behind: int) -> Iterator[tuple[int, int]]:
    """The spans around some positions, by characters before and after, joined where they touch."""
    begin = stop = -1
    for place in sorted(places):
        if place - before > stop:
            if stop >= 0:
                yield begin, stop
            begin = max(0, place - before)
        stop = place + behind
    if stop >= 0:
        yield begin, stop


@lru_cache(maxsize=512)
def _pattern(name: str, row: int) -> re.Pattern[str]:
    return re.compile(columns(name)[row][2])


def words_in(lowered: str, name: str) -> list[tuple[re.Match[str], str]]:
    """The words of a table (kinds, stems, patterns) that occur in a lower-cased text, in order, each with its kind."""
    found: dict[tuple[int, int], tuple[re.Match[str], str]] = {}
    for row, (kind, stem, _) in enumerate(columns(name)):
        if stem in lowered:
            pattern = _pattern(name, row)
            for place in places(stem, lowered):
                match = pattern.match(lowered, place) or pattern.search(
                    lowered, max(0, place - _REACH), place + 2 * _REACH
                )
                if match is not None:
                    found.setdefault((match.start(), row), (match, kind))
    apart: list[tuple[re.Match[str], str]] = []
    for key in sorted(found):
        if not apart or key[0] >= apart[-1][0].end():
            apart.append(found[key])
    return apart
