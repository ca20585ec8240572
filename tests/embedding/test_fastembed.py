"""The fastembed provider against a stand-in module: the real one would fetch weights."""

import sys
from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest

from engram.embedding import EmbedderError
from engram.embedding.providers import FastembedEmbedder


class CountsLetters:
    """A model of three dimensions whose vectors can be told by eye."""

    def __init__(self, model_name: str) -> None:
        if model_name == "unknown":
            raise ValueError("Model unknown is not supported")

    def embed(self, texts: list[str]) -> Iterator[list[float]]:
        for text in texts:
            if "boom" in text:
                raise RuntimeError("out of memory")
            yield [float(text.count(letter)) for letter in "ain"]


@pytest.fixture(autouse=True)
def fastembed_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("fastembed")
    module.TextEmbedding = CountsLetters  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fastembed", module)


def test_rows_are_of_unit_length_and_blank_texts_zero() -> None:
    rows = FastembedEmbedder("letters").embed(["aain", " ", "i"])
    assert rows.dtype == np.float32
    assert np.allclose(rows * 6**0.5, np.array([[2, 1, 1], [0, 0, 0], [0, 6**0.5, 0]]))


def test_the_name_holds_model_and_dimension() -> None:
    embedder = FastembedEmbedder("letters")
    assert (embedder.name, embedder.dim) == ("fastembed:letters-3", 3)


def test_an_unknown_model_is_a_clear_error() -> None:
    with pytest.raises(EmbedderError, match="could not load unknown"):
        FastembedEmbedder("unknown")


def test_a_failing_model_is_a_clear_error() -> None:
    with pytest.raises(EmbedderError, match="could not embed with letters: out of memory"):
        FastembedEmbedder("letters").embed(["boom"])
