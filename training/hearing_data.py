"""The labelled talk, pairs and questions of training/hearing, as typed records; README.md there describes the format.

Reading is strict: the first invalid line raises `FormatError` with its file and line number but without its text, so
that reading the held-out writers reveals none of their text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "CATEGORIES",
    "DURATIONS",
    "MOODS",
    "OWNERS",
    "RELATIONS",
    "WORTH",
    "FormatError",
    "Line",
    "Pair",
    "Question",
    "Sentence",
    "pairs",
    "questions",
    "talk",
    "writers",
]

FOLDER = Path(__file__).resolve().parent / "hearing"
HELD = FOLDER / "held"

WORTH = ("keep", "maybe", "skip")
CATEGORIES = (
    *("fact", "preference", "correction", "entity", "decision", "relationship", "principle", "commitment", "moment"),
    *("skill", "constraint", "convention", "procedure", "forget", "end"),
)
OWNERS = ("user", "person", "project", "assistant", "world")
DURATIONS = ("lasting", "temporary", "event")
MOODS = ("asserted", "question", "request", "hypothetical", "quoted", "sarcastic")
RELATIONS = ("same", "update", "contradiction", "refinement", "different")
ANSWERLESS = ("unrelated", "unanswerable")

_ROLES = {"[user]": "user", "[assistant]": "assistant"}
_NONE = "-"
_LONG = 25
"""A longer sentence occurs only once per writer."""


class FormatError(ValueError):
    """A line that is not in the format of the README."""

    def __init__(self, path: Path, number: int, what: str) -> None:
        super().__init__(f"{path.parent.name}/{path.name}, line {number}: {what}")


@dataclass(frozen=True)
class Sentence:
    """A sentence of a turn and its labels; skipped sentences have no category, owner, duration or memory ("")."""

    writer: str
    conversation: int
    turn: int
    """The index of its turn in the conversation, from 0."""
    place: int
    """Its index in the turn, from 0."""
    role: str
    text: str
    worth: str
    category: str
    critical: bool
    owner: str
    person: str
    """The name, if the owner is a person."""
    duration: str
    mood: str
    memory: str


@dataclass(frozen=True)
class Pair:
    """Two statements, the older one first, and their relation."""

    writer: str
    relation: str
    older: str
    newer: str


@dataclass(frozen=True)
class Question:
    """A question that the writer's talk does not answer: `unrelated` to it, or about it and `unanswerable`."""

    writer: str
    kind: str
    text: str


@dataclass(frozen=True)
class Line:
    """A line of a file, its number, and its parts."""

    path: Path
    number: int
    parts: list[str]

    def wrong(self, what: str) -> FormatError:
        """The error of this line."""
        return FormatError(self.path, self.number, what)

    def one_of(self, name: str, value: str, allowed: tuple[str, ...]) -> str:
        """The value, if it is allowed."""
        if value not in allowed:
            raise self.wrong(f"{name} is none of {', '.join(allowed)}")
        return value


def writers(folder: Path = FOLDER) -> list[str]:
    """The writers of a folder, sorted. Those of `HELD` are never trained on."""
    return sorted(path.parent.name for path in folder.glob("*/talk.txt"))


def talk(writer: str, folder: Path = FOLDER) -> list[Sentence]:
    """A writer's sentences, in the order of the conversation."""
    conversation, turn, place, role = 0, -1, 0, ""
    rows: list[Sentence] = []
    seen: set[str] = set()
    for line in _lines(folder / writer / "talk.txt", " | ", 5):
        head = line.parts[0]
        if head.startswith("== "):
            conversation, turn, role = conversation + 1, -1, ""
            if head != f"== {conversation}":
                raise line.wrong(f"conversation {conversation} expected")
        elif head in _ROLES:
            role, turn, place = _ROLES[head], turn + 1, 0
        elif not role:
            raise line.wrong("no [user] or [assistant] before it")
        else:
            row = _sentence(line, writer, (conversation, turn, place, role))
            if len(row.text) > _LONG and row.text.lower() in seen:
                raise line.wrong("sentence written twice")
            seen.add(row.text.lower())
            rows.append(row)
            place += 1
    return rows


def pairs(writer: str, folder: Path = FOLDER) -> list[Pair]:
    """A writer's pairs of statements; none for a writer of talk only."""
    rows: dict[tuple[str, str], Pair] = {}
    path = folder / writer / "pairs.txt"
    for line in _lines(path, " || ") if path.exists() else ():
        if len(line.parts) != 3 or not all(line.parts):
            raise line.wrong("three fields expected")
        relation, older, newer = line.parts
        if (older, newer) in rows:
            raise line.wrong("pair written twice")
        rows[older, newer] = Pair(writer, line.one_of("relation", relation, RELATIONS), older, newer)
    return list(rows.values())


def questions(writer: str, folder: Path = FOLDER) -> list[Question]:
    """A writer's unanswered questions; none for a writer without any."""
    rows = []
    path = folder / writer / "questions.txt"
    for line in _lines(path, " || ") if path.exists() else ():
        if len(line.parts) != 2 or not all(line.parts):
            raise line.wrong("two fields expected")
        rows.append(Question(writer, line.one_of("kind", line.parts[0], ANSWERLESS), line.parts[1]))
    return rows


def _lines(path: Path, mark: str, most: int = -1) -> Iterator[Line]:
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if line.strip():
            yield Line(path, number, [part.strip() for part in line.split(mark, most)])


def _sentence(line: Line, writer: str, where: tuple[int, int, int, str]) -> Sentence:
    if len(line.parts) != 6:
        raise line.wrong("six fields expected")
    worth, category, owner, duration, mood, said = line.parts
    text, _, memory = (part.strip() for part in said.partition(" => "))
    critical = category.endswith("!")
    kind, _, person = owner.partition(":")
    if not text:
        raise line.wrong("no sentence")
    line.one_of("worth", worth, WORTH)
    line.one_of("mood", mood, MOODS)
    if worth == "skip":
        if (category, owner, duration, memory) != (_NONE, _NONE, _NONE, ""):
            raise line.wrong("what is skipped has no category, owner, duration or memory")
        return Sentence(writer, *where, text, worth, "", False, "", "", "", mood, "")
    line.one_of("category", category.removesuffix("!"), CATEGORIES)
    line.one_of("duration", duration, DURATIONS)
    line.one_of("owner", kind, OWNERS)
    if (kind == "person") != bool(person):
        raise line.wrong("a person has a name, and nobody else")
    if not memory:
        raise line.wrong("no memory after =>")
    return Sentence(
        writer, *where, text, worth, category.removesuffix("!"), critical, kind, person, duration, mood, memory
    )
