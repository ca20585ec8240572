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

from fitting import fitted, matrix, written  # noqa: E402

from engram.recall.question import read_wording  # noqa: E402
from engram.recall.wording import INTENTS, MARGIN, READ, WORDING  # noqa: E402
from engram.text.linear import SCALE  # noqa: E402
from tests.recall.questions import every_question, grammar_rows  # noqa: E402

ASKED_AT = datetime(2026, 7, 7, 16, tzinfo=ZoneInfo("UTC"))


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


def trained(rows: Sequence[Shown]) -> Any:
    """The weights of a model that was shown these."""
    return fitted(WORDING, matrix(WORDING, [row.features for row in rows]), [row.intent for row in rows])


def check(rows: Sequence[Shown]) -> None:
    """Leave each table out once."""
    for table in sorted({row.table for row in rows} - {""}):
        left_out = [row for row in rows if row.table == table]
        seen = matrix(WORDING, [row.features for row in left_out])
        sums = trained([row for row in rows if row.table != table]) @ seen.T
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
    target = written(WORDING, trained(rows))
    print(f"{target.name}: {len(rows)} questions, {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
