"""Work that follows on the ledger: done at least once, as good as once, retried, given up in plain sight."""

import threading
from collections.abc import Callable

import pytest

from engram import Engram
from engram.model.errors import InvalidInput, NotFound
from engram.model.records import Job
from engram.sessions.jobs import FIRST_WAIT, LEASE, MAX_JOB_ATTEMPTS, MAX_RETRY_WAIT, Jobs, wait_after
from engram.text.content_hash import quote_hash
from tests.client.conftest import Clock

SAID = "I live in Lisbon. Thanks for asking!"


def told(mem: Engram, text: str = SAID) -> str:
    task = mem.start_task("Plan the move").id
    mem.record_turn(task, text, "Noted.")
    return task


def worker(mem: Engram, handler: Callable[[Job], None], owner: str = "w") -> Jobs:
    return Jobs(mem.store, mem.jobs.clock, {"derive": handler}, owner)


def broken(job: Job) -> None:
    raise RuntimeError("no luck today")


def test_facts_are_derived_with_their_evidence(mem: Engram) -> None:
    task = told(mem)
    assert mem.list() == []
    (done,) = mem.process_memory_jobs().done
    assert done.startswith("derive:EVT-")
    (fact,) = mem.list()
    assert "Lisbon" in fact.statement
    assert fact.task == task
    (evidence,) = fact.evidence
    event = mem.store.event(evidence.event)
    assert event is not None and event.content == SAID
    assert evidence.span is not None
    quote = event.content[slice(*evidence.span)]
    assert "Lisbon" in quote
    assert evidence.quote_hash == quote_hash(quote)
    assert mem.jobs.list() == []
    assert not mem.process_memory_jobs()


def test_what_a_tool_printed_is_nobodys_word(mem: Engram) -> None:
    task = mem.start_task("Read the page").id
    mem.record_turn(
        task, "Read it to me", tool_calls=[{"name": "fetch", "result": "I live in Lisbon and I prefer tea."}]
    )
    assert mem.process_memory_jobs().done
    assert mem.list() == []


def test_no_job_follows_a_turn_that_asks_for_none(mem: Engram) -> None:
    task = mem.start_task("Plan the move").id
    mem.record_turn(task, SAID, derive=False)
    mem.record_event(task, "user", SAID, derive=False)
    assert mem.jobs.list() == []


def test_a_job_follows_a_message_as_it_follows_a_turn(mem: Engram) -> None:
    task = mem.start_task("Plan the move").id
    said = mem.record_event(task, "user", SAID)
    (job,) = mem.jobs.list()
    assert job.payload == {"task": task, "events": [said.id]}
    assert mem.process_memory_jobs().done
    fact = next(memory for memory in mem.list(status="any") if "Lisbon" in memory.statement)
    assert [evidence.event for evidence in fact.evidence] == [said.id] and fact.task == task


def test_no_job_follows_what_is_nobodys_word(mem: Engram) -> None:
    task = mem.start_task("Plan the move").id
    mem.record_event(task, "tool", SAID, event_type="tool_result")
    mem.record_event(task, "assistant", SAID, event_type="artifact")
    assert mem.jobs.list() == []


def test_a_message_recorded_again_by_its_key_adds_no_fact(mem: Engram) -> None:
    task = mem.start_task("Plan the move").id
    mem.record_event(task, "user", SAID, key="m-1")
    mem.process_memory_jobs()
    before = mem.list(status="any")
    mem.record_event(task, "user", SAID, key="m-1")
    mem.process_memory_jobs()
    assert mem.list(status="any") == before


def test_a_batch_leaves_one_job_and_is_written_whole(mem: Engram) -> None:
    task = mem.start_task("Plan the move").id
    items = [{"role": "user", "content": SAID}, {"role": "tool", "content": "ok", "event_type": "tool_result"}]
    events = mem.tasks.record_events(task, items)
    (job,) = mem.jobs.list()
    assert job.payload["events"] == [event.id for event in events]


def test_a_job_done_twice_adds_nothing(mem: Engram) -> None:
    told(mem)
    (job,) = mem.jobs.list()
    handle = mem.jobs.handlers["derive"]
    handle(job)
    before = mem.list(status="any")
    handle(job)
    assert mem.process_memory_jobs().done
    assert mem.list(status="any") == before


def test_an_old_job_done_again_does_not_bring_the_past_back(mem: Engram, clock: Clock) -> None:
    task = told(mem, "I live in Lisbon.")
    (old,) = mem.jobs.list()
    mem.process_memory_jobs()
    clock.forward(days=30)
    mem.record_turn(task, "I live in Porto now.")
    mem.process_memory_jobs()
    assert [m.statement for m in mem.list() if "Porto" in m.statement]
    before = {m.id: (m.status, m.statement) for m in mem.list(status="any")}
    mem.jobs.handlers["derive"](old)
    assert {m.id: (m.status, m.statement) for m in mem.list(status="any")} == before


def test_turns_that_were_purged_meanwhile_leave_nothing_to_derive(mem: Engram) -> None:
    task = told(mem)
    mem.upkeep.purge([event.id for event in mem.list_events(task)], actor="human")
    assert mem.process_memory_jobs().done
    assert mem.list() == []


def test_a_failing_job_waits_longer_each_time_and_then_stands_dead(mem: Engram, clock: Clock) -> None:
    told(mem)
    jobs, waits = worker(mem, broken), []
    for attempt in range(1, MAX_JOB_ATTEMPTS):
        assert jobs.work().retried
        (job,) = jobs.list()
        assert (job.status, job.attempts, job.error) == ("waiting", attempt, "RuntimeError: no luck today")
        waits.append(job.run_after - clock.now)
        assert not jobs.work(), "it is not due yet"
        clock.now = job.run_after
    assert waits == sorted(waits)
    assert waits[-1] > waits[0]
    assert jobs.work().dead
    (dead,) = jobs.list("dead")
    assert (dead.attempts, dead.error) == (MAX_JOB_ATTEMPTS, "RuntimeError: no luck today")
    clock.forward(days=2)
    assert not jobs.work()
    assert mem.jobs.retry(dead.id).attempts == 0
    assert mem.process_memory_jobs().done == [dead.id]
    assert mem.jobs.list() == []
    assert mem.list()


def test_waits_double_up_to_an_hour() -> None:
    waits = [wait_after(attempts) for attempts in range(1, 40)]
    assert waits[:3] == [FIRST_WAIT, 2 * FIRST_WAIT, 4 * FIRST_WAIT]
    assert waits == sorted(waits)
    assert waits[-1] == MAX_RETRY_WAIT


def test_a_job_whose_worker_went_away_is_anybodys_after_its_lease(mem: Engram, clock: Clock) -> None:
    told(mem)
    taken = mem.store.lease_jobs("gone", clock(), clock() + LEASE)
    assert len(taken) == 1
    assert not mem.process_memory_jobs(), "the lease holds"
    clock.forward(seconds=LEASE.total_seconds() + 1)
    assert mem.process_memory_jobs().done == [taken[0].id]
    assert not mem.store.settle_job(taken[0], None), "the lease has passed to another"


def test_a_job_that_ends_every_worker_is_given_up(mem: Engram, clock: Clock) -> None:
    told(mem)
    for _ in range(MAX_JOB_ATTEMPTS):
        assert mem.store.lease_jobs("killed", clock(), clock() + LEASE)
        clock.forward(seconds=LEASE.total_seconds() + 1)
    assert mem.process_memory_jobs().dead
    (dead,) = mem.jobs.list("dead")
    assert "worker died" in dead.error


def test_two_workers_share_the_work_and_do_each_job_once(mem: Engram) -> None:
    for number in range(6):
        told(mem, f"I live in house number {number}.")
    done: list[str] = []
    both = threading.Barrier(2)

    def work(owner: str) -> None:
        both.wait(10)
        worker(mem, lambda job: done.append(job.id), owner).work()

    threads = [threading.Thread(target=work, args=(owner,)) for owner in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(done) == 6
    assert len(set(done)) == 6
    assert mem.jobs.list() == []


def test_a_worker_stops_when_told_to(mem: Engram) -> None:
    told(mem)
    stop, worked = threading.Event(), []

    def tell(what: object) -> None:
        worked.append(what)
        stop.set()

    thread = threading.Thread(target=mem.jobs.run, args=(stop, 60.0, tell))
    thread.start()
    thread.join(30)
    assert not thread.is_alive()
    assert len(worked) == 1
    assert mem.list()


def test_work_is_bounded_by_its_limit(mem: Engram) -> None:
    told(mem)
    told(mem)
    assert len(mem.process_memory_jobs(limit=1).done) == 1
    assert len(mem.jobs.list()) == 1


def test_unknown_states_and_jobs_are_named(mem: Engram) -> None:
    with pytest.raises(InvalidInput, match="waiting, leased, dead"):
        mem.jobs.list("asleep")
    with pytest.raises(NotFound, match="no dead job"):
        mem.jobs.retry("derive:EVT-0")
