"""What a store says of itself, and what its owner does to it now and then."""

from datetime import timedelta
from pathlib import Path

import pytest

from engram.model.errors import StoreClosed
from engram.store.protocol import Filters, Store
from engram.store.states import is_paused, set_pause
from tests.backends import Backend
from tests.clock import Clock
from tests.conformance.keeping import Keep, asked, listed, said


def test_facts_count_what_is_there(store: Store, keep: Keep) -> None:
    keep.many([{"statement": "one"}, {"statement": "two", "status": "candidate"}, {"statement": "three"}])
    store.append_events("talk", [said("Ann", "hello"), said("Bob", "hi", 1)])
    facts = store.facts()
    assert facts["statuses"] == {"active": 2, "candidate": 1}
    assert facts["index"]["documents"] == {"memory": 3, "event": 2}
    assert facts["index"]["vectors"] == 5
    assert facts["embedder"] == facts["index"]["embedder"] == "static-minilm-256-v2"
    assert facts["decisions"] >= 1
    assert facts["problems"] == []


def test_a_healthy_store_says_so(store: Store, keep: Keep) -> None:
    keep("zebra")
    checks = store.examine()
    assert checks
    assert all(check.name and check.detail for check in checks)
    assert [check for check in checks if not check.ok] == []


def test_a_missing_vector_and_another_embedder_are_noticed(backend: Backend, keep: Keep) -> None:
    keep("zebra")
    plain = backend.store(keyword_only=True)
    Keep(plain, keep.clock)("quagga")
    assert plain.facts()["embedder"] is None
    assert plain.facts()["index"]["vectors"] == 1


def test_verdicts_are_counted_since_a_moment(store: Store, backend: Backend, clock: Clock) -> None:
    start = clock()
    store.note_verdict("quality", "REJECTED", start)
    store.note_verdict("", "CREATED", start + timedelta(days=2))
    assert backend.store().verdicts(start) == [("quality", "REJECTED"), ("", "CREATED")]
    assert store.verdicts(start + timedelta(days=1)) == [("", "CREATED")]
    assert store.verdicts(start + timedelta(days=3)) == []


def test_a_pause_holds_for_everyone_until_it_ends(store: Store, backend: Backend) -> None:
    assert not is_paused(store)
    set_pause(store, True)
    set_pause(store, True)
    assert is_paused(store)
    assert is_paused(backend.store())
    set_pause(backend.store(), False)
    assert not is_paused(store)


def test_a_rebuilt_index_answers_as_before(store: Store, keep: Keep) -> None:
    kept = keep("zebra one", name="one", tags=("wild",))
    keep.again(keep("zebra two"), statement="quagga two")
    gone = keep("zebra three")
    store.purge([gone.id], actor="test")
    store.append_events("talk", [said("Ann", "a zebra", key="k")])
    noticed = store.rebuild()
    assert not noticed.problems
    assert store.get("one") == kept
    assert listed(store) == ["quagga two", "zebra one"]
    assert listed(store, Filters(tags=("wild",))) == ["zebra one"]
    found = asked(store, "zebra", Filters(kinds=("memory", "event")))
    assert len(found.lexical) == 2
    assert len(found.semantic) == 3
    assert (found.total, found.frequency) == (3, {"zebra": 2})
    assert len(store.history(kept.id)) == 1
    [again] = store.append_events("talk", [said("Ann", "a zebra", key="k")])
    assert again.seq == 1
    assert keep("next").id == "ENG-2026-0301-004"
    assert store.verify_ledgers() == []


def test_there_is_nothing_to_take_in_where_nobody_else_wrote(store: Store, keep: Keep) -> None:
    keep("zebra")
    noticed = store.sync()
    assert not noticed
    assert noticed.complete


def test_tokens_are_random_hex(store: Store) -> None:
    tokens = {store.new_token(4) for _ in range(50)}
    assert len(tokens) == 50
    assert all(len(token) == 8 and int(token, 16) >= 0 for token in tokens)


def test_a_quiet_store_has_no_warnings(store: Store, keep: Keep) -> None:
    keep("zebra")
    asked(store, "zebra")
    assert store.warnings == []


def test_a_directory_that_is_no_repository_is_trusted_with_nothing(store: Store, tmp_path: Path) -> None:
    assert store.trusted_here(tmp_path) == frozenset()


def test_the_file_of_a_memory_is_a_file_or_nothing(store: Store, keep: Keep) -> None:
    kept = keep("zebra")
    told = store.file_of(kept.id)
    assert told == "" or Path(told).is_file()
    assert store.file_of("ENG-2020-0101-001") == ""


def test_closing_twice_is_closing(backend: Backend) -> None:
    store = backend.store()
    store.close()
    store.close()
    with pytest.raises(StoreClosed):
        store.get("ENG-2026-0101-001")
