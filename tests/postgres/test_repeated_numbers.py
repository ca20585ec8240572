"""A number that comes twice, as after a failover that lost what a sequence had given out, ends nobody else's document."""

from datetime import UTC, datetime

import psycopg
import pytest

from engram.model.errors import StoreBusy
from engram.store.documents import Document, memory_document
from engram.store.postgres.opening import open_store
from engram.store.postgres.store import PostgresStore
from engram.store.postgres.writing import Places, Row, documents_work
from tests.backends import static_embedder
from tests.clock import Clock
from tests.conformance.keeping import ANY, Keep, asked, texts

FIRST, SECOND = "The otter sleeps in the boathouse", "The heron stands in the reeds"


def lose_a_number(url: str, sequence: str) -> None:
    """A sequence gives out its last number again."""
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute(f"SELECT setval('engram.{sequence}', last_value, false) FROM engram.{sequence}".encode())


@pytest.mark.parametrize("sequence", ["document_numbers", "decision_numbers"])
def test_a_number_given_out_twice_is_refused_and_the_next_one_is_taken(
    database: str, tenant: str, clock: Clock, sequence: str
) -> None:
    store = open_store(database, tenant, static_embedder(), clock=clock)
    keep = Keep(store, clock)
    first = keep(FIRST)
    before = store.history(first.id), store.numbers([first.id])
    lose_a_number(database, sequence)
    with pytest.raises(StoreBusy, match="try again"):
        keep(SECOND)
    assert (store.history(first.id), store.numbers([first.id])) == before
    assert store.get(first.id) == first
    assert texts(store, asked(store, FIRST, ANY, 1).lexical) == [FIRST]
    second = keep(SECOND)
    assert texts(store, asked(store, SECOND, ANY, 1).lexical) == [SECOND]
    assert store.numbers([first.id, second.id]).keys() == {first.id, second.id}
    store.close()


def put(store: PostgresStore, document: Document, n: int) -> None:
    """Put a document that is taken for a new one, with a number."""
    database = store.parts.database
    with database.transaction() as connection:
        database.all_of(connection, documents_work([Row(document)], Places({document.id: n}, {}), 1))


def test_a_document_keeps_its_number_whatever_number_it_is_put_with(database: str, tenant: str, clock: Clock) -> None:
    store = open_store(database, tenant, None, clock=clock)
    memory = Keep(store, clock)(FIRST)
    (n,) = store.numbers([memory.id]).values()
    put(store, memory_document(memory.but(statement=SECOND)), n + 100)
    assert store.numbers([memory.id]) == {memory.id: n}
    with pytest.raises(StoreBusy):
        put(store, memory_document(memory.but(id="ENG-2020-0101-001", created=datetime(2020, 1, 1, tzinfo=UTC))), n)
    assert store.numbers([memory.id, "ENG-2020-0101-001"]) == {memory.id: n}
    store.close()
