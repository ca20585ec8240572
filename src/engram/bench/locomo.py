"""LoCoMo (snap-research/locomo, `locomo10.json`): long conversations of two people, and questions with the turns that answer them."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engram.bench.dataset import DatasetConversation, DatasetTurn, Question, SessionOfTurns, dataset_error, read_json

__all__ = ["CATEGORIES", "load"]

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "inference", 4: "single-hop", 5: "adversarial"}
_SESSION = re.compile(r"session_(\d+)")
_TURN = re.compile(r"[^\s;,]+")
"""Some questions of the file name two turns in one string."""
_DATE = "%I:%M %p on %d %B, %Y"


def load(path: Path) -> list[DatasetConversation]:
    """Every conversation of the file.

    Questions whose evidence names no turn of it are left out, because nothing could find them.
    """
    data = read_json(path)
    if not isinstance(data, list):
        raise dataset_error(path, "a list of conversations was expected")
    try:
        return [_conversation(item, number) for number, item in enumerate(data)]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise dataset_error(path, f"{type(error).__name__}: {error}") from error


def _conversation(item: Mapping[str, Any], number: int) -> DatasetConversation:
    sessions = tuple(_sessions(item["conversation"]))
    known = {turn.key for session in sessions for turn in session.turns}
    questions = (_question(asked, known) for asked in item["qa"])
    key = str(item.get("sample_id", number))
    return DatasetConversation(key, sessions, tuple(question for question in questions if question.evidence))


def _sessions(conversation: Mapping[str, Any]) -> Iterator[SessionOfTurns]:
    found = (_SESSION.fullmatch(key) for key in conversation)
    for match in sorted((m for m in found if m), key=lambda m: int(m[1])):
        at = datetime.strptime(conversation[f"{match[0]}_date_time"], _DATE).replace(tzinfo=UTC)
        turns = (DatasetTurn(turn["dia_id"], turn["speaker"], turn["text"]) for turn in conversation[match[0]])
        yield SessionOfTurns(match[0], at, tuple(turns))


def _question(asked: Mapping[str, Any], known: set[str]) -> Question:
    named = (key for text in asked.get("evidence", ()) for key in _TURN.findall(text))
    evidence = dict.fromkeys(key for key in named if key in known)
    category = asked["category"]
    return Question(asked["question"], tuple(evidence), CATEGORIES.get(category, str(category)))
