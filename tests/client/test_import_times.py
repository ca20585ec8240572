"""`imported_at` in the future would keep a memory from becoming stale: it is dated now."""

from datetime import timedelta
from pathlib import Path

from engram import Engram
from tests.clock import Clock


def test_an_import_in_the_future_is_dated_now(tmp_path: Path, clock: Clock) -> None:
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path, clock=clock) as mem:
        later, before = clock() + timedelta(days=900), clock() - timedelta(days=9)
        tomorrow = clock() + timedelta(days=1)
        added = mem.add("The office is in Kiel.", scope="global", imported_at=later)
        assert mem.add("The lab is in Bonn.", scope="global", imported_at=before).imported_at == before
        updated = mem.update(added.id, imported_at=later)
        revised = mem.revise(added.id, statement="The office is in Bonn.", imported_at=later)
        for memory in (added, updated, revised):
            assert memory.imported_at is not None and memory.imported_at < tomorrow
