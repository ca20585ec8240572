"""A decision is whole or nothing; ids never repeat; what others wrote meanwhile is told."""

import threading
from datetime import timedelta, timezone

import pytest

from engram.model.errors import NotFound
from engram.model.memory import Memory
from engram.store.protocol import Store, Transaction
from engram.text.content_hash import content_hash
from tests.backends import Backend
from tests.clock import Clock
from tests.conformance.keeping import ANY, Keep, asked, listed


class Stop(Exception):
    """Something went wrong in the middle."""


def test_a_decision_that_fails_leaves_nothing(store: Store, keep: Keep, clock: Clock) -> None:
    kept = keep("zebra one", name="one")
    before = store.history(kept.id)
    with pytest.raises(Stop), store.deciding("add", actor="test", scopes=["global"], about=[kept.id]) as deciding:
        deciding.put(kept.replace(statement="zebra changed"))
        new = deciding.new_id(clock())
        deciding.put(Memory(id=new, statement="zebra two", name=deciding.free_name("two", "global"), created=clock()))
        raise Stop
    assert listed(store) == ["zebra one"]
    assert store.get(new) is None
    assert store.get("two") is None
    assert store.history(kept.id) == before
    assert store.history(new) == []
    assert asked(store, "zebra").total == 1
    assert keep("zebra three", name="two").name == "two"


def test_a_decision_about_nothing_leaves_no_trace(store: Store, keep: Keep) -> None:
    kept = keep("zebra")
    facts = store.facts()["decisions"]
    with store.deciding("noop", actor="test", scopes=["global"], about=[kept.id]) as deciding:
        assert deciding.get(kept.id) == kept
    assert store.facts()["decisions"] == facts
    assert [image.op for image in store.history(kept.id)] == ["add"]


def test_an_id_says_its_day_and_is_never_given_twice(store: Store, backend: Backend, clock: Clock, keep: Keep) -> None:
    with store.deciding("add", actor="test", scopes=["global"]) as deciding:
        ids = [deciding.new_id(clock()) for _ in range(3)]
        for memory_id in ids:
            deciding.put(Memory(id=memory_id, statement=memory_id, created=clock()))
    assert ids == ["ENG-2026-0301-001", "ENG-2026-0301-002", "ENG-2026-0301-003"]
    other = Keep(backend.store(), clock)("from elsewhere").id
    assert other == "ENG-2026-0301-004"
    assert keep("back here").id == "ENG-2026-0301-005"
    clock.forward(days=1)
    assert keep("tomorrow").id == "ENG-2026-0302-001"


def test_the_day_of_an_id_is_the_utc_day(store: Store, clock: Clock) -> None:
    late = clock().replace(hour=23).astimezone(timezone(timedelta(hours=9)))
    with store.deciding("add", actor="test", scopes=["global"]) as deciding:
        assert deciding.new_id(late).startswith("ENG-2026-0301-")


def test_an_id_is_not_reused_after_an_aborted_decision_or_a_purge(store: Store, keep: Keep, clock: Clock) -> None:
    first = keep("zebra one")
    with pytest.raises(Stop), store.deciding("add", actor="test", scopes=["global"]) as deciding:
        deciding.put(Memory(id=deciding.new_id(clock()), statement="never was", created=clock()))
        raise Stop
    second = keep("zebra two")
    store.purge([second.id], actor="test")
    third = keep("zebra three")
    assert len({first.id, second.id, third.id}) == 3
    assert store.get(second.id) is None


def test_an_id_that_was_given_from_outside_is_not_given_again(store: Store, keep: Keep) -> None:
    keep("imported", id="ENG-2026-0301-041")
    assert keep("new").id == "ENG-2026-0301-042"


def test_a_name_is_free_once_per_scope(store: Store, keep: Keep) -> None:
    keep("one", name="zebra")
    keep("two", name="zebra-3", scope="user")
    with store.deciding("add", actor="test", scopes=["global", "user"]) as deciding:
        assert deciding.free_name("zebra", "global") == "zebra-2"
        assert deciding.free_name("zebra", "global") == "zebra-3"
        assert deciding.free_name("zebra", "user") == "zebra"
        assert [deciding.free_name("zebra", "user") for _ in range(2)] == ["zebra-2", "zebra-4"]
        assert deciding.free_name("", "global") == ""
        assert deciding.free_name("zeb_a", "global") == "zeb_a"


def test_inside_a_decision_its_own_puts_are_seen(store: Store, keep: Keep) -> None:
    kept = keep("zebra")
    with store.deciding("update", actor="test", scopes=["global"], about=[kept.id]) as deciding:
        changed = kept.replace(statement="quagga")
        deciding.put(changed)
        assert deciding.get(kept.id) == changed
        deciding.put(changed.replace(confidence=0.9))
        assert deciding.get("ENG-2020-0101-001") is None
    found = store.get(kept.id)
    assert found is not None
    assert (found.statement, found.confidence) == ("quagga", 0.9)
    assert [image.op for image in store.history(kept.id)] == ["add", "update"]


def test_exact_inside_a_decision_finds_what_is_there(store: Store, keep: Keep) -> None:
    kept = keep("Use tabs")
    with store.deciding("add", actor="test", scopes=["global"]) as deciding:
        assert deciding.exact(content_hash("use tabs"), "global") == kept
        assert deciding.exact(content_hash("use tabs"), "user") is None
        assert deciding.exact("", "global") is None


def test_what_others_wrote_since_a_mark_is_told_per_scope(
    store: Store, backend: Backend, keep: Keep, clock: Clock
) -> None:
    keep("before", scope="project:a")
    mark = store.mark("project:a")
    assert isinstance(mark, int)
    elsewhere = Keep(backend.store(), clock)
    late = elsewhere("meanwhile", scope="project:a")
    elsewhere("in another scope", scope="project:b")
    with store.deciding("add", actor="test", scopes=["project:a"]) as deciding:
        assert [m.id for m in deciding.changed_since("project:a", mark)] == [late.id]
    now = store.mark("project:a")
    with store.deciding("add", actor="test", scopes=["project:a"]) as deciding:
        assert list(deciding.changed_since("project:a", now)) == []
    elsewhere.again(late, status="retired")
    with store.deciding("add", actor="test", scopes=["project:a"]) as deciding:
        assert [m.status for m in deciding.changed_since("project:a", now)] == ["retired"]


def test_a_purged_id_does_not_come_back(store: Store, keep: Keep) -> None:
    kept = keep("zebra")
    store.purge([kept.id], actor="test")
    with pytest.raises(NotFound, match=kept.id), store.deciding("add", actor="test", scopes=["global"]) as deciding:
        deciding.put(kept)
    assert store.listing(ANY) == []


def test_one_scope_is_decided_by_one_writer_at_a_time(backend: Backend, clock: Clock) -> None:
    """Each counts what is there and adds one more: a lost update would number two alike."""
    rounds, writers = 5, 3
    failures: list[BaseException] = []

    def count_on(store: Store) -> None:
        try:
            for _ in range(rounds):
                with store.deciding("add", actor="test", scopes=["project:a"]) as deciding:
                    _count_on(deciding, clock)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=count_on, args=(backend.store(),)) for _ in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures
    expected = [f"number {n}" for n in range(1, rounds * writers + 1)]
    assert sorted(listed(backend.store()), key=lambda text: int(text.split()[1])) == expected


def _count_on(deciding: Transaction, clock: Clock) -> None:
    number = 1
    while deciding.exact(content_hash(f"number {number}"), "project:a") is not None:
        number += 1
    deciding.put(Memory(deciding.new_id(clock()), f"number {number}", "project:a", created=clock()))


def test_a_memory_decided_about_by_two_loses_no_change(backend: Backend, store: Store, keep: Keep) -> None:
    kept = keep("zebra", derivation_count=0)
    failures: list[BaseException] = []

    def count_up(own: Store) -> None:
        try:
            for _ in range(5):
                with own.deciding("derive", actor="test", about=[kept.id]) as deciding:
                    known = deciding.get(kept.id)
                    assert known is not None
                    deciding.put(known.replace(derivation_count=known.derivation_count + 1))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=count_up, args=(backend.store(),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures
    found = store.get(kept.id)
    assert found is not None
    assert found.derivation_count == 15
    assert len(store.history(kept.id)) == 16
