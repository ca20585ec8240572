"""Reading LongMemEval: the official JSON, the lite lines and pools become the same shape."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from engram.bench import longmemeval
from engram.model.errors import InvalidInput

OFFICIAL: dict[str, Any] = {
    "question_id": "q1",
    "question_type": "multi-session",
    "question": "How many boats have I owned?",
    "answer": "two",
    "question_date": "2023/05/28 (Sun) 09:39",
    "haystack_session_ids": ["s1", "s2", "s1"],
    "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 10:00", "2023/05/20 (Sat) 02:21"],
    "haystack_sessions": [
        [{"role": "user", "content": "I sold a boat."}, {"role": "assistant", "content": "Which one?"}],
        [{"role": "user", "content": "Hello."}],
        [{"role": "user", "content": "I sold a boat."}, {"role": "assistant", "content": "Which one?"}],
    ],
    "answer_session_ids": ["s1"],
}
LITE: dict[str, Any] = {
    "question_id": "q2",
    "question_type": "single-session-user",
    "question": "What did I sell?",
    "question_date": "2023/05/28 (Sun) 09:39",
    "answer_sessions": ["a"],
    "sessions": [{"id": "a", "date": "2023/05/20 (Sat) 02:21", "text": "I sold\u2028a boat."}],
}

POOL: dict[str, Any] = {
    "sessions": [
        {
            "id": "p0",
            "date": "2023/05/20 (Sat) 02:21",
            "turns": [{"role": "user", "text": "I sold a boat."}, {"role": "assistant", "text": "Which one?"}],
        },
        {"id": "p1", "date": "2023/05/21 (Sun) 10:00", "turns": [{"role": "user", "text": "I bought a kayak."}]},
    ],
    "questions": [
        {
            "question": "What did I sell and buy?",
            "type": "multi-session",
            "date": "2023/05/28 (Sun) 09:39",
            "answer_sessions": ["p0", "p1", "p9", "p0"],
            "answer_turns": ["p0#0", "p1#0", "p1#7"],
        },
        {
            "question": "Which boat?",
            "type": "single-session-user",
            "date": "2023/05/29 (Mon) 09:39",
            "answer_sessions": ["p0"],
        },
        {
            "question": "Where?",
            "type": "single-session-user",
            "date": "2023/05/29 (Mon) 09:39",
            "answer_sessions": ["p9"],
            "answer_turns": [],
        },
    ],
}


def test_the_official_file_gives_sessions_with_turns_each_session_once(tmp_path: Path) -> None:
    path = tmp_path / "longmemeval_s.json"
    path.write_text(json.dumps([OFFICIAL]), encoding="utf-8")
    (conversation,) = longmemeval.load(path)
    assert [session.key for session in conversation.sessions] == ["s1", "s2"]
    assert [turn.speaker for turn in conversation.sessions[0].turns] == ["user", "assistant"]
    assert conversation.questions[0].evidence == ("s1",)
    assert conversation.questions[0].asked_at == datetime(2023, 5, 28, 9, 39, tzinfo=UTC)


def test_the_lite_lines_give_sessions_of_one_turn(tmp_path: Path) -> None:
    path = tmp_path / "lite.jsonl"
    path.write_text(json.dumps(LITE, ensure_ascii=False) + "\n\n", encoding="utf-8")
    (conversation,) = longmemeval.load(path)
    assert [turn.text for turn in conversation.sessions[0].turns] == ["I sold\u2028a boat."]
    assert conversation.session_of[conversation.sessions[0].turns[0].key] == "a"


def test_questions_that_nothing_answers_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "longmemeval_s.json"
    path.write_text(json.dumps([OFFICIAL | {"question_id": "q1_abs"}, OFFICIAL]), encoding="utf-8")
    assert [conversation.key for conversation in longmemeval.load(path)] == ["q1"]


@pytest.mark.parametrize("name", ["pooled.json", "pooled.jsonl"])
def test_a_pool_is_recognised_by_its_shape_and_is_one_conversation(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(json.dumps(POOL), encoding="utf-8")
    (pool,) = longmemeval.load(path)
    assert [(turn.key, turn.speaker) for session in pool.sessions for turn in session.turns] == [
        ("p0#0", "user"),
        ("p0#1", "assistant"),
        ("p1#0", "user"),
    ]
    assert pool.sessions[0].at == datetime(2023, 5, 20, 2, 21, tzinfo=UTC)
    assert [(question.evidence, question.turns) for question in pool.questions] == [
        (("p0", "p1"), ("p0#0", "p1#0")),
        (("p0",), ()),
    ]
    assert pool.questions[0].asked_at == datetime(2023, 5, 28, 9, 39, tzinfo=UTC)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"sessions": POOL["sessions"] * 2}, "two sessions have the same id"),
        ({"sessions": [{"id": "p0", "date": "2023/05/20 (Sat) 02:21"}]}, "turns"),
        ({"sessions": [POOL["sessions"][0] | {"date": "May"}]}, "May"),
        ({"sessions": [POOL["sessions"][0] | {"turns": [{"role": "user", "text": None}]}]}, "text is NoneType"),
        ({"questions": [{"question": "Which boat?"}]}, "answer_sessions"),
        ({"questions": 3}, "TypeError"),
    ],
)
def test_what_is_wrong_with_a_pool_is_named(tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    path = tmp_path / "pooled.json"
    path.write_text(json.dumps(POOL | change), encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"pooled\.json does not look like the data set") as refused:
        longmemeval.load(path)
    assert problem in str(refused.value)


def test_distractors_are_the_sessions_of_a_pool(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"sessions": POOL["sessions"]}))
    assert [session.key for session in longmemeval.load_distractors(path)] == ["p0", "p1"]
    path.write_text("[]")
    with pytest.raises(InvalidInput, match=r"x\.json does not look like the data set"):
        longmemeval.load_distractors(path)


@pytest.mark.parametrize(
    ("name", "content"),
    [("x.json", "{}"), ("x.json", "[7]"), ("x.json", '[{"question_id": "a"}]'), ("x.jsonl", "{")],
)
def test_another_file_is_refused_by_name(tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"x\.json"):
        longmemeval.load(path)
