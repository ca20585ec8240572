"""Where a server differs from files on purpose, it says so and says what to do instead."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from engram import Engram
from engram.model.errors import InvalidInput
from tests.backends import OnPostgres
from tests.clock import Clock
from tests.postgres.server import Server


@pytest.fixture
def mem(shared_database: str, tenant: str, clock: Clock, postgres_server: Server) -> Iterator[Engram]:
    """A memory on the server."""
    backend = OnPostgres(clock, shared_database, tenant, postgres_server)
    yield backend.client()
    backend.close()


def test_a_team_store_is_files_in_a_repository(mem: Engram) -> None:
    with pytest.raises(InvalidInput, match="team"):
        mem.add("Write the changelog in the imperative", team=True)
    assert mem.list() == []


def test_a_server_is_backed_up_with_its_own_tools(mem: Engram, tmp_path: Path) -> None:
    mem.add("The staging server is called nightshift")
    target = tmp_path / "backup.tar.gz"
    with pytest.raises(InvalidInput, match="pg_dump"):
        mem.upkeep.backup(target)
    assert not target.exists()


def test_memories_on_a_server_are_no_files(mem: Engram) -> None:
    kept = mem.add("The staging server is called nightshift")
    assert mem.home is None
    assert mem.store.file_of(kept.id) == ""
    assert mem.store.trusted_here(Path.cwd()) == frozenset()
