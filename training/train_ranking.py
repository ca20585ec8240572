"""Learn what each kind of evidence is worth (`recall.fusion.Weights`), on all development sets together.

    pip install scipy
    python training/train_ranking.py locomo=locomo_dev.json beam=assistant_chats_dev.jsonl \\
        longmemeval=longmemeval_pooled_dev.json longmemeval=longmemeval_s_lite_dev.jsonl \\
        longmemeval=longmemeval_pooled_dev.json+longmemeval_distractors.json

A linear model over the evidence, learned so that what answers is likelier than what does not (softmax over the candidates of a
question), each set weighing less the more questions it has; then nudged, weight by weight, towards what the sets are measured by
(LoCoMo counts `--locomo-share` times: 8 made the shipped weights).
Printed: the figures on what was learned from, on conversations left out (five folds), and on each set when it was left out
entirely; and the weights, to be put into `Weights`.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import fields

import numpy as np
import numpy.typing as npt
from judged_questions import Judged, everything

from engram.recall.fusion import Weights

NAMES = [each.name for each in fields(Weights)]
BALANCE, HOLD_BACK, FOLDS = 0.5, 1e-4, 5
Floats = npt.NDArray[np.float64]


def learned(questions: Sequence[Judged]) -> Floats:
    """The weights under which the answers of these questions are most likely."""
    from scipy.optimize import minimize

    shown = [q for q in questions if q.answers.any()]
    sizes = Counter(q.kind for q in shown)
    weight = np.array([sizes[q.kind] ** -BALANCE for q in shown])
    rows = np.concatenate([q.evidence for q in shown]).astype(float)
    wanted = np.concatenate([q.answers / q.answers.sum() for q in shown])
    lengths = np.array([len(q.answers) for q in shown])
    starts, segment = np.cumsum(lengths) - lengths, np.repeat(np.arange(len(shown)), lengths)
    spread = rows.std(axis=0) + 1e-9
    scaled, share = rows / spread, (weight / weight.sum())[segment]

    def loss(values: Floats) -> tuple[float, Floats]:
        scores = scaled @ values
        top = np.maximum.reduceat(scores, starts)[segment]
        likely = np.exp(scores - top)
        total = np.add.reduceat(likely, starts)[segment]
        value = float(-(share * wanted * (scores - top - np.log(total))).sum() + HOLD_BACK * (values**2).sum())
        return value, -(scaled.T @ (share * (wanted - likely / total))) + 2 * HOLD_BACK * values

    found = minimize(loss, np.zeros(rows.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 500})
    return np.asarray(found.x / spread)


def measured(question: Judged, scores: Floats) -> dict[str, float]:
    """The measures of a set: turns by share and any-hit at ten, sessions by any-hit and all-hit at five."""
    order = np.argsort(-scores, kind="stable")
    if question.by_turn:
        hits = question.answering[order[:10]].sum()
        first = float(question.answering[order[:1]].any())
        return {"fraction@10": hits / question.wanted, "any@10": float(hits > 0), "first": first}
    sessions = list(dict.fromkeys(question.sessions[order[:50]].tolist()))[:5]
    hits = sum(session in set(question.sessions[question.answering].tolist()) for session in sessions)
    return {"any@5": float(hits > 0), "all@5": float(hits >= question.wanted)}


def table(questions: Sequence[Judged], weights: Callable[[Judged], Floats]) -> dict[str, dict[str, float]]:
    """The means of each set."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for question in questions:
        if question.wanted:
            for name, value in measured(question, question.evidence @ weights(question)).items():
                found[question.kind][name].append(value)
    return {kind: {name: float(np.mean(values)) for name, values in by.items()} for kind, by in found.items()}


def worth(questions: Sequence[Judged], weights: Floats, locomo_share: float) -> float:
    """A single figure over all sets."""
    means = table(questions, lambda _: weights)
    share = {kind: locomo_share if kind.startswith("locomo") else 1.0 for kind in means}
    return sum(share[kind] * float(np.mean(list(by.values()))) for kind, by in means.items()) / sum(share.values())


def nudged(questions: Sequence[Judged], weights: Floats, locomo_share: float) -> Floats:
    """The weights, each adjusted as long as that improves the result."""
    best, steps = worth(questions, weights, locomo_share), np.maximum(np.abs(weights), 0.3)
    for size in (0.3, 0.15):
        for place in range(len(weights)):
            for direction in (1, -1):
                moved = weights.copy()
                moved[place] += direction * size * steps[place]
                if (found := worth(questions, moved, locomo_share)) > best + 2e-5:
                    best, weights = found, moved
                    break
    return weights


def folds(questions: Sequence[Judged]) -> list[int]:
    """Folds by conversation if a set has several, else by question."""
    corpora: dict[str, list[str]] = defaultdict(list)
    for question in questions:
        if question.corpus not in corpora[question.kind]:
            corpora[question.kind].append(question.corpus)
    return [
        (corpora[q.kind].index(q.corpus) if len(corpora[q.kind]) > 1 else sum(map(ord, q.text))) % FOLDS
        for q in questions
    ]


def report(title: str, means: dict[str, dict[str, float]]) -> None:
    """Print one table."""
    print(title)
    for kind, by in sorted(means.items()):
        print(f"  {kind:<40}" + "  ".join(f"{name} {value:.3f}" for name, value in by.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*", help="kind=FILE, or kind=FILE+DISTRACTORS")
    parser.add_argument("--locomo-share", type=float, default=8.0, help="how often LoCoMo counts in the last step (8)")
    arguments = parser.parse_args()
    questions = list(everything(arguments.data))
    report("as shipped", table(questions, lambda _: np.array([getattr(Weights(), name) for name in NAMES])))
    fold, by_fold = folds(questions), {}
    for left_out in range(FOLDS):
        by_fold[left_out] = learned([q for q, f in zip(questions, fold, strict=True) if f != left_out])
    of = {id(q): by_fold[f] for q, f in zip(questions, fold, strict=True)}
    report("on conversations left out", table(questions, lambda q: of[id(q)]))
    kinds = sorted({q.kind for q in questions})
    by_kind = {kind: learned([q for q in questions if q.kind != kind]) for kind in kinds}
    report("on a set left out entirely", table(questions, lambda q: by_kind[q.kind]))
    weights = nudged(questions, learned(questions), arguments.locomo_share)
    report("on all", table(questions, lambda _: weights))
    for name, value in zip(NAMES, weights, strict=True):
        print(f"    {name}: float = {value:.2f}")


if __name__ == "__main__":
    main()
