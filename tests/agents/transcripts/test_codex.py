"""Codex's rollouts, the present ones and the older flat ones."""

import json
from pathlib import Path
from typing import Any

from engram.agents.transcripts.session import reader_of
from tests.agents.transcripts.written import SAMPLES, spoken, stored

NAME = "rollout-2026-11-17T18-11-05-01a1eab4-958f-7570-890c-366e4510e5eb.jsonl"


def rollout(home: Path, *records: dict[str, Any], folder: str = "sessions/2026/11/17") -> Path:
    path = home / folder / NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(one) + "\n" for one in records), "utf-8")
    return path


def message(role: str, *texts: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text} for text in texts]}


def test_a_session_that_codex_wrote_is_read(tmp_path: Path) -> None:
    rollout(tmp_path).write_bytes((SAMPLES / "codex" / "session.jsonl").read_bytes())
    (session,) = stored("codex", tmp_path)[0]
    transcript = reader_of("codex").read(session, 0).transcript
    assert (transcript.source, transcript.directory) == ("harness:codex:acme-api", "/home/dev/acme-api")
    assert (transcript.session, transcript.remote) == (
        "01a1eab4-958f-7570-890c-366e4510e5eb",
        "git@github.com:acme/api.git",
    )
    assert [(turn.role, turn.content) for turn in transcript.turns] == [
        ("user", "List files. We deploy on Thursdays only."), ("assistant", "Looking."), ("tool", "unsupported call: shell"),
        ("assistant", "Done. All in place."),
    ]  # fmt: skip


def test_an_older_flat_session_is_read(tmp_path: Path) -> None:
    about = {
        "id": "x",
        "timestamp": "2025-06-01T10:00:00Z",
        "instructions": "Always …",
        "git": {"repository_url": "https://github.com/acme/api"},
    }
    context = message("user", "<environment_context>\nCurrent working directory: /home/dev/old\n</environment_context>")
    rollout(
        tmp_path,
        about,
        context,
        message("user", "I use tabs."),
        {"record_type": "state"},
        message("assistant", "Ok."),
        folder="archived_sessions",
    )
    (session,) = stored("codex", tmp_path)[0]
    transcript = reader_of("codex").read(session, 0).transcript
    assert (transcript.directory, transcript.remote) == ("/home/dev/old", "https://github.com/acme/api")
    assert [(turn.role, turn.content) for turn in transcript.turns] == [("user", "I use tabs."), ("assistant", "Ok.")]


def test_messages_of_other_roles_and_the_displays_mirror_are_left_out(tmp_path: Path) -> None:
    rollout(
        tmp_path,
        {"type": "session_meta", "payload": {"id": "x", "cwd": "/home/dev/api"}},
        {"type": "response_item", "payload": message("developer", "Always be short.")},
        {"type": "response_item", "payload": message("system", "Always be short.")},
        {"type": "event_msg", "payload": {"type": "user_message", "message": "I use tabs."}},
        {
            "type": "response_item",
            "payload": message("user", "# AGENTS.md instructions for /home/dev/api\n\nAlways be short."),
        },
        {"type": "compacted", "payload": {"message": "The user uses tabs."}},
        {
            "type": "response_item",
            "payload": {"type": "function_call_output", "output": {"content": [{"type": "input_text", "text": "ok"}]}},
        },
        {"type": "response_item", "payload": message("user", "I use tabs.")},
    )
    assert spoken("codex", tmp_path) == [("tool", "ok"), ("user", "I use tabs.")]


def test_a_session_of_a_subagent_has_no_turns(tmp_path: Path) -> None:
    about = {
        "type": "session_meta",
        "payload": {"id": "x", "cwd": "/home/dev/api", "source": {"subagent": {"thread_spawn": {}}}},
    }
    rollout(tmp_path, about, {"type": "response_item", "payload": message("user", "I use tabs.")})
    assert spoken("codex", tmp_path) == []
