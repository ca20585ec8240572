"""The ledger: chained, durable, harmless to repeat; and the sessions it belongs to."""

import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from engram.model.records import Event, Session
from engram.sessions.observations import make_storable
from engram.store.ledger import body_digest, chain_digest
from engram.store.protocol import Filters, Store
from tests.backends import Backend
from tests.conformance.keeping import Keep, asked, said, texts

START = datetime(2026, 2, 1, 8, tzinfo=UTC)


def test_events_get_id_number_and_digest_and_come_back_in_order(store: Store) -> None:
    first = store.append_events(
        "talk", [said("Ann", "hello"), said("Bob", "hi\nthere 🚀", 1, task="K-1", event_type="observation")]
    )
    second = store.append_events(
        "talk", [said("Ann", "bye", 2, key="k", payload={"a": [1, None]}, metadata={"n": 1.5})]
    )
    events = store.events("talk")
    assert events == first + second
    assert [event.seq for event in events] == [1, 2, 3]
    assert [event.content for event in events] == ["hello", "hi\nthere 🚀", "bye"]
    assert (events[1].task, events[1].event_type, events[1].at) == ("K-1", "observation", START + timedelta(minutes=1))
    assert (events[2].key, events[2].payload, events[2].metadata) == ("k", {"a": [1, None]}, {"n": 1.5})
    assert all(event.id.startswith("EVT-20260201-") for event in events)
    assert len({event.id for event in events}) == 3
    assert all(store.event(event.id) == event for event in events)
    assert store.event("EVT-nowhere") is None
    assert store.events("another") == []


def test_the_chain_of_digests_holds(store: Store) -> None:
    store.append_events("talk", [said("Ann", f"line {n}", n) for n in range(3)])
    store.append_events("talk", [said("Ann", "last", 9)])
    events = store.events("talk")
    assert events[0].prev == ""
    assert [event.prev for event in events[1:]] == [event.digest for event in events[:-1]]
    for event in events:
        assert event.salt
        assert (event.body, event.digest) == (body_digest(event), chain_digest(event))
    assert store.verify_ledgers() == []


def test_a_repeated_key_is_the_event_it_named_before(store: Store, backend: Backend) -> None:
    first = store.append_events("talk", [said("Ann", "hello", key="k1"), said("Ann", "no key")])
    again = backend.store().append_events(
        "talk",
        [
            said("Ann", "hello", 5, key="k1"),
            said("Bob", "new", 6, key="k2"),
            said("Bob", "new", 7, key="k2"),
            said("Ann", "no key", 8),
        ],
    )
    assert again[0] == first[0]
    assert again[1] == again[2]
    assert [event.content for event in store.events("talk")] == ["hello", "no key", "new", "no key"]
    elsewhere = store.append_events("other", [said("Ann", "hello", key="k1")])
    assert elsewhere[0].id != first[0].id


def test_nothing_appended_is_nothing(store: Store) -> None:
    assert store.append_events("talk", []) == []
    assert store.events("talk") == []


def test_sessions_of_hostile_names_stay_apart(store: Store) -> None:
    names = ["a", "A", "a/b", "../a", "a b", "'; DROP TABLE agent_events; --", "%", "日本", "a.jsonl", "x" * 200]
    for name in names:
        store.append_events(name, [said("Ann", f"in {name}")])
    for name in names:
        assert [event.content for event in store.events(name)] == [f"in {name}"]
        assert {event.session for event in store.events(name)} == {name}
    assert store.verify_ledgers() == []


def test_events_are_found_by_what_was_said_and_who_said_it(store: Store) -> None:
    store.append_events("talk", [said("Ann", "Where is the xylophone?"), said("Bob", "In the cellar", 1)])
    events = Filters(kinds=("event",))
    assert texts(store, asked(store, "xylophone", events).lexical) == ["Where is the xylophone?"]
    assert texts(store, asked(store, "bob", events).lexical) == ["In the cellar"]
    assert texts(store, asked(store, "musical instrument", events).semantic)[0] == "Where is the xylophone?"


def test_an_event_belongs_to_the_first_scope_of_its_session(store: Store) -> None:
    store.save_record(Session("S-1", "a task", ("project:acme", "user"), START))
    store.append_events("S-1", [said("Ann", "zebra")])
    store.append_events("loose", [said("Ann", "zebra")])
    events = Filters(kinds=("event",))
    assert store.count(replace(events, scopes=("project:acme",))) == 1
    assert store.count(replace(events, scopes=("global",))) == 1
    assert store.count(replace(events, scopes=("user",))) == 0


def test_sessions_are_saved_changed_and_listed_newest_first(store: Store, backend: Backend) -> None:
    assert store.load_record(Session, "S-1") is None
    assert store.list_records(Session) == []
    sessions = [
        Session(f"S-{n}", f"task {n} ' \" 🚀", ("project:acme", "global"), START + timedelta(hours=n))
        for n in (1, 3, 2)
    ]
    for session in sessions:
        store.save_record(session)
    assert [store.load_record(Session, session.id) for session in sessions] == sessions
    ended = replace(sessions[0], ended=START + timedelta(days=1), summary="done\nwell")
    backend.store().save_record(ended)
    assert store.load_record(Session, "S-1") == ended
    assert [session.id for session in store.list_records(Session)] == ["S-3", "S-2", "S-1"]
    assert [session.id for session in store.list_records(Session, limit=2)] == ["S-3", "S-2"]
    assert store.load_record(Session, "S-") is None


def test_purging_an_event_takes_its_words_and_leaves_the_chain(store: Store, keep: Keep) -> None:
    events = store.append_events("talk", [said("Ann", f"the word is xylophone{n}", n, key=f"k{n}") for n in range(3)])
    purged = store.purge([events[1].id], actor="test")
    assert events[1].id in purged.ids
    assert purged.remaining == ()
    blank = store.events("talk")[1]
    assert (blank.content, blank.salt, blank.key, blank.digest) == ("", "", "", events[1].digest)
    assert store.verify_ledgers() == []
    found = asked(store, "xylophone1", Filters(kinds=("event",)))
    assert sorted(texts(store, found.lexical)) == [events[0].content, events[2].content]
    assert "" not in texts(store, found.semantic)
    after = store.append_events("talk", [said("Bob", "next", 9)])[0]
    assert (after.seq, after.prev) == (4, events[2].digest)
    assert store.verify_ledgers() == []
    assert isinstance(store.event(events[1].id), Event)


def test_many_writers_keep_one_chain(backend: Backend) -> None:
    failures: list[BaseException] = []

    def talk(own: Store, who: str) -> None:
        try:
            for n in range(5):
                own.append_events("talk", [said(who, f"{who} {n}", n)])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=talk, args=(backend.store(), who)) for who in ("Ann", "Bob", "Cid")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures
    store = backend.store()
    assert [event.seq for event in store.events("talk")] == list(range(1, 16))
    assert store.verify_ledgers() == []


def test_every_ledger_with_events_is_listed_by_name(store: Store) -> None:
    assert store.ledgers() == []
    for name in ("talk", "conversation:agent:bot/ana", "document:1f"):
        store.append_events(name, [said("Ann", f"hello from {name}")])
    assert store.ledgers() == ["conversation:agent:bot/ana", "document:1f", "talk"]


@pytest.mark.parametrize("odd", ["zebra\x00stripes", "zebra\ud800stripes"])
def test_a_sessions_task_and_summary_lose_the_characters_that_no_database_can_hold(backend: Backend, odd: str) -> None:
    mem = backend.client()
    session = mem.session(odd)
    ended = session.end(odd)
    plain = mem.store.events(session.id)[0].content
    assert {ended.task, ended.summary, plain} == {make_storable(odd)}
    assert mem.sessions.get(session.id) == ended
