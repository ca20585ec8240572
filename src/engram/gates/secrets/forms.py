"""The forms of secrets, as tables in `data/`: words and prefixes that announce one, each with the pattern of what follows.

Every form has hints. `hints_in` finds those of all tables in one pass, and a pattern is tried only at its hints: most texts have
none, and cost no more than that pass.
"""

import re
import string
from collections.abc import Iterable, Iterator
from functools import lru_cache

from engram.gates.tables import places, table_text
from engram.model.lazy import dataclass
from engram.models.credentials import cue_stems

__all__ = ["Secret", "alternatives", "apart", "columns", "hints_in", "stretches", "words", "words_in"]

SHAPES, NAMES, CODES, NUMBERS = "secretshapes.txt", "secretnames.txt", "secretcodes.txt", "secretnumbers.txt"
LISTS = "secretlists.txt"
_TABLES = (SHAPES, NAMES, CODES, NUMBERS, LISTS)
_HINTED_WORDS = ("accounts", "logins")
AS_SPACES = str.maketrans(dict.fromkeys(string.punctuation, " "))
_BETWEEN_SIGNS = re.compile(rf"[^\s{re.escape(string.punctuation)}]+")
_LONGEST_CACHED = 24
"""Characters; a longer word, or one with digits, may be a secret itself and is never cached."""
_MOST_CACHED = 16_384
_REACH = 20
"""Characters that a word may have before its stem; twice as many after it."""


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


@lru_cache(maxsize=5)
def columns(name: str) -> tuple[tuple[str, ...], ...]:
    """The rows of a table: kind, hints, pattern, and in some tables a check."""
    return tuple(tuple(line.split("\t")) for line in table_text(name))


@lru_cache(maxsize=1)
def _index() -> tuple[dict[tuple[str, ...], list[tuple[str, str]]], dict[str, list[str]]]:
    """The hints of every table by the first letters of their longest word, with that word; and the shorter hints by a sign they have."""
    hints = {hint.removeprefix("^") for name in _TABLES for row in columns(name) for hint in row[1].split("¦")}
    hints.update(word for section in _HINTED_WORDS for word in words(section))
    hints.update(cue_stems())
    by_letters: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    short: dict[str, list[str]] = {}
    for hint in sorted(hints - {""}):
        core = max((*hint.translate(AS_SPACES).split(), ""), key=len)
        if len(core) < 3:
            short.setdefault(next((sign for sign in hint if sign in string.punctuation), ""), []).append(hint)
        else:
            by_letters.setdefault(tuple(core[:3]), []).append((core, hint))
    return by_letters, short


def hints_in(lowered: str) -> set[str]:
    """The hints that occur in a lower-cased text."""
    found = {hint for sign, hints in _index()[1].items() if sign in lowered for hint in hints if hint in lowered}
    # On other texts than ASCII, `translate` takes several times as long.
    parts = lowered.translate(AS_SPACES).split() if lowered.isascii() else _BETWEEN_SIGNS.findall(lowered)
    found.update(*map(_hints_by_word.__getitem__, set(parts)))
    signs = set(lowered)
    return {hint for hint in found if hint.isalnum() or (signs.issuperset(hint) and hint in lowered)}


def _look_up(word: str) -> tuple[str, ...]:
    """The hints whose longest word is part of this one."""
    by_letters = _index()[0]
    near = [letters for letters in zip(word, word[1:], word[2:], strict=False) if letters in by_letters]
    return tuple(hint for letters in near for core, hint in by_letters[letters] if core in word)


class _HintsByWord(dict[str, tuple[str, ...]]):
    """The hints of each word that was read; a bounded cache."""

    def __missing__(self, word: str) -> tuple[str, ...]:
        hints = _look_up(word)
        if word.isalpha() and len(word) <= _LONGEST_CACHED:
            if len(self) >= _MOST_CACHED:
                self.clear()
            self[word] = hints
        return hints


_hints_by_word = _HintsByWord()


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


def words_in(lowered: str, name: str, hints: set[str]) -> list[tuple[re.Match[str], str]]:
    """The words of a table (kinds, stems, patterns) that occur in a lower-cased text, in order, each with its kind."""
    found: dict[tuple[int, int], tuple[re.Match[str], str]] = {}
    for row, (kind, stem, _) in enumerate(columns(name)):
        if stem in hints:
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
