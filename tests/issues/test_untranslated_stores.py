"""Memories in other languages that an Engram without translations stored are found by English words after an upgrade."""

import psycopg
import pytest

from engram.store import home
from tests.backends import Backend, OnPostgres

STORED = "Meine Tochter Mia ist gegen Erdnüsse allergisch."


def write_untranslated(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> str:
    """Store the memory as an older Engram did; returns its id."""
    with monkeypatch.context() as older:
        older.setattr("engram.store.documents.translation", lambda text: "")
        older.setattr("engram.embedding.static.translate", lambda text: text)
        older.setattr(home, "INDEX_SCHEMA", home.INDEX_SCHEMA - 1)
        mem = backend.client()
        stored = mem.add(STORED, scope="global").id
        mem.add("The train to Leeds leaves from platform nine.", scope="global")
        assert not mem.search("daughter peanuts", mode="keyword")
        backend.close()
    if isinstance(backend, OnPostgres):
        with psycopg.connect(backend.url) as connection:
            connection.execute("SELECT set_config('engram.tenant', %s, true)", (backend.tenant,))
            connection.execute("UPDATE engram.store_facts SET value = '1' WHERE key = 'folding'")
    return stored


def test_an_untranslated_memory_is_found_after_an_upgrade(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = write_untranslated(backend, monkeypatch)
    mem = backend.client()
    assert [hit.id for hit in mem.search("daughter peanuts", mode="keyword")] == [stored]
    assert mem.recall("What is Mia allergic to?").hits[0].id == stored
