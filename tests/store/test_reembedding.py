"""An interrupted change of the embedder of a files store is continued by the next one."""

from pathlib import Path

import pytest

from engram.model.errors import EmbedderError
from engram.store.files.reconcile import recovery as embedding
from tests.backends import OnFiles
from tests.clock import Clock
from tests.conformance.keeping import Keep, asked, texts
from tests.conformance.test_reembedding import Letters

WORDS = ("otters", "badgers", "foxes", "herons", "newts")


def test_after_an_interruption_the_old_vectors_are_used_and_the_rest_is_embedded_later(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "DOCUMENTS_PER_BATCH", 2)
    backend = OnFiles(clock, tmp_path)
    old = backend.store()
    Keep(old, clock).many([{"statement": f"Something about {word}"} for word in WORDS])
    with pytest.raises(EmbedderError):
        backend.store(Letters(fail_after=3)).reembed()
    assert texts(old, asked(old, "otters").semantic)[0] == "Something about otters"

    letters = Letters()
    store = backend.store(letters)
    assert store.reembed() == letters.embedded == len(WORDS) - 2
    assert len(asked(store, "newts").semantic) == len(WORDS)
    backend.close()
