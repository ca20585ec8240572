"""A PLUR directory read whole, and merged into beside a running PLUR."""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from ryaml import loads as read_yaml_1_2  # type: ignore[attr-defined]

from engram.dialects.plur import read_plur, write_plur
from engram.dialects.plur.lock import plur_lock
from engram.model.errors import NotFound, StoreBusy, StoreCorrupt, StoreError, StoreReadOnly
from engram.model.memory import Feedback, Memory

from .plur_schema import ENTRY

FIXTURE = Path(__file__).parent / "fixtures" / "plur"
NOW = datetime(2026, 11, 16, 8, 30, tzinfo=UTC)


@pytest.fixture
def plur(tmp_path: Path) -> Path:
    """A copy of the fixture directory."""
    return Path(shutil.copytree(FIXTURE, tmp_path / "plur"))


def write(directory: Path, *memories: Memory, **options: Any) -> Any:
    """Write with the test's clock and name."""
    return write_plur(directory, memories, now=NOW, actor="engram", **options)


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


def test_what_cannot_be_read_is_named_with_its_reason_and_kept(plur: Path) -> None:
    wrong_field, no_record = read_plur(plur).quarantined
    assert wrong_field.where.endswith("engrams.yaml record 4")
    assert "activation.last_accessed of my_id" in wrong_field.reason
    assert wrong_field.record["id"] == "my_id"
    assert no_record.record == "just a line"


def test_what_is_not_imported_is_said(plur: Path) -> None:
    packs, tensions = read_plur(plur).not_read
    assert "house-style" in packs and "1 records" in packs
    assert "tensions.yaml: 1 records" in tensions
    assert [memory.id for memory in read_plur(plur, packs=True)][-1] == "ENG-PACK-HOUSE-001"


def test_the_file_itself_may_be_given_and_a_wrong_directory_is_named(plur: Path, tmp_path: Path) -> None:
    assert len(read_plur(plur / "engrams.yaml")) == 6
    with pytest.raises(NotFound, match=r"holds no engrams\.yaml"):
        read_plur(tmp_path)


def test_a_second_record_with_the_same_id_is_not_lost(plur: Path) -> None:
    with (plur / "engrams.yaml").open("a", encoding="utf-8") as file:
        file.write("  - {id: ENG-2026-11-15-002, statement: Another one.}\n")
    reading = read_plur(plur)
    assert "twice" in reading.quarantined[-1].reason
    assert reading.quarantined[-1].record["statement"] == "Another one."


def test_a_directory_written_from_its_own_reading_is_not_changed(plur: Path) -> None:
    before = (plur / "engrams.yaml").read_text("utf-8")
    memories = [memory for memory in read_plur(plur) if memory.status != "candidate"]
    report = write(plur, *memories)
    assert (plur / "engrams.yaml").read_text("utf-8") == before
    assert len(report.unchanged) == 5
    assert report.created == []


def test_everything_read_from_one_directory_can_be_written_to_another_and_read_again(
    plur: Path, tmp_path: Path
) -> None:
    reading = read_plur(plur)
    report = write(tmp_path / "other", *reading)
    assert sorted(report.created) == sorted(memory.id for memory in reading)
    assert read_plur(tmp_path / "other").memories == tuple(
        sorted(reading, key=lambda memory: memory.id.startswith("EP-"))
    )
    originals = {entry["id"]: entry for entry in entries(plur)[:3]}
    for entry in entries(tmp_path / "other"):
        assert ENTRY(entry)
        for key, value in originals.get(entry["id"], {}).items():
            assert entry[key] == value
    assert yaml.safe_load((tmp_path / "other" / "episodes.yaml").read_text("utf-8")) == yaml.safe_load(
        (plur / "episodes.yaml").read_text("utf-8")
    )


def test_a_new_memory_is_added_and_every_other_byte_stays(plur: Path) -> None:
    before = (plur / "engrams.yaml").read_text("utf-8")
    report = write(plur, new_memory())
    after = (plur / "engrams.yaml").read_text("utf-8")
    assert after.startswith(before)
    assert after[len(before) :].startswith("  - id: ENG-2026-1116-001\n    version: 2\n")
    assert (report.created, report.kept) == (["ENG-2026-1116-001"], 5)
    assert ENTRY(entries(plur)[-1])


def test_a_changed_memory_replaces_its_own_record_only(plur: Path) -> None:
    first = read_plur(plur).memories[0]
    changed = first.but(statement="Quote dates.", rationale="", updated=NOW)
    before = (plur / "engrams.yaml").read_text("utf-8").split("  # the shortest engram")
    report = write(plur, changed)
    after = (plur / "engrams.yaml").read_text("utf-8").split("  # the shortest engram")
    assert after[1] == before[1]
    assert after[0].startswith("# kept by hand")
    assert report.updated == ["ENG-2026-11-15-001"]
    entry = entries(plur)[0]
    assert entry["statement"] == "Quote dates." and "rationale" not in entry
    assert (entry["commitment"], entry["write_count"], entry["x_team"]) == ("leaning", 3, {"owner": "docs"})


def test_fields_of_plurs_own_that_moved_on_meanwhile_are_kept(plur: Path) -> None:
    first = read_plur(plur).memories[0]
    text = (plur / "engrams.yaml").read_text("utf-8")
    (plur / "engrams.yaml").write_text(text.replace("write_count: 3", "write_count: 9"), "utf-8")
    write(plur, first.but(statement="Quote dates.", updated=NOW))
    assert entries(plur)[0]["write_count"] == 9


def test_an_engram_plur_changed_later_is_left_to_plur_and_said_so(plur: Path) -> None:
    first = read_plur(plur).memories[0]
    text = (plur / "engrams.yaml").read_text("utf-8")
    (plur / "engrams.yaml").write_text(text.replace("2026-11-15T01:53:08.795Z", "2026-12-01T00:00:00.000Z"), "utf-8")
    report = write(plur, first.but(statement="Quote dates.", updated=NOW))
    assert report.left_out == [("ENG-2026-11-15-001", "PLUR changed it later; import it from there first")]
    assert entries(plur)[0]["statement"].startswith("Quote every date")


def test_history_tells_plur_which_ids_exist(plur: Path) -> None:
    write(plur, new_memory(source="human"), read_plur(plur).memories[1].but(statement="Migrate first.", updated=NOW))
    lines = (plur / "history" / "2026-11.jsonl").read_text("utf-8").splitlines()
    updated, created = (json.loads(line) for line in lines[1:])
    assert created == {
        "event": "engram_created",
        "engram_id": "ENG-2026-1116-001",
        "timestamp": "2026-11-16T08:30:00.000Z",
        "data": {"type": "behavioral", "scope": "global", "source": "human"},
        "actor": "engram",
    }
    assert updated["event"] == "engram_updated"
    assert updated["data"]["new_statement"] == "Migrate first."


def test_an_empty_or_missing_store_is_filled(tmp_path: Path) -> None:
    write(tmp_path / "fresh", new_memory())
    assert (tmp_path / "fresh" / "engrams.yaml").read_text("utf-8").startswith("engrams:\n  - id: ENG-2026-1116-001\n")
    (tmp_path / "fresh" / "engrams.yaml").write_text("engrams: []\n")
    write(tmp_path / "fresh", new_memory())
    assert [entry["id"] for entry in entries(tmp_path / "fresh")] == ["ENG-2026-1116-001"]


@pytest.mark.parametrize("content", ["", "engrams:\n", "- id: ENG-1\n", "engrams: [\n", "other: []\n"])
def test_a_store_that_cannot_be_read_is_never_overwritten(tmp_path: Path, content: str) -> None:
    (tmp_path / "engrams.yaml").write_text(content)
    with pytest.raises(StoreCorrupt, match=r"engrams\.yaml"):
        write(tmp_path, new_memory())
    assert (tmp_path / "engrams.yaml").read_text() == content
    assert not (tmp_path / "engrams.yaml.lock").exists()


@pytest.mark.parametrize(
    "content",
    [
        "engrams: [{id: my_id, date: 2026-01-31}, {id: ENG-1, status: active, type: behavioral, scope: g, statement: s}]\n",
        "engrams:\n- id: my_id\n  x: 1\n-\n  id: ENG-2\n",
        "# c\r\nengrams:\r\n  - id: my_id\r\n    x: 1\r\n",
        "before: 1\nengrams:\n  - id: my_id\nafter: {a: [2]}\n",
    ],
    ids=["flow", "loose", "windows", "other-keys"],
)
def test_whatever_the_layout_foreign_records_keep_their_values(tmp_path: Path, content: str) -> None:
    (tmp_path / "engrams.yaml").write_text(content, newline="")
    before = yaml.load(content, Loader=yaml.BaseLoader)
    write(tmp_path, new_memory())
    after = yaml.load((tmp_path / "engrams.yaml").read_text("utf-8"), Loader=yaml.BaseLoader)
    assert after.pop("engrams")[:-1] == before.pop("engrams")
    assert after == before


def test_a_memory_plur_cannot_hold_is_left_out_with_its_reason(plur: Path) -> None:
    report = write(
        plur, new_memory(statement=""), new_memory(id="ENG-2", statement="half \ud83d"), new_memory(id="ENG-3")
    )
    assert [name for name, _ in report.left_out] == ["ENG-2026-1116-001", "ENG-2"]
    assert "empty statement" in report.left_out[0][1]
    assert "surrogate" in report.left_out[1][1]
    assert report.created == ["ENG-3"]


def test_the_mode_of_the_file_is_kept_and_no_draft_stays(plur: Path) -> None:
    (plur / "engrams.yaml").chmod(0o666)
    write(plur, new_memory())
    assert (plur / "engrams.yaml").stat().st_mode & 0o777 == 0o666
    assert not [name for name in os.listdir(plur) if name.endswith((".tmp", ".lock", ".stale"))]


def test_a_failed_write_leaves_the_file_as_it_was(plur: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (plur / "engrams.yaml").read_bytes()

    def no_space(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(StoreError, match="No space left on device; the file is as it was"):
        write(plur, new_memory())
    assert (plur / "engrams.yaml").read_bytes() == before
    assert not [name for name in os.listdir(plur) if name.endswith((".tmp", ".lock"))]


def test_a_place_that_takes_no_files_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreReadOnly, match=r"file: cannot be made a directory: .*nothing was written"):
        write(tmp_path / "file", new_memory())
    with pytest.raises(StoreReadOnly, match=r"lock: cannot be created"), plur_lock(tmp_path / "gone" / "f"):
        pass


def test_a_live_holder_is_waited_for_and_then_named(plur: Path) -> None:
    token = f"{socket.gethostname()}:{os.getpid()}:1:0"
    (plur / "engrams.yaml.lock").write_text(token)
    with pytest.raises(StoreBusy, match=f"held by {token}"):
        write(plur, new_memory(), wait=0.05)
    assert (plur / "engrams.yaml.lock").read_text() == token
    assert len(entries(plur)) == 5


def test_the_write_goes_through_when_the_holder_lets_go(plur: Path) -> None:
    lock = plur / "engrams.yaml.lock"
    lock.write_text(f"{socket.gethostname()}:{os.getpid()}:1:0")
    release = threading.Timer(0.1, lock.unlink)
    release.start()
    assert write(plur, new_memory(), wait=10).created == ["ENG-2026-1116-001"]
    release.join()


def test_the_lock_of_a_dead_process_is_taken(plur: Path) -> None:
    child = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    (plur / "engrams.yaml.lock").write_text(f"{socket.gethostname()}:{int(child.stdout)}:1:0")
    assert write(plur, new_memory(), wait=0).created == ["ENG-2026-1116-001"]


@pytest.mark.parametrize(("age", "taken"), [(30, False), (90, True)])
def test_the_lock_of_an_unknown_host_is_taken_only_after_a_minute(plur: Path, age: float, taken: bool) -> None:
    lock = plur / "engrams.yaml.lock"
    lock.write_text("elsewhere:1:1:0")
    os.utime(lock, (time.time() - age, time.time() - age))
    if taken:
        assert write(plur, new_memory(), wait=0).created == ["ENG-2026-1116-001"]
    else:
        with pytest.raises(StoreBusy):
            write(plur, new_memory(), wait=0)


def test_only_the_own_lock_is_released(tmp_path: Path) -> None:
    with plur_lock(tmp_path / "f"):
        (tmp_path / "f.lock").write_text("somebody:else:took:it")
    assert (tmp_path / "f.lock").read_text() == "somebody:else:took:it"


_WRITER = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from engram.dialects.plur import write_plur
from engram.model.memory import Memory
name, directory = sys.argv[1:]
for n in range(5):
    memory = Memory(id=f"ENG-{name}-{n}", statement=f"{name} {n}")
    write_plur(Path(directory), [memory], now=datetime(2026, 11, 16, tzinfo=UTC), actor=name)
"""


def test_writers_at_the_same_time_lose_nothing(plur: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    writers = [
        subprocess.Popen([sys.executable, "-c", _WRITER, name, str(plur)], env=environment) for name in ("A", "B", "C")
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    ids = [entry["id"] for entry in entries(plur)[5:]]
    assert sorted(ids) == sorted(f"ENG-{name}-{n}" for name in "ABC" for n in range(5))
    assert len((plur / "history" / "2026-11.jsonl").read_text("utf-8").splitlines()) == 16
