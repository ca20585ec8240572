"""Whether a statement is about the project it was learned in, or holds everywhere: decided by its words and the directory.

The first rule that applies decides:

1. It names this project: "this repo", the repository's name, or a path that exists in it.
2. It is about a person ("I prefer", "the user"), or of a type that describes people: not this project's.
3. It speaks of the team ("we", "our"), or one of its sentences is about a part ("The billing service …") or says what serves what
   ("The linter is ruff"), or it is of a type such as decision or convention: this project's.
4. Anything else holds everywhere.
"""

import re
from collections.abc import Callable, Sequence

from engram.gates.tables import phrases, plain
from engram.gates.toolchain import toolchain
from engram.model.lazy import dataclass
from engram.model.types import type_or_default

_TABLE = "locality.txt"
_PATH = re.compile(r"(?<![\w:/])(?:\.{0,2}/)?[\w.@+-]+(?:/[\w.@+-]+)*/?")
_READ_CHARS = 20_000
"""Characters of a statement that are read; what is longer is a document."""
_MOST_PATHS = 20
"""Words of a statement that are looked up as paths."""
_SHORTEST_NAME = 3
_LONGEST_NAME = 5
"""Words of what a sentence is about, with the article."""
_SENTENCE = re.compile(r"(?<![.!?;:\n])[.!?;:\n]+\s+")
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
        # Statements name a project without its host, and without the digest of its path.
        full = self.scope.rpartition(":")[2].casefold().partition("~")[0]
        last = full.rpartition("/")[2]
        is_common = last in phrases(_TABLE, "common").words or len(last) < _SHORTEST_NAME
        return [name for name, counts in ((full, "/" in full), (last, not is_common)) if counts]


def locality(statement: str, place: ProjectPlace, *, type_name: str = "", situation: str = "") -> str:
    """Why a statement is about the project, in a few words; "" where it holds everywhere."""
    statement, situation = statement[:_READ_CHARS], situation[:_READ_CHARS]
    text = f"{statement}\n{situation}"
    prepared = plain(text)
    words = frozenset(prepared.split())
    if named := phrases(_TABLE, "here").find(prepared, words):
        return f"it says “{named}”"
    if named := _find_name(prepared, place) or _path_of(text, place):
        return f"it names {named}"
    if type_or_default(type_name).kind in _OF_PEOPLE:
        return ""
    if phrases(_TABLE, "person").find(prepared, words):
        return ""
    if said := phrases(_TABLE, "team").find(prepared, words) or _part(statement) or toolchain(statement):
        return f"it says “{said}”"
    return f"it is a {type_name}" if type_name in phrases(_TABLE, "types").words else ""


def _find_name(prepared: str, place: ProjectPlace) -> str:
    return next((name for name in place.names if f" {plain(name).strip()} " in prepared), "")


def _path_of(text: str, place: ProjectPlace) -> str:
    """The first path of the text that exists in the project; a plain word is none, though a file may have its name."""
    found = (word.rstrip(".,;:") for word in _PATH.findall(text))
    candidates = [word for word in found if "/" in word.strip("/") or "." in word.strip("./")]
    return next((word for word in candidates[:_MOST_PATHS] if place.exists(word)), "")


def _part(text: str) -> str:
    """The part of a project that a sentence is about, spoken of as a known one: "The search cluster keeps …"."""
    parts = phrases(_TABLE, "components")
    for sentence in _SENTENCE.split(text):
        words = plain(sentence).split()
        if words[:1] != ["the"]:
            continue
        for length in range(2, _LONGEST_NAME + 1):
            named = " ".join(words[:length])
            if words[length - 1 : length] and words[length - 1] in _JOINTS:
                break
            if parts.find(f" {named} ", frozenset(words[1:length])):
                return named
    return ""
