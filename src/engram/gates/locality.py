"""Whether a statement is about the project it was learned in, or holds everywhere: decided by its words and the directory.

The first rule that applies decides:

1. It names this project: "this repo", the repository's name, or a path that exists in it.
2. It is about a person ("I prefer", "the user"), or of a type that describes people: not this project's.
3. It speaks of the team ("we", "our"), or of one of its parts ("the billing service"), or is of a type such as decision or
   convention: this project's.
4. Anything else holds everywhere.
"""

import re
from collections.abc import Callable, Sequence

from engram.gates.tables import Phrases, phrases, plain
from engram.model.lazy import dataclass
from engram.model.types import type_or_default

_TABLE = "locality.txt"
_PATH = re.compile(r"(?<![\w:/])(?:\.{0,2}/)?[\w.@+-]+(?:/[\w.@+-]+)*/?")
_MOST_PATHS = 20
"""Words of a statement that are looked up as paths."""
_SHORTEST_NAME = 3
_LONGEST_NAME = 4
"""Words between an article and its noun, at most, and the article."""
_JOINTS = frozenset(
    ("of", "in", "for", "to", "with", "a", "an", "every", "any", "is", "are", "and", "or", "on", "from")
)
"""Words at which another phrase begins: in "the docs of every api" the article is not the api's."""
_OF_PEOPLE = frozenset(("identity", "fiscal", "people", "location", "health"))
"""Kinds of spec 4 that describe people."""


@dataclass(frozen=True, slots=True)
class ProjectPlace:
    """The project of a directory: its scope, and whether a path exists in it."""

    scope: str
    exists: Callable[[str], bool]

    @property
    def names(self) -> Sequence[str]:
        """What the project may be called in a statement; a name that could mean anything is none."""
        full = self.scope.partition(":")[2].casefold()
        last = full.rpartition("/")[2]
        is_common = last in phrases(_TABLE, "common").words or len(last) < _SHORTEST_NAME
        return [full] if is_common or last == full else [full, last]


def locality(statement: str, place: ProjectPlace, *, type_name: str = "", situation: str = "") -> str:
    """Why a statement is about the project, in a few words; "" where it holds everywhere."""
    text = f"{statement}\n{situation}"
    prepared = plain(text)
    words = frozenset(prepared.split())
    if named := phrases(_TABLE, "here").find(prepared, words):
        return f"it says “{named}”"
    if named := _named(prepared, place) or _path_of(text, place):
        return f"it names {named}"
    if type_or_default(type_name).kind in _OF_PEOPLE:
        return ""
    if phrases(_TABLE, "person").find(prepared, words):
        return ""
    if said := phrases(_TABLE, "team").find(prepared, words) or _part(prepared, phrases(_TABLE, "components")):
        return f"it says “{said}”"
    return f"it is a {type_name}" if type_name in phrases(_TABLE, "types").words else ""


def _named(prepared: str, place: ProjectPlace) -> str:
    return next((name for name in place.names if f" {plain(name).strip()} " in prepared), "")


def _path_of(text: str, place: ProjectPlace) -> str:
    """The first path of the text that exists in the project; a plain word is none, though a file may have its name."""
    found = (word.rstrip(".,;:") for word in _PATH.findall(text))
    candidates = [word for word in found if "/" in word.strip("/") or "." in word.strip("./")]
    return next((word for word in candidates[:_MOST_PATHS] if place.exists(word)), "")


def _part(prepared: str, parts: Phrases) -> str:
    """The part of a project that is spoken of as a known one: "the search cluster"."""
    if named := next((f"the{run}" for run in parts.runs if f" the{run}" in prepared), ""):
        return named.strip()
    words = prepared.split()
    for place, word in enumerate(words):
        start = _article(words, place) if word in parts.words else place
        if start < place:
            return " ".join(words[start : place + 1])
    return ""


def _article(words: Sequence[str], place: int) -> int:
    """The place of the "the" that a word belongs to; its own place where there is none."""
    for before in range(place - 1, max(-1, place - 1 - _LONGEST_NAME), -1):
        if words[before] == "the":
            return before
        if words[before] in _JOINTS:
            break
    return place
