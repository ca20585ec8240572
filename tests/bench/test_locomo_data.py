"""Reading LoCoMo's file: sessions in order, evidence that exists, clear errors."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from engram.bench import locomo
from engram.bench.dataset import DatasetTurn
from engram.model.errors import InvalidInput

CONVERSATION = {
    "speaker_a": "Ada",
    "speaker_b": "Ben",
    "session_10_date_time": "7:05 am on 1 March, 2024",
    "session_10": [{"speaker": "Ben", "dia_id": "D10:1", "text": "The roof is done."}],
    "session_2_date_time": "1:56 pm on 8 May, 2023",
    "session_2": [
        {"speaker": "Ada", "dia_id": "D2:1", "text": "I sold the boat.", "blip_caption": "a boat"},
        {"speaker": "Ben", "dia_id": "D2:2", "text": "To whom?"},
    ],
}


def written(folder: Path, questions: list[dict[str, Any]]) -> Path:
    path = folder / "locomo.json"
    path.write_text(json.dumps([{"sample_id": "c1", "conversation": CONVERSATION, "qa": questions}]), encoding="utf-8")
    return path


def asked(*evidence: str, category: int = 4) -> dict[str, Any]:
    return {"question": "What did Ada sell?", "answer": "the boat", "evidence": list(evidence), "category": category}


def test_sessions_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    (conversation,) = locomo.load(written(tmp_path, []))
    assert [session.key for session in conversation.sessions] == ["session_2", "session_10"]
    assert conversation.sessions[0].at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)


def test_a_turn_is_its_speaker_and_text_and_nothing_else(tmp_path: Path) -> None:
    (conversation,) = locomo.load(written(tmp_path, []))
    assert conversation.sessions[0].turns[0] == DatasetTurn("D2:1", "Ada", "I sold the boat.")


def test_evidence_that_names_no_turn_is_left_out_and_two_in_one_string_are_told_apart(tmp_path: Path) -> None:
    (conversation,) = locomo.load(written(tmp_path, [asked("D2:1; D10:1", "D", "D99:1", "D2:1")]))
    assert conversation.questions[0].evidence == ("D2:1", "D10:1")


def test_a_question_without_any_evidence_is_not_asked(tmp_path: Path) -> None:
    (conversation,) = locomo.load(written(tmp_path, [asked(), asked("D99:1"), asked("D2:1", category=5)]))
    assert [question.category for question in conversation.questions] == ["adversarial"]


def test_each_turn_knows_its_session(tmp_path: Path) -> None:
    (conversation,) = locomo.load(written(tmp_path, []))
    assert conversation.session_of["D10:1"] == "session_10"
    assert conversation.session_of["session_2"] == "session_2"


@pytest.mark.parametrize(
    "content", ["{", '{"a": 1}', '[{"qa": []}]', '[{"conversation": {"session_1": []}, "qa": []}]']
)
def test_another_file_is_refused_by_name(tmp_path: Path, content: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"other\.json"):
        locomo.load(path)


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="not there"):
        locomo.load(tmp_path / "none.json")
