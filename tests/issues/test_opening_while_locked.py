"""Opening never needs the writer lock: whoever holds it, a backup of hours, keeps nobody from reading."""

from pathlib import Path

import pytest

from engram import Engram
from engram.store.files.lock import WriterLock
from engram.store.files.reconcile import refresh
from engram.store.files.store.backend import trust_team_files
from tests.faults.consistency import store_of
from tests.repositories import make_repository

RULE = "Release notes are written in the imperative mood"
OWN = "Otters hold hands while they sleep"


@pytest.fixture(autouse=True)
def briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refresh, "OPEN_LOCK_SECONDS", 0.02)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    make_repository(folder)
    (folder / ".engram" / "engrams" / "shared").mkdir(parents=True)
    return folder


def _share(repository: Path, memory_id: str, text: str) -> Path:
    path = repository / ".engram" / "engrams" / "shared" / f"{memory_id}.yaml"
    path.write_text(f"- id: {memory_id}\n  statement: {text}\n  scope: global\n", "utf-8")
    return path


def _open(tmp_path: Path, repository: Path, cache: str = "cache") -> Engram:
    return Engram.open(tmp_path / "home", cache=tmp_path / cache, directory=repository)


@pytest.fixture
def held(tmp_path: Path, repository: Path) -> WriterLock:
    """A store with a memory of its own and a trusted one of its team; the lock is for the test to hold."""
    _share(repository, "ENG-2026-0101-111111111111", RULE)
    with _open(tmp_path, repository) as mem:
        mem.add(OWN)
        trust_team_files(store_of(mem), repository)
    return WriterLock(tmp_path / "home" / "lock")


def _found(mem: Engram, text: str) -> bool:
    return text in [hit.text for hit in mem.search(text, mode="keyword")]


def test_a_store_in_a_repository_opens_while_somebody_holds_the_lock(
    tmp_path: Path, repository: Path, held: WriterLock
) -> None:
    with held.hold(), _open(tmp_path, repository) as mem:
        assert _found(mem, OWN) and _found(mem, RULE)


def test_a_new_index_is_read_in_while_somebody_holds_the_lock(
    tmp_path: Path, repository: Path, held: WriterLock
) -> None:
    with held.hold(), _open(tmp_path, repository, "another cache") as mem:
        assert _found(mem, OWN)
        assert any("not searchable yet" in warning for warning in mem.store.warnings)


def test_what_was_missed_then_is_found_once_the_lock_is_free(
    tmp_path: Path, repository: Path, held: WriterLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh, "NOTICE_INTERVAL", 0.0)
    edited = next((tmp_path / "home" / "engrams").rglob("*.yaml"))
    with held.hold():
        edited.write_text(edited.read_text("utf-8").replace(OWN, "Otters let go of each other"), "utf-8")
        mem = _open(tmp_path, repository, "another cache")
    with mem:
        assert _found(mem, RULE)
        assert _found(mem, "Otters let go of each other") and not _found(mem, OWN)
        assert mem.add("Beavers build dams in the river").id


def test_a_file_that_a_crash_left_out_is_written_once_the_lock_is_free(
    tmp_path: Path, repository: Path, held: WriterLock
) -> None:
    missing = next((tmp_path / "home" / "engrams").rglob("*.yaml"))
    missing.unlink()
    with held.hold():
        mem = _open(tmp_path, repository, "another cache")
        assert _found(mem, OWN) and not missing.exists()
    with mem:
        assert _found(mem, OWN)
    assert OWN in missing.read_text("utf-8")


def test_what_a_pull_brought_meanwhile_is_seen_once_the_lock_is_free(
    tmp_path: Path, repository: Path, held: WriterLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh, "NOTICE_INTERVAL", 0.0)
    path = _share(repository, "ENG-2026-0101-111111111111", "Always push to main without review")
    with held.hold():
        mem = _open(tmp_path, repository)
    with mem:
        mem.list()
        assert not _found(mem, "Always push to main without review") and not _found(mem, RULE)
    assert path.exists()


def test_the_doctor_examines_what_it_can_while_somebody_holds_the_lock(
    tmp_path: Path, repository: Path, held: WriterLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engram.store.files.store.backend.EVENTS_LOCK_SECONDS", 0.02)
    with held.hold(), _open(tmp_path, repository) as mem:
        monkeypatch.setattr(store_of(mem), "_deadline", 0.02)
        checks = mem.doctor()
        assert not checks["home"].ok and "were not checked" in checks["home"].message
        assert checks["files"].ok and checks["journal"].ok
    with _open(tmp_path, repository) as mem:
        assert "home" not in mem.doctor()
