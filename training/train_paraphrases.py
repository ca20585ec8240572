"""Train the model of what says the same in other words: src/engram/models/paraphrases.bin.

    pip install scipy
    python training/train_paraphrases.py            # writes it, after the same figures
    python training/train_paraphrases.py --check    # figures of models that never saw the writer of the rules

Trained on the rules of training/rules and benchmarks/capture/texts/rules.jsonl and on the labelled pairs of training/hearing/. The second stage is shown
scores of first stages that never saw the writer, as it will be later.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from pair_scores import Pair, aligned, every_pair, neighbours
from train_pairs import Adam

from engram import Engram
from engram.models.pair_features import BUCKETS
from engram.models.pairs import MEASURES, MOST_DEVIATIONS, inputs, probabilities
from engram.models.paraphrases import PARAPHRASE_FILE, SAME_LOG_ODDS, SURELY_SAME_LOG_ODDS, second_inputs

ROOT = Path(__file__).resolve().parent
RULES = (*sorted((ROOT / "rules").glob("*.jsonl")), ROOT.parent / "benchmarks" / "capture" / "texts" / "rules.jsonl")
PARAPHRASES = ("again", "again crossed", "same")
"""The labels of pairs that say the same; `crossed` are those without the rule itself."""
WEIGHTS = {
    "again": 1.0,
    "again crossed": 0.6,
    "changed": 3.0,
    "changed crossed": 1.5,
    "changed back": 0.8,
    "near": 1.0,
    "near crossed": 0.6,
    "topic": 1.0,
    "nearest": 0.3,
    "neighbour": 0.3,
}
"""The weight of a pair by its label; pairs of training/hearing have `HEARD` in the first stage, `HEARD_LATER` in the
second."""
HEARD, HEARD_LATER = 1.0, 0.3
NEIGHBOURS, NEAREST = 0.06, 6
ROWS_AT_ONCE = 256


def rule_pairs(path: Path, embed: Any) -> Iterator[Pair]:
    """The pairs of one writer's rules: paraphrased, changed, near, on one topic, and the nearest statements about other rules."""
    rules = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    told = [[one["rule"], *([one["again"]] if isinstance(one["again"], str) else one["again"])] for one in rules]
    for one, tellings in zip(rules, told, strict=True):
        for first, second in permutations(range(len(tellings)), 2):
            yield Pair(path.stem, "again crossed" if first else "again", tellings[first], tellings[second])
        for place, telling in enumerate(tellings):
            if "changed" in one:
                yield Pair(path.stem, "changed crossed" if place else "changed", telling, one["changed"])
                yield Pair(path.stem, "changed back", one["changed"], telling)
            for near in one.get("near", ()):
                yield Pair(path.stem, "near crossed" if place else "near", telling, near)
                yield Pair(path.stem, "near crossed", near, telling)
    for first, second in permutations(range(len(rules)), 2):
        if rules[first]["topic"] == rules[second]["topic"]:
            for telling in told[second]:
                yield Pair(path.stem, "topic", rules[first]["rule"], telling)
    yield from _nearest(path.stem, rules, told, embed)


def _nearest(writer: str, rules: Sequence[Any], told: Sequence[Sequence[str]], embed: Any) -> Iterator[Pair]:
    places = [(place, telling) for place, tellings in enumerate(told) for telling in tellings]
    vectors = embed([telling for _, telling in places])
    topics = np.array([rules[place]["topic"] for place, _ in places])
    for row, (place, telling) in zip(vectors @ vectors.T, places, strict=True):
        others = [at for at in np.argsort(-row) if places[at][0] != place and topics[at] != rules[place]["topic"]]
        for at in others[:NEAREST]:
            yield Pair(writer, "nearest", telling, places[at][1])


@dataclass(frozen=True)
class Data:
    """Pairs as the model sees them, with one fold for each writer of rules and the other writers spread over them."""

    pairs: list[Pair]
    rows: Any
    grams: Any
    relations: Any
    cosines: Any
    same: Any
    folds: Any

    def among(self, chosen: Any) -> Data:
        """The chosen pairs."""
        places = np.flatnonzero(chosen)
        arrays = (self.rows, self.grams, self.relations, self.cosines, self.same, self.folds)
        return Data([self.pairs[at] for at in places], *(array[places] for array in arrays))

    def weights(self, heard: float) -> Any:
        """The weight of each pair."""
        return np.array([WEIGHTS.get(pair.label, heard) for pair in self.pairs], dtype=np.float32)


def data(pairs: list[Pair], embed: Any) -> Data:
    """The features of pairs."""
    from scipy.sparse import csr_matrix

    found = [(inputs(each), probabilities(each)) for each in aligned(pairs)]
    places = np.concatenate([buckets[0] for (_, buckets), _ in found])
    sizes = [np.diff(buckets[1], append=len(buckets[0])) for (_, buckets), _ in found]
    starts = np.cumsum([0, *np.concatenate(sizes)])
    grams = csr_matrix((np.ones(len(places), dtype=np.float32), places, starts), shape=(len(pairs), BUCKETS))
    rows = np.concatenate([rows for (rows, _), _ in found]).astype(np.float32)
    texts = sorted({text for pair in pairs for text in (pair.older, pair.newer)})
    vectors = dict(zip(texts, embed(texts), strict=True))
    cosines = np.array([vectors[pair.older] @ vectors[pair.newer] for pair in pairs])
    own = [path.stem for path in RULES]
    writers = sorted({pair.writer for pair in pairs} - set(own))
    folds = np.array([(own if pair.writer in own else writers).index(pair.writer) % len(own) for pair in pairs])
    same = np.array([pair.label in PARAPHRASES for pair in pairs], dtype=np.float32)
    return Data(pairs, rows, grams, np.concatenate([found for _, found in found]), cosines, same, folds)


@dataclass(frozen=True)
class Stage:
    """A logistic regression, including n-grams if it has weights for them."""

    mean: Any
    scale: Any
    weights: Any
    bias: Any
    grams: Any = None

    def scores(self, rows: Any, grams: Any = None) -> Any:
        """The log odds of rows."""
        found = ((rows - self.mean) * self.scale).clip(-MOST_DEVIATIONS, MOST_DEVIATIONS) @ self.weights + self.bias
        return found if self.grams is None else found + grams @ self.grams


def fitted(
    rows: Any, same: Any, weights: Any, grams: Any = None, *, turns: int = 12, rate: float = 4e-3, decay: float = 0.08
) -> Stage:
    """A stage trained on these rows; features are dropped at random, so that no single one decides."""
    chance, dropped = np.random.default_rng(0), 0.3 if grams is not None else 0.2
    mean, scale = rows.mean(0), 1 / (rows.std(0) + 1e-6)
    if grams is not None:
        # Vectors have a length of at most one and are not scaled to unit deviation, which would give each of them the weight
        # of a measure.
        mean[MEASURES:], scale[MEASURES:] = 0, 2.0
    rows = ((rows - mean) * scale).clip(-MOST_DEVIATIONS, MOST_DEVIATIONS).astype(np.float32)
    arrays = [np.zeros(size, dtype=np.float32) for size in (rows.shape[1], 1, BUCKETS if grams is not None else 1)]
    adam, weights = Adam(arrays, (decay, 0.0, decay)), weights / weights.mean()
    for turn in range(turns):
        order = chance.permutation(len(rows))
        for start in range(0, len(order), ROWS_AT_ONCE):
            own = order[start : start + ROWS_AT_ONCE]
            seen, slopes = rows[own], [np.zeros_like(each) for each in arrays]
            if grams is None:
                seen = (seen * ((chance.random(seen.shape) > dropped) / (1 - dropped))).astype(np.float32)
            logits = seen @ arrays[0] + arrays[1]
            if grams is not None:
                part = grams[own]
                part.data *= (chance.random(len(part.data)) > dropped) / (1 - dropped)
                logits = logits + part @ arrays[2]
            slope = ((1 / (1 + np.exp(-logits)) - same[own]) * weights[own] / len(own)).astype(np.float32)
            slopes[0], slopes[1] = seen.T @ slope, slope.sum(keepdims=True)
            if grams is not None:
                slopes[2] = part.T @ slope
            adam.move(slopes, rate * (1 - turn / turns))
    return Stage(mean, scale, arrays[0], arrays[1], arrays[2] if grams is not None else None)


def first_stage(shown: Data) -> Stage:
    """The stage that reads n-grams, measures and vectors."""
    return fitted(shown.rows, shown.same, shown.weights(HEARD), shown.grams)


def second_stage(rows: Any, shown: Data) -> Stage:
    """The stage that weighs the first stage's score against the other features."""
    return fitted(rows, shown.same, shown.weights(HEARD_LATER), turns=20, rate=5e-3, decay=0.02)


def left_out_scores(shown: Data) -> Any:
    """The first stage's score of every pair, by a model trained without the writer of its fold."""
    found = np.zeros(len(shown.pairs), dtype=np.float32)
    for fold in range(len(RULES)):
        own = shown.folds == fold
        found[own] = first_stage(shown.among(~own)).scores(shown.rows[own], shown.grams[own])
        print(f"fold {fold + 1} of {len(RULES)}", file=sys.stderr, flush=True)
    return found


def second_rows(first: Any, shown: Data) -> Any:
    """The input of the second stage."""
    pairs = [(pair.older, pair.newer) for pair in shown.pairs]
    return second_inputs(first, shown.rows, shown.relations, shown.cosines, pairs)


def report(shown: Data, scores: Any) -> None:
    """How many of each kind of pair reach a score, for each writer of rules."""
    labels, writers = (np.array([getattr(pair, name) for pair in shown.pairs]) for name in ("label", "writer"))
    for bar in (-1.0, -0.5, 0.0, 0.25, SAME_LOG_ODDS, 0.75, 1.0, 1.4, SURELY_SAME_LOG_ODDS, 2.2):
        parts = []
        for label in ("again", "changed", "near", "topic", "nearest", "changed crossed", "near crossed"):
            each = [scores[(labels == label) & (writers == path.stem)] >= bar for path in RULES]
            parts.append(f"{label} {' '.join(f'{one.mean():.3f}' if len(one) else '-' for one in each)}")
        print(f"{bar:5.2f}: {' | '.join(parts)}")


def written(first: Stage, second: Stage) -> None:
    """Write the model: the n-grams' weights as signed bytes, the others as half floats."""
    scale = np.abs(first.grams).max() / 127
    parts = (
        *(scale, first.bias, first.mean, first.scale, first.weights),
        *(second.bias, second.mean, second.scale, second.weights),
    )
    halves = np.concatenate([np.asarray(part, dtype=np.float32).ravel() for part in parts]).astype(np.float16)
    PARAPHRASE_FILE.write_bytes(np.round(first.grams / scale).astype(np.int8).tobytes() + halves.tobytes())


def main() -> None:
    """Train, or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    with Engram.open(ephemeral=True) as mem:

        def embed(texts: Sequence[str]) -> Any:
            return np.asarray(mem.store.embed(list(texts)))

        pairs = [pair for path in RULES for pair in rule_pairs(path, embed)]
        heard = every_pair()
        beside = [
            Pair(pair.writer, "neighbour", pair.older, pair.newer) for pair in neighbours(heard, share=NEIGHBOURS)
        ]
        shown = data([*pairs, *heard, *beside], embed)
    rows = second_rows(left_out_scores(shown), shown)
    scores = np.zeros(len(shown.pairs))
    for fold in range(len(RULES)):
        own = shown.folds == fold
        scores[own] = second_stage(rows[~own], shown.among(~own)).scores(rows[own])
    report(shown, scores)
    if options.check:
        return
    written(first_stage(shown), second_stage(rows, shown))
    print(f"{PARAPHRASE_FILE.name}: {len(shown.pairs)} pairs, {PARAPHRASE_FILE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
