"""What every embedding provider offers, and the one error they all raise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from engram.model.errors import EmbedderError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vectors: TypeAlias = npt.NDArray[np.float32]

__all__ = ["Embedder", "EmbedderError", "unit_rows"]


class Embedder(Protocol):
    """Turns texts into vectors whose dot product is their likeness.

    `name` identifies model and version: vectors of two names lie in different spaces and never mix.
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
    """The rows scaled to unit length, in place; zero rows stay zero. Raises `EmbedderError` for a row that has no finite length."""
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
