"""Whatever a record contains costs at most that record; whatever a file is costs at most that file."""

import json
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engram.agents.transcripts.session import Transcript, detect_agents, reader_of
from engram.capture.transcripts.chat_exports import chat_format_of, read_chats
from engram.capture.transcripts.windows import windows
from tests.agents.transcripts.written import (
    FOLDER,
    SAMPLES,
    SESSION,
    claude_file,
    line,
    opencode_database,
    said,
    spoken,
)
from tests.agents.transcripts.written import stored as sessions_below
from tests.agents.transcripts.written import turns as turns_below
from tests.capture.test_chat_exports import chatgpt, claude, node

RULE = "We never squash merge in this repo."
TIMES = ("0001-01-01T00:00:00+23:00", "9999-12-31T23:59:59-23:00", "2026-13-99", "")
NAMES = ("type", "text", "role", "user", "message", "tool", "tool_result", "\ud800", "a\0b", "x" * 5000)
LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from((10**18, -(10**18), 10**400, *TIMES, *NAMES))
)  # fmt: skip
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
)
Place = tuple[str | int, ...]


def places(value: Any, above: Place = ()) -> Iterator[Place]:
    """Where the values in a record are."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, one in inner:
        yield (*above, name)
        yield from places(one, (*above, name))


def changed(records: list[Any], value: Any) -> list[Any]:
    """The records again and again, each time with the value in another place."""
    return [_with(record, place, value) for record in records for place in places(record)]


def _with(record: Any, place: Place, value: Any) -> Any:
    if not place:
        return value
    inner: Any = list(record) if isinstance(record, list) else dict(record)
    inner[place[0]] = _with(record[place[0]], place[1:], value)
    return inner


def sample(name: str) -> list[Any]:
    return [json.loads(text) for text in (SAMPLES / name / "session.jsonl").read_text("utf-8").splitlines()]


def day_of(turn: Any) -> Any:
    """The day as a harvest finds it, in the zones furthest from UTC."""
    return [turn.at and turn.at.astimezone(UTC).date()]


def judged(transcript: Transcript) -> None:
    """Read all turns as a harvest does."""
    list(windows(transcript.turns, transcript.start, day_of))
    assert Path(transcript.directory).is_dir() in (True, False)
    transcript.source.encode()


def read_all(harness: str, root: Path) -> None:
    for session in sessions_below(harness, root)[0]:
        judged(reader_of(harness).read(session, 0).transcript)


@given(VALUES)
def test_no_record_of_claude_code_stops_the_reading(value: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / FOLDER / f"{SESSION}.jsonl"
        path.parent.mkdir()
        path.write_text("\n".join(map(json.dumps, changed(sample("claude-code"), value))), "utf-8")
        read_all("claude-code", Path(folder))


@given(VALUES)
def test_no_record_of_codex_stops_the_reading(value: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lines = map(json.dumps, changed(sample("codex"), value))
        (Path(folder) / "rollout.jsonl").write_text("\n".join(lines), "utf-8")
        read_all("codex", Path(folder))


def _opencode_rows() -> tuple[list[Any], list[Any]]:
    """The messages and the parts of the sample's database."""
    with tempfile.TemporaryDirectory() as folder, closing(sqlite3.connect(opencode_database(Path(folder)))) as database:
        messages = database.execute("SELECT id, time_created, data FROM message").fetchall()
        parts = database.execute("SELECT message_id, data FROM part").fetchall()
    return (
        [{"id": key, "time_created": at, "data": json.loads(data)} for key, at, data in messages],
        [{"message_id": key, "data": json.loads(data)} for key, data in parts],
    )


ROWS = _opencode_rows()


def _column(value: Any) -> Any:
    """A value as a column may have it: SQLite keeps no lists, and no integers beyond 64 bits."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return str(value)
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return json.dumps(value).encode() if isinstance(value, list | dict) else value


def _json(data: Any) -> Any:
    return json.dumps(data) if isinstance(data, dict) else _column(data)


@given(VALUES)
def test_no_row_of_opencode_stops_the_reading(value: Any) -> None:
    messages, parts = (rows + changed(rows, value) for rows in ROWS)
    with tempfile.TemporaryDirectory() as folder:
        with closing(sqlite3.connect(Path(folder) / "opencode.db")) as database:
            database.executescript(
                "CREATE TABLE session (id, directory, parent_id, time_updated);"
                "CREATE TABLE message (id, session_id, time_created, data);"
                "CREATE TABLE part (id, message_id, data);"
            )
            odd = _column(value)
            sessions = [("ses_1", "/home/dev", 1), ("ses_2", odd, 1), ("ses_3", "/home/dev", odd), (odd, odd, odd)]
            database.executemany("INSERT INTO session VALUES (?, ?, NULL, ?)", sessions)
            rows = [(_column(one["id"]), _column(one["time_created"]), _json(one["data"])) for one in messages]
            database.executemany("INSERT INTO message VALUES (?, 'ses_1', ?, ?)", rows)
            held = [(number, _column(one["message_id"]), _json(one["data"])) for number, one in enumerate(parts)]
            database.executemany("INSERT INTO part VALUES (?, ?, ?)", held)
            database.commit()
        assert not sessions_below("opencode", Path(folder))[1]
        read_all("opencode", Path(folder))


@given(VALUES)
def test_no_file_of_an_older_opencode_stops_the_reading(value: Any) -> None:
    about = {"id": "m0", "role": "user", "time": {"created": 1794939082777}}
    part = {"type": "text", "text": RULE, "state": {"output": RULE}}
    with tempfile.TemporaryDirectory() as folder:
        storage = Path(folder) / "storage"
        for place in ("session/p", "message/ses_0", "part/m0"):
            (storage / place).mkdir(parents=True)
        for number, session in enumerate(changed([{"directory": "/home/dev", "parentID": None}], value)):
            (storage / f"session/p/ses_{number}.json").write_text(json.dumps(session))
        for kind, record in (("message/ses_0", about), ("part/m0", part)):
            for number, one in enumerate([record, *changed([record], value), value]):
                (storage / f"{kind}/{number}.json").write_text(json.dumps(one))
        read_all("opencode", Path(folder))


CHATS = [
    chatgpt(node("a", "root", "user", "Which tea?"), node("b", "a", "assistant", "Black."), name="c-1"),
    claude(("human", "Which tea?"), ("assistant", "Black."), name="k-1"),
]


@given(VALUES, st.sampled_from(("chatgpt", "claude")))
@example("9999-12-31T23:59:59-23:00", "claude")
def test_no_conversation_of_an_export_stops_the_reading(value: Any, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "conversations.json"
        path.write_text(json.dumps([*changed(CHATS, value), value, *CHATS]), "utf-8")
        chat_format_of(path)
        transcripts = list(read_chats(path, name, lambda *_: None))
        assert transcripts[-1].session in ("chatgpt-c-1", "claude-k-1")
        for transcript in transcripts:
            judged(transcript)


# -- one record


def test_a_block_of_an_odd_type_costs_only_itself(tmp_path: Path) -> None:
    blocks = [{"type": ["x"], "text": "odd"}, {"type": "text", "text": RULE}]
    claude_file(tmp_path, said("user", blocks), "Go on.")
    assert spoken("claude-code", tmp_path) == [("user", RULE), ("user", "Go on.")]


@pytest.mark.parametrize("time", TIMES)
def test_a_time_outside_of_the_calendar_is_none(tmp_path: Path, time: str) -> None:
    claude_file(tmp_path, said("user", RULE, timestamp=time))
    assert [(turn.content, turn.at) for turn in turns_below("claude-code", tmp_path)] == [(RULE, None)]


@pytest.mark.parametrize("value", ["X'FFFE00'", "5", "1.5", "'not JSON'"])
def test_a_part_in_the_database_that_is_no_text_costs_only_itself(tmp_path: Path, value: str) -> None:
    odd = f"INSERT INTO part SELECT 'zzz', message_id, session_id, 0, 0, {value} FROM part LIMIT 1;"
    opencode_database(tmp_path, odd)
    assert ("user", "List files. We deploy on Thursdays only.") in spoken("opencode", tmp_path)


def test_times_as_text_in_the_database_are_read(tmp_path: Path) -> None:
    time = "'2026-11-01T10:00:00Z'"
    opencode_database(tmp_path, f"UPDATE message SET time_created = {time}; UPDATE session SET time_updated = {time};")
    ((session,), problems) = sessions_below("opencode", tmp_path)
    assert (session.modified, problems) == (datetime(2026, 11, 1, 10, tzinfo=UTC), [])
    assert {turn.at for turn in turns_below("opencode", tmp_path)} == {session.modified}


# -- one file


@pytest.mark.parametrize("harness", ("claude-code", "codex"))
def test_a_pipe_is_reported_and_not_opened(tmp_path: Path, harness: str) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    assert sessions_below(harness, tmp_path) == (
        [],
        [f"{tmp_path}/pipe.jsonl: a folder, a pipe or a device; it was not read"],
    )


@pytest.mark.parametrize("first", [b"", b"\xff\xfe", b"{}\n", b"[]\n"])
def test_an_odd_first_file_hides_no_harness(tmp_path: Path, first: bytes) -> None:
    claude_file(tmp_path, RULE)
    (tmp_path / FOLDER / "0.jsonl").write_bytes(first)
    os.mkfifo(tmp_path / FOLDER / "00.jsonl")
    assert detect_agents(tmp_path) == ("claude-code",)


def test_a_file_whose_first_record_tells_nothing_is_known_by_the_next(tmp_path: Path) -> None:
    path = claude_file(tmp_path, RULE)
    path.write_bytes(b'{"type":"summary"}\n' + line(said("user", RULE)))
    assert detect_agents(path) == ("claude-code",)


def test_a_file_from_beyond_the_calendar_is_found(tmp_path: Path) -> None:
    os.utime(claude_file(tmp_path, RULE), ns=(0, 2**62))
    assert len(sessions_below("claude-code", tmp_path)[0]) == 1
