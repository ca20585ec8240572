"""Scans a turn for signs of how soon it should be read: high, medium, low or none. Local, without a model.

The English patterns are in `signals.txt`; tables `[signals.LANGUAGE]` of `config.toml` add others. Only `high` makes a
buffer extract at once (`capture/buffer.py`); what is worth keeping is decided when the turn is read, whatever its
level.
"""

import re
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from engram.gates.policies.policy import MAX_NESTING, MAX_PATTERN_CHARS, nesting
from engram.model.errors import InvalidInput
from engram.model.lazy import dataclass

__all__ = ["HIGH", "LEVELS", "Signal", "SignalPatterns", "custom_signals", "scan", "signal_problems"]

LEVELS = ("high", "medium", "low", "none")
HIGH, MEDIUM, LOW, NONE = LEVELS
PATTERN_SECONDS, SCAN_SECONDS = 0.02, 0.1
"""The time limit of one of the owner's patterns on one turn, and of all of them."""
MOST_PATTERNS = 500
"""The most patterns of the owner, all languages together."""
_WINDOW = 80
"""The maximum length of text that a phrase may span."""
_PART = re.compile(r"([(\[])([^)\]]{0,1000})[)\]]|(\S+)")
_SIGNS = {number: " " for number in range(128) if not chr(number).isalnum() and chr(number) not in "'-/@_"}


@dataclass(frozen=True, slots=True)
class Signal:
    """How soon a turn should be read, and why: the patterns that were found, each with its level."""

    level: str = NONE
    patterns: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    """The owner's patterns that took too long on this turn and did not count."""


class SignalPattern(NamedTuple):
    """One of the owner's patterns."""

    level: str
    language: str
    text: str


SignalPatterns = tuple[SignalPattern, ...]


def scan(text: str, custom: SignalPatterns = ()) -> Signal:
    """The signal of a turn. The time grows only with the length of the text, whatever its content."""
    found = _bundled_signals(text)
    skipped: list[str] = []
    if custom:
        found += _custom(text, custom, skipped)
    return Signal(_level(found), tuple(f"{level}:{name}" for level, name in found), tuple(skipped))


def _level(found: Sequence[tuple[str, str]]) -> str:
    levels = [level for level, _ in found]
    if HIGH in levels:
        return HIGH
    if levels.count(MEDIUM) > 1:
        return MEDIUM
    return LOW if levels else NONE


# -- the built-in phrases


class _Node:
    """A position in a phrase: the possible next words, and the table rows that end here."""

    __slots__ = ("ends", "next", "pairs")

    def __init__(self) -> None:
        self.next: dict[str, _Node] = {}
        self.ends: list[tuple[int, frozenset[str]]] = []
        self.pairs: re.Pattern[str] | None = None
        """For a first word, finds its continuations, if it has any."""


class _Phrases(NamedTuple):
    """The table as a tree of words, and the level and name of each row."""

    first: Mapping[str, _Node]
    rows: tuple[tuple[str, str], ...]


def _bundled_signals(text: str) -> list[tuple[str, str]]:
    """The level and name of each row that matches, in the table's order."""
    words = _plain(text).split()
    prepared, phrases = f" {' '.join(words)} ", _phrases()
    found: set[int] = set()
    for word in phrases.first.keys() & set(words):
        node = phrases.first[word]
        found.update(row for row, _ in node.ends)
        if node.pairs is not None:
            # Look at each sequence of words only once, however often it is repeated.
            for window in set(node.pairs.findall(prepared)):
                _follow(node, window.split(), found)
    return list(dict.fromkeys(phrases.rows[row] for row in sorted(found)))


def _follow(node: _Node, words: Sequence[str], found: set[int]) -> None:
    """Add the rows of phrases with more than one word; `words` are those after the first."""
    for place, word in enumerate(words, 1):
        if word not in node.next:
            return
        node = node.next[word]
        if node.ends:
            after = words[place] if place < len(words) else ""
            found.update(row for row, not_before in node.ends if after not in not_before)


def _plain(text: str) -> str:
    """The text in lower case, with punctuation replaced by spaces."""
    if not text.isascii():
        text = text.replace("’", "'").replace("…", " ").replace("—", " ").replace("–", " ")
    return text.lower().translate(_SIGNS)


@lru_cache(maxsize=1)
def _phrases() -> _Phrases:
    root, rows = _Node(), list[tuple[str, str]]()
    for line in Path(__file__).with_name("signals.txt").read_text("utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            level, name, written = line.split("\t")
            phrase, _, not_before = written.partition(" / ")
            for node in _nodes([root], phrase):
                node.ends.append((len(rows), frozenset(not_before.split())))
            rows.append((level, name))
    for word, node in root.next.items():
        if node.next:
            seconds = "|".join(map(re.escape, sorted(node.next)))
            letters = "".join(sorted({second[0] for second in node.next}))
            node.pairs = re.compile(rf" {re.escape(word)}(?= (?=[{letters}])((?:{seconds}) .{{0,{_WINDOW}}}))")
    return _Phrases(root.next, tuple(rows))


def _nodes(starts: list[_Node], phrase: str) -> list[_Node]:
    """The nodes at which a phrase ends if it begins at the given nodes."""
    for opened, several, word in _PART.findall(phrase):
        ways = [way.split() for way in several.split("|")] if opened else [[word]]
        ends = [_node(start, way) for start in starts for way in ways]
        starts = [*starts, *ends] if opened == "[" else ends
    return starts


def _node(start: _Node, words: Sequence[str]) -> _Node:
    for word in words:
        start = start.next.setdefault(word, _Node())
    return start


# -- the owner's patterns


def _custom(text: str, patterns: SignalPatterns, skipped: list[str]) -> list[tuple[str, str]]:
    """The owner's patterns that match; a pattern that takes too long is skipped."""
    found, deadline = [], time.monotonic() + SCAN_SECONDS
    for pattern in patterns:
        left = min(PATTERN_SECONDS, deadline - time.monotonic())
        try:
            if left <= 0:
                raise TimeoutError
            if _stoppable(pattern.text).search(text, timeout=left):
                found.append((pattern.level, f"{pattern.language}:{pattern.text}"))
        except TimeoutError:
            skipped.append(pattern.text)
    return found


@lru_cache(maxsize=MOST_PATTERNS)
def _stoppable(pattern: str) -> Any:
    """The compiled pattern. Python's own matcher cannot be interrupted, so `regex` runs the owner's patterns."""
    import regex

    return regex.compile(pattern, regex.IGNORECASE | regex.VERSION0)


def custom_signals(tables: Mapping[str, Any], config: Path | None = None) -> SignalPatterns:
    """The owner's patterns of every language.

    Raises `InvalidInput`, naming the file and the line, for one that cannot be used.
    """
    found = []
    for language, table in tables.items():
        if not isinstance(table, Mapping):
            raise _unusable(config, language, f"signals.{language} must be a table, [signals.{language}]")
        for level, patterns in table.items():
            found += _patterns(language, level, patterns, config)
    if len(found) > MOST_PATTERNS:
        raise _unusable(config, "signals", f"there are {len(found)} patterns of signals (maximum {MOST_PATTERNS})")
    return tuple(found)


def signal_problems(tables: Mapping[str, Any], config: Path | None = None) -> list[str]:
    """The first problem of the tables, for `doctor`; empty if there is none."""
    try:
        custom_signals(tables, config)
    except InvalidInput as error:
        return [str(error)]
    return []


def _patterns(language: str, level: str, given: Any, config: Path | None) -> list[SignalPattern]:
    what = f"signals.{language}.{level}"
    if level not in (HIGH, MEDIUM, LOW):
        raise _unusable(config, level, f"signals.{language}: unknown level {level!r}; choose high, medium or low")
    if not isinstance(given, list) or not all(isinstance(one, str) and one.strip() for one in given):
        raise _unusable(config, level, f"{what} must be a list of patterns in quotes, not {given!r:.60}")
    for pattern in given:
        if problem := _problem(pattern):
            raise _unusable(config, pattern, f"{what}: {problem}: {pattern!r:.80}")
    return [SignalPattern(level, language, pattern) for pattern in given]


def _problem(pattern: str) -> str:
    if len(pattern) > MAX_PATTERN_CHARS:
        return f"a pattern of {len(pattern)} characters (maximum {MAX_PATTERN_CHARS})"
    if nesting(pattern) > MAX_NESTING:
        return f"a pattern that nests more than {MAX_NESTING} groups"
    try:
        compiled = _stoppable(pattern)
    except Exception as error:  # `regex.error`, or any other failure that a hostile pattern causes in the compiler
        return f"not a regular expression ({error})"
    return "it fits an empty text, so it would fit every turn" if compiled.search("") else ""


def _unusable(config: Path | None, near: str, problem: str) -> InvalidInput:
    return InvalidInput(
        f"{config or 'config.toml'}:{_line_of(config, near)}: {problem}. Fix or remove that line in an editor"
    )


def _line_of(config: Path | None, near: str) -> int:
    """The first line of the file, after the first table of signals, that contains a text as TOML may spell it."""
    try:
        lines = config.read_text("utf-8").splitlines() if config is not None else []
    except (OSError, ValueError):
        lines = []
    start = next((number for number, line in enumerate(lines) if re.match(r"\s*\[\s*signals\b", line)), 0)
    spellings = (near, near.replace("\\", "\\\\"), near.replace("\\", "\\\\").replace('"', '\\"'))
    for number, line in enumerate(lines[start:], start + 1):
        if any(spelling in line for spelling in spellings):
            return number
    return start + 1
