"""LongMemEval: each question has a haystack of sessions of its own. Reads the official JSON and the lite lines.

The lite format has one JSON object per line, and of every session a single text; figures on it are no LongMemEval figures.
"""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engram.bench.dataset import Conversation, Question, SessionOfTurns, Turn, malformed, read_json

__all__ = ["load"]

_WEEKDAY = re.compile(r"\s*\(\w+\)\s*")
_DATE = "%Y/%m/%d %H:%M"
_ABSTENTION = "_abs"
"""Marks questions that nothing answers; the benchmark's own retrieval measure leaves them out too."""


def load(path: Path) -> list[Conversation]:
    """One conversation per question, in the order of the file."""
    items = _lines(path) if path.suffix == ".jsonl" else read_json(path)
    if not isinstance(items, list):
        raise malformed(path, "a list of questions was expected")
    try:
        return [_conversation(item) for item in items if not item["question_id"].endswith(_ABSTENTION)]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise malformed(path, f"{type(error).__name__}: {error}") from error


def _lines(path: Path) -> list[Any]:
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise malformed(path, f"it cannot be read as JSON lines ({error})") from error


def _conversation(item: Mapping[str, Any]) -> Conversation:
    lite = "sessions" in item
    sessions = tuple(_lite_sessions(item) if lite else _official_sessions(item))
    known = {session.key for session in sessions}
    answers = item["answer_sessions" if lite else "answer_session_ids"]
    evidence = tuple(dict.fromkeys(key for key in answers if key in known))
    question = Question(item["question"], evidence, item["question_type"], _date(item["question_date"]))
    return Conversation(item["question_id"], sessions, (question,) if evidence else ())


def _lite_sessions(item: Mapping[str, Any]) -> Iterator[SessionOfTurns]:
    for session in item["sessions"]:
        key = session["id"]
        yield SessionOfTurns(key, _date(session["date"]), (Turn(f"{key}#0", "user", session["text"]),))


def _official_sessions(item: Mapping[str, Any]) -> Iterator[SessionOfTurns]:
    columns = item["haystack_session_ids"], item["haystack_dates"], item["haystack_sessions"]
    seen: set[str] = set()
    for key, date, said in zip(*columns, strict=True):
        # A few haystacks hold a session twice; a store would take it once.
        if key not in seen:
            seen.add(key)
            turns = (Turn(f"{key}#{i}", turn["role"], turn["content"]) for i, turn in enumerate(said))
            yield SessionOfTurns(key, _date(date), tuple(turns))


def _date(text: str) -> datetime:
    return datetime.strptime(_WEEKDAY.sub(" ", text).strip(), _DATE).replace(tzinfo=UTC)
