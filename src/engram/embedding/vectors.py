"""The interface of embedding providers, normalisation of vectors, and matrix products small enough for one thread.

OpenBLAS distributes larger products over all processors, and its threads then spin for a while in case another product
follows. In the short work of a search this costs more than it saves, especially if other programs need the processors
too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from engram.model.errors import EmbedderError

__all__ = ["Embedder", "EmbedderError", "cross_products", "dot", "multiply", "products", "scores", "unit_rows"]

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vectors: TypeAlias = npt.NDArray[np.float32]


class Embedder(Protocol):
    """Turns texts into vectors whose dot product is their similarity.

    `name` identifies model and version: vectors with different names are in different spaces and must not be mixed.
    """

    @property
    def name(self) -> str:
        """Model and version, e.g. `static-minilm-256-v2`."""
        ...

    @property
    def dim(self) -> int:
        """Length of each vector."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One float32 row of unit length per text; a zero row for a text without anything to embed."""
        ...


def unit_rows(rows: Vectors) -> Vectors:
    """Scale the rows to unit length, in place; zero rows stay zero. Raises `EmbedderError` for a row without a finite
    length.
    """
    import numpy as np

    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    if not np.isfinite(lengths).all():
        raise EmbedderError(
            f"The embedder returned a vector that is not finite (row {int(np.argmin(np.isfinite(lengths)))})"
        )
    lengths[lengths == 0] = 1
    rows /= lengths[:, None]
    return rows


if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float32]


SCORED_AT_ONCE = 400_000
"""The size of a matrix that OpenBLAS multiplies with a vector on one thread."""
SCORED_ON_ONE_THREAD = 4_000_000
"""The size of a matrix from which several threads save more than a millisecond: about 16,000 vectors."""
MULTIPLIED_AT_ONCE = 250_000
"""The number of multiplications of a matrix product that OpenBLAS does on one thread."""


def dot(left: Any, right: Any) -> Any:
    """`left @ right`, without the warnings that OpenBLAS sometimes raises for finite numbers.

    Raises `EmbedderError` if the product has values that are not finite.
    """
    import numpy as np

    try:
        with np.errstate(invalid="raise", over="raise"):
            return left @ right
    except FloatingPointError:
        with np.errstate(all="ignore"):
            product = left @ right
    if not np.isfinite(product).all():
        raise EmbedderError(
            "A product of vectors is not finite; check the embedder's output, then run `engram index --reembed`"
        )
    return product


def scores(matrix: Floats, vector: Floats) -> Floats:
    """`matrix @ vector`."""
    import numpy as np

    rows = max(1, SCORED_AT_ONCE // max(1, matrix.shape[1]))
    if len(matrix) <= rows or matrix.size > SCORED_ON_ONE_THREAD:
        product: Floats = dot(matrix, vector)
        return product
    out: Floats = np.empty(len(matrix), dtype=np.float32)
    for start in range(0, len(matrix), rows):
        out[start : start + rows] = dot(matrix[start : start + rows], vector)
    return out


def products(rows: Floats, others: Floats) -> Floats:
    """`rows @ others.T` for few rows and many others."""
    import numpy as np

    step = max(1, MULTIPLIED_AT_ONCE // max(1, rows.size))
    if len(others) <= step:
        product: Floats = dot(rows, others.T)
        return product
    out: Floats = np.empty((len(rows), len(others)), dtype=np.float32)
    for start in range(0, len(others), step):
        out[:, start : start + step] = dot(rows, others[start : start + step].T)
    return out


def multiply(rows: Floats, weights: Floats) -> Floats:
    """`rows @ weights` for many rows and few weights."""
    import numpy as np

    step = max(1, MULTIPLIED_AT_ONCE // max(1, weights.size))
    if len(rows) <= step:
        product: Floats = dot(rows, weights)
        return product
    blocks = -(-len(rows) // step)
    padded = np.zeros((blocks * step, rows.shape[1]), dtype=np.float32)
    padded[: len(rows)] = rows
    found: Floats = dot(padded.reshape(blocks, step, -1), weights).reshape(blocks * step, -1)[: len(rows)]
    return found


def cross_products(batches: Floats) -> Floats:
    """The products of all pairs of rows within each batch."""
    import numpy as np

    _, rows, size = batches.shape
    step = max(1, MULTIPLIED_AT_ONCE // max(1, rows * size))
    turned = batches.transpose(0, 2, 1)
    if rows <= step:
        product: Floats = dot(batches, turned)
        return product
    return np.concatenate([dot(batches, turned[:, :, at : at + step]) for at in range(0, rows, step)], axis=2)
