"""Documents in their places: sessions and turns, vectors, what stands next to what."""

from dataclasses import replace

import pytest

from engram.model.memory import Memory
from engram.store.protocol import Filters, PassageRange, Store
from tests.backends import Backend
from tests.conformance.keeping import Keep, asked, said

EVENTS = Filters(kinds=("event",))


def test_parents_name_the_session_of_each_document(store: Store, keep: Keep) -> None:
    kept = keep("a zebra alone")
    store.append_events("one", [said("Ann", "zebra")])
    store.append_events("two", [said("Ann", "zebra")])
    numbers = [n for n, _ in asked(store, "zebra", replace(EVENTS, kinds=("memory", "event"))).lexical]
    parents = {n: stand.parent for n, stand in store.document_positions(numbers).items()}
    assert sorted(parents.values()) == ["", "one", "two"]
    assert parents[store.numbers([kept.id])[kept.id]] == ""
    assert store.document_positions([]) == {}


def test_candidates_say_where_each_of_them_stands(store: Store, keep: Keep) -> None:
    keep("a zebra alone")
    store.append_events("talk", [said("Ann", text, i) for i, text in enumerate(("a zebra", "apples", "a zebra again"))])
    store.append_events("other", [said("Ann", "a zebra")])
    for filters in (replace(EVENTS, kinds=("memory", "event")), EVENTS, replace(EVENTS, parents=("talk",))):
        found = asked(store, "zebra", filters)
        numbers = {n for n, _ in (*found.lexical, *found.semantic)}
        assert len(numbers) >= 2
        assert found.positions == store.document_positions(list(numbers))


def test_passages_are_the_documents_asked_for_then_their_neighbours_in_order(store: Store, keep: Keep) -> None:
    kept = keep("a zebra alone", situation="in the wild", rationale="counted")
    store.append_events(
        "b", [said(role, text, i) for i, (role, text) in enumerate([("Ann", "zebra"), ("Bob", "apple")])]
    )
    store.append_events("a", [said("Cid", f"word{n}", n) for n in range(3)])
    number = store.numbers([kept.id])[kept.id]
    found, vectors = store.passages([number], [PassageRange(name, 0, 9) for name in ("b", "a", "nowhere")], EVENTS)
    assert [(p.parent, p.position) for p in found] == [("", 0), ("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2)]
    assert found[0].n == number
    assert found[0].fields[0].split() == ["a", "zebra", "alon"]
    assert "wild" in found[0].fields[1]
    assert "count" in found[0].fields[2]
    assert all(p.eligible for p in found)
    assert "appl" in found[-1].fields[0]
    assert "bob" in found[-1].fields[1]
    assert found[-1].time == pytest.approx(said("x", "y", 1).at.timestamp())
    assert vectors is not None
    assert vectors == pytest.approx(store.vectors([p.n for p in found]))


def test_a_neighbour_that_does_not_pass_the_filters_says_so(store: Store) -> None:
    store.append_events("talk", [said("Ann", "zebra", 0), said("Bob", "apple", 5)])
    found, _ = store.passages([], [PassageRange("talk", 0, 9)], replace(EVENTS, since=said("x", "y", 5).at))
    assert [p.eligible for p in found] == [False, True]
    nothing, vectors = store.passages([], [], EVENTS)
    assert nothing == []
    assert vectors is not None
    assert len(vectors) == 0


def test_without_an_embedder_passages_have_no_vectors(backend: Backend) -> None:
    plain = backend.store(keyword_only=True)
    plain.append_events("talk", [said("Ann", "zebra")])
    found, vectors = plain.passages([], [PassageRange("talk", 0, 9)], EVENTS)
    assert [p.parent for p in found] == ["talk"]
    assert vectors is None


def test_vectors_come_by_number_one_row_each(store: Store, keep: Keep) -> None:
    kept = keep.many([{"statement": "zebra"}, {"statement": "coffee machine"}, {"statement": "release"}])
    numbers = store.numbers([memory.id for memory in kept])
    wanted = [numbers[kept[i].id] for i in (2, 0)]
    vectors, expected = store.vectors(wanted), store.embed(["release", "zebra"])
    assert vectors is not None
    assert expected is not None
    assert vectors.shape == expected.shape
    assert vectors == pytest.approx(expected, abs=2e-3)


def test_a_vector_that_is_given_is_taken(store: Store, keep: Keep) -> None:
    given = store.embed(["something else"])
    assert given is not None
    now = keep.clock()
    with store.deciding("add", actor="test", scopes=["global"]) as deciding:
        memory = Memory(id=deciding.new_id(now), statement="zebra", created=now)
        deciding.put(memory, given[0])
    vectors = store.vectors(list(store.numbers([memory.id]).values()))
    assert vectors is not None
    assert vectors[0] == pytest.approx(given[0], abs=2e-3)


def test_texts_are_embedded_in_the_stores_space(store: Store) -> None:
    vectors = store.embed(["zebra", "", "coffee"])
    assert vectors is not None
    assert vectors.shape[0] == 3
    assert float(vectors[0] @ vectors[0]) == pytest.approx(1, abs=1e-5)
    assert not vectors[1].any()
