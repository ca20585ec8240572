"""Train the model of how two statements relate: src/engram/models/pairs.bin.

    pip install scipy
    python training/train_pairs.py            # writes it
    python training/train_pairs.py --check    # figures of models that never saw the writer, per writer and pooled
    python training/train_pairs.py --held     # figures of the model as written, on the writers of training/hearing/held

Two stages. A softmax regression over hashed n-grams, measures and word vectors scores the labels; a hidden layer over the measures and these scores
weighs them against one another. The second stage is shown scores of first stages that never saw the writer, as it will be later. Both are
trained on the labelled pairs of training/hearing/, on neighbours from the same writers, and on news about one thing that changes nothing else of it
(`hearing_slots.rival_pairs`), which are `different`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from hearing_slots import every_rival, every_slot
from pair_scores import LABELS, Pair, aligned, every_pair, gold, held_pairs, neighbours, report

from engram.models.pair_features import BUCKETS
from engram.models.pairs import (
    HIDDEN,
    LIKELY_CHANGE,
    MEASURES,
    MIN_SAME,
    MOST_DEVIATIONS,
    NETWORK_FILE,
    SURE_UPDATE,
    inputs,
    probabilities,
)

FOLDS = 5
"""Groups of writers left out together; two at a time while the first stage is fitted for the second."""
NEIGHBOURS, NEIGHBOUR_WEIGHT = 0.15, 0.5
"""The share of neighbours used for training, and the weight of each relative to a labelled pair."""
RIVALS, RIVAL_WEIGHT = 14, 0.6
"""Pairs of each slot with other slots of its subject, and the weight of each."""
NETWORKS = 3
"""Number of hidden layers trained from different seeds; they are stored side by side in the file."""
ROWS_AT_ONCE = 128


@dataclass(frozen=True)
class Data:
    """Pairs as the model sees them."""

    rows: Any
    grams: Any
    labels: Any
    weights: Any
    folds: Any

    def among(self, chosen: Any) -> Data:
        """The chosen pairs."""
        return Data(
            self.rows[chosen], self.grams[chosen], self.labels[chosen], self.weights[chosen], self.folds[chosen]
        )


def data(pairs: Sequence[Pair], weight: float = 1.0) -> Data:
    """The features of pairs; each writer's fold follows from the order of their names."""
    from scipy.sparse import csr_matrix

    parts = [inputs(each) for each in aligned(pairs)]
    places = np.concatenate([places for _, (places, _) in parts])
    sizes = [np.diff(starts, append=len(places)) for _, (places, starts) in parts]
    starts = np.cumsum([0, *np.concatenate(sizes)])
    grams = csr_matrix((np.ones(len(places), dtype=np.float32), places, starts), shape=(len(pairs), BUCKETS))
    rows = np.concatenate([rows for rows, _ in parts])
    writers = sorted({pair.writer for pair in pairs})
    folds = np.array([writers.index(pair.writer) % FOLDS for pair in pairs])
    return Data(rows, grams, gold(pairs), np.full(len(pairs), weight, dtype=np.float32), folds)


def joined(one: Data, other: Data) -> Data:
    """Both data sets, concatenated."""
    from scipy.sparse import vstack

    parts = [
        np.concatenate([getattr(one, name), getattr(other, name)]) for name in ("rows", "labels", "weights", "folds")
    ]
    return Data(parts[0], vstack([one.grams, other.grams]).tocsr(), *parts[1:])


def softmax(logits: Any) -> Any:
    """Probabilities of logits, row by row."""
    likely = np.exp(logits - logits.max(1, keepdims=True))
    return likely / likely.sum(1, keepdims=True)


class Adam:
    """Adam with decoupled weight decay over some arrays, which it changes in place."""

    def __init__(self, arrays: Sequence[Any], decays: Sequence[float]) -> None:
        self.arrays, self.decays, self.step = arrays, decays, 0
        self.means, self.squares = [np.zeros_like(each) for each in arrays], [np.zeros_like(each) for each in arrays]

    def move(self, slopes: Sequence[Any], rate: float) -> None:
        """Take one step against the gradients."""
        self.step += 1
        for array, decay, mean, square, slope in zip(
            self.arrays, self.decays, self.means, self.squares, slopes, strict=True
        ):
            mean += 0.1 * (slope - mean)
            square += 0.001 * (slope * slope - square)
            size = np.sqrt(square / (1 - 0.999**self.step)) + 1e-8
            array -= rate * (mean / (1 - 0.9**self.step) / size + decay * array)


@dataclass(frozen=True)
class First:
    """The first stage: a score for each label."""

    mean: Any
    scale: Any
    grams: Any
    measures: Any
    bias: Any

    def scaled(self, rows: Any) -> Any:
        """Measures in deviations from their mean."""
        return ((rows - self.mean) * self.scale).clip(-MOST_DEVIATIONS, MOST_DEVIATIONS)

    def scores(self, asked: Data) -> Any:
        """The scores of pairs."""
        return self.scaled(asked.rows) @ self.measures + asked.grams @ self.grams + self.bias


def first_stage(shown: Data, turns: int = 12, rate: float = 4e-3, decay: float = 0.08, dropped: float = 0.3) -> First:
    """A softmax regression; n-grams are dropped at random, so that no single one decides."""
    chance = np.random.default_rng(0)
    mean, scale = shown.rows.mean(0), 1 / (shown.rows.std(0) + 1e-6)
    # Vectors have a length of at most one and are not scaled to unit deviation, which would give each of them the weight
    # of a measure.
    mean[MEASURES:], scale[MEASURES:] = 0, 2.0
    rows = ((shown.rows - mean) * scale).clip(-MOST_DEVIATIONS, MOST_DEVIATIONS).astype(np.float32)
    wide = len(LABELS)
    arrays = [np.zeros(shape, dtype=np.float32) for shape in ((BUCKETS, wide), (rows.shape[1], wide), (wide,))]
    adam, wanted = Adam(arrays, (decay, decay, 0.0)), np.eye(wide, dtype=np.float32)[shown.labels]
    for turn in range(turns):
        order = chance.permutation(len(rows))
        for start in range(0, len(order), ROWS_AT_ONCE):
            own = order[start : start + ROWS_AT_ONCE]
            grams = shown.grams[own]
            grams.data *= (chance.random(len(grams.data)) > dropped) / (1 - dropped)
            logits = grams @ arrays[0] + rows[own] @ arrays[1] + arrays[2]
            slope = (softmax(logits) - wanted[own]) * shown.weights[own][:, None] / len(own)
            adam.move((grams.T @ slope, rows[own].T @ slope, slope.sum(0)), rate * (1 - turn / turns))
    return First(mean, scale, *arrays)


@dataclass(frozen=True)
class Second:
    """The second stage: hidden layers side by side, with averaged logits."""

    hidden: Any
    hidden_bias: Any
    out: Any
    bias: Any

    def probabilities(self, rows: Any) -> Any:
        """The probabilities of `LABELS` for rows of measures and scores."""
        return softmax(np.maximum(rows @ self.hidden + self.hidden_bias, 0) @ self.out + self.bias)


def second_stage(rows: Any, shown: Data) -> Second:
    """Hidden layers trained from different seeds."""
    layers = [_layer(rows.astype(np.float32), shown, seed) for seed in range(NETWORKS)]
    hidden, hidden_bias, out, bias = zip(*layers, strict=True)
    return Second(
        np.concatenate(hidden, axis=1),
        np.concatenate(hidden_bias),
        np.concatenate(out) / NETWORKS,
        sum(bias) / NETWORKS,
    )


def _layer(
    rows: Any, shown: Data, seed: int, turns: int = 15, rate: float = 2e-3, decay: float = 0.1, dropped: float = 0.15
) -> list[Any]:
    chance, wide, labels = np.random.default_rng(seed), HIDDEN // NETWORKS, len(LABELS)
    hidden = chance.normal(0, rows.shape[1] ** -0.5, (rows.shape[1], wide)).astype(np.float32)
    out = chance.normal(0, 0.5 * wide**-0.5, (wide, labels)).astype(np.float32)
    arrays = [hidden, np.zeros(wide, dtype=np.float32), out, np.zeros(labels, dtype=np.float32)]
    adam, wanted = Adam(arrays, (decay, 0.0, decay, 0.0)), np.eye(labels, dtype=np.float32)[shown.labels]
    for turn in range(turns):
        order = chance.permutation(len(rows))
        for start in range(0, len(order), ROWS_AT_ONCE):
            own = order[start : start + ROWS_AT_ONCE]
            seen = rows[own] * ((chance.random((len(own), rows.shape[1])) > dropped) / (1 - dropped)).astype(np.float32)
            raised = seen @ arrays[0] + arrays[1]
            active = np.maximum(raised, 0)
            slope = (softmax(active @ arrays[2] + arrays[3]) - wanted[own]) * shown.weights[own][:, None] / len(own)
            back = (slope @ arrays[2].T) * (raised > 0)
            adam.move((seen.T @ back, back.sum(0), active.T @ slope, slope.sum(0)), rate * (1 - turn / turns))
    return arrays


def merged(first: First, asked: Data, scores: Any) -> Any:
    """The input of the second stage: the measures without the vectors, and the scores."""
    return np.hstack([first.scaled(asked.rows)[:, :MEASURES], scores])


def trained(shown: Data) -> tuple[First, Second]:
    """Both stages."""
    first = first_stage(shown)
    scores = np.zeros((len(shown.labels), len(LABELS)), dtype=np.float32)
    for fold in range(FOLDS):
        own = shown.folds == fold
        if own.any():
            scores[own] = first_stage(shown.among(~own)).scores(shown.among(own))
    return first, second_stage(merged(first, shown, scores), shown)


def left_out_probabilities(shown: Data) -> Any:
    """The probabilities of every pair by a model trained without the writers of its fold."""
    firsts = {
        (one, two): first_stage(shown.among((shown.folds != one) & (shown.folds != two)))
        for one in range(FOLDS)
        for two in range(one, FOLDS)
    }
    found = np.zeros((len(shown.labels), len(LABELS)))
    for fold in range(FOLDS):
        first, own = firsts[fold, fold], shown.folds == fold
        scores = np.zeros_like(found)
        for other in range(FOLDS):
            theirs = shown.folds == other
            scores[theirs] = firsts[min(fold, other), max(fold, other)].scores(shown.among(theirs))
        rows = merged(first, shown, scores)
        found[own] = second_stage(rows[~own], shown.among(~own)).probabilities(rows[own])
        print(f"fold {fold + 1} of {FOLDS}", file=sys.stderr, flush=True)
    return found


def written(first: First, second: Second) -> None:
    """Write the model: the n-grams' weights as signed bytes, the others as half floats."""
    scale = np.abs(first.grams).max(0) / 127
    parts = (
        scale, first.mean, first.scale, first.measures, first.bias, second.hidden, second.hidden_bias, second.out, second.bias,
    )  # fmt: skip
    halves = np.concatenate([np.asarray(part, dtype=np.float32).ravel() for part in parts]).astype(np.float16)
    NETWORK_FILE.write_bytes(np.round(first.grams / scale).astype(np.int8).tobytes() + halves.tobytes())


def by_model(pairs: Sequence[Pair]) -> Any:
    """The probabilities of both models as they are written."""
    return np.concatenate([probabilities(each) for each in aligned(pairs)])


def main() -> None:
    """Train, check, or measure on the held writers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--held", action="store_true")
    parser.add_argument(
        "--more", type=Path, action="append", default=[], help="a folder with a folder for each further writer"
    )
    options = parser.parse_args()
    thresholds = (LIKELY_CHANGE, SURE_UPDATE, MIN_SAME)
    if options.held:
        asked = held_pairs()
        report(asked, *map(by_model, (asked, neighbours(asked))), thresholds)
        return
    pairs = every_pair(*options.more)
    beside = neighbours(pairs, share=NEIGHBOURS)
    rivals = [Pair(f"slots {writer}", *row) for writer, *row in every_rival(every_slot(), RIVALS)]
    shown = joined(joined(data(pairs), data(beside, NEIGHBOUR_WEIGHT)), data(rivals, RIVAL_WEIGHT))
    if options.check:
        found = left_out_probabilities(shown)
        near = found[len(pairs) : len(pairs) + len(beside)]
        report(pairs, found[: len(pairs)], near)
        report(pairs, found[: len(pairs)], near, thresholds)
        return
    first, second = trained(shown)
    written(first, second)
    print(
        f"{NETWORK_FILE.name}: {len(pairs)} pairs, {len(beside)} neighbours, {len(rivals)} rivals, {NETWORK_FILE.stat().st_size} bytes"
    )


if __name__ == "__main__":
    main()
