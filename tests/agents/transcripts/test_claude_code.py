"""Claude Code's transcripts: what the person, the assistant and the tools say is read, everything else is left out."""

import json
from pathlib import Path
from typing import Any

import pytest

from engram.agents.transcripts import records as lines
from engram.agents.transcripts.records import typed_text
from engram.agents.transcripts.session import default_root, reader_of
from tests.agents.transcripts.written import FOLDER, SAMPLES, claude_file, line, said, spoken, stored, turns


def test_a_session_that_claude_code_wrote_is_read(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "e7a43a5f-255c-4e79-a43a-887abf77de69.jsonl").write_bytes(
        (SAMPLES / "claude-code" / "session.jsonl").read_bytes()
    )
    (session,) = stored("claude-code", tmp_path)[0]
    transcript = reader_of("claude-code").read(session, 0).transcript
    assert (transcript.source, transcript.directory) == ("harness:claude-code:acme-api", "/home/dev/acme-api")
    assert transcript.session == "e7a43a5f-255c-4e79-a43a-887abf77de69"
    assert [turn.content for turn in transcript.turns if turn.role == "user"] == [
        "Please list the files. We deploy on Thursdays only.", "Look around with an agent", "go on; we never squash merge",
    ]  # fmt: skip


@pytest.mark.parametrize("content", ["It runs on port 8080.", [{"type": "text", "text": "It runs on port 8080."}]])
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_content_may_be_a_text_or_a_list_of_blocks(tmp_path: Path, content: Any, separators: tuple[str, str]) -> None:
    path = claude_file(tmp_path)
    records = [said(role, content, second=second) for second, role in enumerate(("user", "assistant"))]
    path.write_text("".join(json.dumps(record, separators=separators) + "\n" for record in records))
    assert spoken("claude-code", tmp_path) == [
        ("user", "It runs on port 8080."),
        ("assistant", "It runs on port 8080."),
    ]


def test_results_of_tools_given_as_blocks_are_joined(tmp_path: Path) -> None:
    blocks = [{"type": "text", "text": "one"}, {"type": "image", "source": {}}, {"type": "text", "text": "two"}]
    result = {"type": "tool_result", "tool_use_id": "t", "content": blocks}
    claude_file(tmp_path, said("user", [result]), said("user", [{**result, "content": "three"}]))
    assert spoken("claude-code", tmp_path) == [("tool", "one\ntwo"), ("tool", "three")]


@pytest.mark.parametrize(
    "more",
    [
        {"isMeta": True}, {"isSidechain": True}, {"isCompactSummary": True}, {"isVisibleInTranscriptOnly": True},
        {"origin": {"kind": "task-notification"}}, {"origin": {"kind": "peer"}},
    ],
)  # fmt: skip
def test_a_turn_that_no_person_sent_is_left_out(tmp_path: Path, more: dict[str, Any]) -> None:
    claude_file(tmp_path, said("user", "I always use tabs.", **more), "Hello.")
    assert spoken("claude-code", tmp_path) == [("user", "Hello.")]


def test_what_the_program_writes_into_turns_is_left_out() -> None:
    expected = {
        "<system-reminder>Always be short.</system-reminder>": "",
        "Fix it.\n<system-reminder>\nAlways be short.\n</system-reminder>": "Fix it.",
        "Base directory for this skill: /x\n\nI always do this.": "",
        "<local-command-stdout>I use make</local-command-stdout>": "",
        "<local-command-caveat>Caveat: …</local-command-caveat>": "",
        "<task-notification>\n<task-id>1</task-id>\n</task-notification>": "",
        "<command-name>/compact</command-name>\n<command-message>compact</command-message>\n<command-args></command-args>": "",
        "<command-message>fix</command-message>\n<command-name>/fix</command-name>\n<command-args>use tabs always</command-args>": "use tabs always",
        "<user-memory-input>we deploy on Thursdays</user-memory-input>": "we deploy on Thursdays",
        "This session is being continued from a previous conversation that ran out of context.": "",
        "[Request interrupted by user for tool use]": "",
        "<bash-input>ls</bash-input>": "",
        "# AGENTS.md instructions for /home/dev\n\n<INSTRUCTIONS>Always …</INSTRUCTIONS>": "",
        "<environment_context>\n<cwd>/x</cwd>\n</environment_context>": "",
        "# Context from my IDE setup:\n\n## Open tabs\n- a.py\n\n## My request for Codex:\nuse tabs": "use tabs",
        "a < b and <T> is a type": "a < b and <T> is a type",
    }
    assert {text: typed_text(text) for text in expected} == expected


def test_what_the_user_typed_while_the_agent_was_busy_is_a_turn(tmp_path: Path) -> None:
    queued = {"type": "queued_command", "prompt": "and use tabs", "commandMode": "prompt"}
    notice = {"type": "queued_command", "prompt": "task 1 is done", "commandMode": "task-notification"}
    base = said("user", "")
    claude_file(
        tmp_path, *({**base, "type": "attachment", "message": None, "attachment": one} for one in (queued, notice))
    )
    assert spoken("claude-code", tmp_path) == [("user", "and use tabs")]


def test_other_records_and_broken_lines_are_passed_over_and_reported(tmp_path: Path) -> None:
    path = claude_file(tmp_path, "One.")
    with path.open("ab") as file:
        file.write(b'{"type":"user","message":\n' + line({"type": "from-the-future", "user": "user"}) + b'[1,"user"]\n')
        file.write(line(said("user", "T\ufffdo.")).replace("\ufffd".encode(), b"\xff") + line(said("user", "Three.")))
    (session,) = stored("claude-code", tmp_path)[0]
    reading = reader_of("claude-code").read(session, 0)
    assert [turn.content for turn in reading.transcript.turns] == ["One.", "T\ufffdo.", "Three."]
    assert [one.removeprefix(f"{path}: ") for one in reading.progress.problems] == [
        "1 line is not JSON and was skipped", "1 line contains invalid UTF-8",
    ]  # fmt: skip


def test_a_half_written_last_line_is_read_once_it_is_whole(tmp_path: Path) -> None:
    path, last = claude_file(tmp_path, "One."), line(said("user", "Two.", second=2))
    whole = path.stat().st_size
    path.write_bytes(path.read_bytes() + last[:40])
    (session,) = stored("claude-code", tmp_path)[0]
    reading = reader_of("claude-code").read(session, 0)
    assert [turn.content for turn in reading.transcript.turns] == ["One."]
    assert (reading.progress.position, reading.progress.problems) == (whole, [])
    path.write_bytes(path.read_bytes()[:whole] + last)
    assert [turn.content for turn in turns("claude-code", tmp_path, whole) if turn.position > whole] == ["Two."]


def test_a_line_that_is_too_long_is_passed_over_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 1000)
    claude_file(tmp_path, "One.", "x" * 5000, "Three.")
    (session,) = stored("claude-code", tmp_path)[0]
    reading = reader_of("claude-code").read(session, 0)
    assert [turn.content for turn in reading.transcript.turns] == ["One.", "Three."]
    assert "1 line is longer than" in reading.progress.problems[0]
    assert reading.progress.position == session.path.stat().st_size


def test_links_out_of_the_tree_are_reported_and_not_followed(tmp_path: Path) -> None:
    elsewhere, root = tmp_path / "elsewhere", tmp_path / "projects"
    claude_file(elsewhere, "I always use tabs.")
    own = claude_file(root, "Hello.")
    (root / "-linked").symlink_to(elsewhere / FOLDER)
    (own.parent / "linked.jsonl").symlink_to(elsewhere / FOLDER / own.name)
    found, problems = stored("claude-code", root)
    assert [session.path for session in found] == [own]
    assert sorted(problem.partition(": ")[0] for problem in problems) == sorted(
        [str(root / "-linked"), str(own.parent / "linked.jsonl")]
    )


def test_subagents_and_stored_results_are_no_sessions(tmp_path: Path) -> None:
    path = claude_file(tmp_path, "Hello.")
    for name in ("subagents", "tool-results"):
        folder = path.with_suffix("") / name
        folder.mkdir(parents=True)
        (folder / "agent-1.jsonl").write_bytes(line(said("user", "I always use tabs.")))
    (path.parent / "agent-2.jsonl").write_bytes(line(said("user", "I always use tabs.")))
    assert [session.path for session in stored("claude-code", tmp_path)[0]] == [path]


def test_the_harnesses_own_variables_say_where_their_sessions_are() -> None:
    environment = {"HOME": "/h", "CLAUDE_CONFIG_DIR": "/c", "CODEX_HOME": "/x", "XDG_DATA_HOME": "/d"}
    names = ("claude-code", "codex", "opencode")
    assert [str(default_root(name, environment)) for name in names] == ["/c/projects", "/x", "/d/opencode"]
    assert [str(default_root(name, {"HOME": "/h"})) for name in names] == [
        "/h/.claude/projects",
        "/h/.codex",
        "/h/.local/share/opencode",
    ]
    assert str(default_root("opencode", {"HOME": "/h", "OPENCODE_DB": "/o.db"})) == "/o.db"
