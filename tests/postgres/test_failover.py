"""A primary that dies and a standby that takes over: nothing acknowledged is lost, nothing is there twice, nobody is told wrongly."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from engram import Engram
from tests.faults.workers.operations import sentence
from tests.postgres.server import Server
from tests.postgres.standby import HAS_PROCESSES, Pair, pair, wait_until
from tests.postgres.workers.agreement import disagreements
from tests.postgres.workers.doubting import Doubt, Doubts, doubts
from tests.postgres.workers.endured import endured
from tests.postgres.workers.enduring import DONE, REFUSED, shared_memories
from tests.postgres.workers.starting import Crowd, crowd
from tests.postgres.workers.writes import WRITES

pytestmark = pytest.mark.skipif(not HAS_PROCESSES, reason="killing a whole server at once needs /proc")


@pytest.fixture(scope="module")
def both(postgres_server: Server) -> Iterator[Pair]:
    """A primary and a synchronous standby."""
    with pair(postgres_server.kept, synchronous=True) as made:
        yield made


@pytest.fixture
def servers(both: Pair) -> Pair:
    """The two, in step and synchronous, whatever was done to them before."""
    both.synchronous = True
    both.restore()
    return both


# -- under load


def write_more(everyone: Crowd, more: int) -> None:
    """Until so many more writes were acknowledged than when asked."""

    def acknowledged() -> int:
        return sum(line.get("told") == DONE for line in everyone.told)

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
        told = everyone.end()
    assert endured(url, tenant, told).troubles == {}
    assert disagreements(url, tenant) == []


# -- the answer to a commit

COMMITTED = dict.fromkeys(WRITES, (DONE, 1.0))
NOT_COMMITTED = dict.fromkeys(WRITES, (REFUSED, 0.0))
ONCE = dict.fromkeys(WRITES, 1.0)


def wait_until_all_wait(servers: Pair, every: Doubts, for_what: str) -> None:
    """Until the server lets as many of Engram's connections wait for something as there are writes."""
    with servers.primary.admin() as admin:
        asked = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'engram' AND %s IN (wait_event, wait_event_type)"
        wait_until(lambda: admin.execute(asked, (for_what,)).fetchone() == (every.count,), f"all wait for {for_what}")


def end_the_wait_for_the_standby(servers: Pair, how: str) -> None:
    """Whoever waits for the standby waits no longer: the commit stands on the primary, and nowhere else."""
    with servers.primary.admin() as admin:
        ended = f"SELECT pg_{how}_backend(pid) FROM pg_stat_activity WHERE application_name = 'engram' AND wait_event = 'SyncRep'"
        admin.execute(ended.encode())


def test_a_commit_that_reached_the_standby_is_a_success(servers: Pair, tenant: str) -> None:
    with doubts(servers, tenant) as every:
        every.commit()
        servers.fail_over()
        every.release()
        assert every.outcomes() == COMMITTED
        assert every.disagreements() == []


@pytest.mark.heavy
def test_a_commit_that_never_reached_the_primary_is_an_error(servers: Pair, tenant: str) -> None:
    with doubts(servers, tenant) as every:
        servers.fail_over()
        every.release()
        assert every.outcomes() == NOT_COMMITTED
        assert every.write_again() == ONCE
        assert every.disagreements() == []


@pytest.mark.heavy
def test_behind_one_address_a_standby_that_takes_no_writes_yet_is_asked_again(servers: Pair, tenant: str) -> None:
    with doubts(servers, tenant, one_address=True) as every:
        every.commit()
        servers.kill_primary()
        every.lead_to(servers.standby_port)
        every.release()
        wait_until(lambda: every.asked_since, "everyone asks the standby")
        assert every.none_is_told
        servers.promote()
        assert every.outcomes() == COMMITTED


@pytest.mark.heavy
@pytest.mark.parametrize("arrives", [True, False])
def test_a_commit_that_waits_for_the_standby_is_waited_for(servers: Pair, tenant: str, arrives: bool) -> None:
    with doubts(servers, tenant) as every:
        with servers.standby_cut_off():
            every.each(Doubt.commit_it)
            wait_until_all_wait(servers, every, "SyncRep")
            every.each(Doubt.break_off)
            wait_until_all_wait(servers, every, "Lock")
            assert every.none_is_told
            if not arrives:
                servers.fail_over()
        assert every.outcomes() == (COMMITTED if arrives else NOT_COMMITTED)
        assert every.disagreements() == []


@pytest.mark.heavy
def test_a_commit_that_stands_on_the_primary_alone_is_not_taken_for_one_that_lasts(servers: Pair, tenant: str) -> None:
    with doubts(servers, tenant) as every:
        with servers.standby_cut_off():
            every.each(Doubt.commit_it)
            wait_until_all_wait(servers, every, "SyncRep")
            end_the_wait_for_the_standby(servers, "terminate")
            every.release()
            wait_until_all_wait(servers, every, "SyncRep")
            assert every.none_is_told
            servers.fail_over()
        assert every.outcomes() == NOT_COMMITTED


@pytest.mark.heavy
def test_a_commit_that_has_waited_too_long_for_the_standby_is_not_acknowledged(servers: Pair, tenant: str) -> None:
    """The server says so by a warning, and calls it committed: the same as when `statement_timeout` ends the wait."""
    with doubts(servers, tenant) as every:
        with servers.standby_cut_off():
            every.each(lambda doubt: doubt.commit_it(aloud=True))
            wait_until_all_wait(servers, every, "SyncRep")
            end_the_wait_for_the_standby(servers, "cancel")
            wait_until_all_wait(servers, every, "SyncRep")
            assert every.none_is_told
            servers.fail_over()
        assert every.outcomes() == NOT_COMMITTED


@pytest.mark.heavy
def test_a_lost_commit_is_not_taken_for_anothers_whose_numbers_are_the_same(servers: Pair, tenant: str) -> None:
    servers.keep(synchronous=False)
    with doubts(servers, tenant) as every:
        servers.wait_until_in_step()
        with servers.standby_cut_off():
            every.commit()
            servers.fail_over()
        with Engram.open(url=every.url, tenant=f"{tenant}-other") as other:
            other.add_batch([{"statement": sentence(100 + n)} for n in range(40)])
            other.observe_batch("talk", [{"role": "user", "content": sentence(n)} for n in range(10)])
        every.each(lambda doubt: doubt.watching.learn(sentence(100)) if doubt.verb in ("learn", "add_batch") else None)
        every.release()
        assert every.outcomes() == NOT_COMMITTED
        assert every.write_again() == ONCE
        assert every.disagreements() == []
