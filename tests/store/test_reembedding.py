"""Changing the embedder: old vectors stay in force until the new ones are complete, and spaces never mix."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from engram.embedding.static import StaticEmbedder
from engram.model.errors import EmbedderError
from engram.model.memory import Memory
from engram.store.files import reembedding
from engram.store.files.home import open_home
from engram.store.files.store import FilesStore
from engram.store.protocol import Filters, Query

STATEMENTS = [
    f"Memory number {n} about {word}" for n, word in enumerate(("otters", "badgers", "foxes", "herons", "newts"))
]


class Letters:
    """A small space of its own: how often each letter occurs."""

    name, dim = "letters-26-v1", 26

    def __init__(self) -> None:
        self.embedded = 0
        self.fail_after = 10**9

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        if self.embedded + len(texts) > self.fail_after:
            raise EmbedderError("the provider went away")
        self.embedded += len(texts)
        rows = np.array([[text.lower().count(chr(97 + i)) for i in range(26)] for text in texts], dtype=np.float32)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        unit: npt.NDArray[np.float32] = (rows / np.maximum(lengths, 1e-9)).astype(np.float32)
        return unit


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    with_static = FilesStore(open_home(tmp_path / "home", tmp_path / "cache"), StaticEmbedder())
    now = with_static.parts.clock()
    with with_static.deciding("add", actor="test") as deciding:
        for statement in STATEMENTS:
            deciding.put(Memory(id=deciding.new_id(now), statement=statement, created=now))
    assert with_static.facts()["index"]["vectors"] == len(STATEMENTS)
    with_static.close()
    return tmp_path / "home", tmp_path / "cache"


def nearest(store: FilesStore, text: str) -> list[str]:
    vectors = store.embed([text])
    found = store.candidates(Query((), vectors[0] if vectors is not None else None, 5), Filters())
    records = store.get_many([n for n, _ in found.semantic])
    return [hit.record.statement for hit in records if isinstance(hit.record, Memory)]


def test_until_it_is_done_search_goes_by_keyword_and_says_so(places: tuple[Path, Path]) -> None:
    store = FilesStore(open_home(*places), Letters())
    assert store.embed(["otters"]) is None
    assert "--reembed" in store.candidates(Query(("otter",)), Filters()).warnings[0]
    store.close()


def test_afterwards_the_new_space_answers_and_the_old_one_is_gone(places: tuple[Path, Path]) -> None:
    store = FilesStore(open_home(*places), Letters())
    seen: list[int] = []
    assert store.reembed(lambda what, done, total: seen.append(done)) == len(STATEMENTS)
    assert seen[-1] == len(STATEMENTS)
    assert nearest(store, "Memory number 2 about foxes")[0] == STATEMENTS[2]
    assert store.reembed() == 0
    store.close()
    old = FilesStore(open_home(*places), StaticEmbedder())
    assert old.embed(["otters"]) is None, "vectors of two embedders must never be compared"
    old.close()


def test_stopped_half_way_the_old_vectors_serve_and_the_rest_is_done_later(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reembedding, "SLICE", 2)
    letters = Letters()
    letters.fail_after = 3
    store = FilesStore(open_home(*places), letters)
    with pytest.raises(EmbedderError):
        store.reembed()
    store.close()

    still = FilesStore(open_home(*places), StaticEmbedder())
    assert nearest(still, "otters")[0] == STATEMENTS[0]
    still.close()

    again = Letters()
    store = FilesStore(open_home(*places), again)
    assert store.reembed() == len(STATEMENTS) - 2
    assert again.embedded == len(STATEMENTS) - 2
    assert len(nearest(store, "newts")) == len(STATEMENTS)
    store.close()


def test_what_is_written_meanwhile_is_embedded_too(places: tuple[Path, Path]) -> None:
    store = FilesStore(open_home(*places), Letters())
    now = store.parts.clock()
    with store.deciding("add", actor="test") as deciding:
        deciding.put(Memory(id=deciding.new_id(now), statement="zzzz zzz zz z", created=now))
    store.reembed()
    assert nearest(store, "zz")[0] == "zzzz zzz zz z"
    store.close()
