"""Spec 5's notes into a store and out of it again."""

from pathlib import Path

import pytest

from engram import Engram
from engram.capture.exporter import export_notes
from engram.dialects import notes
from engram.model.errors import InvalidInput
from tests.backends import Backend
from tests.dialects.test_notes import NOTE
from tests.importing import everything, imported_path, with_words

OLD = """---
id: fact-1768460000000-a1b2
category: fact
created: 2026-01-15T06:53:20.000Z
updated: 2026-01-15T06:53:20.000Z
source: extraction
confidence: 0.8
confidenceTier: implied
tags: []
---

The database is MySQL.
"""


def tree(folder: Path) -> dict[str, str]:
    return {file.relative_to(folder).as_posix(): file.read_text("utf-8") for file in sorted(folder.rglob("*.md"))}


def put(folder: Path, *notes: str) -> Path:
    for note in notes:
        name = note.split("\n")[1].removeprefix("id: ")
        file = folder / "facts" / "2026-01-15" / f"{name}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(note, "utf-8")
    return folder


def export(mem: Engram, folder: Path, *, force: bool = False) -> None:
    now = mem.upkeep.clock()
    export_notes(mem.store, everything(mem), folder, now=now, actor="human", force=force, report=lambda *_: None)


def test_notes_go_in_and_come_out_as_they_were(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    done = imported_path(mem, put(tmp_path / "in", OLD, NOTE))
    assert (len(done.created), done.skipped) == (2, [])
    old, new = mem.get("fact-1768460000000-a1b2"), mem.get("decision-1768470000000-k3x9")
    assert (new.supersedes, new.associations[0].target) == ((old.id,), old.id)
    export(mem, tmp_path / "out")
    assert tree(tmp_path / "out") == tree(tmp_path / "in")


@pytest.mark.parametrize("key", ["", "lastAccessed: 2026-01-20T08:00:00.000Z\n"])
def test_a_note_keeps_its_strength_from_the_import_and_comes_out_without_it(
    backend: Backend, tmp_path: Path, key: str
) -> None:
    mem = backend.client()
    folder = put(tmp_path / "in", OLD.replace("tags: []\n", f"tags: []\n{key}"))
    imported_path(mem, folder)
    assert with_words(mem, "The database is MySQL.").activation.last_accessed is not None
    export(mem, tmp_path / "out")
    assert tree(tmp_path / "out") == tree(folder)


def test_importing_again_adds_nothing_and_takes_changes_over(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    folder = put(tmp_path / "in", OLD, NOTE)
    imported_path(mem, folder)
    again = imported_path(mem, folder)
    assert (again.created, again.updated, again.skipped, len(again.unchanged)) == ([], [], [], 2)
    put(folder, OLD.replace("MySQL.", "MySQL 8.").replace("tags: []", 'tags: ["db"]'))
    assert len(imported_path(mem, folder).updated) == 1
    memory = mem.get("fact-1768460000000-a1b2")
    assert (memory.statement, memory.tags) == ("The database is MySQL 8.", ("db",))


def test_the_same_ids_in_two_directories_are_two_memories(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    imported_path(mem, put(tmp_path / "one", OLD))
    other = put(tmp_path / "two", OLD.replace("MySQL", "Oracle").replace("06:53:20", "07:53:20"))
    for _ in range(2):
        imported_path(mem, other)
    assert {memory.statement for memory in everything(mem)} == {"The database is MySQL.", "The database is Oracle."}


def test_our_own_export_changes_nothing_when_it_comes_back(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    first = mem.add("Deploys happen on Mondays", tags=["a, b"], scope="project:x", valid_until="2027-01-01")
    mem.add("Never force-push", type="correction", confidence=0.123456789)
    mem.relate(first.id, mem.add("Releases are weekly").id, "supports")
    export(mem, tmp_path / "out")
    before = {memory.id: memory for memory in everything(mem)}
    done = imported_path(mem, tmp_path / "out")
    assert (done.created, done.updated, done.skipped, len(done.unchanged)) == ([], [], [], 3)
    assert {memory.id: memory for memory in everything(mem)} == before


def test_an_export_goes_to_another_store_and_comes_out_the_same(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    mem.add("Deploys happen on Mondays", tags=["a, b"], scope="project:x")
    mem.add("Never force-push", type="correction")
    export(mem, tmp_path / "out")
    with Engram.open(tmp_path / "other", cache=tmp_path / "c2", directory=tmp_path) as other:
        imported_path(other, tmp_path / "out")
        export(other, tmp_path / "again")
    assert tree(tmp_path / "again") == tree(tmp_path / "out")


def test_a_note_that_moved_to_the_archive_is_not_left_behind(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    memory = mem.add("Deploys happen on Mondays")
    export(mem, tmp_path / "out")
    mem.update(memory.id, status="archived")
    export(mem, tmp_path / "out", force=True)
    assert [place.partition("/")[0] for place in tree(tmp_path / "out")] == ["archive"]


def test_a_bad_note_is_named_and_the_others_are_imported(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    folder = put(tmp_path / "in", OLD, NOTE.replace("confidence: 0.92", "confidence: 92"))
    done = imported_path(mem, folder)
    assert len(done.created) == 1
    assert "confidence must be" in done.skipped[0][1]
    assert with_words(mem, "The database is MySQL.").learned_by == "import"


def test_two_notes_never_get_the_same_name(backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mem = backend.client()
    for statement in ("Deploys happen on Mondays", "The queue is Kafka"):
        mem.add(statement)
    monkeypatch.setattr(notes, "name_for", lambda memory, attempt: f"fact-1768435200000-a{attempt:03d}")
    export(mem, tmp_path / "out")
    assert len(tree(tmp_path / "out")) == 2


def test_what_is_changed_in_an_export_comes_back_to_its_memory(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    memory = mem.add("Deploys happen on Mondays", tags=["ops"])
    export(mem, tmp_path / "out")
    (file,) = (tmp_path / "out").rglob("*.md")
    file.write_text(file.read_text().replace("Mondays", "Fridays"))
    assert imported_path(mem, tmp_path / "out", trusted=True).updated == [memory.id]
    assert (mem.get(memory.id).statement, mem.get(memory.id).tags) == ("Deploys happen on Fridays", ("ops",))


def test_a_person_vouches_for_notes_that_were_imported_before(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    folder = put(tmp_path / "in", OLD)
    imported_path(mem, folder)
    imported_path(mem, folder, trusted=True)
    assert with_words(mem, "The database is MySQL.").verification == "user_confirmed"


def test_an_export_that_is_refused_changes_neither_the_folder_nor_the_store(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    folder = put(tmp_path / "in", OLD)
    imported_path(mem, folder)
    new = mem.add("Deploys happen on Mondays")
    mem.forget("fact-1768460000000-a1b2", actor="human")
    moved = folder / "facts" / "2026-01-14" / "fact-1768460000000-a1b2.md"
    moved.parent.mkdir()
    (folder / "facts" / "2026-01-15" / moved.name).rename(moved)
    before = tree(folder)
    with pytest.raises(InvalidInput, match="already exists"):
        export(mem, folder)
    assert (tree(folder), mem.get(new.id).aliases) == (before, new.aliases)
    export(mem, folder, force=True)
    assert not moved.exists() and len(tree(folder)) == 2


def test_a_folder_that_leads_out_is_refused_before_a_memory_is_named(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    new = mem.add("Deploys happen on Mondays")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "facts").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InvalidInput, match="leads out"):
        export(mem, tmp_path / "out", force=True)
    assert mem.get(new.id).aliases == new.aliases
