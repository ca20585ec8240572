"""The gates' word tables: plain text files in `data/`, readable and editable without code."""

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from engram.model.lazy import dataclass
from engram.text.confusables import fold_text, normalize_forms

__all__ = ["Phrases", "phrases", "places", "plain", "rows", "sections", "table_text"]

_DATA = Path(__file__).parent / "data"
_NOT_WORD = re.compile(r"[^\w'/$%#@-]+")


def table_text(name: str) -> list[str]:
    """The lines of a table; a line that starts with `#` is a comment."""
    lines = (_DATA / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


def rows(name: str) -> list[list[str]]:
    """The lines of a table, split on spaces."""
    return [line.split() for line in table_text(name)]


@dataclass(frozen=True, slots=True)
class Phrases:
    """A set of words and of phrases, looked up in a text that `plain` has prepared."""

    words: frozenset[str]
    runs: tuple[str, ...]

    def find(self, prepared: str, words: frozenset[str]) -> str:
        """The first phrase found, "" when there is none. `words` are the words of `prepared`."""
        if hit := self.words & words:
            return min(hit)
        return next((run.strip() for run in self.runs if run in prepared), "")


def plain(text: str) -> str:
    """The text as words between single spaces, lower-cased, with a space at both ends, for `Phrases.find`."""
    text = normalize_forms(fold_text(text)).replace("’", "'")
    return f" {' '.join(_NOT_WORD.sub(' ', text.casefold()).split())} "


def places(word: str, text: str) -> Iterator[int]:
    """The positions of a word in a text, without overlaps."""
    place = text.find(word)
    while place >= 0:
        yield place
        place = text.find(word, place + len(word))


@lru_cache(maxsize=16)
def sections(name: str) -> dict[str, Phrases]:
    """A table of sections: `[name]`, then phrases separated by commas."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in table_text(name):
        if line.startswith("["):
            current = found.setdefault(line.strip()[1:-1], [])
        else:
            current.extend(filter(None, (phrase.strip() for phrase in line.split(","))))
    return {title: _phrases(entries) for title, entries in found.items()}


def phrases(name: str, section: str) -> Phrases:
    """One section of a table."""
    return sections(name)[section]


def _phrases(entries: list[str]) -> Phrases:
    singles = frozenset(entry for entry in entries if " " not in entry and entry.isascii())
    # Scripts without spaces are looked up inside the text, the others between spaces.
    runs = tuple(
        f" {entry} " if entry.isascii() or " " in entry else entry for entry in entries if entry not in singles
    )
    return Phrases(singles, runs)
