"""Boosted trees give exactly what a walk from each root to its leaf gives."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import engram.models
import engram.recall
from engram.models.trees import Trees

SHIPPED = {
    "relevance": (engram.recall, "relevance.npz", "", "threshold", "float32"),
    "answerability": (engram.recall, "answerability.npz", "", "threshold", "float32"),
    "succession": (engram.recall, "succession.npz", "", "threshold", "float32"),
    "a conversation": (engram.models, "worth.npz", "whole_", "limit", "float64"),
    "an exchange": (engram.models, "worth.npz", "alone_", "limit", "float64"),
}


def walked(arrays: list[npt.NDArray[Any]], row: npt.NDArray[np.float32]) -> Any:
    """The sum of the leaves that a row reaches, one tree after the other."""
    feature, threshold, below, above, value = arrays
    leaves = []
    for tree in range(len(feature)):
        node = 0
        while node not in (below[tree, node], above[tree, node]):
            branch = below if row[feature[tree, node]] <= threshold[tree, node] else above
            node = int(branch[tree, node])
        leaves.append(value[tree, node])
    return np.array([leaves], dtype=value.dtype).sum(axis=1)[0]


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_trees_are_walked_to_the_bit(name: str) -> None:
    package, file, prefix, threshold, kind = SHIPPED[name]
    with np.load(Path(package.__path__[0]) / file) as stored:
        arrays = [stored[f"{prefix}{part}"] for part in ("feature", threshold, "below", "above", "value")]
    arrays[-1] = arrays[-1].astype(kind)
    rows = np.random.default_rng(1).normal(0, 1, (40, int(arrays[0].max()) + 1)).astype(np.float32)
    assert Trees(*arrays).sums(rows).tolist() == [float(walked(arrays, row)) for row in rows]


def test_trees_add_up_their_leaves() -> None:
    feature, threshold = np.array([[0, 0, 0]]), np.array([[0.5, 0.0, 0.0]])
    below, above, value = np.array([[1, 1, 2]]), np.array([[2, 1, 2]]), np.array([[0.0, -1.0, 1.0]])
    low, high = Trees(feature, threshold, below, above, value)(np.array([[0.2], [0.9]], dtype=np.float32))
    assert low == pytest.approx(1 / (1 + np.e)) and high == pytest.approx(1 / (1 + 1 / np.e))
