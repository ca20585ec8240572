"""The doctor reports jobs that wait for a worker: how many, since when, and what to run."""

from datetime import timedelta

import pytest

from engram.model.records import Job
from engram.store.protocol import Store
from engram.upkeep import upkeep
from tests.backends import Backend
from tests.clock import Clock


def finding(store: Store, clock: Clock) -> tuple[str, str, str]:
    found = upkeep.diagnose(store, clock(), 0)["jobs"]
    return found.level, found.message, found.fix


def enqueue(store: Store, clock: Clock, *kinds: str, later: timedelta = timedelta()) -> None:
    jobs = [Job(f"{kind}-{n}-{clock():%H%M%S%f}", kind, clock(), clock() + later) for n, kind in enumerate(kinds)]
    for job in jobs:
        store.enqueue([job])


def test_without_jobs_there_is_nothing_to_do(store: Store, clock: Clock) -> None:
    assert finding(store, clock) == ("ok", "0 jobs wait for a worker", "")


def test_jobs_that_a_worker_may_still_take_are_only_counted(store: Store, clock: Clock) -> None:
    began = clock()
    enqueue(store, clock, "derive", "derive", "changes")
    enqueue(store, clock, "derive", later=timedelta(hours=1))
    level, message, fix = finding(store, clock)
    assert (level, fix) == ("ok", "")
    assert message == f"3 jobs wait for a worker, the oldest since {began:%Y-%m-%d %H:%M} UTC (derive 2, changes 1)"


def test_jobs_that_nobody_takes_are_advice_with_the_command(store: Store, clock: Clock) -> None:
    began = clock()
    enqueue(store, clock, "derive")
    clock.forward(minutes=6)
    level, message, fix = finding(store, clock)
    assert level == "advice" and f"1 job waits for a worker, the oldest since {began:%Y-%m-%d %H:%M} UTC" in message
    assert "`engram worker --once`" in fix


def test_a_job_that_a_worker_has_does_not_wait_until_its_lease_ends(store: Store, clock: Clock) -> None:
    enqueue(store, clock, "derive")
    clock.forward(minutes=6)
    assert store.lease_jobs("me", clock(), clock() + timedelta(minutes=5))
    assert finding(store, clock)[:2] == ("ok", "0 jobs wait for a worker")
    clock.forward(minutes=6)
    assert finding(store, clock)[0] == "advice"


def test_jobs_that_were_given_up_are_named(store: Store, clock: Clock) -> None:
    enqueue(store, clock, "derive")
    (job,) = store.lease_jobs("me", clock(), clock() + timedelta(minutes=5))
    from engram.model.lazy import replace

    store.settle_job(job, replace(job, status="dead", leased_until=None, error="no model"))
    level, message, fix = finding(store, clock)
    assert level == "advice" and message == "0 jobs wait for a worker; 1 job was given up"
    assert "`engram worker --list`" in fix and "`engram worker --retry JOB`" in fix


def test_a_long_queue_is_not_read_to_its_end(store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "MAX_JOBS_READ", 2)
    enqueue(store, clock, "derive", "derive", "derive", "derive")
    assert finding(store, clock)[1].startswith("more than 2 jobs wait for a worker")


def test_a_large_batch_leaves_a_job_that_the_doctor_reports(backend: Backend, clock: Clock) -> None:
    with backend.client() as mem:
        mem.add_batch([{"statement": f"The shelf number {n} is in the cellar"} for n in range(12)])
        clock.forward(minutes=6)
        assert "wait for a worker" in mem.doctor(seconds=0)["jobs"].message.replace("waits", "wait")
        assert mem.doctor(seconds=0)["jobs"].level == "advice"
        mem.jobs.work()
        assert mem.doctor(seconds=0)["jobs"].level == "ok"
