"""What was known and what happened over time."""

from datetime import timedelta

import pytest

from engram.model.errors import InvalidInput
from tests.backends import Backend


def test_memories_and_sessions_come_in_the_order_of_their_times(backend: Backend) -> None:
    mem, clock = backend.client(), backend.clock
    mem.add("The launch is in May", scope="global")
    clock.now += timedelta(days=1)
    session = mem.session("plan the launch", scope="global")
    clock.now += timedelta(hours=1)
    session.end("The launch is planned.")
    entries = mem.timeline(scope="global")
    assert [(entry.kind, entry.note) for entry in entries] == [
        ("memory", ""),
        ("session", "started"),
        ("session", "ended"),
    ]
    assert [entry.text for entry in entries][1:] == ["plan the launch", "The launch is planned."]


def test_a_replaced_fact_stays_with_what_replaced_it(backend: Backend) -> None:
    mem, clock = backend.client(), backend.clock
    old = mem.add("The launch is in May", scope="global")
    clock.now += timedelta(days=1)
    new = mem.revise(old.id, statement="The launch is in June")
    entries = mem.timeline(scope="global")
    assert [entry.status for entry in entries] == ["superseded", "active"]
    assert entries[0].note == f"replaced by {new.id}"


def test_the_newest_are_kept_and_the_window_is_half_open(backend: Backend) -> None:
    mem, clock = backend.client(), backend.clock
    begin = clock.now
    for number in range(4):
        mem.add(f"Fact number {number}", scope="global")
        clock.now += timedelta(days=1)
    assert [entry.text[-1] for entry in mem.timeline(limit=2, scope="global")] == ["2", "3"]
    window = mem.timeline(since=begin, until=begin + timedelta(days=1), scope="global")
    assert [entry.text[-1] for entry in window] == ["0"]


def test_a_subject_also_finds_what_was_said(backend: Backend) -> None:
    mem, clock = backend.client(), backend.clock
    session = mem.session("talk", scope="global")
    session.observe("user", "The zeppelin festival is postponed to autumn")
    clock.now += timedelta(hours=1)
    mem.add("The zeppelin festival takes place in October", scope="global")
    mem.add("Invoices are sent on Mondays", scope="global")
    entries = mem.timeline("zeppelin festival", scope="global")
    assert [(entry.kind, entry.note) for entry in entries] == [("event", "user"), ("memory", "")]


def test_another_owners_entries_are_not_seen(backend: Backend) -> None:
    mem = backend.client()
    mem.add("Ana likes tea", user_id="ana")
    mem.session("for ben", user_id="ben").end("done")
    assert [entry.text for entry in mem.timeline(user_id="ana")] == ["Ana likes tea"]


def test_a_length_that_is_none_is_refused(backend: Backend) -> None:
    with pytest.raises(InvalidInput, match="limit"):
        backend.client().timeline(limit=-1)
