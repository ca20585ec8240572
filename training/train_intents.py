"""Train the model of a question's intent: src/engram/models/intent.bin.

    pip install scikit-learn
    python training/train_intents.py            # writes it
    python training/train_intents.py --check    # per writer: how a model that never saw the writer reads the writer's questions

Trained on the questions of training/intents/ (`intent | question`, a file for each writer) and those of tests/recall/questions and
tests/recall/grammar.txt. tests/recall/held_out.txt is never trained on.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from fitting import matrix, written  # noqa: E402

from engram.models.intent import INTENTS, MODEL, features  # noqa: E402
from engram.text.time.windows import time_phrase  # noqa: E402
from tests.recall.questions import HELD_OUT, every_question, grammar_rows, questions  # noqa: E402

ASKED_AT = datetime(2026, 7, 7, 16, tzinfo=ZoneInfo("UTC"))
STRENGTH = 1.0
"""Regularisation (scikit-learn's C); the best of .03, .1, .3, .5 and 1 on writers left out."""
TABLES, UNSEEN = "tests", "held_out"


@dataclass(frozen=True)
class Labelled:
    """A labelled question: its writer, its intent and its features."""

    writer: str
    text: str
    intent: str
    features: frozenset[str]


def labelled(writer: str, text: str, intent: str, at: datetime) -> Labelled:
    """A question as the model sees it."""
    return Labelled(writer, text, intent, frozenset(features(text, time_phrase(text, at), at)))


def every_label() -> list[Labelled]:
    """All labelled questions, those of `UNSEEN` included."""
    rows = []
    for path in sorted((ROOT / "training" / "intents").glob("*.txt")):
        for line in path.read_text("utf-8").splitlines():
            intent, _, text = (part.strip() for part in line.partition("|"))
            rows.append(labelled(path.stem, text, intent, ASKED_AT))
    rows += [labelled(TABLES, row.text, row.intent, row.at) for row in every_question()]
    rows += [labelled(TABLES, text, intent, ASKED_AT) for intent, text in grammar_rows()]
    return rows + [labelled(UNSEEN, row.text, row.intent, row.at) for row in questions(HELD_OUT)]


def trained(rows: Sequence[Labelled]) -> Any:
    """The weights of a model trained on these questions."""
    from sklearn.linear_model import LogisticRegression

    seen, intents = matrix(MODEL, [row.features for row in rows]), np.array([row.intent for row in rows])
    one_against_rest = LogisticRegression(C=STRENGTH, solver="liblinear", tol=1e-3, random_state=0)
    return np.vstack([one_against_rest.fit(seen, intents == intent).coef_ for intent in INTENTS])


def check(rows: Sequence[Labelled]) -> None:
    """Leave each writer out once, and print the errors."""
    right = asked = 0
    for writer in sorted({row.writer for row in rows}):
        left_out = [row for row in rows if row.writer == writer]
        weights = trained([row for row in rows if row.writer not in (writer, UNSEEN)])
        sums = weights @ matrix(MODEL, [row.features for row in left_out]).T
        read = [INTENTS[int(each.argmax())] for each in sums.T]
        misses = [(row, intent) for row, intent in zip(left_out, read, strict=True) if row.intent != intent]
        right, asked = right + len(left_out) - len(misses), asked + len(left_out)
        sure = _probabilities(sums).max(axis=0).mean()
        share = 1 - len(misses) / len(left_out)
        print(f"{writer:20} {len(left_out)} questions, {share:.1%} right, mean probability {sure:.3f}", flush=True)
        for row, intent in misses:
            print(f"    {row.intent} read as {intent}: {row.text}")
    print(f"{'all':20} {asked} questions, {right / asked:.1%} right")


def _probabilities(sums: Any) -> Any:
    each = 1 / (1 + np.exp(-sums))
    return each / each.sum(axis=0)


def main() -> None:
    """Train, or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    rows = every_label()
    if parser.parse_args().check:
        check(rows)
        return
    shown = [row for row in rows if row.writer != UNSEEN]
    target = written(MODEL, trained(shown))
    print(f"{target.name}: {len(shown)} questions, {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
