"""Exports of ChatGPT and Claude: the turns that were shown, in their order, from a file, a folder or a zip."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from engram.agents.transcripts.session import Transcript
from engram.capture.harvest import Harvester, HarvestReport
from engram.capture.transcripts import chat_exports
from engram.capture.transcripts.chat_exports import chat_format_of, read_chats
from engram.capture.transcripts.chat_import import ChatImport
from engram.model.errors import InvalidInput, UnreadableData
from engram.readers import json_list
from tests.backends import Backend
from tests.importing import everything

TEA = "I'm allergic to peanuts, so every recipe must leave them out."


def node(key: str, parent: str | None, role: str, *parts: Any, **message: Any) -> dict[str, Any]:
    kind = "text" if all(isinstance(part, str) for part in parts) else "multimodal_text"
    content = {"content_type": kind, "parts": list(parts)}
    said = {"id": f"m-{key}", "author": {"role": role}, "create_time": 1_750_000_000.5, "content": content, **message}
    return {"id": key, "parent": parent, "children": [], "message": said}


def chatgpt(*nodes: dict[str, Any], current: str = "", name: str = "c-1") -> dict[str, Any]:
    root: dict[str, Any] = {"id": "root", "parent": None, "children": [], "message": None}
    mapping = {one["id"]: one for one in (root, *nodes)}
    return {"title": "Tea", "conversation_id": name, "mapping": mapping, "current_node": current or nodes[-1]["id"]}


def claude(*messages: tuple[str, str], name: str = "k-1") -> dict[str, Any]:
    return {
        "uuid": name,
        "name": "Tea",
        "chat_messages": [
            {"uuid": f"{name}-{number}", "sender": sender, "text": text, "created_at": "2025-07-01T10:00:00.000000Z"}
            for number, (sender, text) in enumerate(messages)
        ],
    }


def written(folder: Path, *conversations: Any, name: str = "conversations.json") -> Path:
    folder.mkdir(exist_ok=True, parents=True)
    (folder / name).write_text(json.dumps(list(conversations)), "utf-8")
    return folder / name


def packed(path: Path, *conversations: Any, member: str = "conversations.json") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, json.dumps(list(conversations)))
        archive.writestr("user.json", "{}")
    return path


def chats(path: Path) -> tuple[list[Transcript], list[tuple[str, str]]]:
    problems: list[tuple[str, str]] = []
    found = list(read_chats(path, chat_format_of(path), lambda *what: problems.append(what)))
    return found, problems


def said(transcript: Transcript) -> list[tuple[str, str]]:
    return [(turn.role, turn.content) for turn in transcript.turns]


def test_the_branch_that_was_shown_last_is_read(tmp_path: Path) -> None:
    conversation = chatgpt(
        node("a", "root", "user", "Which tea?"),
        node("b", "a", "assistant", "Black."),
        node("b2", "a", "assistant", "Green."),
        node("c", "b2", "user", "Thanks."),
    )
    (transcript,), problems = chats(written(tmp_path, conversation))
    assert said(transcript) == [("user", "Which tea?"), ("assistant", "Green."), ("user", "Thanks.")]
    turns = list(transcript.turns)
    assert [turn.key for turn in turns] == ["m-a", "m-b2", "m-c"]
    assert turns[0].at is not None and turns[0].at.year == 2025
    assert (transcript.harness, transcript.session, problems) == ("chatgpt", "chatgpt-c-1", [])


def test_what_nobody_said_is_left_out_and_images_are_noted(tmp_path: Path) -> None:
    conversation = chatgpt(
        node("s", "root", "system", "You are helpful."),
        node("u", "s", "user", "About me", content={"content_type": "user_editable_context", "user_profile": "x"}),
        node("a", "u", "user", {"content_type": "image_asset_pointer", "asset_pointer": "file://1"}, "What is this?"),
        node("b", "a", "assistant", "search('x')", recipient="browser"),
        node("t", "b", "tool", "A page."),
        node("h", "t", "user", "hidden", metadata={"is_visually_hidden_from_conversation": True}),
        node("c", "h", "assistant", "A cat."),
    )
    (transcript,), _ = chats(written(tmp_path, conversation))
    assert said(transcript) == [("user", "[image]\nWhat is this?"), ("assistant", "A cat.")]


def test_a_tree_that_runs_in_a_circle_or_names_no_current_node_is_read(tmp_path: Path) -> None:
    circle = chatgpt(node("a", "b", "user", "One"), node("b", "a", "assistant", "Two"), name="c-1")
    lost = {**chatgpt(node("a", "root", "user", "Three"), name="c-2"), "current_node": "gone"}
    found, _ = chats(written(tmp_path, circle, lost))
    assert [len(list(one.turns)) for one in found] == [2, 1]


def test_claude_s_messages_are_read_with_their_blocks_and_files(tmp_path: Path) -> None:
    conversation = claude(("human", "Which tea?"), ("assistant", "old text"), ("human", ""))
    conversation["chat_messages"][1]["content"] = [
        {"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Green."}, {"type": "tool_use", "input": {}},
    ]  # fmt: skip
    conversation["chat_messages"][2]["attachments"] = [{"file_name": "tea.pdf", "extracted_content": "long"}]
    (transcript,), _ = chats(written(tmp_path, conversation))
    assert said(transcript) == [("user", "Which tea?"), ("assistant", "Green."), ("user", "[file tea.pdf]")]
    assert transcript.session == "claude-k-1"


def test_a_folder_and_a_zip_are_read_like_the_file(tmp_path: Path) -> None:
    conversation = claude(("human", "Which tea?"))
    written(tmp_path / "export", conversation)
    zipped = packed(tmp_path / "data.zip", conversation, member="export/conversations.json")
    assert chats(tmp_path / "export")[0][0].session == chats(zipped)[0][0].session == "claude-k-1"
    assert {one.name for one in tmp_path.iterdir()} == {"export", "data.zip"}, "nothing is unpacked"


def test_a_link_to_an_export_is_read_and_a_link_inside_of_one_is_not(tmp_path: Path) -> None:
    file = written(tmp_path / "export", claude(("human", "Which tea?")))
    (tmp_path / "link.json").symlink_to(file)
    assert chat_format_of(tmp_path / "link.json") == "claude"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "conversations.json").symlink_to(file)
    assert not chat_exports.is_chat_export(tmp_path / "other")


def test_conversations_longer_than_a_block_are_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_list, "_FIRST_STEP", 7)
    many = [claude(("human", f"Größe {number} " + "ä" * number), name=f"k-{number}") for number in range(30)]
    found, problems = chats(written(tmp_path, *many))
    assert [one.session for one in found] == [f"claude-k-{number}" for number in range(30)] and problems == []


def test_an_export_that_ends_in_the_middle_gives_what_came_before(tmp_path: Path) -> None:
    file = written(tmp_path, claude(("human", "One"), name="a"), claude(("human", "Two"), name="b"))
    file.write_text(file.read_text()[:-40])
    found = []
    with pytest.raises(UnreadableData, match="incomplete"):
        for transcript in read_chats(file, "claude", lambda *_: None):
            found.append(transcript.session)
    assert found == ["claude-a"]


@pytest.mark.parametrize("text", ["{}", "", "nonsense", "[1, 2", '["a"]', "[" * 100_000])
def test_a_file_of_another_shape_is_no_export(tmp_path: Path, text: str) -> None:
    (tmp_path / "conversations.json").write_text(text)
    assert not chat_exports.is_chat_export(tmp_path / "conversations.json")


def test_a_conversation_that_cannot_be_read_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    broken = [{"uuid": "x", "chat_messages": 7}, {"chat_messages": []}, 7, {"uuid": "y"}]
    found, problems = chats(written(tmp_path, claude(("human", "One")), *broken))
    assert len(found) == 1
    assert [what.rpartition(" ")[2] for what, _ in problems] == ["2", "3", "4", "5"]


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zipped = packed(tmp_path / "data.zip", claude(("human", "a" * 100_000)))
    monkeypatch.setattr(chat_exports, "MOST_PACKED", 10)
    with pytest.raises(InvalidInput, match="unpacks to"):
        chats(zipped)


def test_a_damaged_zip_and_one_without_conversations_are_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.zip").write_bytes(b"PK\x03\x04 nonsense")
    with pytest.raises(UnreadableData, match="download it again"):
        chat_format_of(tmp_path / "bad.zip")
    with pytest.raises(InvalidInput, match=r"no conversations\.json"):
        chat_format_of(packed(tmp_path / "other.zip", member="photos.json"))


# -- into a store


def test_what_was_told_a_chat_is_proposed_with_its_words_as_evidence(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    file = packed(tmp_path / "data.zip", chatgpt(node("a", "root", "user", TEA), node("b", "a", "assistant", "Noted.")))
    report = mem.import_chats(file)
    assert report.count("proposed") == 1
    (memory,) = everything(mem)
    assert (memory.status, memory.source) == ("candidate", "import:data.zip")
    event = mem.store.event(memory.evidence[0].event)
    assert event is not None and event.content == TEA


def test_importing_chats_again_reads_only_what_is_new(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    mem.import_chats(written(tmp_path / "a", claude(("human", TEA))))
    again = mem.import_chats(tmp_path / "a")
    assert (again.sessions, again.unchanged, again.facts) == (0, 1, [])
    longer = claude(
        ("human", TEA), ("assistant", "Noted."), ("human", "We moved to Uppsala last spring and live there now.")
    )
    grown = mem.import_chats(written(tmp_path / "b", longer))
    assert grown.sessions == 1
    assert all(fact.key == "k-1-2" for fact in grown.facts) and grown.facts


def test_a_dry_run_of_chats_writes_nothing(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    file = written(tmp_path, claude(("human", TEA)))
    assert mem.import_chats(file, dry_run=True).count("proposed") == 1
    assert everything(mem) == [] and mem.store.ledgers() == []
    assert mem.import_chats(file).sessions == 1


def test_a_secret_in_a_chat_reaches_no_disk(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    token = "ghp_" + "4kQz9Lw2Xr7Vn1Tb8Jc5Md3Hs6Fg0Py2Aw9E"
    mem.import_chats(written(tmp_path, claude(("human", f"{TEA} My token is {token}."))))
    assert token not in backend.everything()


def test_what_exceeds_the_limit_of_a_run_comes_with_the_next_ones(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    told = (TEA, "My sister Ulla lives in Uppsala.", "We decided to pay invoices by post from now on.")
    path = written(tmp_path, *(claude(("human", words), name=f"k-{place}") for place, words in enumerate(told)))
    whole = mem.import_chats(path, dry_run=True).count("proposed")
    counts = []
    for _ in range(5):
        harvester = mem._harvester(dry_run=False)
        harvester.most_proposed = 1
        counts.append(ChatImport(mem.store, harvester, lambda *_: None).take(path).count("proposed"))
    assert whole > 1 and counts == [1] * whole + [0] * (5 - whole)
    assert len(everything(mem)) == whole


def test_chats_of_a_distrusted_file_are_not_read_until_it_is_trusted_again(backend: Backend, tmp_path: Path) -> None:
    mem, path = backend.client(), written(tmp_path, claude(("human", TEA)))
    mem.review.distrust("import:conversations.json", actor="human")
    report = mem.import_chats(path)
    assert (report.facts, ["distrusted, not read" in warning for warning in report.warnings]) == ([], [True])
    mem.review.restore_trust("import:conversations.json", actor="human")
    assert mem.import_chats(path).count("proposed") == 1


def test_an_error_in_one_conversation_is_reported_and_the_others_are_read(
    backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mem, path = backend.client(), written(tmp_path, claude(("human", "Go."), name="odd"), claude(("human", TEA)))
    stage = Harvester.stage

    def failing(harvester: Harvester, transcript: Transcript, **more: Any) -> HarvestReport:
        if transcript.session == "claude-odd":
            raise TypeError("odd")
        return stage(harvester, transcript, **more)

    monkeypatch.setattr(Harvester, "stage", failing)
    report = mem.import_chats(path)
    assert (report.count("proposed"), report.problems) == (1, ["claude-odd: it could not be read (TypeError: odd)"])
