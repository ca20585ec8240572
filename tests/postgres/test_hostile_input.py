"""What no caller should send: it is refused by name or kept to the letter, and nothing is half-written."""

from collections.abc import Iterator

import pytest

from engram import Engram
from engram.model.errors import EngramError
from engram.model.records import Session
from tests.backends import OnPostgres
from tests.clock import Clock
from tests.postgres.server import Server

LONG = "An honest sentence about zebras. " * 160_000
ODD = {
    "a NUL byte": "zebra\x00stripes are black",
    "a lone surrogate": "zebra \ud800 stripes are black",
    "a reversed pair": "zebra \udc00\ud800 stripes are black",
    "five megabytes": LONG,
    "one word of a megabyte": "z" * 1_000_000,
    "control characters": "zebra \x01\x02\x1b[31m stripes are black",
    "noncharacters": "zebra \ufffe\uffff stripes are black",
    "a thousand combining marks": "zebra e" + "\u0301" * 1000,
}
SHORT = [kind for kind, text in ODD.items() if len(text) < 10_000]


@pytest.fixture
def mem(shared_database: str, tenant: str, clock: Clock, postgres_server: Server) -> Iterator[Engram]:
    """A memory on the server."""
    backend = OnPostgres(clock, shared_database, tenant, postgres_server)
    yield backend.client()
    backend.close()


def kept_whole_or_refused(mem: Engram, text: str, field: str) -> None:
    """Either an error of ours and nothing written, or the text as it was given."""
    try:
        kept = mem.add_batch([{"statement": "The zebra is a horse", field: text}])[0]
    except EngramError as error:
        assert str(error)
        assert len(str(error)) < 2000
        assert mem.list(status="any") == []
        assert mem.store.facts()["decisions"] == 0
    else:
        assert getattr(mem.get(kept.id), field) == text
        assert len(mem.history(kept.id)) == 1
        if "zebra" in kept.statement:
            assert [hit.id for hit in mem.search("zebra")] == [kept.id]


@pytest.mark.parametrize("field", ["statement", "situation", "rationale", "context"])
@pytest.mark.parametrize("kind", SHORT)
def test_an_odd_text_is_kept_whole_or_refused(mem: Engram, kind: str, field: str) -> None:
    kept_whole_or_refused(mem, ODD[kind], field)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("kind", "field"),
    [("five megabytes", "statement"), ("five megabytes", "context"), ("one word of a megabyte", "statement")],
)
def test_a_text_of_megabytes_is_kept_whole_or_refused(mem: Engram, kind: str, field: str) -> None:
    kept_whole_or_refused(mem, ODD[kind], field)


@pytest.mark.parametrize("kind", SHORT)
def test_odd_references_and_filters_find_nothing_or_are_refused(mem: Engram, kind: str) -> None:
    odd = ODD[kind]
    mem.add("The zebra is a horse")
    for ask in (
        lambda: mem.store.get(odd),
        lambda: mem.search(odd, scope=odd),
        lambda: mem.search("zebra", tags=[odd]),
        lambda: mem.list(metadata={odd: odd}),
        lambda: mem.list(domain=odd),
        lambda: mem.store.events(odd),
        lambda: mem.store.load_record(Session, odd),
    ):
        try:
            assert not ask()
        except EngramError as error:
            assert str(error)
    assert len(mem.list()) == 1


@pytest.mark.parametrize("kind", SHORT)
def test_an_odd_event_is_kept_whole_or_refused(mem: Engram, kind: str) -> None:
    odd = ODD[kind]
    for item in ({"role": "user", "content": odd}, {"role": "user", "content": "hello", "metadata": {"odd": odd}}):
        before = mem.store.events("talk")
        try:
            event = mem.observe_batch("talk", [item])[0]
        except EngramError as error:
            assert str(error)
            assert mem.store.events("talk") == before
        else:
            assert mem.store.event(event.id) == event
    assert mem.store.verify_ledgers() == []


def test_one_odd_item_leaves_nothing_of_its_batch(mem: Engram) -> None:
    batch = [{"statement": "A zebra fact worth keeping"}, {"statement": "Another one", "rationale": ODD["a NUL byte"]}]
    try:
        mem.add_batch(batch)
    except EngramError:
        assert mem.list() == []
    else:
        assert len(mem.list()) == 2
