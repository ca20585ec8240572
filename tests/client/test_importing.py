"""Importing from Python: the same rules as `engram import`, and a report."""

import asyncio
import json
from pathlib import Path

import pytest

from engram import AsyncEngram, Engram
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
        report = mem.import_memories(table, mapping=fields, progress=lambda *step: steps.append(step))
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
