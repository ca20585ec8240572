"""A clock that went back two minutes, or had run a year ahead, made corrections ineffective."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engram import Engram
from engram.model.decision import Outcome
from engram.model.memory import Memory
from tests.backends import Backend
from tests.clock import Clock
from tests.relations import LIKELY, changes, choose

STEPS = {"two minutes": timedelta(minutes=2), "a day": timedelta(days=1), "a year": timedelta(days=365)}
OLD, NEW, QUESTION = "Anna lives in Berlin", "Anna lives in Lisbon", "Where does Anna live?"


def _revise(mem: Engram, old: Memory) -> Memory:
    return mem.revise(old.id, statement=NEW, actor="human")


def _supersede(mem: Engram, old: Memory) -> Memory:
    decision = mem.learn(NEW, supersedes=[old.id], source="human")
    assert decision.outcome == Outcome.SUPERSEDED
    assert decision.memory is not None
    return decision.memory


def _remember(mem: Engram, old: Memory) -> Memory:
    decision = mem.remember("Anna moved to Lisbon")
    assert decision.outcome == Outcome.SUPERSEDED
    assert decision.memory is not None
    return decision.memory


def _resolve(mem: Engram, old: Memory) -> Memory:
    waiting = mem.learn(NEW, source="agent").memory
    assert waiting is not None
    return mem.review.resolve(waiting.id, "new", actor="human")


CORRECTIONS = {"revise": _revise, "supersedes": _supersede, "remember": _remember, "resolve": _resolve}
Correct = Callable[[Engram, Memory], Memory]


@pytest.fixture(params=STEPS)
def step(request: pytest.FixtureRequest) -> timedelta:
    return STEPS[request.param]


@pytest.fixture(params=CORRECTIONS)
def correct(request: pytest.FixtureRequest) -> Correct:
    return CORRECTIONS[request.param]


def _assert_current(mem: Engram, old: Memory, new: Memory) -> None:
    assert mem.lineages.current(old.id).id == new.id
    assert [memory.id for memory in mem.list()] == [new.id]
    assert [hit.id for hit in mem.recall(QUESTION).hits] == [new.id]
    assert [hit.id for hit in mem.search(QUESTION)] == [new.id]
    assert mem.get(old.id).status == "superseded"
    assert mem.get(old.id).superseded_by == new.id


def test_a_correction_counts_although_the_clock_was_set_back_before_it(
    backend: Backend, step: timedelta, correct: Correct
) -> None:
    mem = backend.client()
    old = mem.remember(OLD).memory
    assert old is not None
    backend.clock.now -= step
    _assert_current(mem, old, correct(mem, old))


def test_a_correction_counts_although_the_clock_is_set_back_after_it(
    backend: Backend, step: timedelta, correct: Correct
) -> None:
    mem = backend.client()
    old = mem.remember(OLD).memory
    assert old is not None
    backend.clock.forward(minutes=1)
    new = correct(mem, old)
    backend.clock.now -= step
    _assert_current(mem, old, new)


def test_forget_and_undo_restore_the_version_before_by_the_order_of_the_journal(
    backend: Backend, step: timedelta
) -> None:
    mem = backend.client()
    first = mem.add(OLD)
    backend.clock.now -= step
    second = mem.revise(first.id, statement=NEW)
    backend.clock.now -= step
    third = mem.revise(first.id, statement="Anna lives in Porto")
    assert [version.id for version in mem.lineage(first.id)] == [first.id, second.id, third.id]
    mem.forget(second.id)
    assert mem.lineages.current(first.id).id == third.id
    mem.undo(second.id)
    mem.forget(third.id)
    assert mem.lineages.current(first.id).id == second.id
    mem.undo(third.id)
    assert mem.lineages.current(first.id).id == third.id
    mem.undo(third.id)
    mem.undo(third.id)
    assert [memory.id for memory in mem.list()] == [third.id]


def test_a_candidate_approved_before_the_clock_is_set_back_stays_current(backend: Backend, step: timedelta) -> None:
    mem = backend.client()
    old, waiting = mem.remember(OLD).memory, mem.learn(NEW, source="agent").memory
    assert old is not None
    assert waiting is not None
    backend.clock.forward(hours=3)
    new = mem.review.resolve(waiting.id, "new", actor="human")
    assert new.valid_from is not None
    assert new.created is not None
    assert new.valid_from > new.created
    backend.clock.now -= step
    _assert_current(mem, old, new)
    mem.update(new.id, tags=["people"])
    _assert_current(mem, old, new)


def test_an_update_in_place_is_found_after_the_clock_is_set_back(backend: Backend, step: timedelta) -> None:
    mem = backend.client()
    memory = mem.add(OLD)
    backend.clock.now -= step
    mem.update(memory.id, statement=NEW)
    assert [hit.text for hit in mem.recall(QUESTION).hits] == [NEW]
    assert mem.undo(memory.id).statement == OLD


def test_what_a_caller_dates_in_the_future_waits_for_that_day(backend: Backend) -> None:
    mem = backend.client()
    old = mem.add(OLD)
    new = mem.revise(old.id, statement=NEW, valid_from=backend.clock.now + timedelta(days=10))
    assert [memory.id for memory in mem.list()] == [old.id]
    backend.clock.now -= timedelta(minutes=2)
    assert [memory.id for memory in mem.list()] == [old.id]
    backend.clock.forward(days=11)
    assert [memory.id for memory in mem.list()] == [new.id]


def test_what_a_caller_dates_before_the_current_version_is_history(backend: Backend) -> None:
    mem = backend.client()
    current = mem.add(NEW)
    backend.clock.forward(days=1)
    past = mem.revise(current.id, statement=OLD, valid_from="2020-01-01T00:00:00Z")
    assert past.status == "superseded"
    assert mem.lineages.current(past.id).id == current.id


def test_a_session_never_ends_before_it_starts(backend: Backend, step: timedelta) -> None:
    mem = backend.client()
    session = mem.session(task="deploy the api")
    backend.clock.now -= step
    ended = session.end("Deployed.")
    assert ended.ended is not None
    assert ended.ended >= ended.started
    task = mem.tasks.start("deploy the api")
    backend.clock.now -= step
    done = mem.tasks.complete(task.id)
    assert done.ended is not None
    assert done.ended >= done.created


def test_a_captured_correction_counts_although_the_clock_was_set_back_between_the_turns(
    backend: Backend, step: timedelta
) -> None:
    mem = backend.client()
    mem.settings = replace(mem.settings, capture_mode="every_n")
    mem.capture("chat", "user", "I live in Berlin.")
    mem.flush_captures()
    backend.clock.now -= step
    mem.capture("chat", "user", "I moved to Lisbon, I live in Lisbon now.")
    # The turn is read late, when the clock has passed the first turn again.
    backend.clock.forward(minutes=4)
    mem.flush_captures()
    assert [memory.statement for memory in mem.list()] == ["The user lives in Lisbon."]


def test_an_added_fact_is_compared_with_those_stored_before_it(
    backend: Backend, step: timedelta, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose(monkeypatch, changes("Berlin", relation=LIKELY))
    mem = backend.client()
    mem.add("The depot is in Berlin.")
    backend.clock.now -= step
    shelves = [f"Shelf {number} in the store room contains tea." for number in range(20)]
    added = mem.add_batch([{"statement": text} for text in [*shelves, "The depot moved from Berlin to Lisbon."]])
    assert mem.jobs.work().done
    assert [(item.waits_as, item.memory.id) for item in mem.review.queue()] == [("update", added[-1].id)]


def test_ids_stay_unique_when_a_day_is_repeated(backend: Backend) -> None:
    mem = backend.client()
    ids = []
    for n in range(6):
        ids.append(mem.add(f"Shelf {n} in the archive contains the ledgers of {1990 + n}").id)
        backend.clock.now += timedelta(days=1 if n % 2 == 0 else -1)
    assert len(set(ids)) == len(ids)


def test_a_job_queued_while_the_clock_ran_ahead_is_due(backend: Backend) -> None:
    from engram.model.records import Job

    store, clock = backend.store(), backend.clock
    clock.forward(days=365)
    store.enqueue([Job("compare:x", "compare", clock(), clock() + timedelta(minutes=15))])
    (leased,) = store.lease_jobs("worker-1", clock.forward(hours=1), clock.now + timedelta(minutes=5))
    clock.now -= timedelta(days=365)
    assert [job.id for job in store.lease_jobs("worker-2", clock(), clock.now + timedelta(minutes=5))] == [leased.id]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["revise", "learn", "forget", "undo", "use"]),
            st.sampled_from([timedelta(0), *STEPS.values(), *(-step for step in STEPS.values())]),
        ),
        min_size=1,
        max_size=7,
    )
)
def test_steps_of_the_clock_never_change_which_version_is_current(plan: list[tuple[str, timedelta]]) -> None:
    assert _play(plan, steady=False) == _play(plan, steady=True)


def _play(plan: list[tuple[str, timedelta]], *, steady: bool) -> list[tuple[str, str, str]]:
    """What is current after each operation: the number of the version, by the order in which they were stored."""
    clock, seen = Clock(), list[tuple[str, str, str]]()
    with Engram.open(ephemeral=True, clock=clock) as mem:
        ids = [mem.add("Anna lives in town 0").id]
        for n, (what, step) in enumerate(plan, 1):
            clock.forward(minutes=1)
            clock.now += timedelta(0) if steady else step
            current = mem.lineages.current(ids[0])
            text = f"Anna lives in town {n}"
            if what == "revise" and current.status in ("active", "superseded", "retired"):
                ids.append(mem.revise(ids[0], statement=text).id)
            elif what == "learn" and current.status == "active":
                learned = mem.learn(text, supersedes=[current.id], source="human").memory
                assert learned is not None
                ids += [learned.id] if learned.id not in ids else []
            elif what == "forget":
                mem.forget(current.id)
            elif what == "undo":
                mem.review.undo_last(actor="human")
            else:
                mem.feedback(current.id, "positive")
            statuses = ",".join(mem.get(i).status for i in ids)
            found = ",".join(memory.statement for memory in mem.list(limit=None))
            seen.append((mem.lineages.current(ids[0]).statement, statuses, found))
    return seen


def test_an_end_that_the_caller_gave_for_the_past_stays(backend: Backend) -> None:
    mem = backend.client()
    old = mem.add(OLD, valid_until="2025-06-01T00:00:00Z")
    assert old.valid_until is not None
    new = mem.revise(old.id, statement=NEW)
    mem.forget(new.id)
    assert mem.get(old.id).valid_until == old.valid_until
