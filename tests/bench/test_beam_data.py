"""Reading BEAM's chats: every turn with its own date, evidence that exists, clear errors."""

import copy
import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from engram.bench import beam
from engram.bench.dataset import DatasetTurn
from engram.model.errors import InvalidInput

CHAT: dict[str, Any] = {
    "id": "chat-1",
    "sessions": [
        {
            "id": "s1",
            "turns": [
                {"id": "0", "role": "user", "at": "2024-03-15T09:00:00+00:00", "text": "I\u2028sold the boat."},
                {"id": "1", "role": "assistant", "at": "2024-03-15T09:01:00", "text": "For how much?"},
            ],
        },
        {"id": "s2", "turns": [{"id": "2", "role": "user", "at": "2024-04-05T00:00:00+02:00", "text": "4,200 euros."}]},
    ],
    "questions": [
        {"question": "What did I get for the boat?", "category": "multi_hop", "evidence": ["0", "2", "99", "0"]},
        {"question": "Where do I live?", "category": "abstention", "evidence": []},
        {"question": "Who bought it?", "category": "extraction", "evidence": ["99"]},
    ],
}


def written(folder: Path, *chats: dict[str, Any], name: str = "chats.jsonl") -> Path:
    path = folder / name
    lines = [json.dumps(chat, ensure_ascii=False) for chat in chats]
    path.write_text("\n".join(lines) if path.suffix == ".jsonl" else f"[{','.join(lines)}]", encoding="utf-8")
    return path


def changed(place: tuple[str | int, ...], value: object) -> dict[str, Any]:
    """The chat with one value replaced, or removed where `value` is `...`."""
    chat = copy.deepcopy(CHAT)
    target: Any = chat
    for step in place[:-1]:
        target = target[step]
    if value is ...:
        del target[place[-1]]
    else:
        target[place[-1]] = value
    return chat


def test_turns_keep_their_role_text_and_date(tmp_path: Path) -> None:
    (chat,) = beam.load(written(tmp_path, CHAT))
    first = datetime(2024, 3, 15, 9, tzinfo=UTC)
    assert chat.key == "chat-1"
    assert chat.sessions[0].turns == (
        DatasetTurn("0", "user", "I\u2028sold the boat.", first),
        DatasetTurn("1", "assistant", "For how much?", first + timedelta(minutes=1)),
    )
    assert chat.sessions[0].at == first
    assert chat.sessions[1].at == datetime(2024, 4, 5, tzinfo=timezone(timedelta(hours=2)))


def test_lines_and_a_list_give_the_same(tmp_path: Path) -> None:
    other = changed(("id",), "chat-2")
    assert beam.load(written(tmp_path, CHAT, other)) == beam.load(written(tmp_path, CHAT, other, name="chats.json"))


def test_only_evidence_that_exists_counts_and_a_question_without_any_is_not_asked(tmp_path: Path) -> None:
    (chat,) = beam.load(written(tmp_path, CHAT))
    assert [(question.category, question.evidence) for question in chat.questions] == [("multi_hop", ("0", "2"))]
    assert chat.session_of["2"] == "s2"


@pytest.mark.parametrize(
    ("place", "value", "problem"),
    [
        (("sessions",), ..., "sessions"),
        (("sessions", 1, "turns"), [], "session s2 has no turns"),
        (("sessions", 0, "turns", 1, "id"), "0", "two turns of chat-1 have the same id"),
        (("sessions", 0, "turns", 1, "text"), 7, "text is int, not text"),
        (("sessions", 0, "turns", 1, "role"), None, "role is NoneType, not text"),
        (("sessions", 0, "turns", 1, "at"), "yesterday", "yesterday"),
        (("sessions", 0, "turns", 1, "at"), ..., "at"),
        (("questions", 0, "evidence"), 3, "TypeError"),
        (("questions", 0, "question"), ..., "question"),
        (("id",), ..., "id"),
    ],
)
def test_what_is_wrong_with_a_chat_is_named(
    tmp_path: Path, place: tuple[str | int, ...], value: object, problem: str
) -> None:
    with pytest.raises(InvalidInput, match=r"chats\.jsonl does not look like the data set") as refused:
        beam.load(written(tmp_path, changed(place, value)))
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    ("name", "content"), [("x.json", "{}"), ("x.json", "[1]"), ("x.jsonl", "[]"), ("x.json", "{"), ("x.json", "7")]
)
def test_another_file_is_refused_by_name(tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"x\.json"):
        beam.load(path)


def test_a_broken_line_is_named_by_its_number(tmp_path: Path) -> None:
    path = written(tmp_path, CHAT)
    path.write_text(path.read_text(encoding="utf-8") + "\n\n{\n", encoding="utf-8")
    with pytest.raises(InvalidInput, match="line 3"):
        beam.load(path)


def test_text_that_is_not_utf_8_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"id": "\xff"}')
    with pytest.raises(InvalidInput, match=r"x\.jsonl"):
        beam.load(path)


@pytest.mark.parametrize("name", ["none.json", "none.jsonl"])
def test_a_missing_file_is_said_to_be_missing(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match="not there"):
        beam.load(tmp_path / name)
