"""Products of small matrices, kept small enough for one thread.

OpenBLAS splits a product over all processors from some size on, and its threads then spin for a while in case another one follows.
Next to the short work of a search that costs more than it saves, most of all where others need the processors too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float32]

__all__ = ["crossed", "multiplied", "products", "scores"]

SCORED_AT_ONCE = 400_000
"""Numbers of a matrix that OpenBLAS multiplies with a vector on one thread."""
SCORED_ON_ONE_THREAD = 4_000_000
"""Numbers of a matrix from which on several threads save more than a millisecond: some 16,000 vectors."""
MULTIPLIED_AT_ONCE = 250_000
"""Multiplications of a product of matrices that it does on one thread."""


def scores(matrix: Floats, vector: Floats) -> Floats:
    """`matrix @ vector`."""
    rows = max(1, SCORED_AT_ONCE // max(1, matrix.shape[1]))
    if len(matrix) <= rows or matrix.size > SCORED_ON_ONE_THREAD:
        return matrix @ vector
    out: Floats = np.empty(len(matrix), dtype=np.float32)
    for start in range(0, len(matrix), rows):
        np.matmul(matrix[start : start + rows], vector, out=out[start : start + rows])
    return out


def products(rows: Floats, others: Floats) -> Floats:
    """`rows @ others.T` for few rows and many others."""
    step = max(1, MULTIPLIED_AT_ONCE // max(1, rows.size))
    if len(others) <= step:
        return rows @ others.T
    out: Floats = np.empty((len(rows), len(others)), dtype=np.float32)
    for start in range(0, len(others), step):
        out[:, start : start + step] = rows @ others[start : start + step].T
    return out


def multiplied(rows: Floats, weights: Floats) -> Floats:
    """`rows @ weights` for many rows and few weights."""
    step = max(1, MULTIPLIED_AT_ONCE // max(1, weights.size))
    if len(rows) <= step:
        return rows @ weights
    blocks = -(-len(rows) // step)
    padded = np.zeros((blocks * step, rows.shape[1]), dtype=np.float32)
    padded[: len(rows)] = rows
    found: Floats = (padded.reshape(blocks, step, -1) @ weights).reshape(blocks * step, -1)[: len(rows)]
    return found


def crossed(batches: Floats) -> Floats:
    """The product of each two rows of a batch, for each batch."""
    _, rows, size = batches.shape
    step = max(1, MULTIPLIED_AT_ONCE // max(1, rows * size))
    turned = batches.transpose(0, 2, 1)
    if rows <= step:
        return batches @ turned
    return np.concatenate([batches @ turned[:, :, at : at + step] for at in range(0, rows, step)], axis=2)
