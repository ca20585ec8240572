"""Everything that was decided about a memory can be read, and what Engram held at any moment."""

from engram.store.protocol import Store
from tests.clock import Clock
from tests.conformance.keeping import Keep


def test_history_tells_each_decision_with_what_the_memory_was_after_it(store: Store, keep: Keep, clock: Clock) -> None:
    kept = keep("zebra")
    clock.forward(hours=1)
    with store.deciding("update", actor="Ann", reason="it moved", session="S-1", about=[kept.id]) as deciding:
        deciding.put(kept.replace(statement="quagga"))
    first, second = store.history(kept.id)
    assert (first.op, first.actor, first.memory) == ("add", "test", kept)
    assert (second.op, second.actor, second.reason) == ("update", "Ann", "it moved")
    assert second.memory == kept.replace(statement="quagga")
    assert second.seq > first.seq
    assert (second.at - first.at).total_seconds() >= 3600
    assert store.history("ENG-2020-0101-001") == []


def test_one_decision_about_several_is_told_of_each(store: Store, keep: Keep) -> None:
    one, two = keep.many([{"statement": "one"}, {"statement": "two"}])
    images = [store.history(memory.id)[0] for memory in (one, two)]
    assert images[0].seq == images[1].seq
    assert all(sorted(image.ids) == sorted([one.id, two.id]) for image in images)
    assert [image.memory for image in images] == [one, two]


def test_histories_of_several_are_those_of_each(store: Store, keep: Keep) -> None:
    one, two = keep.many([{"statement": "one"}, {"statement": "two"}])
    keep.again(two, statement="three")
    told = store.histories([one.id, two.id, "ENG-2020-0101-001"])
    assert told == {one.id: store.history(one.id), two.id: store.history(two.id), "ENG-2020-0101-001": []}
    assert [len(told[memory.id]) for memory in (one, two)] == [1, 2]


def test_the_last_decisions_come_newest_first_and_by_session(store: Store, keep: Keep) -> None:
    one, two = keep("zebra"), keep("quagga")
    for memory in (one, two):
        with store.deciding("update", actor="Ann", session="DEC-1", about=[memory.id]) as deciding:
            deciding.put(memory.replace(rationale="seen"))
    keep.again(one, statement="okapi")
    assert [(image.ids, image.memory) for image in store.decisions(2)] == [((one.id,), None), ((two.id,), None)]
    assert [image.ids for image in store.decisions(session="DEC-1")] == [(two.id,), (one.id,)]
    assert {image.session for image in store.decisions(session="DEC-1")} == {"DEC-1"}
    assert store.decisions(session="DEC-2") == []


def test_known_at_tells_what_was_held_of_whatever_changed_since(store: Store, keep: Keep, clock: Clock) -> None:
    before = clock()
    steady, moved = keep("steady"), keep("moved one")
    clock.forward(days=1)
    keep.again(moved, statement="moved two")
    between = clock.forward(days=1)
    keep.again(moved, statement="moved three")
    late = keep("late")
    held = store.known_at(between)
    assert set(held) == {moved.id, late.id}
    assert held[late.id] is None
    then = held[moved.id]
    assert then is not None
    assert then.statement == "moved two"
    assert store.known_at(clock()) == {}
    assert store.known_at(before) == {steady.id: None, moved.id: None, late.id: None}


def test_a_purge_stays_in_the_history_without_a_word(store: Store, keep: Keep) -> None:
    kept = keep("zebra", rationale="because")
    store.purge([kept.id], actor="Ann")
    images = store.history(kept.id)
    assert images[-1].op == "purge"
    assert images[-1].actor == "Ann"
    assert all(image.memory is None for image in images)
