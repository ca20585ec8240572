"""Markdown notes, mem0, and records with a mapping, into a store."""

import json
from pathlib import Path
from typing import Any

import pytest

from engram.capture import import_source
from engram.model.errors import InvalidInput
from engram.model.memory import Memory
from tests.backends import Backend
from tests.importing import everything, imported_path, with_words

TOKEN = "ghp_" + "4kQz9Lw2Xr7Vn1Tb8Jc5Md3Hs6Fg0Py2Aw9E"


def note(folder: Path, place: str, text: str) -> Path:
    file = folder / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")
    return folder


FEEDBACK = """---
name: no mocks in integration tests
description: Integration tests hit a real database, never a mock
type: feedback
owner: ada
---

Mocks hid a broken migration last quarter.
"""


# -- Markdown notes


def test_a_note_is_its_description_and_its_type(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    folder = note(tmp_path / "memory", "deep/feedback_testing.md", FEEDBACK)
    assert import_source.detect_format(folder) == "markdown"
    imported_path(mem, folder)
    memory = with_words(mem, "Integration tests hit a real database, never a mock")
    assert (memory.type, memory.source, memory.learned_by) == ("feedback", "import:memory", "import")
    assert memory.context == "Mocks hid a broken migration last quarter."
    assert memory.metadata == {"title": "no mocks in integration tests", "owner": "ada"}
    assert mem.get("no-mocks-in-integration-tests").id == memory.id


def test_a_note_without_a_description_is_its_first_line(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    imported_path(mem, note(tmp_path / "n", "a.md", "# Deploys\n\n- Deploys happen on Mondays\n- and Thursdays\n"))
    assert with_words(mem, "Deploys happen on Mondays").type == "fact"


def test_a_type_that_nobody_knows_is_kept_as_metadata(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    imported_path(mem, note(tmp_path / "n", "a.md", FEEDBACK.replace("type: feedback", "type: banana")))
    memory = with_words(mem, "Integration tests hit a real database, never a mock")
    assert (memory.type, memory.metadata["type"]) == ("preference", "banana")


@pytest.mark.parametrize("name", ["t.JSON", "t.Jsonl", "t.YAML"])
def test_the_case_of_a_suffix_does_not_matter(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(json.dumps({"statement": "Use tabs"}))
    for path in (tmp_path / name, tmp_path):
        assert len(import_source.read(path).found) == 1 and not import_source.read(path).not_read


def test_notes_are_found_again_when_they_change(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    folder = note(tmp_path / "n", "a.md", FEEDBACK)
    imported_path(mem, folder)
    assert imported_path(mem, folder).created == []
    note(folder, "a.md", FEEDBACK.replace("never a mock", "never a fake"))
    done = imported_path(mem, folder)
    assert (done.created, len(done.updated), len(everything(mem))) == ([], 1, 1)
    mem.update(done.updated[0], statement="Tests hit a real database")
    note(folder, "a.md", FEEDBACK.replace("never a mock", "never a stub"))
    ((what, reason),) = imported_path(mem, folder).notices
    assert what == "a.md" and "statement changed both here and in the source" in reason


def test_the_same_place_in_two_folders_is_two_notes(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    imported_path(mem, note(tmp_path / "one", "a.md", FEEDBACK))
    imported_path(mem, note(tmp_path / "two", "a.md", FEEDBACK.replace("a real database", "Postgres")))
    assert len(everything(mem)) == 2


def test_bad_notes_are_named_indexes_are_left_out_and_links_are_not_followed(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    folder = tmp_path / "memory"
    for place in ("MEMORY.md", "Readme.md", "index.md"):
        note(folder, place, "- [a](a.md) — an index of the others\n")
    note(folder, "a.md", FEEDBACK)
    note(folder, "bad.md", "---\ndescription: [unclosed\n---\n\ntext\n")
    note(folder, "open.md", "---\ndescription: x\n\ntext\n")
    note(folder, "empty.md", "---\ntype: user\n---\n\n# Only a heading\n")
    note(folder, "secret.md", f"---\ndescription: The token is {TOKEN}\n---\n")
    (folder / "bytes.md").write_bytes(b"\xff\xfe\x00")
    note(tmp_path, "outside.md", "Outside of the folder")
    (folder / "link.md").symlink_to(tmp_path / "outside.md")
    (folder / "elsewhere").symlink_to(tmp_path)
    done = imported_path(mem, folder)
    assert len(done.created) == 1 and len(done.not_read) == 3
    reasons = {Path(what).name: reason for what, reason in done.skipped}
    assert set(reasons) == {"bad.md", "open.md", "empty.md", "secret.md", "bytes.md", "link.md"}
    assert "not closed" in reasons["open.md"] and "symbolic link out" in reasons["link.md"]
    assert TOKEN not in backend.everything()


def test_names_that_cannot_be_shown_become_no_aliases(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    imported_path(mem, note(tmp_path / "n", "a\x1b[31m.md", FEEDBACK))
    done = imported_path(mem, mem0(tmp_path / "e.json", record("Likes tea", id="a\x1b[31m")), format_="mem0")
    assert "cannot be shown" in done.skipped[0][1]
    assert all(alias.isprintable() for memory in everything(mem) for alias in memory.aliases)


# -- mem0


def mem0(path: Path, *records: dict[str, Any], key: str = "results") -> Path:
    path.write_text(json.dumps({key: list(records)} if key else list(records)), "utf-8")
    return path


def record(memory: str, number: int = 1, **fields: Any) -> dict[str, Any]:
    return {
        "id": f"3b2c7d4e-0000-4000-8000-{number:012d}", "memory": memory, "user_id": "alice", "hash": "ab",
        "created_at": "2025-07-01T10:00:00.123-07:00", "updated_at": None, "metadata": {"app": "chat"}, **fields,
    }  # fmt: skip


@pytest.mark.parametrize("key", ["results", ""])
def test_a_mem0_export_keeps_ids_owners_times_and_metadata(backend: Backend, tmp_path: Path, key: str) -> None:
    mem = backend.client()
    file = mem0(tmp_path / "export.json", record("Likes green tea", categories=["food"]), key=key)
    assert import_source.detect_format(file) == "mem0"
    done = imported_path(mem, file)
    memory = mem.get(record("")["id"])
    assert done.created == [memory.id] and done.unseen == {"user:alice": 1}
    assert (memory.scope, memory.user_id, memory.tags) == ("user:alice", "alice", ("food",))
    assert memory.metadata == {"app": "chat", "user_id": "alice", "hash": "ab"}
    assert memory.created is not None and memory.created.isoformat() == "2025-07-01T17:00:00.123000+00:00"


@pytest.mark.parametrize(("agent", "user", "scope"), [
    (7, "alice", "user:alice"), ("  ", "alice", "user:alice"), ("bot", None, "agent:bot"), ("bot", "alice", "agent:bot/alice"),
    (["bot"], None, "global"),
])  # fmt: skip
def test_only_an_owner_with_a_name_owns_a_mem0_record(tmp_path: Path, agent: Any, user: Any, scope: str) -> None:
    file = mem0(tmp_path / "e.json", record("Likes tea", agent_id=agent, user_id=user))
    ((_, memory),) = import_source.read(file, format_="mem0").found
    assert isinstance(memory, Memory) and memory.scope == scope


def test_a_later_mem0_export_under_another_name_brings_only_what_changed(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    imported_path(mem, mem0(tmp_path / "june.json", record("Likes green tea"), record("Owns a cat", 2)))
    later = mem0(tmp_path / "july.json", record("Likes oolong tea"), record("Owns a cat", 2), record("Has a garden", 3))
    done = imported_path(mem, later)
    assert (len(done.created), len(done.updated), len(done.unchanged)) == (1, 1, 1)
    assert mem.get(record("")["id"]).statement == "Likes oolong tea"


def test_the_graph_of_mem0_is_reported_and_not_read(backend: Backend, tmp_path: Path) -> None:
    file = tmp_path / "e.json"
    file.write_text(json.dumps({"results": [record("Likes tea")], "relations": [{"source": "alice", "target": "tea"}]}))
    assert imported_path(backend.client(), file, format_="mem0").not_read == ("e.json: 1 relations of its graph",)


def test_bad_mem0_records_are_named(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    records = (record("ok"), record("", 2), record("twice"), record("t", 3, created_at="someday"), {"memory": "no id"})
    done = imported_path(mem, mem0(tmp_path / "e.json", *records), format_="mem0")
    assert len(done.created) == 1
    reasons = " | ".join(reason for _, reason in done.skipped)
    for words in ("memory is empty", "duplicate id", "created_at must be", "id is missing"):
        assert words in reasons


# -- records with a mapping


def test_a_table_is_read_by_its_header_and_other_columns_are_kept(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    file = tmp_path / "notes.csv"
    file.write_text(
        'key,text,category,when,who\nn1,"Deploys happen on Mondays, at ten",decision,2025-03-01,ada\nn2,,fact,,\n'
    )
    done = imported_path(mem, file, id="key", statement="text", type="category", created="when")
    memory = mem.get("n1")
    assert (memory.statement, memory.type) == ("Deploys happen on Mondays, at ten", "decision")
    assert memory.created is not None and memory.created.date().isoformat() == "2025-03-01"
    assert memory.metadata == {"who": "ada"}
    assert done.skipped == [("notes.csv line 3", "text is empty")]


def test_a_row_with_an_id_is_found_again_when_it_changes(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    file = tmp_path / "notes.csv"
    for words in ("on Mondays", "on Mondays", "on Fridays"):
        file.write_text(f"id;text\n7;Deploys happen {words}\n")
        done = imported_path(mem, file)
    assert len(done.updated) == 1
    assert [memory.statement for memory in everything(mem)] == ["Deploys happen on Fridays"]


def test_json_lines_are_read_by_a_mapping(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    file = tmp_path / "notes.jsonl"
    file.write_text('{"body": "Use tabs", "labels": "a; b", "at": 1740787200}\n{"body": 7, "at": "x"}\n{torn\n')
    done = imported_path(mem, file, statement="body", tags="labels", created="at")
    memory = with_words(mem, "Use tabs")
    assert memory.tags == ("a", "b")
    assert memory.created is not None and memory.created.year == 2025
    assert [what for what, _ in done.skipped] == ["notes.jsonl line 3", "notes.jsonl line 2"]
    assert imported_path(mem, file, statement="body", tags="labels", created="at").created == []


def test_a_mapping_reaches_into_blocks(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    file = tmp_path / "points.json"
    file.write_text('[{"id": "p1", "payload": {"data": "Use tabs", "by": "ada"}}]')
    imported_path(mem, file, id="id", statement="payload.data")
    assert mem.get("p1").statement == "Use tabs"
    assert mem.get("p1").metadata == {"payload": {"data": "Use tabs", "by": "ada"}}


def test_a_type_that_there_is_not_is_kept_as_metadata(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    file = tmp_path / "notes.csv"
    file.write_text("text,category\nUse tabs,gadget\n")
    imported_path(mem, file)
    assert (with_words(mem, "Use tabs").type, with_words(mem, "Use tabs").metadata) == ("fact", {"category": "gadget"})


@pytest.mark.parametrize(
    ("text", "mapping", "reason"),
    [
        ("a,b\n1,2\n", {}, "--map"),
        ("a,b\n1,2\n", {"statement": "c"}, "no column 'c'"),
        ("", {"statement": "a"}, "no header"),
    ],
)
def test_a_table_that_cannot_be_read_says_which_columns_it_has(
    tmp_path: Path, text: str, mapping: dict[str, str], reason: str
) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(InvalidInput, match=reason):
        import_source.read(tmp_path / "t.csv", mapping=mapping)


def test_a_row_with_too_many_cells_is_named(backend: Backend, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("text,who\nUse tabs,ada\nUse spaces,bob,extra\n")
    done = imported_path(backend.client(), tmp_path / "t.csv")
    assert len(done.created) == 1 and "3 cells" in done.skipped[0][1]


def test_a_mapping_of_a_format_with_its_own_fields_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="names its own fields"):
        import_source.read(note(tmp_path / "n", "a.md", FEEDBACK), mapping={"statement": "text"})
