"""Shared by the training scripts: rows of features as a matrix, a linear model of it, and writing its weights to a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from engram.models.weights import SCALE, Linear

MODELS = Path(__file__).resolve().parent.parent / "src" / "engram" / "models"
STRENGTH = 1.0
"""Weak regularisation (scikit-learn's C)."""


def matrix(model: Linear, rows: Sequence[Iterable[str]]) -> Any:
    """A row for each text and a column for each bucket; a repeated feature counts repeatedly."""
    from scipy.sparse import csr_matrix

    places = [(at, model.bucket_of(feature)) for at, row in enumerate(rows) for feature in row]
    ones = np.ones(len(places), dtype=np.float32)
    return csr_matrix((ones, tuple(zip(*places, strict=True))), shape=(len(rows), model.buckets))


def fitted(model: Linear, rows: Any, wanted: Sequence[str], **options: Any) -> Any:
    """The weights of a model trained on these rows of a matrix, a row for each class.

    Sample `weights` are among the options.
    """
    from sklearn.linear_model import LogisticRegression

    weights = options.pop("weights", None)
    places = [model.classes.index(each) for each in wanted]
    made = LogisticRegression(**{"C": STRENGTH, "max_iter": 3000, **options})
    return made.fit(rows, places, sample_weight=weights).coef_


def written(model: Linear, weights: Any) -> Path:
    """Write the weights where the model reads them, as signed bytes."""
    scaled = np.round(weights.T * SCALE).clip(-127, 127).astype(np.int8)
    target = MODELS / model.file
    target.write_bytes(scaled.tobytes())
    return target
