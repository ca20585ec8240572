"""LongMemEval: each question has its own haystack of sessions. Reads the official JSON, the lite lines and pools.

The lite format has one JSON object per line, and a single text per session. A pool is one JSON object: sessions of both
roles, and many questions asked of all of them. Figures on either are not LongMemEval figures.
"""

import re
from collections.abc import Iterator, Mapping
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

__all__ = ["load", "load_distractors"]

_WEEKDAY = re.compile(r"(?<!\s)\s*+\(\w+\)\s*+")
_DATE = "%Y/%m/%d %H:%M"
_ABSTENTION = "_abs"
"""Marks unanswerable questions; the benchmark's own retrieval measure also leaves them out."""


def load(path: Path) -> list[DatasetConversation]:
    """One conversation per question, in the order of the file; for a pool, one with all its questions."""
    data = read_lines(path) if path.suffix == ".jsonl" else read_json(path)
    items = [data] if isinstance(data, dict) and "questions" in data else data
    if not isinstance(items, list):
        raise dataset_error(path, "a list of questions, or an object with sessions and questions, was expected")
    try:
        return [
            _pool(item, number) if "questions" in item else _conversation(item)
            for number, item in enumerate(items, 1)
            if not str(item.get("question_id", "")).endswith(_ABSTENTION)
        ]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise dataset_error(path, f"{type(error).__name__}: {error}") from error


def load_distractors(path: Path) -> list[SessionOfTurns]:
    """The sessions of a pooled file, ignoring its questions."""
    data = read_json(path)
    try:
        return [_pooled_session(session) for session in data["sessions"]]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise dataset_error(path, f"{type(error).__name__}: {error}") from error


def _pool(item: Mapping[str, Any], number: int) -> DatasetConversation:
    sessions = tuple(_pooled_session(session) for session in item["sessions"])
    keys = [session.key for session in sessions]
    if len(set(keys)) < len(keys):
        raise ValueError("two sessions have the same id")
    turns = {turn.key for session in sessions for turn in session.turns}
    questions = (_pooled_question(asked, set(keys), turns) for asked in item["questions"])
    return DatasetConversation(
        f"pool-{number}", sessions, tuple(question for question in questions if question.evidence)
    )


def _pooled_session(session: Mapping[str, Any]) -> SessionOfTurns:
    key = text_field(session, "id")
    turns = (
        DatasetTurn(f"{key}#{place}", text_field(turn, "role"), text_field(turn, "text"))
        for place, turn in enumerate(session["turns"])
    )
    return SessionOfTurns(key, _date(session["date"]), tuple(turns))


def _pooled_question(asked: Mapping[str, Any], sessions: set[str], turns: set[str]) -> Question:
    return Question(
        text_field(asked, "question"),
        tuple(dict.fromkeys(key for key in asked["answer_sessions"] if key in sessions)),
        text_field(asked, "type"),
        _date(asked["date"]),
        tuple(dict.fromkeys(key for key in asked.get("answer_turns", ()) if key in turns)),
    )


def _conversation(item: Mapping[str, Any]) -> DatasetConversation:
    lite = "sessions" in item
    sessions = tuple(_lite_sessions(item) if lite else _official_sessions(item))
    known = {session.key for session in sessions}
    answers = item["answer_sessions" if lite else "answer_session_ids"]
    evidence = tuple(dict.fromkeys(key for key in answers if key in known))
    question = Question(item["question"], evidence, item["question_type"], _date(item["question_date"]))
    return DatasetConversation(item["question_id"], sessions, (question,) if evidence else ())


def _lite_sessions(item: Mapping[str, Any]) -> Iterator[SessionOfTurns]:
    for session in item["sessions"]:
        key = session["id"]
        yield SessionOfTurns(key, _date(session["date"]), (DatasetTurn(f"{key}#0", "user", session["text"]),))


def _official_sessions(item: Mapping[str, Any]) -> Iterator[SessionOfTurns]:
    columns = item["haystack_session_ids"], item["haystack_dates"], item["haystack_sessions"]
    seen: set[str] = set()
    for key, date, said in zip(*columns, strict=True):
        # A few haystacks have a session twice; a store would take it once.
        if key not in seen:
            seen.add(key)
            turns = (DatasetTurn(f"{key}#{i}", turn["role"], turn["content"]) for i, turn in enumerate(said))
            yield SessionOfTurns(key, _date(date), tuple(turns))


def _date(text: str) -> datetime:
    return datetime.strptime(_WEEKDAY.sub(" ", text).strip(), _DATE).replace(tzinfo=UTC)
