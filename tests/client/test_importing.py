"""Importing from Python: the same rules as `engram import`, and a report."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from engram import AsyncEngram, Engram, Memory
from engram.dialects import engram_yaml
from engram.dialects.engram_yaml import dump_json
from engram.model.errors import InvalidInput, Refused
from tests.capture.test_chat_exports import TEA, claude, written


@pytest.fixture
def table(tmp_path: Path) -> Path:
    file = tmp_path / "table.csv"
    file.write_text("what,kind\nUse tabs in Makefiles,preference\n")
    return file


def test_a_table_is_imported_by_a_mapping_and_reported(table: Path) -> None:
    steps: list[tuple[str, int, int]] = []
    with Engram.open(ephemeral=True) as mem:
        fields = {"statement": "what", "type": "kind"}
        report = mem.import_memories(table, mapping=fields, progress=lambda *step: steps.append(step), actor="human")
        (memory,) = mem.list()
    assert (memory.statement, memory.type, memory.source) == ("Use tabs in Makefiles", "preference", "import:table.csv")
    assert report.created == report.evidence == [memory.id] and steps == [("Importing", 1, 1)]


def test_only_a_person_vouches_for_a_file(tmp_path: Path) -> None:
    file = tmp_path / "texts.json"
    file.write_text(json.dumps(["Use tabs in Makefiles"]))
    with Engram.open(ephemeral=True) as mem:
        with pytest.raises(Refused, match="Only a person"):
            mem.import_memories(file, trusted=True)
        assert mem.list() == []
        assert mem.import_memories(file, trusted=True, actor="human").evidence == []
        assert mem.list()[0].verification == "user_confirmed"


@pytest.mark.parametrize("actor", ["agent", "manual", "tool:importer"])
def test_what_anyone_but_a_person_imports_waits_for_review(table: Path, actor: str) -> None:
    with Engram.open(ephemeral=True) as mem:
        report = mem.import_memories(table, mapping={"statement": "what"}, actor=actor)
        assert (report.waiting, report.evidence) == (report.created, [])
        assert mem.list() == [] and mem.recall("What is used in Makefiles?").hits == []


@pytest.mark.parametrize("form", ["csv", "json", "yaml"])
def test_an_agent_who_imports_a_persons_file_again_changes_nothing(tmp_path: Path, form: str) -> None:
    memory = Memory("ENG-2025-0101-001", "Use tabs in Makefiles", type="tooling")
    texts = {
        "csv": "id,text\n1,Use tabs in Makefiles\n",
        "json": dump_json([memory]),
        "yaml": engram_yaml.dump([memory]),
    }
    file = tmp_path / f"table.{form}"
    file.write_text(texts[form])
    with Engram.open(ephemeral=True) as mem:
        (known,) = mem.import_memories(file, actor="human").evidence
        assert mem.import_memories(file, actor="agent").unchanged == [known]
        file.write_text(texts[form].replace("tabs", "three spaces"))
        mem.import_memories(file, actor="agent")
        assert [(one.id, one.statement) for one in mem.list()] == [(known, "Use tabs in Makefiles")]


def test_a_dry_run_writes_nothing_and_candidates_wait(tmp_path: Path) -> None:
    file = tmp_path / "texts.json"
    file.write_text(json.dumps(["Use tabs in Makefiles"]))
    with Engram.open(ephemeral=True) as mem:
        assert len(mem.import_memories(file, dry_run=True).created) == 1
        assert mem.list(status="any") == []
        assert len(mem.import_memories(file, candidates=True).waiting) == 1


def test_a_field_that_there_is_not_and_an_export_of_chats_are_refused(table: Path, tmp_path: Path) -> None:
    with Engram.open(ephemeral=True) as mem:
        with pytest.raises(InvalidInput, match="colour"):
            mem.import_memories(table, mapping={"statement": "what", "colour": "kind"})
        with pytest.raises(InvalidInput, match="import_chats"):
            mem.import_memories(written(tmp_path / "chats", claude(("human", TEA))))


def test_async_code_imports_too(table: Path) -> None:
    async def created() -> int:
        async with await AsyncEngram.open(ephemeral=True) as mem:
            return len((await mem.import_memories(table, mapping={"statement": "what"})).created)

    assert asyncio.run(created()) == 1


def _table_of_2024(folder: Path, name: str = "old.csv", extra: str = "") -> Path:
    file = folder / name
    file.write_text(f"what,when{',cue' if extra else ''}\nThe lab's server is called heron,2024-01-05{extra}\n")
    return file


def test_an_old_record_starts_fresh_at_the_import_and_becomes_stale_from_then_on(tmp_path: Path) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    with Engram.open(ephemeral=True, clock=lambda: now) as mem:
        mem.import_memories(_table_of_2024(tmp_path), mapping={"statement": "what", "created": "when"}, actor="human")
        [hit] = mem.recall("What is the server of the lab called?").hits
        assert hit.memory is not None and hit.memory.created is not None and hit.memory.created.year == 2024
        assert hit.memory.imported_at == now and hit.memory.last_verified is None and "last confirmed" not in hit.note
        now += timedelta(days=200)
        [hit] = mem.recall("What is the server of the lab called?").hits
        assert hit.note == "last confirmed 2026-01-01"


def test_importing_a_file_again_does_not_renew_its_records(tmp_path: Path) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    with Engram.open(ephemeral=True, clock=lambda: now) as mem:
        fields = {"statement": "what", "created": "when"}
        for _ in range(2):
            mem.import_memories(_table_of_2024(tmp_path), mapping=fields, actor="human")
            now += timedelta(days=200)
        assert mem.list()[0].imported_at == datetime(2026, 1, 1, tzinfo=UTC)


def test_importing_a_duplicate_adds_its_cues(tmp_path: Path) -> None:
    with Engram.open(ephemeral=True) as mem:
        mem.import_memories(_table_of_2024(tmp_path), mapping={"statement": "what"}, actor="human")
        again = _table_of_2024(tmp_path, "cues.csv", ",name of the lab machine")
        fields = {"statement": "what", "cues": "cue"}
        report = mem.import_memories(again, mapping=fields, actor="agent")
        assert mem.list()[0].cues == () and report.updated == []
        report = mem.import_memories(again, mapping=fields, actor="human", trusted=True)
        [memory] = mem.list()
        assert memory.cues == ("name of the lab machine",) and report.updated == [memory.id]
