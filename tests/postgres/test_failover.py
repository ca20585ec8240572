"""A primary that dies and a standby that takes over: nothing acknowledged is lost, nothing is there twice, nobody is told wrongly."""

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from engram import Engram
from engram.model.errors import StoreBusy
from engram.store.postgres.database import Numbers
from tests.faults.processes import environment
from tests.faults.workers.operations import sentence
from tests.postgres.server import Server
from tests.postgres.standby import HAS_PROCESSES, Pair, pair
from tests.postgres.workers.acknowledged import wait_for
from tests.postgres.workers.agreement import disagreements
from tests.postgres.workers.doubting import Doubt, Doubts, doubts
from tests.postgres.workers.endured import Endured, endured
from tests.postgres.workers.enduring import DONE, REFUSED, shared_memories
from tests.postgres.workers.starting import Crowd, crowd
from tests.postgres.workers.writes import WRITES

PATIENCE = 120.0
pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(not HAS_PROCESSES, reason="killing a whole server at once needs /proc"),
]


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
    wait_for(lambda: acknowledged() >= wanted, "writers write again")


@dataclass(frozen=True, slots=True)
class Load:
    """Writers at work, on a database of their own."""

    url: str
    tenant: str
    everyone: Crowd

    def result(self) -> Endured:
        """Let them stop; what they were told, held against the tables, which agree with each other."""
        result = endured(self.url, self.tenant, self.everyone.end())
        assert disagreements(self.url, self.tenant) == []
        return result


@contextmanager
def load(servers: Pair, tenant: str, folder: Path, processes: int = 2) -> Iterator[Load]:
    """Processes of four threads each that write whatever there is to write."""
    url = servers.new_database()
    with Engram.open(url=url, tenant=tenant) as mem:
        shared = shared_memories(mem)
    with crowd("enduring", folder, processes, 4, url=url, tenant=tenant, shared=shared) as everyone:
        everyone.begin()
        write_more(everyone, 40)
        yield Load(url, tenant, everyone)


def test_writers_outlive_a_failover_and_nothing_acknowledged_is_lost_or_doubled(
    servers: Pair, tenant: str, tmp_path: Path
) -> None:
    with load(servers, tenant, tmp_path) as writing:
        servers.fail_over()
        write_more(writing.everyone, 40)
        assert writing.result().troubles == {}


def test_failovers_in_a_row_while_clients_are_killed_too(servers: Pair, tenant: str, tmp_path: Path) -> None:
    with load(servers, tenant, tmp_path, processes=4) as writing:
        pids = [line["pid"] for line in writing.everyone.told if "pid" in line]
        for pid in pids[1:]:
            servers.fail_over()
            writing.everyone.kill(pid)
            write_more(writing.everyone, 40)
            servers.rejoin()
        assert writing.result().troubles == {}


def test_both_servers_die_in_turn_as_soon_as_each_can(servers: Pair, tenant: str, tmp_path: Path) -> None:
    """Where commits wait for a standby even while there is none, no moment is a bad one to die."""
    with load(servers, tenant, tmp_path) as writing:
        for _ in range(4):
            servers.kill_primary()
            servers.promote(waits=True)
            servers.rejoin()
        write_more(writing.everyone, 40)
        assert writing.result().troubles == {}


@pytest.mark.parametrize("seconds", [0.0, 0.1, 0.2, 0.4])
def test_a_standby_that_dies_while_it_takes_over_takes_over_when_it_is_back(
    servers: Pair, tenant: str, tmp_path: Path, seconds: float
) -> None:
    with load(servers, tenant, tmp_path) as writing:
        servers.kill_primary()
        servers.promote_and_crash(after=seconds)
        write_more(writing.everyone, 40)
        assert writing.result().troubles == {}


def test_a_standby_that_lags_costs_what_was_acknowledged_last_and_leaves_the_store_whole(
    servers: Pair, tenant: str, tmp_path: Path
) -> None:
    servers.keep(synchronous=False)
    with load(servers, tenant, tmp_path) as writing:
        before = time.monotonic()  # what is answered while the standby catches up may not reach it
        servers.wait_until_in_step()
        with servers.standby_cut_off():
            write_more(writing.everyone, 60)
            servers.kill_primary()
            servers.promote()
        after = time.monotonic()
        write_more(writing.everyone, 60)
        result = writing.result()
    assert result.lost != []
    assert [key for key in result.lost if not result.during(key, before, after)] == []
    assert (result.doubled, result.halves, result.told_wrongly) == ([], [], [])
    # An id that was given out twice was given to one memory that was lost and to one that is there.
    gone = [i for key in result.lost for i in result.answers[key]["ids"]]
    assert len(set(gone)) == len(gone)
    assert set(result.ids_given_twice) <= set(gone)
    assert set(Counter(i for line in result.answers.values() for i in line.get("ids", ())).values()) <= {1, 2}


def test_a_number_taken_before_a_lossy_failover_overwrites_nobodys_memory(
    servers: Pair, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers.keep(synchronous=False)
    url = servers.new_database()
    with Engram.open(url=url, tenant=tenant) as mem, Engram.open(url=url, tenant=tenant) as other:
        mem.add(sentence(1))
        servers.wait_until_in_step()
        take = Numbers.take

        def take_and_lose(numbers: Numbers, day: str, count: int) -> range:
            monkeypatch.undo()
            with servers.standby_cut_off():
                taken = take(numbers, day, count)
                servers.fail_over()
            other.add(sentence(2))
            return taken

        monkeypatch.setattr(Numbers, "take", take_and_lose)
        with pytest.raises(StoreBusy, match="try again"):
            mem.add(sentence(3))
        assert {memory.statement for memory in mem.list()} == {sentence(1), sentence(2)}
        mem.add(sentence(3))
        assert {memory.statement for memory in mem.list()} == {sentence(1), sentence(2), sentence(3)}
    assert disagreements(url, tenant) == []


# -- a promoted standby


def test_a_promoted_standby_answers_takes_writes_and_is_healthy(servers: Pair, tenant: str, tmp_path: Path) -> None:
    url = servers.new_database()
    with Engram.open(url=url, tenant=tenant) as mem:
        kept = mem.add(sentence(1))
        mem.observe("talk", "user", sentence(2))
        servers.fail_over()
        assert mem.search(sentence(1))[0].id == kept.id
        assert mem.update(kept.id, rationale="as before").rationale == "as before"
        mem.observe("talk", "user", sentence(3))
        assert [event.content for event in mem.store.events("talk")] == [sentence(2), sentence(3)]
        assert mem.upkeep.doctor().problems == ()
    told = subprocess.run(
        [sys.executable, "-m", "engram", "doctor"],
        env={**environment(), "ENGRAM_URL": url, "ENGRAM_TENANT": tenant, "HOME": str(tmp_path)},
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert told.returncode == 0, told.stdout + told.stderr
    assert "a primary" in told.stdout


# -- the answer to a commit

COMMITTED = dict.fromkeys(WRITES, (DONE, 1.0))
NOT_COMMITTED = dict.fromkeys(WRITES, (REFUSED, 0.0))
ONCE = dict.fromkeys(WRITES, 1.0)


def wait_until_all_wait(server: Server, every: Doubts, for_what: str) -> None:
    """Until a server lets as many of Engram's connections wait for something as there are writes."""
    with server.admin() as admin:
        asked = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'engram' AND %s IN (wait_event, wait_event_type)"
        wait_for(lambda: admin.execute(asked, (for_what,)).fetchone() == (every.count,), f"all wait for {for_what}")


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


def test_a_commit_that_never_reached_the_primary_is_an_error(servers: Pair, tenant: str) -> None:
    with doubts(servers, tenant) as every:
        servers.fail_over()
        every.release()
        assert every.outcomes() == NOT_COMMITTED
        assert every.write_again() == ONCE
        assert every.disagreements() == []


def test_behind_one_address_a_standby_that_takes_no_writes_yet_is_asked_again(servers: Pair, tenant: str) -> None:
    with doubts(servers, tenant, one_address=True) as every:
        every.commit()
        servers.kill_primary()
        every.lead_to(servers.standby_port)
        every.release()
        wait_for(lambda: every.asked_since, "everyone asks the standby")
        assert every.none_is_told
        servers.promote()
        assert every.outcomes() == COMMITTED


@pytest.mark.parametrize("arrives", [True, False])
def test_a_commit_that_waits_for_the_standby_is_waited_for(servers: Pair, tenant: str, arrives: bool) -> None:
    with doubts(servers, tenant) as every:
        with servers.standby_cut_off():
            every.each(Doubt.commit_it)
            wait_until_all_wait(servers.primary, every, "SyncRep")
            every.each(Doubt.break_off)
            wait_until_all_wait(servers.primary, every, "Lock")
            assert every.none_is_told
            if not arrives:
                servers.fail_over()
        assert every.outcomes() == (COMMITTED if arrives else NOT_COMMITTED)
        assert every.disagreements() == []


def test_a_commit_that_stands_on_the_primary_alone_is_not_taken_for_one_that_lasts(servers: Pair, tenant: str) -> None:
    with doubts(servers, tenant) as every:
        with servers.standby_cut_off():
            every.each(Doubt.commit_it)
            wait_until_all_wait(servers.primary, every, "SyncRep")
            end_the_wait_for_the_standby(servers, "terminate")
            every.release()
            wait_until_all_wait(servers.primary, every, "SyncRep")
            assert every.none_is_told
            servers.fail_over()
        assert every.outcomes() == NOT_COMMITTED


def test_a_commit_that_was_told_to_wait_for_the_standby_no_longer_is_not_acknowledged(
    servers: Pair, tenant: str
) -> None:
    """The server calls it committed then, and warns that it stands on the primary alone."""
    with doubts(servers, tenant) as every:
        with servers.standby_cut_off():
            every.each(lambda doubt: doubt.commit_it(aloud=True))
            wait_until_all_wait(servers.primary, every, "SyncRep")
            end_the_wait_for_the_standby(servers, "cancel")
            wait_until_all_wait(servers.primary, every, "SyncRep")
            assert every.none_is_told
            servers.fail_over()
        assert every.outcomes() == NOT_COMMITTED


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


# -- a primary that hangs


def test_what_hangs_with_the_primary_is_told_once_that_is_ended(servers: Pair, tenant: str) -> None:
    with doubts(servers, tenant) as every:
        with servers.hung(servers.primary):
            every.each(Doubt.commit_it)
            servers.promote()
            assert every.none_is_told
            servers.kill(servers.standby)
        every.release()
        assert every.outcomes() == NOT_COMMITTED
        assert every.write_again() == ONCE


def test_a_primary_that_comes_back_from_hanging_acknowledges_nothing_without_its_standby(
    servers: Pair, tenant: str
) -> None:
    """Two servers take writes then. To end the old one is the operator's task; until that is done, its clients wait."""
    with doubts(servers, tenant) as every:
        with servers.hung(servers.primary):
            every.each(lambda doubt: doubt.commit_it(aloud=True))
            servers.promote()
        wait_until_all_wait(servers.standby, every, "SyncRep")
        assert every.none_is_told
        servers.kill(servers.standby)
        assert every.outcomes() == NOT_COMMITTED
        assert every.write_again() == ONCE
        assert every.disagreements() == []


def test_new_connections_pass_by_a_primary_that_hangs(servers: Pair, tenant: str) -> None:
    url = servers.new_database()
    with Engram.open(url=url, tenant=tenant) as mem:
        kept = mem.add(sentence(1))
    with servers.hung(servers.primary):
        servers.promote()
        with Engram.open(url=f"{url}&connect_timeout=4", tenant=tenant) as mem:
            assert mem.get(kept.id) == kept
            mem.add(sentence(2))
        servers.kill(servers.standby)
    assert disagreements(url, tenant) == []
