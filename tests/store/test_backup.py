"""Backup and restore: everything comes back, or nothing is touched."""

import random
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from engram import Engram
from engram.model.errors import InvalidInput, StoreCorrupt
from engram.store.files.store.backup import restore
from tests.faults.consistency import assert_consistent, digest_of_tree, last_images, snapshot, store_of

WHEN = datetime(2026, 5, 1, 12, tzinfo=UTC)


def _filled(tmp_path: Path) -> Engram:
    mem = Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path)
    first = mem.add("Okapis are fed at noon", tags=["zoo"], metadata={"a": [1, {"b": "ü"}]})
    mem.add("动物园周一关门", scope="project:zoo/gate")
    mem.update(first.id, rationale="they told us")
    mem.feedback(first.id, "positive")
    mem.observe("talk", "user", "the gate was closed", key="1")
    mem.forget(mem.add("To be purged").id, purge=True)
    mem.store.change_state("buffer/talk", lambda _: {"turns": [1]})
    return mem


def test_a_restored_store_is_the_store_that_was_backed_up(tmp_path: Path) -> None:
    with _filled(tmp_path) as mem:
        told = mem.upkeep.backup(tmp_path / "backup.tar.gz")
        before = snapshot(store_of(mem))
    assert (tmp_path / "backup.tar.gz").stat().st_mode & 0o777 == 0o600
    digest = digest_of_tree(tmp_path / "home")
    restored = restore(tmp_path / "backup.tar.gz", tmp_path / "again")
    assert restored["files"] == told["files"]
    assert digest_of_tree(tmp_path / "again") == digest
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "again").rglob("*"))
    with Engram.open(tmp_path / "again", cache=tmp_path / "cache", directory=tmp_path) as mem:
        after = snapshot(store_of(mem))
        assert {table: before[table] for table in before if table != "files"} == {
            table: after[table] for table in after if table != "files"
        }
        assert mem.store.state("buffer/talk") == {"turns": [1]}
        assert mem.add("One more").id not in last_images(tmp_path / "home")
    assert_consistent(tmp_path / "again", tmp_path / "cache")


def test_an_existing_store_is_not_overwritten(tmp_path: Path) -> None:
    with _filled(tmp_path) as mem:
        mem.upkeep.backup(tmp_path / "backup.tar.gz")
        late = mem.add("After the backup")
    before = digest_of_tree(tmp_path / "home")
    with pytest.raises(InvalidInput, match="not empty"):
        restore(tmp_path / "backup.tar.gz", tmp_path / "home")
    assert digest_of_tree(tmp_path / "home") == before
    restore(tmp_path / "backup.tar.gz", tmp_path / "home", force=True)
    restore(tmp_path / "backup.tar.gz", tmp_path / "home", force=True)
    assert digest_of_tree(tmp_path / "home.before-restore") == before
    assert (tmp_path / "home.before-restore-1").is_dir()
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as mem:
        assert mem.store.get(late.id) is None


@pytest.mark.parametrize("seed", range(12))
def test_nothing_of_a_damaged_archive_is_restored(tmp_path: Path, seed: int) -> None:
    with _filled(tmp_path) as mem:
        mem.upkeep.backup(tmp_path / "backup.tar.gz")
    shutil.rmtree(tmp_path / "home")
    data = bytearray((tmp_path / "backup.tar.gz").read_bytes())
    chosen = random.Random(seed)
    if seed % 3 == 0:
        # Not in the last bytes: they are only padding, and the archive would be intact.
        data = data[: chosen.randrange(20, len(data) * 3 // 4)]
    else:
        for _ in range(8):
            data[chosen.randrange(30, len(data) - 10)] ^= 1 << chosen.randrange(8)
    (tmp_path / "backup.tar.gz").write_bytes(bytes(data))
    with pytest.raises(StoreCorrupt, match="nothing was restored"):
        restore(tmp_path / "backup.tar.gz", tmp_path / "home")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["backup.tar.gz", "cache"]


def test_pruning_keeps_last_images_tombstones_and_numbers(tmp_path: Path) -> None:
    now = WHEN

    def clock() -> datetime:
        return now

    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path, clock=clock) as mem:
        kept = mem.add("Okapis are fed at noon")
        for n in range(4):
            mem.update(kept.id, rationale=f"reason {n}")
        gone = mem.add("To be purged")
        mem.forget(gone.id, purge=True)
        mem.feedback(kept.id, "positive")
        with mem.session("okapis") as session:
            session.observe("user", "what of okapis")
        session_id = session.id
        now = WHEN + timedelta(days=100)
        recent = mem.update(kept.id, rationale="recent")
        mem.recall("okapis")
        mem.upkeep.fold()

        planned = mem.store.prune(now, 30, 30, 30, dry_run=True)
        assert planned.images >= 5 and planned.usage_months == ("2026-05",) and len(planned.ledgers) == 1
        assert len(mem.history(kept.id)) >= 6, "a dry run takes nothing away"
        assert mem.store.prune(now, 30, 30, 30, dry_run=False) == planned

        assert [image.memory and image.memory.rationale for image in mem.history(kept.id)][-1] == "recent"
        assert len(mem.history(kept.id)) < 4
        assert mem.get(kept.id) == recent or mem.get(kept.id).rationale == "recent"
        assert mem.get(kept.id).feedback.positive == 1
        assert mem.store.events(session_id) == []
        assert mem.store.get(gone.id) is None
        now = WHEN
        assert mem.add("A new one of that day").id not in (kept.id, gone.id)
    assert last_images(tmp_path / "home")[gone.id] == (None, "")
    assert_consistent(tmp_path / "home", tmp_path / "cache")
