"""Which sessions belong to a project, and what of them is read."""

import json
import sqlite3
from pathlib import Path

from engram.agents.known.claude_code.finders import slug
from engram.agents.sources.documents import Source
from engram.agents.transcripts.session import Problems
from engram.recall.sources.sessions import find_sessions, short_name, spoken_lines
from tests.recall.sources.home import SourceHome

KEY = "sk-ant-api03-" + "AbCdEfGh12345678" * 6 + "-AbCdEfAA"


def found(user: SourceHome) -> list[Source]:
    return find_sessions(user.places(), Problems())


def here(user: SourceHome) -> list[str]:
    """The sessions that a search may use."""
    catalog = user.catalog()
    catalog.refresh(lambda *_: None, lambda: False)
    return sorted(Path(one.path).stem for one in catalog.index._wanted.values() if one.kind == "session")


def test_sessions_come_newest_first(user: SourceHome) -> None:
    user.session("old", [("user", "hello")], hours_ago=5)
    user.session("new", [("user", "hello")], hours_ago=1)
    assert [source.path.stem for source in found(user)] == ["new", "old"]


def test_a_session_in_a_folder_below_the_project_belongs_to_it(user: SourceHome) -> None:
    below = user.project / "api"
    user.session("below", [("user", "x")], directory=below, folder=user.config / "projects" / slug(str(below)))
    assert here(user) == ["below"]


def test_a_project_whose_folder_has_the_same_name_in_claude_code_is_another_one(user: SourceHome) -> None:
    user.session("ours", [("user", "x")])
    user.session("theirs", [("user", "x")], directory=user.home / "code-acme")
    twin = Path(f"{user.project}-two")
    user.session("twins", [("user", "x")], directory=twin, folder=user.config / "projects" / slug(str(twin)))
    assert here(user) == ["ours"]


def test_codex_and_opencode_sessions_of_the_project_are_found(user: SourceHome) -> None:
    for name, directory in (("aa", user.project), ("bb", user.home)):
        meta = {
            "timestamp": "2026-11-17T10:00:00Z",
            "type": "session_meta",
            "payload": {"id": name, "cwd": str(directory)},
        }
        said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Run the linter first"}]}
        line = {"timestamp": "2026-11-17T10:00:01Z", "type": "response_item", "payload": said}
        user.write(f".codex/sessions/2026/11/17/rollout-{name}.jsonl", f"{json.dumps(meta)}\n{json.dumps(line)}\n")
    database = user.write(".local/share/opencode/opencode.db")
    with sqlite3.connect(database) as db:
        db.execute("CREATE TABLE session (id, directory, parent_id, time_updated)")
        db.execute("CREATE TABLE message (id, session_id, time_created, data)")
        db.execute("CREATE TABLE part (id, message_id, data)")
        db.execute("INSERT INTO session VALUES ('ses_1', ?, NULL, 1790000000000)", (str(user.project),))
        db.execute("INSERT INTO message VALUES ('m1', 'ses_1', 1790000000000, '{\"role\": \"user\"}')")
        db.execute('INSERT INTO part VALUES (\'p1\', \'m1\', \'{"type": "text", "text": "Deploy on Fridays never"}\')')
    db.close()
    assert here(user) == ["opencode", "rollout-aa"]


def test_the_sessions_of_every_harness_have_handles_of_their_own(user: SourceHome) -> None:
    ids = ("01a1eab4-958f-7570-890c-366e4510e5eb", "01a1eab4-9590-7570-a1b2-0123456789ab")
    for at, known in zip(("18-11-05", "18-11-06"), ids, strict=True):
        user.write(f".codex/sessions/2026/11/17/rollout-2026-11-17T{at}-{known}.jsonl", "{}\n")
    user.session("6893559a-631c-436a-8536-fe37a2676ea2", [("user", "hello")])
    assert {short_name(source) for source in found(user)} == {"4510e5eb", "456789ab", "6893559a"}


def test_the_end_of_a_session_is_read_within_its_bytes(user: SourceHome) -> None:
    user.session("long", [("user", f"turn number {number} {'x' * 500}") for number in range(300)])
    _, lines = spoken_lines(found(user)[0], 5_000)
    assert lines[-1].text.startswith("turn number 299")
    assert 7 <= len(lines) <= 10


def test_secrets_are_redacted_also_where_a_turn_is_cut(user: SourceHome) -> None:
    user.session("s", [("user", f"my key is {KEY}"), ("assistant", "word " * 398 + KEY + " end")])
    _, lines = spoken_lines(found(user)[0])
    assert "[redacted:" in lines[0].text
    assert not any(KEY[:30] in line.text for line in lines)


def test_of_a_tools_result_the_first_line_is_kept(user: SourceHome) -> None:
    path = user.session("s", [("user", "go")])
    result = [{"type": "tool_result", "content": [{"type": "text", "text": "\n\n3 failed\nmore\nand more"}]}]
    record = {"type": "user", "uuid": "t", "cwd": str(user.project), "message": {"role": "user", "content": result}}
    path.write_text(path.read_text() + json.dumps(record) + "\n")
    _, lines = spoken_lines(found(user)[0])
    assert [(line.role, line.text) for line in lines] == [("user", "go"), ("tool", "3 failed")]


def test_linked_folders_of_sessions_that_lead_elsewhere_are_not_followed(user: SourceHome, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    user.session("s", [("user", "x")], folder=outside)
    user.transcripts.parent.mkdir(parents=True)
    user.transcripts.symlink_to(outside)
    assert found(user) == []
