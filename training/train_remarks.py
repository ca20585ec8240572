"""Train the model of remarks made to a coding agent: src/engram/models/remarks.json.

    python training/train_remarks.py            # writes it
    python training/train_remarks.py --check    # how well a model made without an eighth of the turns reads that eighth

Shown are the sessions of training/remarks/: a line is a session of turns, some of which have a `fact` worth keeping, and the same fact `again` in other
words. A remark of such a turn is to be kept, any other is not.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from engram.agents.transcripts.session import TranscriptTurn
from engram.capture.extraction import consider
from engram.capture.harvest import cues_of, remarks
from engram.capture.transcripts.windows import windows
from engram.models.remarks import FEATURES, FILE, features

SESSIONS = Path(__file__).resolve().parent / "remarks" / "sessions.jsonl"
RIDGE = 10.0
"""The strength of the regularisation."""
STEPS = 30
FOLDS = 8


@dataclass(frozen=True)
class Shown:
    """A remark as the model reads it, whether to keep it, and the fold of its fact or turn."""

    row: list[float]
    keep: bool
    fold: int
    is_retold: bool


def shown(sessions: Sequence[dict[str, Any]], is_retold: bool) -> Iterator[Shown]:
    """The remarks of sessions.

    If the facts are retold, only the remarks of their turns, because the others do not change.
    """
    for session in sessions:
        told = [_turns(number, turn, is_retold) for number, turn in enumerate(session["turns"])]
        spoken = {f"{number}": turn for number, turn in enumerate(session["turns"])}
        for window in windows((one for pair in told for one in pair), 0, lambda _: 0):
            said = [{"role": heard.turn.role, "content": heard.words} for heard in window.turns]
            before = [{"role": heard.turn.role, "content": heard.words} for heard in window.before]
            contents = [heard.turn.content for heard in window.turns]
            found = consider(said, at=datetime.fromisoformat(session["date"]).replace(tzinfo=UTC), before=before)
            for one in remarks(found, contents, session["project"], lambda _: False):
                turn = spoken[window.turns[one.fact.turn].turn.key]
                if is_retold and "fact" not in turn:
                    continue
                fold = crc32((turn["fact"]["statement"] if "fact" in turn else turn["user"]).encode()) % FOLDS
                cues = cues_of(one.fact, contents[one.fact.turn], session["project"])
                yield Shown(features(cues), "fact" in turn, fold, is_retold)


def _turns(number: int, turn: dict[str, Any], is_retold: bool) -> list[TranscriptTurn]:
    user = turn["fact"]["again"] if is_retold and "fact" in turn else turn["user"]
    return [
        TranscriptTurn("user", user, None, f"{number}", number + 1),
        TranscriptTurn("assistant", turn.get("assistant", ""), None, f"{number}/a", number + 1),
    ]


def fitted(rows: Sequence[Shown]) -> dict[str, Any]:
    """A logistic model of the rows, by Newton's method."""
    given, wanted = np.array([one.row for one in rows]), np.array([float(one.keep) for one in rows])
    mean, scale = given.mean(0), given.std(0) + 1e-6
    scaled = np.hstack([(given - mean) / scale, np.ones((len(given), 1))])
    ridge = np.diag([RIDGE] * given.shape[1] + [1e-6])
    weights = np.zeros(scaled.shape[1])
    for _ in range(STEPS):
        likely = 1 / (1 + np.exp(-scaled @ weights))
        slope = scaled.T @ (likely - wanted) + ridge @ weights
        weights -= np.linalg.solve((scaled * (likely * (1 - likely))[:, None]).T @ scaled + ridge, slope)
    rounded = {"mean": mean, "scale": scale, "weights": weights[:-1]}
    return {
        **{name: [round(float(one), 5) for one in row] for name, row in rounded.items()},
        "bias": round(float(weights[-1]), 5),
    }


def probabilities(model: dict[str, Any], rows: Sequence[Shown]) -> Any:
    """The model's probabilities for the rows."""
    scaled = (np.array([one.row for one in rows]) - model["mean"]) / model["scale"]
    return 1 / (1 + np.exp(-(scaled @ np.array(model["weights"]) + model["bias"])))


def check(rows: Sequence[Shown]) -> None:
    """Print how many remarks to keep and how many others are above each threshold, each judged by a model trained without it."""
    likely = np.zeros(len(rows))
    for fold in range(FOLDS):
        model = fitted([one for one in rows if one.fold != fold])
        places = [place for place, one in enumerate(rows) if one.fold == fold]
        likely[places] = probabilities(model, [rows[place] for place in places])
    keep, retold = np.array([one.keep for one in rows]), np.array([one.is_retold for one in rows])
    for least in np.arange(0.3, 0.85, 0.05):
        above = likely >= least
        counts = [int((above & chosen).sum()) for chosen in (keep & ~retold, keep & retold, ~keep)]
        print(
            f"{least:.2f}: {counts[0]} of {int((keep & ~retold).sum())} to keep, {counts[1]} of {int(retold.sum())} retold, {counts[2]} others"
        )


def main() -> None:
    """Train, or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    sessions = [json.loads(line) for line in SESSIONS.read_text("utf-8").splitlines()]
    rows = [*shown(sessions, False), *shown(sessions, True)]
    if given.check:
        check(rows)
        return
    model = fitted(rows)
    FILE.write_text(json.dumps(model) + "\n", "utf-8")
    for name, weight in zip(FEATURES, model["weights"], strict=True):
        print(f"{weight:+.2f} {name}")


if __name__ == "__main__":
    main()
