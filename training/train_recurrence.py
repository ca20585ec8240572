"""Train the model of what says again what a person rejected: src/engram/models/recurrence.json.

    python training/train_recurrence.py            # writes it, and reports both halves of training/rejections
    python training/train_recurrence.py --check    # the report alone

Trained on the odd lines of training/rejections and, with a tenth of the weight, on training/rules. The even lines are for the report.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from engram.models.pairs import relate_pairs
from engram.models.paraphrases import (
    RECURRENCE_FEATURES,
    RECURRENCE_FILE,
    REFUSE_LOG_ODDS,
    REVIEW_LOG_ODDS,
    recurrence,
    recurrence_features,
)

ROOT = Path(__file__).resolve().parent
RULES_WEIGHT = 0.1
RIDGE = 1.0
STEPS = 60


class LabelledPair(NamedTuple):
    """Two statements, the relation of the second to the first, and the weight of the pair."""

    label: str
    older: str
    newer: str
    weight: float = 1.0


def rejections(first: int) -> list[LabelledPair]:
    """The pairs of every second line, from this one on."""
    found = []
    for line in (ROOT / "rejections" / "statements.jsonl").read_text("utf-8").splitlines()[first::2]:
        one = json.loads(line)
        found += [LabelledPair("again", one["rejected"], text) for text in one["again"]]
        found.append(LabelledPair("opposite", one["rejected"], one["opposite"]))
        found += [LabelledPair("near", one["rejected"], text) for text in one["near"]]
    return found


def rules() -> list[LabelledPair]:
    """The rules of training/rules: paraphrased, changed, and near."""
    found = []
    for path in sorted((ROOT / "rules").glob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            one = json.loads(line)
            texts = [("again", one["again"]), ("opposite", [one["changed"]]), ("near", one["near"])]
            found += [LabelledPair(label, one["rule"], text, RULES_WEIGHT) for label, some in texts for text in some]
    return found


def fit(pairs: list[LabelledPair]) -> dict[str, Any]:
    """The weights of a logistic regression, by Newton's method."""
    texts = [(pair.older, pair.newer) for pair in pairs]
    rows = recurrence_features(texts, relate_pairs(texts))
    values = np.array([[row[name] for name in RECURRENCE_FEATURES] for row in rows])
    same = np.array([pair.label == "again" for pair in pairs], dtype=float)
    counts = np.array([pair.weight for pair in pairs])
    mean, scale = values.mean(0), values.std(0) + 1e-6
    inputs = np.hstack([np.ones((len(pairs), 1)), (values - mean) / scale])
    ridge = np.diag([1e-6, *[RIDGE] * len(RECURRENCE_FEATURES)])
    weights = np.zeros(inputs.shape[1])
    for _ in range(STEPS):
        likely = 1 / (1 + np.exp(-inputs @ weights))
        slope = inputs.T @ (counts * (likely - same)) + ridge @ weights
        curve = (inputs * (counts * likely * (1 - likely))[:, None]).T @ inputs + ridge
        weights -= np.linalg.solve(curve, slope)
    plain = weights[1:] / scale
    return {
        "bias": round(float(weights[0] - plain @ mean), 4),
        "features": {name: round(float(weight), 4) for name, weight in zip(RECURRENCE_FEATURES, plain, strict=True)},
    }


def report(name: str, pairs: list[LabelledPair]) -> None:
    """Print the share of each label that reaches the two thresholds."""
    texts = [(pair.older, pair.newer) for pair in pairs]
    scores = np.array(recurrence(texts, relate_pairs(texts)))
    for label in ("again", "opposite", "near"):
        own = scores[[pair.label == label for pair in pairs]]
        print(
            f"{name:9} {label:9} {len(own):4} pairs  likely {(own >= REVIEW_LOG_ODDS).mean():.3f}  sure {(own >= REFUSE_LOG_ODDS).mean():.3f}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    if not parser.parse_args().check:
        RECURRENCE_FILE.write_text(json.dumps(fit([*rejections(0), *rules()]), indent=1) + "\n", "utf-8")
    report("trained", rejections(0))
    report("held out", rejections(1))
