"""Train the model of types and critical slots: src/engram/models/{types,slots}.bin.

    pip install scikit-learn
    python training/train_types.py            # writes it
    python training/train_types.py --check    # how well a model made without one of the writers reads that one
    python training/train_types.py --held     # figures of the writers held out, by the model that is there

Shown are the memories of training/hearing with the sentences they came from, and the statements of training/types
(`type | critical slot or - | statement`, braces hold alternatives). training/types/slots.txt names the slot of each memory that its
writer marked as critical.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from fitting import matrix
from hearing_data import FOLDER, HELD, Sentence, talk, writers
from train_tiers import alternatives, said

from engram.models import statement_kinds as model
from engram.models.statement_kinds import PLAIN
from engram.models.weights import SCALE, Linear

TABLES = Path(__file__).resolve().parent / "types"
TYPE_OF = {
    "fact": "fact", "entity": "fact", "relationship": "fact", "preference": "preference", "decision": "decision",
    "principle": "convention", "convention": "convention", "commitment": "commitment", "moment": "episodic",
    "skill": "procedural", "procedure": "procedural", "constraint": "constraint",
}  # fmt: skip
"""The type of each category. A correction is a speech act, so the corrected content may be of any type."""
STRENGTH = 0.5
"""Weak regularisation (scikit-learn's C)."""
TABLE_WEIGHT, UNSURE_WEIGHT, HARMLESS_WEIGHT = 0.3, 0.5, 0.3
"""The weight of an alternative from the tables, of a memory that people may disagree about keeping, and of a near miss."""
MOST_HARMLESS = 1500


@dataclass(frozen=True)
class Row:
    """A training statement; `type` is "" if it is used only for its slot."""

    writer: str
    type: str
    slot: str
    text: str
    weight: float
    raw: bool = False
    critical: bool = False


def slots() -> dict[str, str]:
    """The critical slot of each memory."""
    pairs = (line.partition(" | ") for line in (TABLES / "slots.txt").read_text("utf-8").splitlines())
    return {text: slot for slot, _, text in pairs}


def heard(sentence: Sentence, known: dict[str, str]) -> list[Row]:
    """The memory of a sentence and the sentence itself."""
    kind = TYPE_OF.get(sentence.category, "")
    if sentence.category == "fact" and sentence.duration == "event":
        kind = "episodic"
    slot = known.get(sentence.memory, "hard_constraint") if sentence.critical else ""
    if sentence.critical and sentence.category in ("end", "forget"):
        return []
    weight = UNSURE_WEIGHT if sentence.worth == "maybe" else 1.0
    row = Row(sentence.writer, kind, slot, sentence.memory, weight, critical=sentence.critical)
    return [row, Row(row.writer, kind, slot, sentence.text, weight / 2, raw=True, critical=row.critical)]


def told(folder: Path = FOLDER) -> list[Row]:
    """Every kept sentence of every writer."""
    known = slots()
    kept = (sentence for writer in writers(folder) for sentence in talk(writer, folder) if sentence.memory)
    return [row for sentence in kept for row in heard(sentence, known)]


def passing() -> list[Row]:
    """Statements not worth keeping, used as examples without a slot."""
    skipped = (sentence for writer in writers() for sentence in talk(writer) if sentence.worth == "skip")
    return [Row(each.writer, "", "", each.text, HARMLESS_WEIGHT) for each in skipped if each.mood == "asserted"]


def tables() -> list[Row]:
    """The statements written for subjects that are rare in the talk."""
    rows = []
    for path in sorted(TABLES.glob("*.txt")):
        if path.stem == "slots":
            continue
        for line in path.read_text("utf-8").splitlines():
            kind, slot, text = (part.strip() for part in line.split(" | ", 2))
            spelled = list(alternatives(text))[:24]
            weight = max(TABLE_WEIGHT, len(spelled) ** -0.5)
            rows += [Row("", kind, "" if slot == "-" else slot, each, weight / 2) for each in spelled]
    return rows


def harmless() -> list[Row]:
    """Statements that only sound like health, from training/tiers, used as examples without a slot."""
    plain = [row for row in said() if row.subject == PLAIN]
    return [Row("", "", "", row.text, HARMLESS_WEIGHT) for row in plain[:: max(1, len(plain) // MOST_HARMLESS)]]


def columns(rows: Sequence[Row]) -> Any:
    """Hashed features next to the bundled vectors."""
    from scipy.sparse import csr_matrix, hstack

    texts = [row.text for row in rows]
    return hstack(
        [matrix(model.TYPES, [model.type_features(text) for text in texts]), csr_matrix(model.vectors(texts))]
    ).tocsr()


def fitted(seen: Any, wanted: Sequence[str], classes: tuple[str, ...], weights: Sequence[float]) -> Any:
    """The weights of a model trained on these rows, a row for each class."""
    from sklearn.linear_model import LogisticRegression

    places = [classes.index(each) for each in wanted]
    made = LogisticRegression(C=STRENGTH, max_iter=200, tol=1e-3, fit_intercept=False)
    return made.fit(seen, places, sample_weight=weights).coef_


def both(rows: Sequence[Row], seen: Any) -> tuple[Any, Any]:
    """The weights of types and of slots."""
    typed = np.array([bool(row.type) for row in rows])
    kinds = [row for row in rows if row.type]
    return (
        fitted(
            seen[np.flatnonzero(typed)], [row.type for row in kinds], model.TYPES.classes, [row.weight for row in kinds]
        ),
        fitted(seen, [row.slot for row in rows], model.SLOTS.classes, [row.weight for row in rows]),
    )


def probabilities(scores: Any) -> Any:
    """Softmax by row."""
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


def check(rows: list[Row]) -> Any:
    """Leave each writer out once. Returns the predicted types."""
    every = rows + passing() + tables() + harmless()
    seen = columns(every)
    names = np.array([row.writer for row in every])
    kinds, chances = np.empty(len(every), dtype=object), np.zeros((len(every), len(model.SLOTS.classes)))
    for writer in sorted({row.writer for row in rows}):
        others, left = np.flatnonzero(names != writer), np.flatnonzero(names == writer)
        types, slotted = both([every[at] for at in others], seen[others])
        kinds[left] = [model.TYPES.classes[place] for place in np.asarray(seen[left] @ types.T).argmax(axis=1)]
        chances[left] = probabilities(np.asarray(seen[left] @ slotted.T))
        report(writer, rows, kinds, chances, [at for at in left if at < len(rows) and not rows[at].raw])
    places = range(len(rows))
    report("all memories", rows, kinds, chances, [at for at in places if not rows[at].raw], full=True)
    report("all sentences", rows, kinds, chances, [at for at in places if rows[at].raw], full=True)
    for floor in (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9):
        found, right, every_one = critical(rows, chances, list(places), floor)
        print(f"critical from {floor}: precision {right / max(found, 1):.3f}, recall {right / every_one:.3f}")
    return kinds


def critical(rows: Sequence[Row], chances: Any, places: list[int], floor: float) -> tuple[int, int, int]:
    """How many are predicted critical, how many of these are, and how many there are."""
    called = [at for at in places if 1 - chances[at][0] >= floor]
    return len(called), sum(rows[at].critical for at in called), sum(rows[at].critical for at in places)


def report(title: str, rows: Sequence[Row], kinds: Any, chances: Any, places: list[int], *, full: bool = False) -> None:
    """The figures of the rows at these indexes."""
    from sklearn.metrics import f1_score

    typed = [at for at in places if rows[at].type]
    wanted, given = [rows[at].type for at in typed], [kinds[at] for at in typed]
    found, right, every = critical(rows, chances, places, model.CRITICAL)
    agree = sum(one == two for one, two in zip(wanted, given, strict=True)) / len(typed)
    macro = f1_score(wanted, given, average="macro", labels=sorted(set(wanted)))
    print(
        f"{title:14} {len(typed):5} typed, accuracy {agree:.3f}, macro F1 {macro:.3f}; "
        f"{every:4} critical, precision {right / max(found, 1):.3f}, recall {right / max(every, 1):.3f}"
    )
    if full:
        names = [name for name in model.TYPES.classes if name in wanted]
        scores = f1_score(wanted, given, average=None, labels=names)
        print("  F1:", ", ".join(f"{name} {score:.2f}" for name, score in zip(names, scores, strict=True)))


def compare_rules(rows: list[Row], kinds: Any) -> None:
    """Compare each type rule of the default policy with the model, on the statements that match the rule."""
    from engram.gates.policies import policy_named
    from engram.gates.policies.policy import MemoryPolicy
    from engram.model.memory import Memory

    for number, rule in enumerate(policy_named("default").types, 1):
        alone = MemoryPolicy("alone", types=(rule,))
        fits = [
            at
            for at, row in enumerate(rows)
            if row.type and alone.apply_leniently(Memory("", row.text), typed=False).type == rule.type
        ]
        right, read = (sum(one == rows[at].type for at, one in pairs) for pairs in
                       (((at, rule.type) for at in fits), ((at, kinds[at]) for at in fits)))  # fmt: skip
        print(f"type rule {number:2}, {rule.type:10} fits {len(fits):4}: right {right:4}, the model {read:4}")


def held() -> None:
    """Figures of the held-out writers by the packaged model; none of their text is printed."""
    rows = told(HELD)
    kinds = np.array([model.type_of(row.text)[0] for row in rows], dtype=object)
    chances = np.array([model.slot_probabilities(row.text) for row in rows])
    for raw in (False, True):
        places = [at for at, row in enumerate(rows) if row.raw == raw]
        report("held sentences" if raw else "held memories", rows, kinds, chances, places, full=True)


def written(weights: Any, linear: Linear) -> int:
    """Write hashed weights as signed bytes, then those of the vector as half floats. Returns the number of bytes."""
    hashed = np.round(weights[:, : linear.buckets].T * SCALE).clip(-127, 127).astype(np.int8)
    dense = weights[:, linear.buckets :].T.astype("<f2")
    return Path(model.__file__).with_name(linear.file).write_bytes(hashed.tobytes() + dense.tobytes())


def main() -> None:
    """Train, or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument(
        "--rules", action="store_true", help="with --check: the default policy's type rules beside the model"
    )
    parser.add_argument("--held", action="store_true")
    asked = parser.parse_args()
    if asked.held:
        held()
        return
    rows = told()
    if asked.check:
        kinds = check(rows)
        if asked.rules:
            compare_rules(rows, kinds)
        return
    every = rows + passing() + tables() + harmless()
    for weights, linear in zip(both(every, columns(every)), (model.TYPES, model.SLOTS), strict=True):
        print(f"{linear.file}: {len(every)} statements, {written(weights, linear)} bytes")


if __name__ == "__main__":
    main()
