"""BEAM (mohammadtavakoli78/BEAM): long chats of a user and an assistant, and questions with the turns that answer them.

Reads one chat per line, or a JSON list of chats: `id`, `sessions` of `turns` with `id`, `role`, `at` and `text`, and `questions` with
`category` and `evidence`. Any conversation in this format works, whoever the speakers are.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engram.bench.dataset import (
    DatasetConversation,
    DatasetTurn,
    Question,
    SessionOfTurns,
    dataset_error,
    read_json,
    read_lines,
    text_field,
)

__all__ = ["load"]


def load(path: Path) -> list[DatasetConversation]:
    """Every chat of the file.

    Questions whose evidence names no turn of it are left out, because nothing could find them.
    """
    data = read_lines(path) if path.suffix == ".jsonl" else read_json(path)
    if not isinstance(data, list):
        raise dataset_error(path, "a list of chats was expected")
    try:
        return [_conversation(item) for item in data]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise dataset_error(path, f"{type(error).__name__}: {error}") from error


def _conversation(item: Mapping[str, Any]) -> DatasetConversation:
    sessions = tuple(_session(session) for session in item["sessions"])
    keys = [turn.key for session in sessions for turn in session.turns]
    if len(set(keys)) < len(keys):
        raise ValueError(f"two turns of {item['id']} have the same id")
    questions = (_question(asked, set(keys)) for asked in item["questions"])
    return DatasetConversation(
        text_field(item, "id"), sessions, tuple(question for question in questions if question.evidence)
    )


def _session(session: Mapping[str, Any]) -> SessionOfTurns:
    turns = tuple(
        DatasetTurn(text_field(turn, "id"), text_field(turn, "role"), text_field(turn, "text"), _date(turn["at"]))
        for turn in session["turns"]
    )
    key = text_field(session, "id")
    if not turns or turns[0].at is None:
        raise ValueError(f"session {key} has no turns")
    return SessionOfTurns(key, turns[0].at, turns)


def _question(asked: Mapping[str, Any], known: set[str]) -> Question:
    evidence = dict.fromkeys(key for key in asked["evidence"] if key in known)
    return Question(text_field(asked, "question"), tuple(evidence), text_field(asked, "category"))


def _date(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    return at if at.tzinfo else at.replace(tzinfo=UTC)
