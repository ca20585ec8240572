"""Make the small model that weighs a question's wording: src/engram/recall/intents.bin.

    pip install scikit-learn
    python scripts/train_intents.py            # writes it
    python scripts/train_intents.py --check    # how well a model made without one of the tables reads that one

Shown are the questions of scripts/intents/ (`intent | question`) and those of tests/recall. The rules were mended on the latter until
they read all of them, so there the model is not told what the rules read: it would learn to believe them.
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

from engram.recall.question import INTENTS, read_wording  # noqa: E402
from engram.recall.wording import BUCKETS, MARGIN, READ, SCALE, WEIGHTS, bucket_of  # noqa: E402
from tests.recall.questions import every_question, grammar_rows  # noqa: E402

ASKED_AT = datetime(2026, 7, 7, 16, tzinfo=ZoneInfo("UTC"))
STRENGTH = 1.0
"""How little the weights are held back (scikit-learn's C)."""


@dataclass(frozen=True)
class Shown:
    """A question the model is shown: its table, its intent and what there is to see of it."""

    table: str
    intent: str
    features: tuple[str, ...]


def shown() -> list[Shown]:
    """Every question."""
    rows = []
    for path in sorted((ROOT / "scripts" / "intents").glob("*.txt")):
        for line in path.read_text("utf-8").splitlines():
            intent, _, text = (part.strip() for part in line.partition("|"))
            rows.append(Shown(path.stem, intent, tuple(read_wording(text, ASKED_AT))))
    tested = [(row.intent, row.text, row.at) for row in every_question()]
    tested += [(intent, text, ASKED_AT) for intent, text in grammar_rows()]
    for intent, text, at in tested:
        seen = [feature for feature in read_wording(text, at) if not feature.startswith(READ)]
        rows.append(Shown("", intent, tuple(seen)))
    return rows


def matrix(rows: Sequence[Shown]) -> Any:
    """A row for each question, a column for each bucket."""
    from scipy.sparse import csr_matrix

    places = [(at, bucket_of(feature)) for at, row in enumerate(rows) for feature in row.features]
    ones = np.ones(len(places), dtype=np.float32)
    return csr_matrix((ones, tuple(zip(*places, strict=True))), shape=(len(rows), BUCKETS))


def trained(rows: Sequence[Shown]) -> Any:
    """A model that was shown these."""
    from sklearn.linear_model import LogisticRegression

    wanted = [INTENTS.index(row.intent) for row in rows]
    return LogisticRegression(C=STRENGTH, max_iter=3000).fit(matrix(rows), wanted)


def check(rows: Sequence[Shown]) -> None:
    """Leave each table out once."""
    for table in sorted({row.table for row in rows} - {""}):
        left_out = [row for row in rows if row.table == table]
        sums = trained([row for row in rows if row.table != table]).coef_ @ matrix(left_out).T
        right = np.mean([_guess(each, row) == row.intent for each, row in zip(sums.T, left_out, strict=True)])
        print(f"{table:20} {len(left_out)} questions, {right:.1%} right")


def _guess(sums: Any, row: Shown) -> str:
    """What the sums of a row come to beside what the rules have read."""
    read = next(feature for feature in row.features if feature.startswith(READ)).removeprefix(READ) or INTENTS[0]
    likely = INTENTS[int(sums.argmax())]
    return likely if (sums.max() - sums[INTENTS.index(read)]) * SCALE > MARGIN else read


def main() -> None:
    """Train, or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    rows = shown()
    if parser.parse_args().check:
        check(rows)
        return
    weights = trained(rows).coef_.T
    scaled = np.round(weights * SCALE).clip(-127, 127).astype(np.int8)
    target = ROOT / "src" / "engram" / "recall" / WEIGHTS
    target.write_bytes(scaled.tobytes())
    print(f"{target.name}: {len(rows)} questions, {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
