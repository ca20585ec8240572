"""Whose turn it is: every tenant once in a round, whatever the others have to do, and whatever is wrong with them."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

from engram.model.errors import EmbedderError, StoreBusy, StoreError, StoreUnreachable
from engram.sessions.jobs import (
    DRY_SECONDS,
    FAILED_SECONDS,
    JITTER,
    LOOK_SECONDS,
    MAX_SKIP_SECONDS,
    PAUSED_SECONDS,
    RoundRobin,
    WorkerTurn,
    WorkResult,
)

LONGEST = 1 + JITTER


class Server:
    """Queues of tenants, how often each was asked about, and a clock that moves a little with every job."""

    def __init__(self, **queues: int) -> None:
        self.queues = Counter(queues)
        self.paused: set[str] = set()
        self.broken: dict[str, Exception] = {}
        self.seconds, self.each = 1000.0, 0.01
        self.looks = 0
        self.asked: list[str] = []

    def due(self) -> list[str]:
        self.looks += 1
        return [tenant for tenant, jobs in self.queues.items() if jobs]

    def work(self, tenant: str) -> WorkResult | None:
        self.asked.append(tenant)
        if tenant in self.broken:
            raise self.broken[tenant]
        if tenant in self.paused:
            return None
        self.seconds += self.each
        if not self.queues[tenant]:
            return WorkResult()
        self.queues[tenant] -= 1
        return WorkResult(done=[f"{tenant}-{self.queues[tenant]}"])

    def worker(self, seed: int = 1) -> RoundRobin:
        return RoundRobin(self.due, self.work, now=lambda: self.seconds, order=random.Random(seed))


def turns(worker: RoundRobin) -> Iterator[WorkerTurn]:
    """Until nothing is due."""
    while (turn := worker.next()) is not None:
        yield turn


def done(worker: RoundRobin, most: int = 10**6) -> list[str]:
    """Whose jobs were done, one after the other."""
    return [turn.tenant for turn, _ in zip(turns(worker), range(most), strict=False) if turn.worked]


def test_a_tenant_with_ten_thousand_jobs_delays_one_with_a_single_job_by_a_round() -> None:
    server = Server(large=10_000, small=1)
    assert "small" in done(server.worker(), most=2)


def test_every_tenant_has_one_turn_in_every_round() -> None:
    server = Server(a=30, b=30, c=30, d=30)
    order = done(server.worker())
    rounds = [order[place : place + 4] for place in range(0, len(order), 4)]
    assert len(rounds) == 30
    assert all(sorted(each) == ["a", "b", "c", "d"] for each in rounds)


def test_who_comes_later_has_a_turn_in_the_first_round_after_the_next_look() -> None:
    server = Server(**{f"large-{n}": 10_000 for n in range(9)})
    worker = server.worker()
    done(worker, most=50)
    server.queues["late"] = 1
    until_the_look = LOOK_SECONDS / server.each + 9
    assert "late" in done(worker, most=int(until_the_look) + 10)


def test_a_list_of_tenants_serves_for_a_second_however_short_the_rounds_are() -> None:
    server = Server(only=10_000)
    done(server.worker(), most=1000)
    assert server.looks == pytest.approx(1000 * server.each / LOOK_SECONDS, abs=2)


def test_rounds_and_workers_differ_in_their_order() -> None:
    queues = {f"tenant-{n}": 3 for n in range(12)}
    one, other = done(Server(**queues).worker(1)), done(Server(**queues).worker(2))
    rounds = [one[:12], one[12:24], one[24:], other[:12]]
    assert all(before != after for before, after in pairwise(rounds))


def test_a_tenant_whose_jobs_another_worker_took_is_not_asked_again_at_once() -> None:
    server = Server(empty=0, full=3)
    server.due = lambda: ["empty", "full"]  # type: ignore[method-assign]
    worker = server.worker()
    assert done(worker) == ["full"] * 3
    assert Counter(server.asked) == {"empty": 1, "full": 4}
    server.seconds += DRY_SECONDS * LONGEST
    done(worker)
    assert Counter(server.asked) == {"empty": 2, "full": 5}


def test_nothing_is_due_where_nobody_has_work() -> None:
    server = Server()
    worker = server.worker()
    assert worker.next() is None
    server.queues["new"] = 1
    assert done(worker) == ["new"]


def test_a_paused_tenant_is_passed_over_and_comes_back() -> None:
    server = Server(asleep=2, awake=3)
    server.paused.add("asleep")
    worker = server.worker()
    assert done(worker) == ["awake"] * 3
    assert server.asked.count("asleep") == 1
    server.paused.clear()
    server.seconds += PAUSED_SECONDS * LONGEST
    assert done(worker) == ["asleep"] * 2


@pytest.mark.parametrize(
    "error", [EmbedderError("another length"), StoreError("broken"), KeyError("id"), StoreBusy("locked")]
)
def test_a_tenant_that_cannot_be_worked_for_is_told_and_passed_over(error: Exception) -> None:
    server = Server(ill=5, well=20)
    server.broken["ill"] = error
    told = list(turns(server.worker()))
    assert [turn.tenant for turn in told if turn.worked] == ["well"] * 20
    (failed,) = {turn.failed for turn in told if turn.failed}
    assert type(error).__name__ in failed
    assert {turn.tenant for turn in told if turn.failed} == {"ill"}


def test_it_is_tried_again_after_longer_each_time_and_forgiven_when_it_works() -> None:
    server = Server(ill=2)
    server.broken["ill"] = StoreError("broken")
    worker, tried = server.worker(), list[float]()
    while len(tried) < 10:
        turn = worker.next()
        if turn is None:
            server.seconds += 1.0
        else:
            assert turn.failed
            tried.append(server.seconds)
    waits = [after - before for before, after in pairwise(tried)]
    meant = [min(FAILED_SECONDS * 2**times, MAX_SKIP_SECONDS) for times in range(9)]
    assert all(
        longest * (1 - JITTER) <= wait <= longest * LONGEST + 1 for wait, longest in zip(waits, meant, strict=True)
    )
    server.broken.clear()
    server.seconds += MAX_SKIP_SECONDS * LONGEST
    assert done(worker) == ["ill"] * 2


def test_a_server_that_is_away_is_everyones_trouble() -> None:
    server = Server(a=1, b=1)
    server.broken = {"a": StoreUnreachable("gone"), "b": StoreUnreachable("gone")}
    worker = server.worker()
    with pytest.raises(StoreUnreachable):
        worker.next()
    assert len(server.asked) == 1
    server.broken.clear()
    server.seconds += DRY_SECONDS * LONGEST
    assert sorted(done(worker)) == ["a", "b"]


def test_when_the_look_itself_fails_nobody_is_asked() -> None:
    server = Server(a=1)
    worker = server.worker()
    look: Callable[[], list[str]] = server.due

    def away() -> list[str]:
        raise StoreUnreachable("gone")

    worker._due = away
    with pytest.raises(StoreUnreachable):
        worker.next()
    assert server.asked == []
    worker._due = look
    assert done(worker) == ["a"]


def test_tenants_that_are_gone_are_forgotten() -> None:
    server = Server(**{f"gone-{n}": 1 for n in range(50)})
    server.broken = {tenant: StoreError("broken") for tenant in server.queues}
    worker = server.worker()
    assert len(list(turns(worker))) == 50
    server.queues.clear()
    server.seconds += 3 * MAX_SKIP_SECONDS
    assert worker.next() is None
    assert worker._resting == {}
