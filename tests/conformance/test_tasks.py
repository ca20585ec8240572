"""Runs, checkpoints and jobs, on every backend."""

import json
import threading
from dataclasses import replace
from datetime import timedelta

import pytest

from engram.model.errors import InvalidInput, NotFound
from engram.model.records import Checkpoint, Job, TaskRun, transition_task
from engram.store.protocol import Store
from tests.backends import Backend
from tests.clock import Clock
from tests.conformance.keeping import said


def run(store: Store, clock: Clock, number: int = 1, **fields: object) -> TaskRun:
    """A run that is kept."""
    now = clock()
    task = TaskRun(f"TASK-20260301-090000-{number:06d}", "Ship the parser", "project:acme", now, now, **fields)  # type: ignore[arg-type]
    store.save_record(task)
    return task


def job(clock: Clock, name: str, **fields: object) -> Job:
    """A job that is due at once."""
    now = clock()
    return Job(name, "derive", now, now, {"events": [name]}, **fields)  # type: ignore[arg-type]


def test_a_task_is_kept_as_it_was(store: Store, clock: Clock) -> None:
    task = run(store, clock, metadata={"ticket": "ENG-7", "tries": [1, 2]}, session="S-1")
    assert store.load_record(TaskRun, task.id) == task
    assert (
        store.load_record(TaskRun, "TASK-of-nobody") is None and store.load_record(TaskRun, "../../etc/passwd") is None
    )


def test_a_task_is_changed_as_it_stands(store: Store, clock: Clock) -> None:
    task = run(store, clock)
    paused = store.change_task(task.id, lambda held: transition_task(held, "paused", clock()))
    assert store.load_record(TaskRun, task.id) == paused and paused.status == "paused"
    with pytest.raises(NotFound, match="no task"):
        store.change_task("TASK-of-nobody", lambda held: held)


def test_a_change_that_is_refused_leaves_the_task_alone(store: Store, clock: Clock) -> None:
    task = run(store, clock, status="completed")
    with pytest.raises(InvalidInput, match="cannot become running"):
        store.change_task(task.id, lambda held: transition_task(held, "running", clock()))
    assert store.load_record(TaskRun, task.id) == task


def test_tasks_are_listed_newest_first_and_by_state(store: Store, clock: Clock) -> None:
    old = run(store, clock, 1)
    clock.forward(seconds=60)
    new = run(store, clock, 2, status="paused")
    assert [task.id for task in store.list_records(TaskRun)] == [new.id, old.id]
    assert [task.id for task in store.list_records(TaskRun, statuses=["running"])] == [old.id]
    assert [task.id for task in store.list_records(TaskRun, limit=1)] == [new.id]


def test_of_two_that_end_a_task_at_once_one_is_refused(backend: Backend, clock: Clock) -> None:
    first = backend.store()
    task = run(first, clock)
    others = [backend.store() for _ in range(4)]
    outcomes: list[str] = []

    def end(store: Store, state: str) -> None:
        try:
            outcomes.append(store.change_task(task.id, lambda held: transition_task(held, state, clock())).status)
        except InvalidInput:
            outcomes.append("refused")

    threads = [
        threading.Thread(target=end, args=(store, state))
        for store, state in zip(others, ["completed", "completed", "completed", "completed"], strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(outcomes) == ["completed", "refused", "refused", "refused"]


def test_a_finished_task_takes_no_event(store: Store, clock: Clock) -> None:
    task = run(store, clock)
    store.append_events(task.id, [said("user", "begin")])
    store.change_task(task.id, lambda held: transition_task(held, "failed", clock()))
    with pytest.raises(InvalidInput, match="failed"):
        store.append_events(task.id, [said("user", "too late")])
    assert [event.content for event in store.events(task.id)] == ["begin"]


def test_events_of_a_task_belong_to_its_scope(store: Store, clock: Clock) -> None:
    from engram.store.protocol import Filters

    task = run(store, clock)
    store.append_events(task.id, [said("user", "begin")])
    assert store.count(Filters(kinds=("event",), scopes=("project:acme",))) == 1


def test_checkpoints_are_numbered_and_come_newest_first(store: Store, clock: Clock) -> None:
    task = run(store, clock)
    for word in ("one", "two", "three"):
        store.add_checkpoint(
            task.id,
            lambda number, word=word: Checkpoint(  # type: ignore[misc]
                f"CKP-{number}", task.id, number, clock(), word, pending_steps=("test it",), data={"chunks": [1, 2]}
            ),
        )
    assert [(c.number, c.summary) for c in store.list_records(Checkpoint, of=task.id)] == [
        (3, "three"),
        (2, "two"),
        (1, "one"),
    ]
    [newest] = store.list_records(Checkpoint, of=task.id, limit=1)
    assert (newest.pending_steps, newest.data) == (("test it",), {"chunks": [1, 2]})
    assert store.list_records(Checkpoint, of="TASK-of-nobody") == []


def test_checkpoints_can_be_written_anew(store: Store, clock: Clock) -> None:
    task, other = run(store, clock), run(store, clock, 2)
    for one in (task, other):
        for word in ("one", "two"):
            store.add_checkpoint(
                one.id,
                lambda number, word=word, one=one: Checkpoint(  # type: ignore[misc]
                    f"CKP-{one.id}-{number}", one.id, number, clock(), word
                ),
            )
    store.change_checkpoints(task.id, lambda point: replace(point, summary=f"{point.number}"))
    store.change_checkpoints("TASK-of-nobody", lambda point: replace(point, summary="never"))
    assert [(c.number, c.summary) for c in store.list_records(Checkpoint, of=task.id)] == [(2, "2"), (1, "1")]
    assert [c.summary for c in store.list_records(Checkpoint, of=other.id)] == ["two", "one"]


def test_jobs_come_with_the_events_they_follow_on(store: Store, clock: Clock) -> None:
    task = run(store, clock)
    made = store.append_events(
        task.id, [said("user", "a"), said("user", "b")], lambda events: [job(clock, events[0].id)]
    )
    assert [(j.id, j.payload["events"]) for j in store.list_records(Job)] == [(made[0].id, [made[0].id])]


def test_no_job_comes_with_events_that_were_there_already(store: Store, clock: Clock) -> None:
    task = run(store, clock)
    for _ in range(2):
        store.append_events(task.id, [said("user", "a", key="k")], lambda events: [job(clock, events[0].id)])
    assert len(store.list_records(Job)) == 1


def test_a_job_is_leased_to_one_worker(backend: Backend, clock: Clock) -> None:
    first, second = backend.store(), backend.store()
    first.enqueue([job(clock, "one"), job(clock, "two"), job(clock, "one")])
    until = clock() + timedelta(minutes=5)
    [mine] = first.lease_jobs("me", clock(), until)
    [yours] = second.lease_jobs("you", clock(), until)
    assert {mine.id, yours.id} == {"one", "two"} and mine.attempts == 1
    assert first.lease_jobs("me", clock(), until, limit=10) == []


def test_a_lease_that_ran_out_is_taken_by_another_and_its_first_holder_settles_nothing(
    store: Store, clock: Clock
) -> None:
    store.enqueue([job(clock, "one")])
    [mine] = store.lease_jobs("me", clock(), clock() + timedelta(seconds=30))
    clock.forward(seconds=31)
    [yours] = store.lease_jobs("you", clock(), clock() + timedelta(seconds=30))
    assert (yours.owner, yours.attempts) == ("you", 2)
    assert not store.settle_job(mine, None)
    assert store.settle_job(yours, None)
    assert store.list_records(Job) == []


def test_a_job_that_failed_waits_and_a_dead_one_is_never_leased(store: Store, clock: Clock) -> None:
    store.enqueue([job(clock, "one"), job(clock, "two")])
    until = clock() + timedelta(minutes=5)
    [one, two] = sorted(store.lease_jobs("me", clock(), until, limit=2), key=lambda j: j.id)
    later = clock() + timedelta(seconds=60)
    assert store.settle_job(one, replace(one, status="waiting", run_after=later, leased_until=None, error="no model"))
    assert store.settle_job(two, replace(two, status="dead", leased_until=None, error="gave up"))
    assert store.lease_jobs("me", clock(), until, limit=10) == []
    clock.forward(seconds=61)
    assert [j.id for j in store.lease_jobs("me", clock(), until, limit=10)] == ["one"]
    assert [(j.id, j.error) for j in store.list_records(Job, statuses=["dead"])] == [("two", "gave up")]


def test_only_the_kinds_asked_for_are_leased(store: Store, clock: Clock) -> None:
    store.enqueue([job(clock, "one"), replace(job(clock, "two"), kind="extract")])
    [taken] = store.lease_jobs("me", clock(), clock() + timedelta(minutes=5), kinds=("extract",), limit=5)
    assert taken.id == "two"


def test_many_workers_do_every_job_once(backend: Backend, clock: Clock) -> None:
    stores = [backend.store() for _ in range(4)]
    stores[0].enqueue([job(clock, f"job-{n:02d}") for n in range(24)])
    done: list[str] = []

    def work(store: Store, name: str) -> None:
        while taken := store.lease_jobs(name, clock(), clock() + timedelta(hours=1), limit=2):
            for one in taken:
                assert store.settle_job(one, None)
                done.append(one.id)

    threads = [threading.Thread(target=work, args=(store, str(n))) for n, store in enumerate(stores)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(done) == [f"job-{n:02d}" for n in range(24)] and stores[0].list_records(Job) == []


def test_a_purge_reaches_goals_and_checkpoints(backend: Backend, clock: Clock) -> None:
    store = backend.store()
    task = run(store, clock)
    [event] = store.append_events(task.id, [said("user", 'the "vault" code is\nnine zebra nine')])
    store.change_task(task.id, lambda held: replace(held, goal=f"Use this: {event.content}."))
    store.add_checkpoint(
        task.id, lambda n: Checkpoint("CKP-1", task.id, n, clock(), event.content, decisions=(event.content,))
    )
    purged = store.purge([event.id], actor="test")
    assert purged.remaining == ()
    assert "zebra" not in backend.everything()
    assert json.dumps(store.list_records(Checkpoint, of=task.id)[0].summary) != "" and store.verify_ledgers() == []


def test_events_can_be_read_from_their_end(store: Store, clock: Clock) -> None:
    task = run(store, clock)
    store.append_events(task.id, [said("user", str(n)) for n in range(10)])
    assert [e.content for e in store.events(task.id, last=3)] == ["7", "8", "9"]
    assert [e.content for e in store.events(task.id, after=8)] == ["8", "9"]
    assert [e.content for e in store.events(task.id, after=4, last=2)] == ["8", "9"]
