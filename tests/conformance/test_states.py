"""Small states by name, on every backend."""

import threading
from collections.abc import Mapping
from datetime import date
from typing import Any

import pytest

from engram.gates.secrets.screen import SecretScreen
from engram.model.errors import InvalidInput
from engram.store.protocol import Store
from engram.store.states import PAUSE_STATE, SPENDING_PREFIX, StoreSpend, is_paused, set_pause
from tests.backends import Backend

NAMES = [
    "buffer/S-1", "buffer/s-1", "buffer/a name of its own ☃", "buffer/../../etc/passwd", "buffer/" + "x" * 300, "harvest/codex",
]  # fmt: skip
VALUE: dict[str, Any] = {"turns": [1, 2], "scope": "user:ann", "half": 0.5, "none": None, "deep": {"ä": [True]}}


def test_a_state_that_nobody_wrote_is_empty(store: Store) -> None:
    assert store.state("buffer/S-1") == {}
    assert store.states("") == []


def test_a_state_is_read_as_it_was_written_also_after_a_restart(backend: Backend) -> None:
    assert backend.store().change_state("buffer/S-1", lambda _: VALUE) == VALUE
    assert backend.store().state("buffer/S-1") == VALUE


def test_each_name_has_a_state_of_its_own(store: Store) -> None:
    for number, name in enumerate(NAMES):
        store.change_state(name, lambda _, number=number: {"n": number})  # type: ignore[misc]
    assert [store.state(name) for name in NAMES] == [{"n": number} for number in range(len(NAMES))]
    assert store.states("") == sorted(NAMES)


def test_names_are_listed_by_how_they_begin(store: Store) -> None:
    for name in ("buffer/b", "buffer/a", "buffers", "Buffer/a", "rate/x_y%"):
        store.change_state(name, lambda _: VALUE)
    assert store.states("buffer/") == ["buffer/a", "buffer/b"]
    assert store.states("rate/x_y") == ["rate/x_y%"] and store.states("rate/x%") == []


def test_a_change_gets_the_value_and_returns_the_next_one(store: Store) -> None:
    store.change_state("rate/x", lambda _: {"n": 1})
    assert store.change_state("rate/x", lambda held: {"n": held["n"] + 1}) == {"n": 2}


def test_an_empty_value_removes_a_state(store: Store) -> None:
    store.change_state("buffer/a", lambda _: VALUE)
    assert store.change_state("buffer/a", lambda _: {}) == {}
    assert (store.state("buffer/a"), store.states("")) == ({}, [])
    assert store.change_state("buffer/never", lambda held: held) == {} and store.states("") == []


def test_a_change_that_fails_leaves_the_value(store: Store) -> None:
    store.change_state("buffer/a", lambda _: VALUE)

    def fails(held: Mapping[str, Any]) -> Mapping[str, Any]:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        store.change_state("buffer/a", fails)
    assert store.state("buffer/a") == VALUE


@pytest.mark.parametrize("value", [{"at": object()}, {"n": float("nan")}, {"s": {1, 2}}])
def test_a_value_that_is_not_json_is_refused(store: Store, value: Mapping[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="a state must consist of"):
        store.change_state("buffer/a", lambda _: value)
    assert store.states("") == []


@pytest.mark.parametrize("name", ["", "a\0b", "a\nb", "\ud800", "x" * 1001])
def test_a_name_that_no_backend_can_store_is_refused(store: Store, name: str) -> None:
    with pytest.raises(InvalidInput, match="name of a state"):
        store.change_state(name, lambda _: VALUE)
    with pytest.raises(InvalidInput, match="name of a state"):
        store.state(name)


def test_a_secret_in_a_name_is_refused(store: Store) -> None:
    store.screen = SecretScreen()
    with pytest.raises(InvalidInput, match="the state's name"):
        store.change_state("buffer/ghp_" + "a1B2" * 9, lambda _: VALUE)
    assert store.states("") == []


def test_changes_at_the_same_time_are_all_kept(backend: Backend) -> None:
    stores = [backend.store(keyword_only=True) for _ in range(4)]

    def count(store: Store) -> None:
        for _ in range(5):
            # A state that comes and goes, too: whoever adds it again must not undo what another one counted.
            store.change_state("rate/x", lambda held: {"n": held.get("n", 0) + 1})
            store.change_state("rate/y", lambda held: {} if held else {"n": 1})

    threads = [threading.Thread(target=count, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stores[0].state("rate/x") == {"n": 20}
    assert stores[0].state("rate/y") == {}, "it was changed an even number of times"


def test_the_states_of_a_purged_scope_go_with_its_sessions(backend: Backend) -> None:
    mem = backend.client()
    with mem.session("", scope="user:ann") as ann, mem.session("", scope="user:bob") as bob:
        ann.observe("user", "I moved to Lisbon")
        for name in (f"buffer/{ann.id}", f"buffer/{bob.id}", "harvest/codex"):
            mem.store.change_state(name, lambda _: VALUE)
        mem.purge(user_id="ann")
        assert mem.store.states("") == sorted([f"buffer/{bob.id}", "harvest/codex"])


def test_a_pause_is_a_state_that_another_process_sees(backend: Backend) -> None:
    store, other = backend.store(), backend.store()
    assert store.state(PAUSE_STATE) == {} and not is_paused(store)
    set_pause(store, True)
    assert is_paused(other) and other.state(PAUSE_STATE) == {"paused": True}
    set_pause(other, False)
    assert not is_paused(store) and store.state(PAUSE_STATE) == {}


def test_tokens_of_a_day_add_up_over_processes(backend: Backend) -> None:
    one, other, day = StoreSpend(backend.store()), StoreSpend(backend.store()), date(2027, 3, 4)
    one.spend_tokens(day, 120)
    other.spend_tokens(day, 80)
    one.spend_tokens(day, -50)
    assert one.tokens_spent(day) == other.tokens_spent(day) == 150
    assert other.tokens_spent(date(2027, 3, 5)) == 0
    assert backend.store().state(f"{SPENDING_PREFIX}2027-03-04") == {"tokens": 150}
