"""What a second pair of eyes found in the Postgres backend, each as a test that fails without its mending."""

from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from engram import Engram
from engram.model.errors import InvalidInput, StoreBusy
from engram.model.records import Session
from engram.store.postgres import neighbours, rebuild
from engram.store.postgres.store import PostgresStore
from engram.store.protocol import Filters, Query
from tests.backends import Backend
from tests.postgres.server import Server, at_database


def _server_store(mem: Engram) -> PostgresStore:
    assert isinstance(mem.store, PostgresStore)
    return mem.store


def test_a_word_asked_for_in_vain_is_found_once_a_memory_holds_it(backend: Backend) -> None:
    with backend.client() as mem:
        mem.add_batch([{"statement": f"The {n}th shelf holds paint of colour {n}"} for n in range(100)])
        assert mem.search("zebra", mode="keyword") == []
        mem.add("The zebra lives in the north paddock")
        assert [hit.text for hit in mem.search("zebra", mode="keyword")] == ["The zebra lives in the north paddock"]
        mem.learn("Quokkas are fed at Fremantle on Mondays")
        assert mem.search("quokkas fremantle", mode="keyword")[0].text.startswith("Quokkas")


def test_a_decision_stands_though_its_vectors_cannot_be_made_at_once(
    shared_database: str, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object) -> int:
        raise StoreBusy("the server is busy; nothing was written; try again")

    with Engram.open(url=shared_database, tenant=tenant) as mem:
        kept = mem.add("The zebra lives in the north paddock")
        monkeypatch.setattr(rebuild, "fill", busy)
        changed = mem.update(kept.id, statement="The zebra lives in the south paddock", situation="after the flood")
        assert mem.get(kept.id).statement == changed.statement
        mem.store.sync()
        assert any("by keyword" in warning for warning in mem.store.warnings)


def test_what_says_nothing_new_is_not_embedded_again(
    shared_database: str, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[object] = []
    with Engram.open(url=shared_database, tenant=tenant) as mem:
        kept = mem.add("The zebra lives in the north paddock")
        monkeypatch.setattr(rebuild, "fill", looked.append)
        mem.pin(kept.id)
        mem.feedback(kept.id, "positive")
        mem.forget(kept.id)
    assert looked == []


def test_a_document_without_its_record_is_passed_over_told_of_and_removed(
    postgres_server: Server, database: str
) -> None:
    with Engram.open(url=database, tenant="acme") as mem:
        lost = mem.add("The zebra lives in the north paddock")
        mem.add("The zebra is fed at noon")
        with psycopg.connect(at_database(postgres_server.admin_url, urlsplit(database).path[1:])) as admin:
            admin.execute("DELETE FROM engram.agent_memory WHERE id = %s", (lost.id,))
        assert [hit.text for hit in mem.search("zebra")] == ["The zebra is fed at noon"]
        index = next(check for check in mem.store.examine() if check.name == "index")
        assert not index.ok and "without a record" in index.detail
        mem.rebuild_index()
        assert next(check for check in mem.store.examine() if check.name == "index").ok


def test_an_index_that_gives_up_early_is_backed_by_an_exact_search(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours, "MAX_EXACT_SEARCH_VECTORS", 0)
    with Engram.open(url=database, tenant="acme") as mem:
        mem.add_batch([{"statement": f"Zebra number {n} eats hay", "scope": "project:zoo"} for n in range(60)])
        mem.add_batch([{"statement": f"Server {n} listens on port {n}", "scope": "project:ops"} for n in range(10)])
        store = _server_store(mem)
        store.build_nearest()
        index_search = neighbours.index_search
        monkeypatch.setattr(
            neighbours,
            "index_search",
            lambda parts, vector, filters, _, generation: index_search(parts, vector, filters, 0, generation),
        )
        vector = store.embed(["what do zebras eat"])
        assert vector is not None
        found = store.candidates(Query(vector=vector[0], limit=10), Filters(scopes=("project:ops",)))
        assert len(found.semantic) > 0


def test_an_index_that_was_dropped_is_told_of(database: str) -> None:
    with Engram.open(url=database, tenant="acme") as mem:
        mem.add("The zebra lives in the north paddock")
        store = _server_store(mem)
        name = store.build_nearest()
        with psycopg.connect(database, autocommit=True) as owner:
            owner.execute(f'DROP INDEX engram."{name}"'.encode())
        index = next(check for check in store.examine() if check.name == "index")
        assert not index.ok and name in index.detail


def test_a_name_too_long_for_a_server_is_refused_as_that(shared_database: str, tenant: str) -> None:
    import random

    long = "".join(random.Random(3).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=9000))
    with Engram.open(url=shared_database, tenant=tenant) as mem, pytest.raises(InvalidInput, match="shorten"):
        mem.observe(long, "user", "hello")


def test_a_purge_beside_the_end_of_a_session_brings_nothing_back(shared_database: str, tenant: str) -> None:
    words = "The zebra lives in the north paddock"
    with Engram.open(url=shared_database, tenant=tenant) as mem:
        kept = mem.add(words)
        begun = mem.session(task=words)
        held = mem.store.load_record(Session, begun.id)
        assert held is not None
        mem.forget(kept.id, purge=True)
        mem.store.save_record(held)
        after = mem.store.load_record(Session, begun.id)
        assert after is not None and words not in after.task


def test_the_pool_does_not_speak_on_the_users_terminal(tmp_path: Path) -> None:
    import subprocess
    import sys

    program = (
        "import logging\nimport engram.store.postgres.database\n"
        "logging.getLogger('psycopg.pool').warning('error connecting in pool-1')\n"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert (told.returncode, told.stderr) == (0, "")
