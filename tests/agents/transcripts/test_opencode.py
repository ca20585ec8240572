"""OpenCode's database, read-only whatever its state, and the JSON files of older versions."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from engram.agents.known.opencode import transcripts as opencode
from engram.agents.transcripts.session import reader_of
from tests.agents.transcripts.written import opencode_database, spoken, stored, turns

PART = "INSERT INTO part VALUES ('prt_9{}', 'msg_1eab4d818001I4iTsJenPryIg6', 'ses_e154b2929ffe7XKFaQztPsazir', 1, 1, '{}');"


def older_session(storage: Path, session: str = "ses_old", **more: Any) -> None:
    files = {
        f"session/p1/{session}.json": {"id": session, "directory": "/home/dev/old", "time": {"updated": 2}, **more},
        f"message/{session}/msg_2.json": {"id": "msg_2", "role": "assistant", "time": {"created": 2000}},
        f"message/{session}/msg_1.json": {"id": "msg_1", "role": "user", "time": {"created": 1000}},
        "part/msg_1/prt_1.json": {"type": "text", "text": "I use tabs."},
        "part/msg_1/prt_2.json": {"type": "text", "text": "Called the Read tool.", "synthetic": True},
        "part/msg_2/prt_3.json": {"type": "text", "text": "Ok."},
    }
    for name, record in files.items():
        path = storage / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(record), "utf-8")


def test_a_session_that_opencode_wrote_is_read(tmp_path: Path) -> None:
    opencode_database(tmp_path)
    (session,) = stored("opencode", tmp_path)[0]
    transcript = reader_of("opencode").read(session, 0).transcript
    assert (transcript.source, transcript.session) == ("harness:opencode:acme-api", "ses_e154b2929ffe7XKFaQztPsazir")
    assert [(turn.role, turn.content) for turn in transcript.turns] == [
        ("user", "List files. We deploy on Thursdays only."), ("assistant", "Done. All in place."),
    ]  # fmt: skip


def test_synthetic_parts_are_left_out_and_results_of_tools_are_the_tools(tmp_path: Path) -> None:
    added = {
        "1": {"type": "text", "text": "Called the Read tool.", "synthetic": True},
        "2": {"type": "tool", "tool": "read", "state": {"output": "I use tabs."}},
    }
    opencode_database(tmp_path, "".join(PART.format(name, json.dumps(part)) for name, part in added.items()))
    assert spoken("opencode", tmp_path)[:2] == [
        ("user", "List files. We deploy on Thursdays only."),
        ("tool", "I use tabs."),
    ]


def test_a_subagents_session_is_no_session(tmp_path: Path) -> None:
    opencode_database(tmp_path, "UPDATE session SET parent_id = 'ses_other';")
    assert stored("opencode", tmp_path) == ([], [])


def test_a_database_that_knows_no_subagents_is_read(tmp_path: Path) -> None:
    opencode_database(tmp_path, "ALTER TABLE session RENAME COLUMN parent_id TO something_else;")
    assert spoken("opencode", tmp_path)[0] == ("user", "List files. We deploy on Thursdays only.")


def test_a_database_with_another_schema_is_reported(tmp_path: Path) -> None:
    opencode_database(tmp_path, "ALTER TABLE part RENAME COLUMN data TO body;")
    found, (problem,) = stored("opencode", tmp_path)
    assert found == [] and "its schema is not known: part has no data" in problem and "tries again" in problem


def test_a_locked_database_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opencode, "_WAIT", 0.0)
    path = opencode_database(tmp_path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        found, (problem,) = stored("opencode", tmp_path)
        other.execute("ROLLBACK")
    assert found == [] and "database is locked" in problem and "tries again" in problem
    assert len(stored("opencode", tmp_path)[0]) == 1


def test_a_file_that_is_no_database_is_reported(tmp_path: Path) -> None:
    (tmp_path / "opencode.db").write_text("not a database, but long enough to look at its header" * 20)
    found, (problem,) = stored("opencode", tmp_path)
    assert found == [] and "cannot be read" in problem


def test_reading_leaves_the_database_as_it_is(tmp_path: Path) -> None:
    path = opencode_database(tmp_path)
    before = path.read_bytes()
    turns("opencode", tmp_path)
    assert path.read_bytes() == before and [one.name for one in tmp_path.iterdir()] == [path.name]


def test_a_session_of_the_older_layout_is_read(tmp_path: Path) -> None:
    older_session(tmp_path / "storage")
    assert spoken("opencode", tmp_path) == [("user", "I use tabs."), ("assistant", "Ok.")]


def test_a_session_that_was_copied_into_the_database_is_read_once(tmp_path: Path) -> None:
    opencode_database(tmp_path)
    older_session(tmp_path / "storage", "ses_e154b2929ffe7XKFaQztPsazir")
    assert len(stored("opencode", tmp_path)[0]) == 1


def test_a_part_that_is_not_json_is_reported(tmp_path: Path) -> None:
    older_session(tmp_path / "storage")
    (tmp_path / "storage" / "part" / "msg_1" / "prt_1.json").write_text("{")
    (session,) = stored("opencode", tmp_path)[0]
    reading = reader_of("opencode").read(session, 0)
    assert [turn.content for turn in reading.transcript.turns] == ["Ok."]
    assert [problem.rpartition(": ")[2] for problem in reading.progress.problems] == ["not JSON; it was skipped"]
