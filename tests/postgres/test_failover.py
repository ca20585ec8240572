"""A primary that dies and a standby that takes over: nothing acknowledged is lost, nothing is there twice."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from engram import Engram
from tests.postgres.server import Server
from tests.postgres.standby import HAS_PROCESSES, Pair, pair, wait_until
from tests.postgres.workers.agreement import disagreements
from tests.postgres.workers.endured import endured
from tests.postgres.workers.enduring import shared_memories
from tests.postgres.workers.starting import Crowd, crowd

pytestmark = pytest.mark.skipif(not HAS_PROCESSES, reason="killing a whole server at once needs /proc")


@pytest.fixture(scope="module")
def servers(postgres_server: Server) -> Iterator[Pair]:
    """A primary and a synchronous standby; whoever kills one lets it come back."""
    with pair(postgres_server.kept, synchronous=True) as made:
        yield made


def write_more(everyone: Crowd, more: int) -> None:
    """Until so many more writes were acknowledged than when asked."""

    def acknowledged() -> int:
        return sum(line.get("told") == "done" for line in everyone.told)

    wanted = acknowledged() + more
    wait_until(lambda: acknowledged() >= wanted, "writers write again")


def test_writers_outlive_a_failover_and_nothing_acknowledged_is_lost_or_doubled(
    servers: Pair, tenant: str, tmp_path: Path
) -> None:
    url = servers.new_database()
    with Engram.open(url=url, tenant=tenant) as mem:
        shared = shared_memories(mem)
    with crowd("enduring", tmp_path, 2, 4, url=url, tenant=tenant, shared=shared) as everyone:
        everyone.begin()
        write_more(everyone, 60)
        servers.fail_over()
        write_more(everyone, 60)
        servers.rejoin()
        told = everyone.end()
    result = endured(url, tenant, told)
    assert result.troubles == {}
    assert disagreements(url, tenant) == []
