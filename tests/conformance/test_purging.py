"""Purging destroys: nothing is found afterwards, nothing of it stands anywhere, and the id is spent."""

from dataclasses import replace

from engram.model.memory import Association, Evidence
from engram.model.records import Session
from engram.store.protocol import Filters, Store
from engram.text.content_hash import content_hash
from tests.backends import Backend
from tests.conformance.keeping import ANY, Keep, asked, day, listed, said, texts

WORDS = ("nightshift", "Frankfurt", "Klaus", "xylophone", "kitchen-table", "Dublin", "lighthouse")


def test_nothing_of_a_purged_memory_is_found_anywhere(backend: Backend, store: Store, keep: Keep) -> None:
    first = keep(
        "The staging server is called nightshift",
        name="nightshift",
        aliases=("Dublin",),
        situation="when deploying in Frankfurt",
        rationale="Klaus said so",
        context="heard over a xylophone",
        tags=("kitchen-table",),
        cues=("the lighthouse machine",),
        metadata={"where": "Frankfurt"},
    )
    kept = keep("The coffee machine is called dayshift")
    changed = keep.again(first, statement="The staging server moved to Frankfurt with Klaus")
    done = store.purge([first.id], actor="test")
    assert done.ids == (first.id,)
    assert done.remaining == ()
    assert done.out_of_reach
    for ref in (first.id, "nightshift", "Dublin"):
        assert store.get(ref) is None
    assert store.id_by_name("nightshift", "global") == ""
    assert store.exact(content_hash(changed.statement), "global") is None
    assert listed(store) == [kept.statement]
    assert asked(store, "nightshift Frankfurt Klaus xylophone lighthouse").lexical == []
    assert store.numbers([first.id]) == {}
    contents = backend.everything()
    assert "dayshift" in contents
    assert [word for word in WORDS if word in contents] == []


def test_others_are_untouched_by_a_purge(store: Store, keep: Keep) -> None:
    gone, kept = keep.many([{"statement": "zebra one", "tags": ("a",)}, {"statement": "zebra two", "tags": ("a",)}])
    linked = keep("zebra three", associations=(Association(gone.id, "semantic", 0.5),))
    store.purge([gone.id], actor="test")
    assert store.get(kept.id) == kept
    assert store.get(linked.id) == linked
    assert [image.memory for image in store.history(kept.id)] == [kept]
    assert asked(store, "zebra").total >= 2
    assert sorted(listed(store, replace(ANY, tags=("a",)))) == ["zebra two"]


def test_the_events_a_memory_was_drawn_from_go_with_it(store: Store, keep: Keep) -> None:
    events = store.append_events(
        "talk",
        [
            said("Ann", "let me think"),
            said("Ann", "my locker code is four twenty", 1),
            said("Bob", "The locker opens with 420", 2),
        ],
    )
    kept = keep("The locker opens with 420", evidence=(Evidence(events[1].id),))
    done = store.purge([kept.id], actor="test")
    assert set(done.ids) == {kept.id, events[1].id, events[2].id}
    assert [event.content for event in store.events("talk")] == ["let me think", "", ""]
    assert store.verify_ledgers() == []


def test_a_session_that_quotes_it_quotes_it_no_longer(backend: Backend, store: Store, keep: Keep) -> None:
    kept = keep("The locker opens with xylophone")
    store.save_record(Session("S-1", "find out: The locker opens with xylophone", ("global",), day(1), None, "ok"))
    store.purge([kept.id], actor="test")
    session = store.load_record(Session, "S-1")
    assert session is not None
    assert session.task.startswith("find out: ")
    assert "xylophone" not in backend.everything()


def test_what_stood_beside_a_purged_event_is_found_in_its_ledger(store: Store) -> None:
    first, *_ = store.append_events("talk", [said("Ann", f"zebra number {n}") for n in range(3)])
    store.append_events("another", [said("Ann", "about horses")])
    store.purge([first.id], actor="test")
    found = asked(store, "zebra", Filters(kinds=("event",), parents=("talk",)))
    assert sorted(texts(store, found.lexical)) == ["zebra number 1", "zebra number 2"]


def test_several_are_purged_at_once_and_again_without_harm(store: Store, keep: Keep) -> None:
    one, two, three = keep.many([{"statement": f"zebra {n}"} for n in ("one", "two", "three")])
    event = store.append_events("talk", [said("Ann", "quagga")])[0]
    done = store.purge([one.id, event.id, two.id], actor="test")
    assert set(done.ids) == {one.id, two.id, event.id}
    store.purge([one.id], actor="test")
    store.purge(["ENG-2020-0101-001"], actor="test")
    assert listed(store) == ["zebra three"]
    assert store.count(Filters(kinds=("event",))) == 0
    assert store.get(three.id) == three


def test_a_purge_is_seen_by_whoever_has_the_store_open(backend: Backend, store: Store, keep: Keep) -> None:
    kept = keep("zebra")
    other = backend.store()
    assert listed(other) == ["zebra"]
    store.purge([kept.id], actor="test")
    assert other.get(kept.id) is None
    assert asked(other, "zebra").lexical == []
    assert asked(other, "zebra").semantic == []


def test_who_else_says_an_events_words_keeps_them_and_is_named(backend: Backend, store: Store, keep: Keep) -> None:
    gone, other = store.append_events(
        "talk", [said("Ann", "my locker\nopens with xylophone"), said("Bob", "hers opens with xylophone", 1)]
    )
    fact = keep("opens with xylophone", evidence=(Evidence(gone.id),))
    done = store.purge([gone.id, fact.id], drawn=[fact.id], actor="test")
    assert set(done.ids) == {gone.id, fact.id}
    assert [line.split(":")[0] for line in done.remaining] == [other.id]
    assert [event.content for event in store.events("talk")] == ["", "hers opens with xylophone"]
    assert store.get(fact.id) is None
    assert store.verify_ledgers() == []
    assert store.purge([other.id], actor="test").remaining == ()
    assert "xylophone" not in backend.everything()


def test_the_words_of_a_memory_asked_for_go_though_an_event_asked_for_says_them_too(store: Store, keep: Keep) -> None:
    mine, other = store.append_events("talk", [said("Ann", "the locker is blue"), said("Bob", "the locker is blue", 1)])
    fact = keep("the locker is blue")
    done = store.purge([mine.id, fact.id], actor="test")
    assert set(done.ids) == {mine.id, fact.id, other.id}
    assert done.remaining == ()
