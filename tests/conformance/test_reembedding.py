"""Changing the embedder: the old vectors serve until the new ones are complete, and spaces never mix."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from engram.model.errors import EmbedderError
from engram.store.protocol import Query, Store
from tests.backends import Backend
from tests.conformance.keeping import ANY, Keep, asked, said, texts

WORDS = ("otters", "badgers", "foxes", "herons", "newts")


class Letters:
    """A small space of its own: how often each letter occurs."""

    name, dim = "letters-26-v1", 26

    def __init__(self, fail_after: int = 10**9) -> None:
        self.embedded, self.fail_after = 0, fail_after

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """One unit row per text."""
        if self.embedded + len(texts) > self.fail_after:
            raise EmbedderError("the provider went away")
        self.embedded += len(texts)
        rows = np.array([[text.lower().count(chr(97 + i)) for i in range(26)] for text in texts], dtype=np.float32)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        unit: npt.NDArray[np.float32] = (rows / np.maximum(lengths, 1e-9)).astype(np.float32)
        return unit


@pytest.fixture
def filled(keep: Keep) -> None:
    """Some memories and an event, embedded with the bundled model."""
    keep.many([{"statement": f"Something about {word}"} for word in WORDS])
    keep.store.append_events("talk", [said("Ann", "zzz")])


def nearest(store: Store, text: str) -> list[str]:
    return texts(store, asked(store, text).semantic)


@pytest.mark.usefixtures("filled")
def test_until_it_is_done_search_goes_by_keyword_and_says_so(backend: Backend) -> None:
    store = backend.store(Letters())
    assert store.embed(["otters"]) is None
    found = store.candidates(Query(("otter",)), ANY)
    assert texts(store, found.lexical) == ["Something about otters"]
    assert "--reembed" in found.warnings[0]
    assert any(not check.ok for check in store.examine())


@pytest.mark.usefixtures("filled")
def test_afterwards_the_new_space_answers_and_the_old_one_is_gone(backend: Backend) -> None:
    letters = Letters()
    store = backend.store(letters)
    seen: list[tuple[int, int]] = []
    assert store.reembed(lambda what, done, total: seen.append((done, total))) == 6
    assert seen[-1] == (6, 6)
    assert nearest(store, "Something about foxes")[0] == "Something about foxes"
    vectors = store.embed(["abc"])
    assert vectors is not None
    assert vectors.shape == (1, 26)
    embedded = letters.embedded
    assert store.reembed() == 0
    assert letters.embedded == embedded
    assert backend.store().embed(["otters"]) is None, "vectors of two embedders must never be compared"
    assert all(check.ok for check in store.examine())


@pytest.mark.usefixtures("filled")
def test_what_is_written_meanwhile_is_embedded_too(backend: Backend, keep: Keep) -> None:
    store = backend.store(Letters())
    Keep(store, keep.clock)("zzzz zzz zz z")
    store.reembed()
    assert nearest(store, "zz")[0] == "zzzz zzz zz z"
    Keep(store, keep.clock)("qqqq qqq q")
    assert nearest(store, "qq")[0] == "qqqq qqq q"


@pytest.mark.usefixtures("filled")
def test_a_provider_that_fails_leaves_the_old_vectors_in_force(backend: Backend, store: Store) -> None:
    with pytest.raises(EmbedderError):
        backend.store(Letters(fail_after=3)).reembed()
    assert nearest(store, "otters")[0] == "Something about otters"
    again = backend.store(Letters())
    assert again.reembed() == 6
    assert nearest(again, "Something about newts")[0] == "Something about newts"


@pytest.mark.usefixtures("filled")
def test_a_store_without_an_embedder_cannot(backend: Backend) -> None:
    with pytest.raises(EmbedderError):
        backend.store(keyword_only=True).reembed()
