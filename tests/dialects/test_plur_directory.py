"""A PLUR directory read whole, and a new one written."""

import json
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from ryaml import loads as read_yaml_1_2  # type: ignore[attr-defined]

from engram.dialects.plur import read_plur, write_plur
from engram.model.errors import InvalidInput, NotFound, StoreReadOnly
from engram.model.memory import Feedback, Memory

from .plur_schema import ENTRY

FIXTURE = Path(__file__).parent / "fixtures" / "plur"
NOW = datetime(2026, 11, 16, 8, 30, tzinfo=UTC)


@pytest.fixture
def plur(tmp_path: Path) -> Path:
    """A copy of the fixture directory."""
    return Path(shutil.copytree(FIXTURE, tmp_path / "plur"))


def write(directory: Path, *memories: Memory) -> tuple[list[str], list[tuple[str, str]]]:
    """Write with the test's clock and name."""
    return write_plur(directory, memories, now=NOW, actor="engram")


def entries(directory: Path) -> list[Any]:
    """What a YAML 1.2 reader sees in engrams.yaml."""
    content: dict[str, list[Any]] = read_yaml_1_2((directory / "engrams.yaml").read_text("utf-8"))
    return content["engrams"]


def new_memory(**fields: Any) -> Memory:
    """A memory PLUR has never seen."""
    return Memory(**{"id": "ENG-2026-1116-001", "statement": "Dates: always quoted.", "created": NOW, **fields})


def test_engrams_candidates_and_episodes_are_read(plur: Path) -> None:
    reading = read_plur(plur)
    assert [memory.id for memory in reading] == [
        "ENG-2026-11-15-001",
        "ENG-2026-11-15-002",
        "ENG-2026-1114-003",
        "ENG-2026-11-13-009",
        "EP-1794707588495-k3f9",
        "EP-1794707999000-a001",
    ]
    first, _, third, candidate, episode, _ = reading
    assert first.tags == ("yaml", "dates", "on", "1_000")
    assert first.feedback == Feedback(2, 0, 1)
    assert first.extra["x_team"] == {"owner": "docs"}
    assert (third.type, third.confidence, third.entities) == ("convention", 0.9, ("queue",))
    assert candidate.status == "candidate"
    assert (episode.type, episode.session) == ("episodic", "5b0c8a52-6f0e-4a52-9a4e-0f3f5f1b2c3d")
    assert episode.occurred_at == datetime(2026, 11, 15, 1, 53, 8, 495000, tzinfo=UTC)


def test_what_cannot_be_read_is_named_with_its_reason(plur: Path) -> None:
    (where, reason), (_, no_record) = read_plur(plur).quarantined
    assert "engrams.yaml record 4, line " in where
    assert "activation.last_accessed of my_id" in reason
    assert "a block of fields, is 'just a line'" in no_record


def test_what_is_not_imported_is_said(plur: Path) -> None:
    packs, tensions = read_plur(plur).not_read
    assert "house-style" in packs and "1 records" in packs
    assert "tensions.yaml: 1 records" in tensions
    assert [memory.id for memory in read_plur(plur, packs=True)][-1] == "ENG-PACK-HOUSE-001"


def test_the_file_itself_may_be_given_and_a_wrong_directory_is_named(plur: Path, tmp_path: Path) -> None:
    assert len(list(read_plur(plur / "engrams.yaml"))) == 6
    with pytest.raises(NotFound, match=r"holds no engrams\.yaml"):
        read_plur(tmp_path)


def test_a_second_record_with_the_same_id_is_not_lost(plur: Path) -> None:
    with (plur / "engrams.yaml").open("a", encoding="utf-8") as file:
        file.write("  - {id: ENG-2026-11-15-002, statement: Another one.}\n")
    reading = read_plur(plur)
    where, reason = reading.quarantined[-1]
    assert "twice" in reason and "record 6" in where


def test_everything_read_from_one_directory_can_be_written_to_another_and_read_again(
    plur: Path, tmp_path: Path
) -> None:
    reading = read_plur(plur)
    created, _ = write(tmp_path / "other", *reading)
    assert sorted(created) == sorted(memory.id for memory in reading)
    assert list(read_plur(tmp_path / "other")) == sorted(reading, key=lambda memory: memory.id.startswith("EP-"))
    originals = {entry["id"]: entry for entry in entries(plur)[:3]}
    for entry in entries(tmp_path / "other"):
        assert ENTRY(entry)
        for key, value in originals.get(entry["id"], {}).items():
            assert entry[key] == value
    assert yaml.safe_load((tmp_path / "other" / "episodes.yaml").read_text("utf-8")) == yaml.safe_load(
        (plur / "episodes.yaml").read_text("utf-8")
    )


def test_history_tells_plur_which_ids_exist(tmp_path: Path) -> None:
    write(tmp_path / "fresh", new_memory(source="human"))
    (line,) = (tmp_path / "fresh" / "history" / "2026-11.jsonl").read_text("utf-8").splitlines()
    assert json.loads(line) == {
        "event": "engram_created",
        "engram_id": "ENG-2026-1116-001",
        "timestamp": "2026-11-16T08:30:00.000Z",
        "data": {"type": "behavioral", "scope": "global", "source": "human"},
        "actor": "engram",
    }


def test_an_empty_or_missing_directory_is_filled(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("missing", "empty"):
        assert write(tmp_path / name, new_memory()) == (["ENG-2026-1116-001"], [])
        text = (tmp_path / name / "engrams.yaml").read_text("utf-8")
        assert text.startswith("engrams:\n  - id: ENG-2026-1116-001\n")
        assert ENTRY(entries(tmp_path / name)[0])
    write(tmp_path / "none")
    assert (tmp_path / "none" / "engrams.yaml").read_text("utf-8") == "engrams: []\n"


def test_a_directory_that_holds_anything_is_never_written_to(plur: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in plur.rglob("*") if path.is_file()}
    with pytest.raises(InvalidInput, match=r"is not empty.*give a new one"):
        write(plur, new_memory())
    assert {path: path.read_bytes() for path in plur.rglob("*") if path.is_file()} == before
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="is not a directory"):
        write(tmp_path / "file", new_memory())


def test_a_memory_plur_cannot_hold_is_left_out_with_its_reason(tmp_path: Path) -> None:
    created, left_out = write(
        tmp_path / "fresh",
        new_memory(statement=""),
        new_memory(id="ENG-2", statement="half \ud83d"),
        new_memory(id="ENG-3"),
    )
    assert [name for name, _ in left_out] == ["ENG-2026-1116-001", "ENG-2"]
    assert "empty statement" in left_out[0][1]
    assert "surrogate" in left_out[1][1]
    assert created == ["ENG-3"]


def test_a_failed_write_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(StoreReadOnly, match="No space left on device; choose another place"):
        write(tmp_path / "fresh", new_memory())
    assert not (tmp_path / "fresh" / "engrams.yaml").exists()
