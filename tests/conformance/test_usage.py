"""Every use is noted, in order, and asked for by memory, session, position or kind."""

from datetime import UTC, datetime, timedelta

from engram.model.records import Use
from engram.store.protocol import Store
from tests.backends import Backend
from tests.conformance.keeping import Keep

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def use(kind: str, *ids: str, minute: int = 0, session: str = "", signal: str = "") -> Use:
    return Use(kind, ids, NOON + timedelta(minutes=minute), session, signal)


def test_uses_come_back_by_memory_oldest_first(store: Store) -> None:
    store.note_use(use("recalled", "A", "B", session="S-1"))
    store.note_use(use("rated", "A", minute=1, signal="positive"))
    store.note_use(use("injected", "C", minute=2))
    found = store.uses(["A"])
    assert [(u.kind, u.ids, u.at, u.session, u.signal) for u in found] == [
        ("recalled", ("A",), NOON, "S-1", ""),
        ("rated", ("A",), NOON + timedelta(minutes=1), "", "positive"),
    ]
    assert 0 < found[0].position < found[1].position
    assert [u.ids[0] for u in store.uses(["A", "C"])] == ["A", "A", "C"]
    assert store.uses(["nobody"]) == []
    assert store.uses([]) == []


def test_uses_come_back_by_session(store: Store) -> None:
    store.note_use(use("recalled", "A", "B", session="S-1"))
    store.note_use(use("recalled", "A", session="S-2"))
    assert sorted(u.ids[0] for u in store.uses(session="S-1")) == ["A", "B"]
    assert {u.session for u in store.uses(session="S-1")} == {"S-1"}
    assert store.uses(session="S-3") == []


def test_used_since_begins_at_a_position(store: Store) -> None:
    assert store.used_since(0) == []
    for n, memory_id in enumerate(("A", "B", "A", "C")):
        store.note_use(use("recalled", memory_id, minute=n))
    assert sorted(store.used_since(0)) == ["A", "B", "C"]
    position = store.uses(["A"])[1].position
    assert sorted(store.used_since(position)) == ["A", "C"]
    assert sorted(store.used_since(position + 1)) == ["C"]


def test_the_last_use_of_a_kind_has_all_its_ids(store: Store) -> None:
    assert store.last_use("injected") is None
    store.note_use(use("injected", "A", "B"))
    store.note_use(use("injected", "C", "D", minute=1, session="S-1"))
    store.note_use(use("recalled", "E", minute=2))
    last = store.last_use("injected")
    assert last is not None
    assert (sorted(last.ids), last.session, last.at) == (["C", "D"], "S-1", NOON + timedelta(minutes=1))


def test_uses_are_seen_by_others_and_outlive_a_purge_only_as_others(backend: Backend, store: Store, keep: Keep) -> None:
    one, two = keep("zebra one"), keep("zebra two")
    store.note_use(use("recalled", one.id, two.id))
    other = backend.store()
    assert len(other.uses([one.id])) == 1
    store.purge([one.id], actor="test")
    assert store.uses([one.id]) == []
    assert len(store.uses([two.id])) == 1
