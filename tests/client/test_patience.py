"""A worker sits a passing trouble of the store out, and only that, for a bounded time."""

import threading
from collections.abc import Callable

import pytest

from engram.model.errors import StoreBusy, StoreCorrupt, StoreUnreachable
from engram.sessions import jobs as worked_jobs
from engram.sessions.jobs import (
    JITTER,
    MAX_TRANSIENT_FAILURES,
    Jobs,
    WorkResult,
    add_jitter,
    pause_after,
    retry_transient,
)


@pytest.fixture
def punctual(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses are as long as they are meant to be."""
    monkeypatch.setattr(worked_jobs, "add_jitter", lambda seconds: seconds)


class Waiting(threading.Event):
    """An event that notes how long it was waited for, without anybody waiting; set after so many times."""

    def __init__(self, ends_after: int = 10**6) -> None:
        super().__init__()
        self.pauses: list[float] = []
        self._ends_after = ends_after

    def wait(self, timeout: float | None = None) -> bool:
        self.pauses.append(timeout or 0.0)
        if len(self.pauses) >= self._ends_after:
            self.set()
        return self.is_set()


def failing(times: int, error: type[Exception]) -> Callable[[], str]:
    left = [times]

    def work() -> str:
        if left[0]:
            left[0] -= 1
            raise error("not now")
        return "done"

    return work


@pytest.mark.usefixtures("punctual")
@pytest.mark.parametrize("error", [StoreBusy, StoreUnreachable])
def test_a_busy_or_absent_store_is_waited_for_longer_each_time(error: type[Exception]) -> None:
    stop = Waiting()
    assert retry_transient(failing(8, error), stop) == "done"
    assert stop.pauses == [1, 2, 4, 8, 16, 32, 60, 60]


def test_the_waiting_has_an_end() -> None:
    stop = Waiting()
    with pytest.raises(StoreBusy):
        retry_transient(failing(10**6, StoreBusy), stop)
    assert len(stop.pauses) == MAX_TRANSIENT_FAILURES
    assert sum(map(pause_after, range(1, MAX_TRANSIENT_FAILURES + 1))) < 16 * 60


def test_what_does_not_pass_is_told_at_once() -> None:
    stop = Waiting()
    with pytest.raises(StoreCorrupt):
        retry_transient(failing(1, StoreCorrupt), stop)
    assert stop.pauses == []


def test_those_who_lost_the_server_together_do_not_come_back_together() -> None:
    pauses = [add_jitter(10.0) for _ in range(200)]
    assert all(10.0 * (1 - JITTER) <= pause <= 10.0 * (1 + JITTER) for pause in pauses)
    assert len({round(pause) for pause in pauses}) > 5
    stop = Waiting()
    retry_transient(failing(3, StoreUnreachable), stop)
    assert all(0.5 * meant <= pause <= 1.5 * meant for pause, meant in zip(stop.pauses, (1, 2, 4), strict=True))


@pytest.mark.usefixtures("punctual")
def test_whoever_is_told_to_stop_does_not_try_again() -> None:
    stop = Waiting(ends_after=2)
    assert retry_transient(failing(10**6, StoreBusy), stop) is None
    assert stop.pauses == [1, 2]


@pytest.mark.usefixtures("punctual")
def test_a_worker_goes_on_when_the_store_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    stop, told, calls = Waiting(), list[WorkResult](), list[int]()

    def work(jobs: Jobs, limit: int) -> WorkResult:
        calls.append(limit)
        if len(calls) < 3:
            raise StoreUnreachable("the server went away")
        stop.set()
        return WorkResult(done=["derive:1"])

    monkeypatch.setattr(Jobs, "work", work)
    Jobs(None, None, {}, "w").run(stop, report=told.append)  # type: ignore[arg-type]
    assert [worked.done for worked in told] == [["derive:1"]]
    assert stop.pauses == [1, 2]
