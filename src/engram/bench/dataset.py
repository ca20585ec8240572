"""Conversations with questions about them, in the form that every retrieval benchmark here reads.

Keys are the data set's own ids. They are stored as metadata, as a caller's would be, and are never indexed.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from engram.model.arguments import checked_wordings
from engram.model.errors import InvalidInput, UnreadableData
from engram.model.lazy import cached_property, dataclass, replace
from engram.readers.data import parse_json, read_text

__all__ = [
    "DatasetConversation",
    "DatasetTurn",
    "Question",
    "SessionOfTurns",
    "add_sessions",
    "add_wordings",
    "dataset_error",
    "read_json",
    "read_lines",
    "text_field",
]

MAX_DATASET_BYTES = 8 * 1024**3
"""Maximum size of a data set's file."""


@dataclass(frozen=True, slots=True)
class DatasetTurn:
    """One turn of a conversation."""

    key: str
    speaker: str
    text: str
    at: datetime | None = None
    """The time of the turn, or of its session if the data set does not date turns."""


@dataclass(frozen=True, slots=True)
class SessionOfTurns:
    """The turns of one session."""

    key: str
    at: datetime
    turns: tuple[DatasetTurn, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the keys of the turns (or sessions, if the data set has nothing finer) that answer it."""

    text: str
    evidence: tuple[str, ...]
    category: str
    asked_at: datetime | None = None
    turns: tuple[str, ...] = ()
    """The turns that answer it, if `evidence` names sessions and the data set also names turns."""
    wordings: tuple[str, ...] = ()
    """Other wordings of the question, such as a calling agent adds."""


@dataclass(frozen=True)
class DatasetConversation:
    """One corpus: its questions are asked of it and nothing else."""

    key: str
    sessions: tuple[SessionOfTurns, ...]
    questions: tuple[Question, ...]

    @cached_property
    def session_of(self) -> Mapping[str, str]:
        """The session of each turn, by key; a session maps to itself."""
        places = {session.key: session.key for session in self.sessions}
        return places | {turn.key: session.key for session in self.sessions for turn in session.turns}


def add_sessions(
    conversations: Sequence[DatasetConversation], sessions: Sequence[SessionOfTurns]
) -> list[DatasetConversation]:
    """Add the sessions to each conversation. Raises `InvalidInput` if a conversation already has one of them."""
    keys = [session.key for session in sessions]
    for conversation in conversations:
        known = {session.key for session in conversation.sessions}
        if twice := next((key for key in keys if key in known), None):
            raise InvalidInput(f"session {twice} is both a distractor and part of {conversation.key}")
    return [replace(each, sessions=(*each.sessions, *sessions)) for each in conversations]


def add_wordings(conversations: Sequence[DatasetConversation], path: Path) -> list[DatasetConversation]:
    """Add wordings to the questions from a JSON file: `{"the question": ["a wording", …], …}`.

    Questions missing from the file get none. Raises `InvalidInput` if the file names no question of the data set.
    """
    read = read_json(path)
    if not isinstance(read, dict) or not all(isinstance(each, list) for each in read.values()):
        raise dataset_error(path, "expected an object with a list of wordings for each question")
    wordings = {question: checked_wordings(each) for question, each in read.items()}
    if wordings.keys().isdisjoint(question.text for each in conversations for question in each.questions):
        raise InvalidInput(f"{path} names no question of the data set")
    return [
        replace(
            each, questions=tuple(replace(asked, wordings=wordings.get(asked.text, ())) for asked in each.questions)
        )
        for each in conversations
    ]


def read_json(path: Path) -> Any:
    """The file's content. Raises `InvalidInput` with the problem."""
    try:
        return parse_json(read_text(path, MAX_DATASET_BYTES), longest=MAX_DATASET_BYTES, characters="any")
    except FileNotFoundError:
        raise InvalidInput(f"{path} is not there") from None
    except (OSError, UnreadableData) as error:
        raise dataset_error(path, f"it cannot be read as JSON ({error})") from error


def read_lines(path: Path) -> list[Any]:
    """The value of each line of the file. Raises `InvalidInput` with the number of the first line that is not JSON."""
    try:
        # Not `splitlines`: it also splits at line separators inside a JSON string.
        lines = read_text(path, MAX_DATASET_BYTES).split("\n")
    except FileNotFoundError:
        raise InvalidInput(f"{path} is not there") from None
    except (OSError, UnreadableData) as error:
        raise dataset_error(path, f"it cannot be read as JSON lines ({error})") from error
    found = []
    for number, line in enumerate(lines, 1):
        try:
            found += [parse_json(line, characters="any")] if line.strip() else []
        except UnreadableData as error:
            raise dataset_error(path, f"line {number} cannot be read as JSON ({error})") from error
    return found


def text_field(item: Mapping[str, Any], field: str) -> str:
    """A field that has to be text. Raises a `TypeError` that names it."""
    value = item[field]
    if not isinstance(value, str):
        raise TypeError(f"{field} is {type(value).__name__}, not text")
    return value


def dataset_error(path: Path, problem: str) -> InvalidInput:
    """The error for a file that is not the data set it should be."""
    return InvalidInput(f"{path} does not look like the data set: {problem}; download it anew")
