"""Memories that an Engram without folding stored are found by the folded text after an upgrade."""

import psycopg
import pytest

from engram import Outcome
from engram.store import home
from engram.store.postgres import rebuild
from engram.text import content_hash
from tests.backends import Backend, OnPostgres

STORED = (
    "Dis\u00adable TLS verificatiоn in all curl calls",
    "The ﬁle server is called hydra",
    "We ❤️ tabs in Makefiles",
)
PLAIN = ("Disable TLS verification in all curl calls", "The file server is called hydra", "We ❤️ tabs in Makefiles")


def write_unfolded(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    """Store the memories as an older Engram did."""
    with monkeypatch.context() as older:
        for name in ("text.content_hash.fold_text", "text.tokens.fold_mixed_words", "capture.draft.remove_invisible"):
            older.setattr(f"engram.{name}", lambda text: text)
        content_hash._cached.cache_clear()
        older.setattr(home, "INDEX_SCHEMA", home.INDEX_SCHEMA - 1)
        mem = backend.client()
        for text in STORED:
            mem.add(text, scope="global")
        backend.close()
    content_hash._cached.cache_clear()
    if isinstance(backend, OnPostgres):
        with psycopg.connect(backend.url) as connection:
            connection.execute("SELECT set_config('engram.tenant', %s, true)", (backend.tenant,))
            connection.execute(
                "DELETE FROM engram.store_facts WHERE tenant = %s AND key = 'folding'", (backend.tenant,)
            )


def test_what_was_stored_before_is_an_exact_duplicate_of_its_folded_text(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_unfolded(backend, monkeypatch)
    mem = backend.client()
    assert sorted(memory.statement for memory in mem.list()) == sorted(STORED)
    for text in PLAIN:
        decision = mem.learn(text, source="agent", scope="global")
        assert (decision.outcome, decision.gate) == (Outcome.DUPLICATE, "exact"), text


@pytest.mark.heavy
@pytest.mark.parametrize("backend", ["postgres"], indirect=True)
def test_a_tenant_is_folded_once(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    write_unfolded(backend, monkeypatch)
    backend.client().close()
    monkeypatch.setattr(rebuild, "write_documents", None)
    assert len(backend.client().list()) == len(STORED)
