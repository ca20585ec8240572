"""The bundled model: one vector per word piece, summed. It needs no network or model runtime and loads in milliseconds.

training/distill_embedder.py creates it; docs/embedders.md has measurements of its quality.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from engram.embedding.vectors import EmbedderError, unit_rows
from engram.embedding.word_pieces import DATA, LONGEST_WORD, count_tokens, word_rows, words
from engram.model.lazy import cached_property
from engram.text.confusables import fold_text
from engram.text.translation import translate

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["StaticEmbedder"]

NAME = "static-minilm-256-v2"
DIMENSIONS = 256
# A static vector is a sum: with more text than this it only says "some English".
TOKENS_READ = 2_000
# No token is longer in practice, so text beyond this need not be split into words.
CHARACTERS_READ = 20 * TOKENS_READ
# Longer texts are not cached; statements are shorter.
CACHED_CHARACTERS = 600
# Texts summed at once: the gathered rows stay inside the processor's cache.
TEXTS_AT_ONCE = 32


class StaticEmbedder:
    """Embeds with the bundled matrix; only the rows that a text needs are read from disk."""

    name = NAME
    dim = DIMENSIONS

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """One unit row per text; zero if none of its words is known."""
        return unit_rows(self.sum_texts(texts))

    def sum_texts(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """The same before normalisation: the length of a row shows how informative its text is."""
        places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
        if len(places) < len(texts):  # the chunks of a document may repeat one
            repeated: npt.NDArray[np.float32] = self.sum_texts(list(places))[[places[text] for text in texts]]
            return repeated
        out = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            rows = [_rows_of(text) for text in texts[start : start + TEXTS_AT_ONCE]]
            self._sum_into(out[start : start + len(rows)], rows)
        return out

    def scaled_rows(self, rows: Sequence[int]) -> npt.NDArray[np.float64]:
        """Rows of the matrix with their scales, in double precision."""
        wanted = np.array(rows, dtype=np.intp)
        scaled: npt.NDArray[np.float64] = self._vectors[wanted] * self._scales[wanted].astype(np.float64)[:, None]
        return scaled

    def count_tokens(self, text: str) -> int:
        """The number of tokens of the whole text, without the limit for embedding."""
        return count_tokens(text)

    def _sum_into(self, out: npt.NDArray[np.float32], rows: Sequence[Sequence[int]]) -> None:
        sizes = np.fromiter(map(len, rows), dtype=np.intp, count=len(rows))
        filled = np.flatnonzero(sizes)
        if not filled.size:
            return
        flat = np.fromiter((row for text in rows for row in text), dtype=np.intp, count=int(sizes.sum()))
        vectors = self._vectors[flat] * self._scales[flat][:, None]
        starts = np.cumsum(sizes) - sizes
        out[filled] = np.add.reduceat(vectors, starts[filled], axis=0)

    @cached_property
    def _vectors(self) -> npt.NDArray[np.int8]:
        return _map_array(DATA / "vectors.npy")

    @cached_property
    def _scales(self) -> npt.NDArray[np.float32]:
        return _map_array(DATA / "scales.npy")


@cache
def _map_array(path: Path) -> npt.NDArray[Any]:
    try:
        # As a plain array: indexing a memmap subclass costs several times the lookup itself.
        return np.asarray(np.load(path, mmap_mode="r"))
    except (OSError, ValueError) as error:
        raise EmbedderError(f"{path} cannot be read ({error}); reinstall engram") from error


def _rows_of(text: str) -> Sequence[int]:
    if text.isascii() and text.isalpha() and len(text) <= LONGEST_WORD:  # a word, of which a search embeds a thousand
        return word_rows[text.lower()]
    return _cached_rows(text) if len(text) <= CACHED_CHARACTERS else _read_rows(text)


def _read_rows(text: str) -> Sequence[int]:
    found = (row for word in words(fold_text(translate(text[:CHARACTERS_READ]))) for row in word_rows[word])
    return tuple(islice(found, TOKENS_READ))


_cached_rows = lru_cache(maxsize=1024)(_read_rows)
"""Cached because a statement is embedded for its type, for its neighbours and for storage."""
