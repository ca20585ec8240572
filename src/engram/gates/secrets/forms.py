"""The forms of secrets, as tables in `data/`: words and prefixes that announce one, each with the pattern of what follows.

Every form has hints. `hints_in` finds those of all tables, and where they are, in one pass over the words, and a pattern is tried
only at its hints: to look for each hint in the whole text would take most of the time.
"""

import re
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate

from engram.gates.tables import table_text
from engram.model.lazy import dataclass
from engram.models.credentials import cue_stems

__all__ = [
    "Hints",
    "Secret",
    "alternatives",
    "columns",
    "hints_in",
    "join_overlaps",
    "join_windows",
    "without_overlaps",
    "words",
    "words_in",
]

Hints = Mapping[str, Sequence[int]]
"""The hints that occur in a text, each with its places in order; they may overlap."""

SHAPES, NAMES, CODES, NUMBERS = "secretshapes.txt", "secretnames.txt", "secretcodes.txt", "secretnumbers.txt"
LISTS = "secretlists.txt"
_TABLES = (SHAPES, NAMES, CODES, NUMBERS, LISTS)
_HINTED_WORDS = ("accounts", "logins")
AS_SPACES = str.maketrans(dict.fromkeys(string.punctuation, " "))
_SIGNS_AS_SPACES = str.maketrans(dict.fromkeys(string.punctuation + "\t\n\v\f\r\x1c\x1d\x1e\x1f", " "))
"""`AS_SPACES`, and whatever else divides words in ASCII."""
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


def join_overlaps(found: Iterable[Secret]) -> list[Secret]:
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
def _index() -> tuple[dict[str, list[tuple[str, str]]], dict[str, list[str]], dict[str, list[str]]]:
    """The hints of every table by the first letters of their longest word, with that word; and the shorter hints by a sign they
    have, those in ASCII and all.
    """
    hints = {hint.removeprefix("^") for name in _TABLES for row in columns(name) for hint in row[1].split("¦")}
    hints.update(word for section in _HINTED_WORDS for word in words(section))
    hints.update(cue_stems())
    by_letters: dict[str, list[tuple[str, str]]] = {}
    short: dict[str, list[str]] = {}
    for hint in sorted(hints - {""}):
        core = max((*hint.translate(AS_SPACES).split(), ""), key=len)
        if len(core) < 3:
            short.setdefault(next((sign for sign in hint if sign in string.punctuation), ""), []).append(hint)
        else:
            by_letters.setdefault(core[:3], []).append((core, hint))
    in_ascii = {sign: [hint for hint in hints if hint.isascii()] for sign, hints in short.items()}
    return by_letters, in_ascii, short


def hints_in(lowered: str) -> dict[str, list[int]]:
    """The hints that occur in a lower-cased text, with their places."""
    found: dict[str, list[int]] = {}
    for start, hints in _hinted_words(lowered):
        for hint, before in hints:
            place = start + before
            if hint.isalnum() or (place >= 0 and lowered.startswith(hint, place)):
                found.setdefault(hint, []).append(place)
    _, in_ascii, short = _index()
    short = in_ascii if lowered.isascii() else short
    for hint in [hint for sign, hints in short.items() if sign in lowered for hint in hints if hint in lowered]:
        found[hint] = [*_all_places(hint, lowered)]
    return found


def _hinted_words(lowered: str) -> list[tuple[int, tuple[tuple[str, int], ...]]]:
    """The places of words that may be part of hints, and those hints."""
    if not lowered.isascii():
        # On other texts than ASCII, `translate` takes several times as long.
        matches = [(match.start(), match[0]) for match in _BETWEEN_SIGNS.finditer(lowered)]
        hinted = {word: hints for word in {word for _, word in matches} if (hints := _hints_by_word[word])}
        return [(start, hinted[word]) for start, word in matches if word in hinted]
    parts = lowered.translate(_SIGNS_AS_SPACES).split(" ")
    hinted = {word: hints for word in set(parts) if (hints := _hints_by_word[word])}
    # A word begins behind all before it and the one character that divides each from the next.
    ends = list(accumulate(map(len, parts)))
    return [(ends[at] + at - len(word), hinted[word]) for at, word in enumerate(parts) if word in hinted]


def _all_places(part: str, text: str) -> Iterator[int]:
    place = text.find(part)
    while place >= 0:
        yield place
        place = text.find(part, place + 1)


def _look_up(word: str) -> tuple[tuple[str, int], ...]:
    """The hints whose longest word is part of this one, each with its place relative to this one's."""
    by_letters = _index()[0]
    near = by_letters.keys() & {word[at : at + 3] for at in range(len(word) - 2)}
    cores = [pair for letters in near for pair in by_letters[letters] if pair[0] in word]
    return tuple(found for core, hint in cores for found in _parts(word, core, hint))


def _parts(word: str, core: str, hint: str) -> Iterator[tuple[str, int]]:
    """Where a hint may begin that has its longest word in this one. What a hint has before and behind that word is no letter, so
    it is outside of this one.
    """
    before = hint.index(core)
    is_begun, is_ended = before > 0, before + len(core) < len(hint)
    for place in _all_places(core, word):
        if not (is_begun and place) and not (is_ended and place + len(core) < len(word)):
            yield hint, place - before


class _HintsByWord(dict[str, tuple[tuple[str, int], ...]]):
    """The hints of each word that was read; a bounded cache."""

    def __missing__(self, word: str) -> tuple[tuple[str, int], ...]:
        hints = _look_up(word)
        if word.isalpha() and len(word) <= _LONGEST_CACHED:
            if len(self) >= _MOST_CACHED:
                self.clear()
            self[word] = hints
        return hints


_hints_by_word = _HintsByWord()


def join_windows(places: Iterable[int], before: int, behind: int) -> Iterator[tuple[int, int]]:
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


def without_overlaps(places: Iterable[int], size: int) -> Iterator[int]:
    """Places in order, without those less than `size` behind the one before."""
    end = 0
    for place in places:
        if place >= end:
            yield place
            end = place + size


@lru_cache(maxsize=5)
def _rows_of_stems(name: str) -> dict[str, list[tuple[int, str]]]:
    """The rows of a table of words and their kinds, by their stems."""
    rows: dict[str, list[tuple[int, str]]] = {}
    for row, (kind, stem, _) in enumerate(columns(name)):
        rows.setdefault(stem, []).append((row, kind))
    return rows


def words_in(lowered: str, name: str, hints: Hints) -> list[tuple[re.Match[str], str]]:
    """The words of a table (kinds, stems, patterns) that occur in a lower-cased text, in order, each with its kind."""
    found: dict[tuple[int, int], tuple[re.Match[str], str]] = {}
    rows = _rows_of_stems(name)
    for stem, places in hints.items():
        for row, kind in rows.get(stem, ()):
            pattern = _pattern(name, row)
            missed: set[tuple[int, str]] = set()
            for place in without_overlaps(places, len(stem)):
                # Where a text repeats itself, most windows are the same, and a miss is the same miss.
                first = max(0, place - 2 * _REACH)
                window = place - first, lowered[first : place + 3 * _REACH]
                if window in missed:
                    continue
                match = pattern.match(lowered, place) or pattern.search(
                    lowered, max(0, place - _REACH), place + 2 * _REACH
                )
                if match is not None:
                    found.setdefault((match.start(), row), (match, kind))
                else:
                    missed.add(window)
    apart: list[tuple[re.Match[str], str]] = []
    for key in sorted(found):
        if not apart or key[0] >= apart[-1][0].end():
            apart.append(found[key])
    return apart
