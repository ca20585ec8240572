"""A caller's key makes a repeat harmless; with other words it is a conflict, and nothing is written."""

import pytest

from engram import Engram
from engram.model.errors import InvalidInput, KeyConflict

OTHERS = [("user", "hello again", "message"), ("assistant", "hello", "message"), ("user", "hello", "observation")]


@pytest.mark.parametrize(("role", "content", "event_type"), OTHERS)
def test_a_known_key_with_other_words_is_a_conflict(mem: Engram, role: str, content: str, event_type: str) -> None:
    first = mem.observe("talk", "user", "hello", key="m-1")
    batch = [
        {"role": "user", "content": "what was new", "key": "m-2"},
        {"role": role, "content": content, "event_type": event_type, "key": "m-1"},
    ]
    with pytest.raises(KeyConflict, match=f"'m-1' belongs to event {first.id}"):
        mem.observe_batch("talk", batch)
    assert mem.store.events("talk") == [first]


def test_one_batch_cannot_mean_two_things_by_one_key(mem: Engram) -> None:
    batch = [{"role": "user", "content": word, "key": "m-1"} for word in ("yes", "no")]
    with pytest.raises(KeyConflict, match="same batch"):
        mem.observe_batch("talk", batch)
    assert mem.store.events("talk") == []


def test_a_turn_worded_anew_under_its_key_is_a_conflict(mem: Engram) -> None:
    task = mem.start_task("Mend the build").id
    events = mem.record_turn(task, "Does it build?", "It does", key="t-1")
    with pytest.raises(KeyConflict):
        mem.record_turn(task, "Does it build?", "It does not", key="t-1")
    assert mem.list_events(task) == events
    assert len(mem.jobs.list()) == 1


def test_the_key_of_another_ledger_is_another_key(mem: Engram) -> None:
    one = mem.observe("talk", "user", "hello", key="m-1")
    other = mem.observe("walk", "user", "good day", key="m-1")
    assert one.id != other.id


def test_a_secret_redacted_alike_is_the_same_event(mem: Engram) -> None:
    said = f"the key is AKIA{'IOSFODNN7ABCDEFG'} here"
    assert mem.observe("talk", "user", said, key="m-1") == mem.observe("talk", "user", said, key="m-1")


def test_the_key_of_a_purged_event_is_no_conflict(mem: Engram) -> None:
    first = mem.observe("talk", "user", "the quagga is called Ruben", key="m-1")
    mem.upkeep.purge([first.id])
    mem.observe("talk", "user", "something else entirely", key="m-1")
    assert "quagga" not in "".join(event.content for event in mem.store.events("talk"))


@pytest.mark.parametrize("words", ["", "   ", "\n\t"])
def test_an_event_without_words_is_refused(mem: Engram, words: str) -> None:
    task = mem.start_task("Ship it").id
    for say in (
        lambda: mem.observe("talk", "user", words),
        lambda: mem.record_event(task, "user", words),
        lambda: mem.record_turn(task, words, words),
    ):
        with pytest.raises(InvalidInput, match=r"needs content or a payload|needs a message"):
            say()
    assert mem.store.events("talk") == mem.list_events(task) == []


def test_an_event_may_say_all_in_its_payload(mem: Engram) -> None:
    kept = mem.observe("talk", "tool", "", event_type="tool_result", payload={"exit": 0})
    assert kept.payload == {"exit": 0}


def test_what_else_is_known_of_a_tool_call_stays_with_it(mem: Engram) -> None:
    task = mem.start_task("Mend the build").id
    call = {"name": "pytest", "arguments": {"path": "tests"}, "result": "3 passed", "id": "call-7", "duration_ms": 41}
    asked, answered = mem.record_turn(task, tool_calls=[call])
    more = {"id": "call-7", "duration_ms": 41, "name": "pytest"}
    assert asked.payload == {**more, "arguments": {"path": "tests"}}
    assert (answered.payload, answered.content) == (more, "3 passed")


@pytest.mark.parametrize("part", ["result", "arguments", "error"])
@pytest.mark.parametrize("value", [b"\x89PNG", {"image": b"\x89PNG"}, {1, 2}, object()])
def test_what_json_cannot_hold_is_refused_and_nothing_is_written(mem: Engram, part: str, value: object) -> None:
    task = mem.start_task("Look at it").id
    with pytest.raises(InvalidInput, match=f"the {part} of a tool call cannot be stored as JSON"):
        mem.record_turn(task, "Show me", tool_calls=[{"name": "screenshot", part: value}])
    assert mem.list_events(task) == []


def test_a_tool_that_gave_nothing_back_has_answered(mem: Engram) -> None:
    task = mem.start_task("Touch it").id
    events = mem.record_turn(task, tool_calls=[{"name": "touch", "result": None, "error": None}])
    assert [(event.event_type, event.content) for event in events] == [
        ("tool_call", "touch"),
        ("tool_result", "(nothing)"),
    ]
