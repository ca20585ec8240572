"""Make the model that tells how likely a hit is about a question: src/engram/recall/relevance.npz.

    pip install lightgbm scikit-learn
    python training/train_relevance.py locomo=locomo_dev.json beam=assistant_chats_dev.jsonl longmemeval=longmemeval_pooled_dev.json
    python training/train_relevance.py --check      # how it reads each writer when it was made without that one, and the held-out ones
    python training/train_relevance.py --slots      # how it reads the slots of training/hearing/slots/

Shown are the first ten hits of every question of training/relevance/ (`memories`, `talk`: answerable, unknown and unrelated ones, by
writers who saw neither code nor one another) and of the named data sets. `held` and `held_talk` are never shown: nobody reads
them, they only measure. The slots only measure too, because to learn from them was tried on five files and did not pay: with the floor
moved so that as many unanswerable questions of `memories` are refused, each writer and file left out, the right one came first for .43
of the slots instead of .42, and for .60 of the memories instead of .65. Neither a learned map of the vectors nor the distance to the
second hit told more: what is missing is meaning that the bundled vectors do not have.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from hearing_slots import FOLDER as SLOTS
from judged_questions import WRITERS, Judged, everything, of_memories, of_slots, of_talk

from engram.models.trees import Trees
from engram.recall.relevance import probabilities_of

TARGET = Path(__file__).resolve().parent.parent / "src" / "engram" / "recall" / "relevance.npz"
SHARES = {"memories": 1.0, "others": 3.0, "talk": 1.0, "locomo": 0.3, "beam": 0.7, "longmemeval": 0.7}
"""The weight of a pair of each kind: a data set's evidence does not cover everything about its question, and a fact
about somebody else is certainly not an answer."""
FLOORS = (0.03, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3)
Floats = npt.NDArray[np.float64]


def pairs(questions: Sequence[Judged]) -> tuple[Floats, Floats, Floats]:
    """Features of question and hit, whether the hit answers, and the weight of the pair."""
    read = [q for q in questions if q.features is not None]
    rows = np.concatenate([q.features for q in read if q.features is not None]).astype(float)
    answers = np.concatenate([q.answers[q.first] for q in read]).astype(float)
    weights = np.concatenate([np.full(len(q.first), SHARES[q.kind.partition(":")[0]]) for q in read])
    return rows, answers, weights


def fitted(questions: Sequence[Judged]) -> dict[str, npt.NDArray[Any]]:
    """Boosted trees as arrays."""
    import lightgbm

    rows, answers, weights = pairs(questions)
    made = lightgbm.LGBMClassifier(
        n_estimators=120, num_leaves=8, max_depth=4, learning_rate=0.05, min_child_samples=40, subsample=0.8,
        subsample_freq=1, colsample_bytree=0.5, random_state=0, verbose=-1,
    )  # fmt: skip
    made.fit(rows, answers, sample_weight=weights)
    return tree_arrays(made.booster_.dump_model()["tree_info"])


def tree_arrays(trees: Sequence[Any]) -> dict[str, npt.NDArray[Any]]:
    size = (len(trees), max(2 * tree["num_leaves"] - 1 for tree in trees))
    own = np.tile(np.arange(size[1], dtype=np.int16), (size[0], 1))
    found = {
        "feature": np.zeros(size, np.int16), "threshold": np.zeros(size, np.float64), "below": own, "above": own.copy(),
        "value": np.zeros(size, np.float32),
    }  # fmt: skip
    for row, tree in enumerate(trees):
        _put(found, row, tree["tree_structure"], 0)
    return found


def _put(found: dict[str, npt.NDArray[Any]], row: int, node: Any, place: int) -> int:
    """Write a node and the nodes below it. Returns the next free index."""
    if "leaf_value" in node:
        found["value"][row, place] = node["leaf_value"]
        return place + 1
    found["feature"][row, place], found["threshold"][row, place] = node["split_feature"], node["threshold"]
    found["below"][row, place] = place + 1
    after = _put(found, row, node["left_child"], place + 1)
    found["above"][row, place] = after
    return _put(found, row, node["right_child"], after)


def off(likely: Floats, answers: Floats, groups: int = 10) -> float:
    """Expected calibration error: the distance between probability and share, over groups of equal size."""
    parts = np.array_split(np.argsort(likely), groups)
    return float(sum(len(p) / len(likely) * abs(likely[p].mean() - answers[p].mean()) for p in parts))


def told(title: str, questions: Sequence[Judged], likely: Sequence[Floats]) -> None:
    """Print how well probabilities predict answers, and the effect of each floor on the answers of recall."""
    answers = [q.answers[q.first] for q in questions]
    print(f"{title}: {len(questions)} questions, ECE {off(np.concatenate(likely), np.concatenate(answers)):.3f}")
    best = np.array([values.max(initial=0) for values in likely])
    right = np.array([bool(a[:1].any()) for a in answers])
    labels = np.array([q.label for q in questions])
    for floor in FLOORS if (labels != "answerable").any() else ():
        shown = best >= floor
        refused = {
            label: float((~shown[labels == label]).mean()) for label in ("unknown", "unrelated") if label in labels
        }
        first = float((right & shown)[labels == "answerable"].mean())
        print(
            f"  floor {floor:<4}  right first {first:.3f}  "
            + "  ".join(f"{k} refused {v:.3f}" for k, v in refused.items())
        )


def check(questions: Sequence[Judged]) -> None:
    """Measure each writer by a model trained without them, then the held-out writers."""
    for kind in ("memories", "talk"):
        own = [q for q in questions if q.kind == kind and q.features is not None]
        likely: dict[int, Floats] = {}
        for writer in sorted({q.corpus for q in own}):
            trees = Trees(**fitted([q for q in questions if q.corpus != writer or q.kind not in (kind, "others")]))
            likely |= {id(q): trees(q.features) for q in own if q.corpus == writer and q.features is not None}
        told(f"{kind}, each writer left out", own, [likely[id(q)] for q in own])
    held = {"memories": ("held", of_memories), "talk": ("held_talk", of_talk)}
    for kind, (folder, read) in held.items():
        found = [q for path in sorted((WRITERS / folder).glob("*.json")) for q in read(path) if q.features is not None]
        told(f"{kind}, never shown", found, [probabilities_of(q.features) for q in found if q.features is not None])


def check_slots() -> None:
    """Measure the slots, file by file and all together."""
    every = []
    for path in sorted(SLOTS.glob("*.txt")):
        found = [q for q in of_slots(path) if q.features is not None]
        every += found
        told(path.stem, found, [probabilities_of(q.features) for q in found if q.features is not None])
    told("all slots", every, [probabilities_of(q.features) for q in every if q.features is not None])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*", help="kind=FILE")
    parser.add_argument("--check", action="store_true", help="measure, write nothing")
    parser.add_argument("--slots", action="store_true", help="measure on the slots, write nothing")
    given = parser.parse_args()
    if given.slots:
        check_slots()
        return
    questions = list(everything(given.data))
    if given.check:
        check(questions)
    else:
        np.savez_compressed(TARGET, **fitted(questions))
        print(f"{TARGET.name}: {len(questions)} questions")


if __name__ == "__main__":
    main()
