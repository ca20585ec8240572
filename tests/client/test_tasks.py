"""A task from its goal to its end: states, ledger, checkpoints, and taking it up again."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from engram import Engram
from engram.model.errors import EngramError, InvalidInput, NotFound, SecretRefused
from engram.model.records import FINISHED_STATES, TASK_STATES, TRANSITIONS
from tests.backends import Backend
from tests.client.conftest import Clock
from tests.tables import table

KEY = "AKIAIOSFODNN7EXAMQLE"
PAIRS = [(here, there) for here in TASK_STATES for there in TASK_STATES]


def in_state(mem: Engram, state: str) -> str:
    task = mem.start_task("Migrate the billing service")
    if state != "running":
        mem.tasks.move(task.id, state)
    return task.id


@table(("here", "there"), PAIRS, ids=[f"{here}-{there}" for here, there in PAIRS])
def test_a_task_moves_only_where_its_state_lets_it(files: Engram, here: str, there: str) -> None:
    task = in_state(files, here)
    if there in TRANSITIONS[here]:
        assert files.tasks.move(task, there).status == there
        return
    with pytest.raises(InvalidInput, match=f"{task} is {here} and cannot become {there}"):
        files.tasks.move(task, there)
    assert files.get_task(task).status == here


def test_states_survive_on_every_backend(mem: Engram) -> None:
    task = mem.start_task("Migrate billing", metadata={"ticket": 7})
    mem.pause_task(task.id, "waiting for the keys")
    paused = mem.get_task(task.id)
    assert (paused.status, paused.outcome, paused.ended) == ("paused", "waiting for the keys", None)
    assert mem.resume_task(task.id).outcome == ""
    failed = mem.fail_task(task.id, "the disk was full")
    assert (failed.outcome, failed.is_finished) == ("the disk was full", True)
    assert failed.ended is not None
    assert mem.resume_task(task.id).ended is None
    done = mem.complete_task(task.id, "all rows moved")
    assert mem.get_task(task.id) == done
    assert (done.goal, done.metadata) == ("Migrate billing", {"ticket": 7})
    with pytest.raises(InvalidInput, match="cannot become running"):
        mem.resume_task(task.id)


@pytest.mark.parametrize("state", sorted(FINISHED_STATES))
def test_a_finished_task_takes_no_event_and_no_checkpoint(mem: Engram, state: str) -> None:
    task = in_state(mem, state)
    with pytest.raises(InvalidInput, match="ledger is closed"):
        mem.record_event(task, "user", "one more thing")
    with pytest.raises(InvalidInput, match="ledger is closed"):
        mem.record_turn(task, "one more thing")
    with pytest.raises(InvalidInput, match="takes no checkpoint"):
        mem.create_checkpoint(task, "still going")
    assert mem.list_events(task) == []
    assert mem.jobs.list() == []


def test_a_paused_task_takes_no_event_until_it_is_resumed(mem: Engram) -> None:
    task = in_state(mem, "paused")
    with pytest.raises(InvalidInput, match="engram task resume"):
        mem.record_event(task, "user", "the keys have come")
    mem.resume_task(task)
    mem.record_event(task, "user", "the keys have come")
    assert [event.content for event in mem.list_events(task)] == ["the keys have come"]


def test_lists_are_newest_first_and_leave_deleted_ones_out(mem: Engram) -> None:
    first, second, third = (mem.start_task(f"Goal {n}").id for n in range(3))
    mem.complete_task(second)
    mem.soft_delete_task(third)
    assert [task.id for task in mem.list_tasks()] == [second, first]
    assert [task.id for task in mem.list_tasks("completed")] == [second]
    assert [task.id for task in mem.list_tasks(["deleted", "running"])] == [third, first]
    assert [task.id for task in mem.list_tasks(limit=1)] == [second]


@pytest.mark.parametrize("goal", ["", "  \n", None, 7])
def test_a_task_needs_a_goal(mem: Engram, goal: Any) -> None:
    with pytest.raises(InvalidInput, match="needs a goal"):
        mem.start_task(goal)
    assert mem.list_tasks() == []


def _nested(depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(depth):
        found = {"in": found}
    return found


BAD: dict[str, Callable[[Any, str], object]] = {
    "state asked for": lambda mem, task: mem.list_tasks("sleeping"),
    "state moved to": lambda mem, task: mem.tasks.move(task, "sleeping"),
    "scope": lambda mem, task: mem.tasks.start("x", scope="no scope at all:::"),
    "metadata of a task": lambda mem, task: mem.start_task("x", metadata={"at": object()}),
    "negative limit": lambda mem, task: mem.list_tasks(limit=-1),
    "event type": lambda mem, task: mem.record_event(task, "user", "hi", event_type="thought"),
    "role": lambda mem, task: mem.record_event(task, " ", "hi"),
    "content": lambda mem, task: mem.record_event(task, "user", 5),
    "field": lambda mem, task: mem.tasks.record_event(task, "user", "hi", colour="red"),
    "time": lambda mem, task: mem.record_event(task, "user", "hi", at="yesterdayish"),
    "payload": lambda mem, task: mem.record_event(task, "user", "hi", payload=["x"]),
    "payload of objects": lambda mem, task: mem.record_event(task, "user", "hi", payload={"x": object()}),
    "payload of no number": lambda mem, task: mem.record_event(task, "user", "hi", payload={"x": float("nan")}),
    "payload without an end": lambda mem, task: mem.record_event(task, "user", "hi", payload=_nested(5000)),
    "metadata": lambda mem, task: mem.record_event(task, "user", "hi", metadata="x"),
    "key with a secret": lambda mem, task: mem.record_event(task, "user", "hi", key=KEY),
    "empty turn": lambda mem, task: mem.record_turn(task),
    "said": lambda mem, task: mem.record_turn(task, 5),
    "call without a name": lambda mem, task: mem.record_turn(task, "hi", tool_calls=[{"arguments": {}}]),
    "call that is a word": lambda mem, task: mem.record_turn(task, "hi", tool_calls=["pytest"]),
    "one call for a list": lambda mem, task: mem.record_turn(task, "hi", tool_calls={"name": "pytest"}),
    "arguments": lambda mem, task: mem.record_turn(task, "hi", tool_calls=[{"name": "x", "arguments": {"a": {1, object()}}}]),
    "artifact": lambda mem, task: mem.record_turn(task, "hi", artifacts=["report.md"]),
    "artifact without anything": lambda mem, task: mem.record_turn(task, "hi", artifacts=[{}]),
    "summary": lambda mem, task: mem.create_checkpoint(task, " "),
    "no summary": lambda mem, task: mem.create_checkpoint(task, None),
    "step": lambda mem, task: mem.tasks.checkpoint(task, "ok", finished_steps=["a"]),
    "steps as a text": lambda mem, task: mem.create_checkpoint(task, "ok", decisions="use tabs"),
    "steps of numbers": lambda mem, task: mem.create_checkpoint(task, "ok", decisions=[1]),
    "no steps": lambda mem, task: mem.create_checkpoint(task, "ok", decisions=None),
    "sources as a text": lambda mem, task: mem.create_checkpoint(task, "ok", source_event_ids="EVT-1"),
    "kind of checkpoint": lambda mem, task: mem.create_checkpoint(task, "ok", kind="diary"),
    "data": lambda mem, task: mem.create_checkpoint(task, "ok", data={"a": object()}),
    "last": lambda mem, task: mem.list_events(task, last=-1),
    "type searched for": lambda mem, task: mem.search_events("hi", event_types=["thought"]),
    "mode": lambda mem, task: mem.search_events("hi", mode="psychic"),
    "limit": lambda mem, task: mem.search_events("hi", limit=0),
}  # fmt: skip
MISSING: dict[str, Callable[[Engram, str], object]] = {
    "get": lambda mem, task: mem.get_task("TASK-0"),
    "path": lambda mem, task: mem.get_task("../../etc/passwd"),
    "move": lambda mem, task: mem.pause_task("TASK-0"),
    "event": lambda mem, task: mem.record_event("TASK-0", "user", "hi"),
    "turn": lambda mem, task: mem.record_turn("TASK-0", "hi"),
    "list": lambda mem, task: mem.list_events("TASK-0"),
    "search": lambda mem, task: mem.search_events("hi", task="TASK-0"),
    "checkpoint": lambda mem, task: mem.create_checkpoint("TASK-0", "ok"),
    "context": lambda mem, task: mem.build_context("TASK-0"),
    "document": lambda mem, task: mem.record_long_input("TASK-0", "A text that must be kept."),
    "source of a checkpoint": lambda mem, task: mem.create_checkpoint(task, "ok", source_event_ids=["EVT-1"]),
}


@table("what", [*BAD, *MISSING])
def test_what_cannot_be_used_is_named_and_nothing_is_written(files: Engram, what: str) -> None:
    task = files.start_task("Ship it").id
    tasks = files.list_tasks(TASK_STATES, limit=None)
    wanted: type[EngramError] = InvalidInput if what in BAD else NotFound
    with pytest.raises(wanted):
        (BAD.get(what) or MISSING[what])(files, task)
    assert files.list_tasks(TASK_STATES, limit=None) == tasks
    assert files.list_events(task) == []
    assert files.tasks.checkpoints(task) == []
    assert files.jobs.list() == []


def test_a_turn_is_one_append_in_the_order_it_happened(mem: Engram) -> None:
    task = mem.start_task("Mend the build").id
    turn = mem.record_turn(
        task,
        "Run the tests",
        "Two fail",
        tool_calls=[
            {"name": "pytest", "arguments": {"path": "tests"}, "result": {"failed": 2}},
            {"name": "lint", "error": "not installed"},
            {"name": "count", "result": 0},
        ],
        artifacts=[{"name": "report.md", "content": "# Two failures"}],
    )
    assert [(event.role, event.event_type, event.content) for event in turn] == [
        ("user", "message", "Run the tests"),
        ("assistant", "tool_call", 'pytest {"path": "tests"}'),
        ("tool", "tool_result", '{"failed": 2}'),
        ("assistant", "tool_call", "lint"),
        ("tool", "error", "not installed"),
        ("assistant", "tool_call", "count"),
        ("tool", "tool_result", "0"),
        ("assistant", "message", "Two fail"),
        ("assistant", "artifact", "# Two failures"),
    ]
    assert mem.list_events(task) == turn
    assert turn[1].payload == {"name": "pytest", "arguments": {"path": "tests"}}
    assert {event.task for event in turn} == {task}
    assert [event.seq for event in turn] == list(range(1, 10))
    assert mem.store.verify_ledgers() == []


def test_a_turn_with_one_bad_part_leaves_nothing(mem: Engram) -> None:
    task = mem.start_task("Mend the build").id
    with pytest.raises(InvalidInput):
        mem.record_turn(task, "Run the tests", "done", tool_calls=[{"name": "pytest"}, {"name": ""}])
    assert mem.list_events(task) == []
    assert mem.jobs.list() == []


def test_a_repeated_key_is_the_same_turn(mem: Engram) -> None:
    task = mem.start_task("Mend the build").id
    first = mem.record_turn(task, "I live in Lisbon", "Noted", key="turn-1")
    assert mem.record_turn(task, "I live in Lisbon", "Noted", key="turn-1") == first
    assert mem.list_events(task) == first
    assert len(mem.jobs.list()) == 1
    other = mem.record_turn(task, "I live in Lisbon", "Noted", key="turn-2")
    assert {event.id for event in other}.isdisjoint(event.id for event in first)
    assert len(mem.list_events(task)) == 4


def test_a_repeated_event_key_is_the_same_event(mem: Engram) -> None:
    task = mem.start_task("Mend the build").id
    once = mem.record_event(task, "user", "hello", key="m-1")
    assert mem.record_event(task, "user", "hello", key="m-1", metadata={"try": 2}) == once
    assert mem.list_events(task) == [once]


def test_events_are_listed_by_number(mem: Engram) -> None:
    task = mem.start_task("Count").id
    for number in range(1, 6):
        mem.record_event(task, "user", f"number {number}")

    def seqs(last: int | None = None, after: int = 0) -> list[int]:
        return [event.seq for event in mem.list_events(task, last=last, after=after)]

    assert seqs() == [1, 2, 3, 4, 5]
    assert seqs(last=2) == [4, 5]
    assert seqs(after=3) == [4, 5]
    assert seqs(after=1, last=1) == [5]


def searched(mem: Engram, clock: Clock) -> tuple[str, str]:
    one, two = (mem.start_task(goal).id for goal in ("Deploy the api", "Write the manual"))
    mem.record_event(one, "user", "Deploy the api to Frankfurt")
    mem.record_turn(
        one, tool_calls=[{"name": "deploy", "arguments": "Frankfurt", "error": "quota exceeded in Frankfurt"}]
    )
    clock.forward(days=2)
    mem.record_event(one, "assistant", "The deploy to Frankfurt went through")
    mem.record_event(two, "user", "Frankfurt needs a page in the manual")
    return one, two


def test_events_are_found_by_task_type_role_and_time(mem: Engram, clock: Clock) -> None:
    begun = clock()
    one, two = searched(mem, clock)
    later = begun + timedelta(days=1)

    def found(**options: Any) -> set[str]:
        return {hit.text for hit in mem.search_events("Frankfurt", **options)}

    everywhere = found()
    assert len(everywhere) == 5
    assert found(task=two) == {"Frankfurt needs a page in the manual"}
    assert found(task=one, event_types=["error"]) == {"quota exceeded in Frankfurt"}
    assert found(task=one, event_types="message", roles="user") == {"Deploy the api to Frankfurt"}
    assert found(roles=["tool", "assistant"], task=one, until=later) == {
        "deploy Frankfurt",
        "quota exceeded in Frankfurt",
    }
    assert found(task=one, since=later) == {"The deploy to Frankfurt went through"}
    assert found(task=one, since=later.isoformat(), until=later.isoformat()) == set()
    assert found(mode="keyword", task=two) == found(mode="hybrid", task=two) == found(mode="semantic", task=two)
    assert len(found(limit=2)) == 2


def test_secrets_in_a_turn_are_redacted_and_counted(mem: Engram, everything: Callable[[], str]) -> None:
    task = mem.start_task("Rotate the key")
    events = mem.record_turn(
        task.id, f"the key is {KEY}", KEY, tool_calls=[{"name": "aws", "arguments": {"id": KEY}, "result": KEY}],
        artifacts=[{"name": KEY, "content": KEY}],
    )  # fmt: skip
    assert KEY not in everything()
    assert [event.redactions for event in events] == [1, 2, 1, 1, 2]


def test_a_secret_in_a_task_or_checkpoint_is_refused_by_the_name_of_its_field(
    mem: Engram, everything: Callable[[], str]
) -> None:
    task = mem.start_task("Rotate the key").id
    calls: dict[str, Callable[[], object]] = {
        "the task's goal": lambda: mem.start_task(f"Rotate {KEY}"),
        "the task's metadata.cloud.key": lambda: mem.start_task("Rotate", metadata={"cloud": {"key": KEY}}),
        "the task's outcome": lambda: mem.pause_task(task, f"until {KEY} is gone"),
        "the checkpoint's summary": lambda: mem.create_checkpoint(task, f"rotated {KEY}"),
        "line 2 of the checkpoint's decisions": lambda: mem.create_checkpoint(task, "ok", decisions=["a", KEY]),
        "the checkpoint's data.key": lambda: mem.create_checkpoint(task, "ok", data={"key": KEY}),
    }
    for field, call in calls.items():
        with pytest.raises(SecretRefused, match=rf"^{re.escape(field)} contains") as refused:
            call()
        assert KEY not in str(refused.value)
    assert KEY not in everything()


def test_what_no_store_can_hold_is_refused_or_replaced_in_captured_words(mem: Engram) -> None:
    odd = "a\0b\ud800c"
    task = mem.start_task("go").id
    for call in (
        lambda: mem.start_task(odd),
        lambda: mem.start_task("go", metadata={"x": odd}),
        lambda: mem.record_event(task, "user", "hi", metadata={odd: 1}),
        lambda: mem.record_event(task, "user", "hi", key=odd),
        lambda: mem.create_checkpoint(task, odd),
        lambda: mem.pause_task(task, odd),
    ):
        with pytest.raises(InvalidInput, match="NUL"):
            call()
    mem.record_event(task, "user", odd, payload={odd: [odd]})
    (event,) = mem.list_events(task)
    assert event.content == "a\N{REPLACEMENT CHARACTER}b?c"
    mem.record_event(task, "user", "and on it goes")
    assert [hit.text for hit in mem.search_events("on it goes", task=task, roles="user", mode="keyword")] == [
        "and on it goes"
    ]
    assert mem.build_context(task, odd).text
    assert mem.store.verify_ledgers() == []


def test_purging_an_event_takes_its_words_and_leaves_the_chain(mem: Engram, everything: Callable[[], str]) -> None:
    task = mem.start_task("Plan the party").id
    mem.record_event(task, "user", "first")
    gone = mem.record_event(task, "user", "the surprise is a zeppelin", payload={"vehicle": "zeppelin"})
    mem.record_event(task, "user", "last")
    mem.upkeep.purge([gone.id], actor="human")
    assert [event.content for event in mem.list_events(task)] == ["first", "", "last"]
    assert mem.store.verify_ledgers() == []
    assert "zeppelin" not in everything()
    assert mem.search_events("zeppelin", task=task, mode="keyword") == []
    mem.record_event(task, "user", "and on it goes")
    assert mem.store.verify_ledgers() == []


def test_checkpoints_are_numbered_and_remember_how_far_they_reach(mem: Engram) -> None:
    task = mem.start_task("Mend the build").id
    first = mem.create_checkpoint(task, "Nothing yet")
    events = mem.record_turn(task, "go", "done")
    second = mem.create_checkpoint(
        task, "Halfway", completed_steps=["a", " "], pending_steps=("b",), decisions=["tabs"], blockers=["ci"],
        artifacts=["x.md"], source_event_ids=[events[0].id],
    )  # fmt: skip
    assert (first.number, first.through, second.number, second.through) == (1, 0, 2, 2)
    assert (second.completed_steps, second.pending_steps, second.blockers) == (("a",), ("b",), ("ci",))
    assert mem.tasks.checkpoints(task) == [second, first]
    assert mem.tasks.checkpoints(task, limit=1) == [second]


def test_after_a_crash_another_process_goes_on(backend: Backend) -> None:
    first = backend.client()
    task = first.start_task("Mend the build").id
    first.record_turn(task, "I live in Lisbon", key="t1")
    first.create_checkpoint(task, "Began", pending_steps=["mend it"])
    second = backend.client()
    assert second.resume_task(task).status == "running"
    second.record_turn(task, "I live in Lisbon", key="t1")
    second.record_event(task, "user", "go on")
    assert [event.seq for event in second.list_events(task)] == [1, 2]
    assert "mend it" in second.build_context(task).text
    assert second.process_memory_jobs().done
    assert second.store.verify_ledgers() == []


def test_a_silent_task_says_for_how_long(mem: Engram, clock: Clock) -> None:
    task = mem.start_task("Mend the build")
    clock.forward(hours=1)
    assert timedelta(hours=1) <= mem.tasks.idle_since(task) < timedelta(hours=1, seconds=1)
    mem.record_event(task.id, "user", "hello")
    assert mem.tasks.idle_since(task) < timedelta(seconds=1)


def test_only_what_somebody_said_is_queued_for_facts(mem: Engram) -> None:
    task = mem.start_task("Ship the kettle").id
    mem.record_event(task, "tool", "My name is Bob and I live in Oslo.")
    mem.record_event(task, "document", "The project uses Redis for caching.")
    mem.record_event(task, "assistant", "ls", event_type="tool_call")
    mem.record_turn(task, tool_calls=[{"name": "ls", "result": "I live in Rome"}])
    assert mem.jobs.list() == []
    mem.record_event(task, "user", "I live in Rome.")
    assert len(mem.jobs.list()) == 1
