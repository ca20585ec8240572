"""Pending events: every query finds them, from any process, and nothing depends on the process that appended them."""

import contextlib
import random
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from engram.model.errors import EmbedderError, KeyConflict, StoreReadOnly
from engram.model.records import Event
from engram.store.files.lock import WriterLock
from engram.store.files.log.ledger import Ledger, LedgerRange
from engram.store.files.reconcile import recovery
from engram.store.files.reconcile.index_state import MOST, MOST_BYTES, IndexContext
from engram.store.files.store.backend import FilesStore
from engram.store.home import open_home
from engram.store.ledger import Head
from engram.store.protocol import Filters, Progress
from engram.store.reports import SyncReport
from engram.store.sqlite.index import Index
from tests.backends import static_embedder
from tests.clock import Clock
from tests.conformance.keeping import Keep, asked, said, texts

EVENTS = Filters(kinds=("event",))
Opened = Callable[[], FilesStore]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """Opens the store again, as another process would."""
    stores: list[FilesStore] = []

    def another() -> FilesStore:
        stores.append(FilesStore(open_home(tmp_path / "home", tmp_path / "cache"), static_embedder()))
        return stores[-1]

    yield another
    for store in stores:
        store.close()


@pytest.fixture
def store(opened: Opened) -> FilesStore:
    """A store with one indexed event."""
    made = opened()
    made.append_events("talk", [said("Ann", "the first word")])
    assert in_index(made) == 1
    return made


def in_index(store: FilesStore) -> int:
    """How many events are indexed, without going through the store."""
    count: int = store.context.index.db.execute("SELECT count(*) FROM docs WHERE kind = 'event'").fetchone()[0]
    return count


def contents(store: FilesStore, session: str = "talk") -> list[str]:
    return [event.content for event in store.events(session)]


def by_words(store: FilesStore, question: str) -> list[str]:
    return texts(store, asked(store, question, EVENTS).lexical)


def test_an_append_leaves_the_index_for_later(store: FilesStore) -> None:
    store.append_events("talk", [said("Ann", "the second word")])
    assert in_index(store) == 1
    assert contents(store) == ["the first word", "the second word"]
    assert in_index(store) == 2


QUESTIONS: dict[str, Callable[[FilesStore, str], bool]] = {
    "by id": lambda store, event_id: store.event(event_id) is not None,
    "by ledger": lambda store, _: "about zebras" in contents(store, "zoo"),
    "by name": lambda store, _: "zoo" in store.ledgers(),
    "by words": lambda store, _: by_words(store, "zebras") == ["about zebras"],
    "by meaning": lambda store, _: "about zebras" in texts(store, asked(store, "zebras", EVENTS).semantic),
    "by count": lambda store, _: store.count(EVENTS) == 2,
    "by status": lambda store, _: store.facts()["index"]["documents"]["event"] == 2,
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_appending_process_finds_it_at_once(store: FilesStore, question: str) -> None:
    (event,) = store.append_events("zoo", [said("Ann", "about zebras")])
    assert in_index(store) == 1
    assert QUESTIONS[question](store, event.id)


@pytest.mark.parametrize("question", QUESTIONS)
def test_another_process_finds_it_at_once(store: FilesStore, opened: Opened, question: str) -> None:
    other = opened()
    (event,) = store.append_events("zoo", [said("Ann", "about zebras")])
    assert QUESTIONS[question](other, event.id)


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_next_process_finds_what_a_killed_one_appended(store: FilesStore, opened: Opened, question: str) -> None:
    (event,) = store.append_events("zoo", [said("Ann", "about zebras")])
    store.context.pending = None  # what a kill takes away
    assert QUESTIONS[question](opened(), event.id)


def test_the_number_of_pending_events_is_limited(store: FilesStore) -> None:
    for n in range(MOST - 1):
        store.append_events(f"talk {n % 3}", [said("Ann", f"line {n}")])
    assert in_index(store) == 1
    store.append_events("talk 0", [said("Ann", "one more")])
    assert in_index(store) == 1 + MOST


def test_closing_indexes_pending_events(store: FilesStore, opened: Opened) -> None:
    store.append_events("talk", [said("Ann", "the second word")])
    store.close()
    assert in_index(opened()) == 2


def test_a_key_is_known_while_its_event_is_pending(store: FilesStore, opened: Opened) -> None:
    (first,) = store.append_events("talk", [said("Ann", "once", key="k")])
    assert store.append_events("talk", [said("Ann", "once", key="k")]) == [first]
    (second,) = opened().append_events("talk", [said("Ann", "twice", key="l")])
    assert store.append_events("talk", [said("Ann", "twice", key="l")]) == [second]
    with pytest.raises(KeyConflict):
        opened().append_events("talk", [said("Ann", "something else", key="k")])
    assert contents(store) == ["the first word", "once", "twice"]


def test_what_another_process_purged_does_not_come_back(store: FilesStore, opened: Opened) -> None:
    (event,) = store.append_events("talk", [said("Ann", "the secret handshake")])
    opened().purge([event.id], actor="test")
    assert by_words(store, "handshake") == []
    assert contents(store) == ["the first word", ""]
    words = store.context.index.db.execute("SELECT count(*) FROM records WHERE record LIKE '%handshake%'").fetchone()
    assert words == (0,) and store.verify_ledgers() == []


def test_a_damaged_index_loses_no_pending_event(store: FilesStore) -> None:
    store.append_events("talk", [said("Ann", "the second word")])
    store.context.index.db.execute("DROP TABLE docs")
    assert contents(store) == ["the first word", "the second word"]


def test_an_append_succeeds_when_indexing_fails(store: FilesStore) -> None:
    store.context.index.db.execute("DROP TABLE records")
    for n in range(MOST):
        store.append_events("talk", [said("Ann", f"line {n}")])
    assert contents(store) == ["the first word", *(f"line {n}" for n in range(MOST))]
    assert store.verify_ledgers() == []


class Failing:
    """An embedder that has stopped working."""

    name, dim = static_embedder().name, static_embedder().dim

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        raise EmbedderError("out of order")


def test_without_vectors_it_is_found_by_its_words_and_later_by_its_meaning(store: FilesStore) -> None:
    works = store.context.embedder
    store.context.embedder = Failing()
    store.append_events("talk", [said("Ann", "about zebras")])
    assert "about zebras" in contents(store)
    store.context.embedder = works
    store.sync()
    assert "about zebras" in texts(store, asked(store, "zebras", EVENTS).semantic)


def test_the_size_of_pending_events_is_limited(store: FilesStore) -> None:
    store.append_events("talk", [said("Ann", "word " * (MOST_BYTES // 5))])
    assert in_index(store) == 2


def test_a_hand_edit_that_another_process_journals_hides_nothing(store: FilesStore, opened: Opened) -> None:
    other, keep = opened(), Keep(store, Clock())
    memory = keep("the parser uses tabs")
    assert other.get(memory.id) is not None
    store.append_events("talk", [said("Ann", "about zebras")])
    store.append_events("zoo", [said("Ann", "zebras again")])
    path = Path(store.file_of(memory.id))
    store.append_events("zoo", [said("Ann", "still zebras")])
    path.write_text(path.read_text("utf-8").replace("tabs", "spaces"), "utf-8")
    edited = other.get(memory.id)
    assert edited is not None and edited.statement == "the parser uses spaces"
    assert sorted(by_words(other, "zebras")) == ["about zebras", "still zebras", "zebras again"]
    assert {name: store.context.anchors.head_of(name) for name in ("talk", "zoo")} == {
        name: Head(len(events), events[-1].digest) for name in ("talk", "zoo") for events in [store.events(name)]
    }
    assert store.verify_ledgers() == []


def test_a_rebuild_includes_what_others_appended(
    store: FilesStore, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers use the old index until the new one is complete."""
    store.append_events("talk", [said("Ann", "the second word")])
    seen: list[int] = []
    whole = recovery.rebuild

    def noting(parts: IndexContext, progress: Progress) -> SyncReport:
        seen.append(in_index(store))
        return whole(parts, progress)

    monkeypatch.setattr(recovery, "rebuild", noting)
    opened().rebuild()
    assert seen == [2] and contents(store) == ["the first word", "the second word"]


def test_a_process_without_an_embedder_leaves_the_vectors_to_others(store: FilesStore, tmp_path: Path) -> None:
    store.append_events("talk", [said("Ann", "about zebras")])
    with closing(FilesStore(open_home(tmp_path / "home", tmp_path / "cache"))) as other:
        assert "about zebras" in contents(other)
    assert "about zebras" in texts(store, asked(store, "zebras", EVENTS).semantic)
    assert not store.context.index.without_vector(0, 1) and not store.context.index.get("lacking")


def test_a_reader_without_the_lock_answers_and_warns_of_what_is_missing(store: FilesStore, opened: Opened) -> None:
    other = opened()
    store.append_events("talk", [said("Ann", "the second word")])
    store.append_events("talk", [said("Ann", "the third word")])
    other.context.lock = store.context.lock = Barred(store.context.home.lock)
    for reader in (store, other):
        assert contents(reader) == ["the first word"] and reader.count(EVENTS) == 1
        assert reader.event("EVT-unknown") is None and by_words(reader, "first") == ["the first word"]
        assert any("not searchable yet" in warning for warning in reader.warnings)
    other.context.lock = store.context.lock = WriterLock(store.context.home.lock)
    assert contents(store) == contents(other) == ["the first word", "the second word", "the third word"]


class Barred(WriterLock):
    """The lock of a read-only home."""

    @contextlib.contextmanager
    def hold(self, deadline: float = 0.0) -> Iterator[None]:
        raise StoreReadOnly("cannot write here")
        yield


def test_nothing_is_appended_twice_when_indexing_fails(store: FilesStore, monkeypatch: pytest.MonkeyPatch) -> None:
    written, get = Ledger.append_turn, Index.get
    failing: list[bool] = []

    def append(self: Ledger, session: str, events: Sequence[Event]) -> LedgerRange:
        done = written(self, session, events)
        failing.append(True)
        return done

    def fails(self: Index, key: str) -> object:
        if failing:
            failing.clear()
            raise sqlite3.OperationalError("disk I/O error")
        return get(self, key)

    store.events("talk")
    monkeypatch.setattr(Ledger, "append_turn", append)
    monkeypatch.setattr(Index, "get", fails)
    store.append_events("talk", [said("Ann", "exactly once")])
    monkeypatch.undo()
    assert contents(store) == ["the first word", "exactly once"] and store.verify_ledgers() == []


@pytest.mark.parametrize("seed", range(6))
def test_two_interleaved_writers_store_every_event_once(opened: Opened, seed: int) -> None:
    choose, stores = random.Random(seed), [opened(), opened()]
    expected: dict[str, list[str]] = {name: [] for name in ("one", "two", "three")}
    for step in range(60):
        store, session = choose.choice(stores), choose.choice(list(expected))
        match choose.randrange(5):
            case 0 | 1 | 2:
                written = [f"line {step} {n}" for n in range(choose.choice([1, 1, 1, 3]))]
                key = f"k{step}" if choose.random() < 0.2 else ""
                store.append_events(session, [said("Ann", text, key=key and f"{key}-{text}") for text in written])
                expected[session] += written
            case 3:
                assert contents(store, session) == expected[session]
            case 4:
                with store.deciding("note", actor="test"):
                    assert store.count(EVENTS) == sum(map(len, expected.values()))
    for store in stores:
        assert {name: contents(store, name) for name in expected} == expected
        assert in_index(store) == sum(map(len, expected.values())) and store.verify_ledgers() == []
        assert not store.context.index.without_vector(0, 1)
