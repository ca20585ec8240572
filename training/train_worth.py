"""Train the model of what is worth keeping: src/engram/models/worth.npz.

    pip install scikit-learn scipy lightgbm
    python training/train_worth.py            # writes it
    python training/train_worth.py --check    # leave each writer out once, a sixth of them at a time: figures per writer, of labels, calibration
    python training/train_worth.py --held     # the figures of the written model on the writers held out, without their text

Shown is the talk of training/hearing. The first step (linear) scores worth and moods; the second (trees) is trained on scores of the first
made without the writer they are of. Every conversation is shown twice: whole, and in pieces. Single exchanges, which most writers
wrote as such, are shown as they are, and several in a row as one session. The statements of
pairs.txt and some of the slots are shown too, as things worth keeping that are said by themselves.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from hearing_data import FOLDER, HELD, Sentence, pairs
from hearing_report import calibration, conversations, curve, everything, exchanges, report
from hearing_slots import every_slot, filled

from engram.models import worth as model
from engram.models.worth import (
    BUCKETS,
    CATEGORIES,
    DURATIONS,
    MOODS,
    OWNERS,
    PROPOSE_PROBABILITY,
    USER,
    read_sentences,
    sparse,
)

TARGET = Path(model.__file__).with_name(model.FILE)
OFTEN = {"first": 4, "labels": 8}
"""Minimum number of sentences with a feature for it to have a weight."""
CLUSTERS = (64, 256)
FIRST, LABELS = 1 + len(MOODS), len(CATEGORIES) + len(OWNERS) + len(DURATIONS) + 1
FORGET = CATEGORIES.index("forget")
ROLES = ("user", "assistant")
GROUPS = 6
"""Number of groups of writers; predictions for a writer come from models trained without their group."""
MAYBE_WEIGHT = 0.3
WEIGHTS = {"conversations": 1.0, "sessions": 0.6, "pieces": 0.6, "exchanges": 1.0, "statements": 0.25}
"""The weight of a sentence in the first step, by its view: a piece of a conversation is often unclear by itself, a
statement was written for another purpose."""
IN_TREES = {"conversations": 1.0, "sessions": 1.0, "pieces": 1.0, "exchanges": 2.0, "statements": 0.2}
"""The same weights in the second step."""
EMPTY_WEIGHT = {model.WHOLE: 5.0, model.ALONE: 2.0}
"""Their weight in the second step for a sentence of an exchange with nothing to keep."""
FORGET_WEIGHT = 6.0
"""The weight of a request to forget against everything else, because most writers have one or two of them."""
TOLD = 7
"""Number of single exchanges in a session."""
STRENGTH, STEPS = 1.0, 40
BOOSTING = {
    "objective": "cross_entropy",
    "num_leaves": 8,
    "learning_rate": 0.04,
    "min_data_in_leaf": 40,
    "feature_fraction": 0.4,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "lambda_l2": 5.0,
    "use_missing": False,
    "num_threads": 1,
    "verbose": -1,
    "seed": 0,
    "deterministic": True,
}
ROUNDS = 200


class Shown:
    """Rows of talk in the views used for training: features, targets and weights of each."""

    def __init__(self, talk: Sequence[Sentence], clusters: Any) -> None:
        alone = exchanges(talk)
        self.rows = rows = [*talk, *statements()]
        single = {turn[0] for view in conversations(talk) if len(view) <= len(ROLES) for turn in view}
        whole = [view for view in conversations(talk) if view[0][0] not in single]
        own = [view for view in conversations(talk) if view[0][0] in single]
        views = {
            "conversations": whole,
            "sessions": list(sessions(rows, own)),
            "pieces": list(alone_views([view for view in alone if view[0][0] not in single])),
            "exchanges": own,
            "statements": [[[at]] for at in range(len(talk), len(rows))],
        }
        self.views = [view for kind in views.values() for view in kind]
        self.row_of = np.array([at for view in self.views for turn in view for at in turn])
        self.kind = np.repeat(list(views), [_size(kind) for kind in views.values()])
        self.is_alone = np.isin(self.kind, ("pieces", "exchanges", "statements"))
        self.writer = np.array([rows[at].writer for at in self.row_of])
        empty = {at for turns in alone for turn in turns for at in turn if _empty(rows, turns)}
        self.is_empty = np.array([at in empty for at in self.row_of])
        self._read(clusters)
        self._label()

    def _read(self, clusters: Any) -> None:
        self.said = [
            read_sentences([(self.rows[turn[0]].role, [self.rows[at].text for at in turn]) for turn in view])
            for view in self.views
        ]
        self.sparse = hashed(blocks for view in self.said for _, blocks in sparse(view, clusters))
        self.around = [model.Surroundings(view) for view in self.said]
        self.dense = np.vstack([each.dense() for each in self.around])

    def _label(self) -> None:
        rows = [self.rows[at] for at in self.row_of]
        self.worth = np.array([{"keep": 1.0, "maybe": 0.5, "skip": 0.0}[row.worth] for row in rows])
        self.first = np.column_stack(
            [self.worth, *(np.array([row.mood == mood for row in rows]) for mood in MOODS)]
        ).astype(np.float32)
        self.labels = np.array(
            [
                [
                    *(row.category == name for name in CATEGORIES),
                    *(row.owner == name for name in OWNERS),
                    *(row.duration == name for name in DURATIONS),
                    row.critical,
                ]
                for row in rows
            ],
            np.float32,
        )
        self.weight = np.array([WEIGHTS[kind] for kind in self.kind], np.float32)
        self.worthy = np.array([bool(row.category) for row in rows])

    def context(self, scores: Any) -> Any:
        """The input of the second step."""
        made, start = [], 0
        for view, around in zip(self.said, self.around, strict=True):
            size = sum(len(turn) for turn in view)
            made.append(around.context(scores[start : start + size]))
            start += size
        return np.vstack(made)


def sessions(rows: Sequence[Sentence], own: Iterable[list[list[int]]]) -> Iterator[list[list[int]]]:
    """Single exchanges of a writer in sequence, as somebody mentions one thing today and another tomorrow.

    Every second time without the replies.
    """
    for number, (_, some) in enumerate(
        groupby(enumerate(own), lambda each: (rows[each[1][0][0]].writer, each[0] // TOLD))
    ):
        turns = [turn for _, view in some for turn in view]
        yield turns if number % 2 else [turn for turn in turns if rows[turn[0]].role == USER]


def alone_views(alone: Sequence[list[list[int]]]) -> Iterator[list[list[int]]]:
    """The exchanges in turn: one with its reply, one without, one sentence by sentence, because a caller may have no more than that."""
    for number, (turn, *reply) in enumerate(alone):
        if number % 3 == 0:
            yield [turn, *reply]
        elif number % 3 == 1:
            yield [turn]
        else:
            yield from ([[at]] for at in turn)


def statements() -> list[Sentence]:
    """Stand-alone statements, as in somebody's notes: those of pairs.txt, and for each slot some that state its value, and a question."""
    chance = random.Random(0)
    said = [
        (name, chance.choice((pair.older, pair.newer)), "keep", "asserted")
        for name in sorted(path.parent.name for path in FOLDER.glob("*/pairs.txt"))
        for pair in pairs(name)[::2]
    ]
    for slot in every_slot():
        told = [line for part in ("holds", "changes") for line in chance.sample(slot.lines[part], 3)]
        asked = [(line, "skip", "question") for line in slot.lines["questions"][:1]]
        for line, worth, mood in (*((line, "keep", "asserted") for line in told), *asked):
            said.append((f"slots {slot.writer}", filled(line, *chance.sample(slot.values, 3)), worth, mood))
    return [
        Sentence(writer, number, 0, 0, USER, text, worth, "", False, "", "", "", mood, "")
        for number, (writer, text, worth, mood) in enumerate(said)
    ]


def hashed(rows: Iterable[Sequence[tuple[float, Sequence[int]]]]) -> Any:
    """A matrix with a row for each sentence and a column for each bucket."""
    from scipy.sparse import csr_matrix

    places: list[int] = []
    values: list[float] = []
    ends = [0]
    for blocks in rows:
        for weight, found in blocks:
            places += found
            values += [weight] * len(found)
        ends.append(len(places))
    made = csr_matrix(
        (np.array(values, np.float32), np.array(places, np.int32), np.array(ends)), shape=(len(ends) - 1, BUCKETS)
    )
    made.sum_duplicates()
    return made


def _size(views: Iterable[Sequence[Sequence[int]]]) -> int:
    """The number of sentences in some views."""
    return sum(len(turn) for view in views for turn in view)


def _empty(rows: Sequence[Sentence], turns: Sequence[Sequence[int]]) -> bool:
    return all(rows[at].worth == "skip" for turn in turns for at in turn)


class Fitted:
    """Linear heads over the hashed features of some buckets and over vectors."""

    def __init__(self, buckets: Any, table: Any, vector: Any, bias: Any) -> None:
        self.buckets, self.table, self.vector, self.bias = buckets, table, vector, bias

    def scores(self, hashed: Any, dense: Any) -> Any:
        """A row for each sentence, a column for each head."""
        return np.asarray(hashed[:, self.buckets] @ self.table + dense @ self.vector + self.bias, dtype=np.float32)

    def arrays(self, name: str) -> dict[str, Any]:
        """The arrays as the model reads them.

        They are the distance of each bucket from the previous one, and weights as signed bytes, without zero weights.
        """
        scale = np.maximum(np.abs(self.table).max(axis=0), 1e-6) / 127
        weights = np.round(self.table / scale).astype(np.int8)
        weighty = weights.any(axis=1)
        steps = np.diff(self.buckets[weighty], prepend=0)
        assert steps.max() < 1 << 16
        made = {
            "steps": steps.astype(np.uint16),
            "weights": weights[weighty],
            "scale": scale.astype(np.float32),
            "vector": self.vector.astype(np.float16),
            "bias": self.bias,
        }
        return {f"{name}_{part}": array for part, array in made.items()}


def fit_linear(hashed: Any, dense: Any, targets: Any, weights: Any, often: int, counted: Any = None) -> Fitted:
    """Logistic regression of every head at once, by L-BFGS, over the features that occur often enough in the counted rows, or in all."""
    from scipy.optimize import minimize
    from scipy.special import expit

    shown = hashed if counted is None else hashed[counted]
    buckets = np.flatnonzero(np.bincount(shown.indices, minlength=BUCKETS) >= often)
    hashed = hashed[:, buckets]
    wide, size, heads = hashed.shape[1], hashed.shape[1] + dense.shape[1], targets.shape[1]
    turned = hashed.T.tocsr()

    def loss(flat: Any) -> tuple[float, Any]:
        values = flat.astype(np.float32).reshape(size + 1, heads)
        sums = hashed @ values[:wide] + dense @ values[wide:size] + values[size]
        error = weights * (expit(sums) - targets)
        held_back = (values[:size] ** 2).sum() / (2 * STRENGTH)
        total = (weights * (np.logaddexp(0, sums) - targets * sums)).sum() + held_back
        slope = np.vstack([turned @ error, dense.T @ error, error.sum(axis=0, keepdims=True)])
        slope[:size] += values[:size] / STRENGTH
        return float(total), slope.ravel().astype(np.float64)

    start = np.zeros((size + 1, heads))
    share = (weights * targets).sum(axis=0) / np.broadcast_to(weights, targets.shape).sum(axis=0)
    start[size] = np.log((share + 1e-4) / (1 - share + 1e-4))
    found = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": STEPS}).x.reshape(
        size + 1, heads
    )
    return Fitted(
        buckets, found[:wide].astype(np.float32), found[wide:size].astype(np.float32), found[size].astype(np.float32)
    )


def fit_first(shown: Shown, chosen: Any) -> Fitted:
    """Fit the first step on these rows."""
    weights = np.repeat(shown.weight[chosen, None], FIRST, axis=1)
    weights[shown.worth[chosen] == 0.5, 0] *= MAYBE_WEIGHT
    return fit_linear(shown.sparse[chosen], shown.dense[chosen], shown.first[chosen], weights, 2 * OFTEN["first"])


def fit_labels(shown: Shown, chosen: Any) -> Fitted:
    """Fit category, owner, duration and criticality on the rows worth keeping.

    A request to forget is trained against all rows: "delete the branch" asks for work.
    """
    worthy = shown.worthy[chosen]
    weights = np.repeat(np.where(worthy, shown.weight[chosen], 0.0)[:, None], LABELS, axis=1).astype(np.float32)
    weights[:, FORGET] = shown.weight[chosen] * np.where(shown.labels[chosen, FORGET] > 0, FORGET_WEIGHT, 1.0)
    return fit_linear(
        shown.sparse[chosen], shown.dense[chosen], shown.labels[chosen], weights, 2 * OFTEN["labels"], worthy
    )


def grouped(names: Sequence[str]) -> list[Sequence[str]]:
    """The writers in groups; alphabetical neighbours, which are often of one kind, are separated."""
    return [names[group::GROUPS] for group in range(min(GROUPS, len(names)))]


def scores_unseen(shown: Shown, chosen: Any) -> Any:
    """The first step's scores of these rows, each by a model trained without its writer."""
    scores = np.zeros((len(shown.row_of), FIRST), np.float32)
    for group in grouped(sorted(set(shown.writer[chosen]))):
        inside = np.isin(shown.writer, group)
        scores[inside] = fit_first(shown, chosen[~inside[chosen]]).scores(shown.sparse[inside], shown.dense[inside])
    return scores


def fit_trees(shown: Shown, name: str, chosen: Any, seen: Any) -> Any:
    """Fit an ensemble of the second step on its input for these rows."""
    import lightgbm

    chosen = chosen[shown.is_alone[chosen] == (name == model.ALONE)]
    weights = np.array([IN_TREES[kind] for kind in shown.kind])
    weights *= np.where(shown.worth == 0.5, MAYBE_WEIGHT, 1.0) * np.where(shown.is_empty, EMPTY_WEIGHT[name], 1.0)
    return lightgbm.train(BOOSTING, lightgbm.Dataset(seen[chosen], shown.worth[chosen], weight=weights[chosen]), ROUNDS)


def sums_of(shown: Shown, chosen: Any, left_out: Any, seen: Any) -> Any:
    """The sums for the left-out rows of the ensembles trained on the chosen rows."""
    sums = fit_trees(shown, model.ALONE, chosen, seen).predict(seen[left_out], raw_score=True)
    whole = ~shown.is_alone[left_out]
    own = fit_trees(shown, model.WHOLE, chosen, seen).predict(seen[left_out[whole]], raw_score=True)
    sums[whole] = own + model.SHARE * sums[whole]
    return sums


def leave_out(shown: Shown) -> tuple[Any, Any, Any]:
    """The second step's sums, the first step's scores and the label scores of every row, trained without its writer at either step."""
    sums = np.zeros(len(shown.row_of))
    first = np.zeros((len(shown.row_of), FIRST), np.float32)
    labels = np.zeros((len(shown.row_of), LABELS), np.float32)
    for group in grouped(sorted(set(shown.writer))):
        inside = np.isin(shown.writer, group)
        others, left_out = np.flatnonzero(~inside), np.flatnonzero(inside)
        inner = scores_unseen(shown, others)
        fitted = fit_first(shown, others)
        inner[left_out] = fitted.scores(shown.sparse[left_out], shown.dense[left_out])
        seen = shown.context(inner)
        sums[left_out] = sums_of(shown, others, left_out, seen)
        first[left_out] = inner[left_out]
        labels[left_out] = fit_labels(shown, others).scores(shown.sparse[left_out], shown.dense[left_out])
        print(f"left out: {', '.join(group)}", flush=True)
    return sums, first, labels


def calibrated(sums: Any, wanted: Any) -> Any:
    """Slope and shift that turn sums of trees into log odds of being worth keeping."""
    from scipy.optimize import minimize

    def loss(pair: Any) -> float:
        logit = pair[0] * sums + pair[1]
        return float((np.logaddexp(0, logit) - wanted * logit).sum())

    return minimize(loss, np.array([1.0, 0.0]), method="Nelder-Mead").x


def label_figures(rows: Sequence[Sentence], kept: Any, first: Any, labels: Any) -> None:
    """How often category, owner, duration and mood are right for rightly kept sentences; and the critical ones found."""
    right = np.array([row.worth == "keep" for row in rows]) & kept
    ends = np.cumsum([len(CATEGORIES), len(OWNERS), len(DURATIONS)])
    parts = np.split(labels, ends, axis=1)
    for name, allowed, found in zip(
        ("category", "owner", "duration"), (CATEGORIES, OWNERS, DURATIONS), parts, strict=False
    ):
        told = [allowed[at] for at in found.argmax(axis=1)]
        good = np.array([getattr(row, name) == each for row, each in zip(rows, told, strict=True)])
        print(f"{name} {good[right].mean():.3f}", end="  ")
    moods = np.array([MOODS[at] == row.mood for at, row in zip(first[:, 1:].argmax(axis=1), rows, strict=True)])
    print(f"mood {moods[right].mean():.3f} (of all sentences {moods.mean():.3f})", end="  ")
    critical, said = np.array([row.critical for row in rows]), labels[:, -1] >= 0
    print(f"critical: recall {said[right & critical].mean():.3f}, precision {critical[right & said].mean():.3f}")


def check(shown: Shown) -> None:
    """Leave each writer out once, with the others of the group."""
    sums, first, labels = leave_out(shown)
    for title in dict.fromkeys(shown.kind):
        chosen = shown.kind == title
        rows = [shown.rows[at] for at in shown.row_of[chosen]]
        slope, shift = calibrated(sums[chosen], shown.worth[chosen])
        likely = 1 / (1 + np.exp(-(slope * sums[chosen] + shift)))
        print(f"\n{title}")
        curve(rows, first[chosen, 0], "linear")
        curve(rows, likely, "linear and trees")
        report(rows, likely, PROPOSE_PROBABILITY)
        label_figures(rows, likely >= PROPOSE_PROBABILITY, first[chosen], labels[chosen])
        calibration(rows, likely)


def held() -> None:
    """The figures of the written model on the held-out writers."""
    rows = everything(HELD)
    likely = np.zeros(len(rows))
    first, labels = np.zeros((len(rows), FIRST)), np.zeros((len(rows), LABELS))
    for view in conversations(rows):
        judged = model.judge([(rows[turn[0]].role, [rows[at].text for at in turn]) for turn in view])
        for turn, each in zip(view, judged, strict=True):
            for at, one in zip(turn, each, strict=True):
                likely[at], first[at, 1 + MOODS.index(one.mood)] = one.worth, 1
                chosen = (one.category, one.owner, one.duration)
                labels[at, :-1] = [
                    name == is_it
                    for is_it, allowed in zip(chosen, (CATEGORIES, OWNERS, DURATIONS), strict=True)
                    for name in allowed
                ]
                labels[at, -1] = one.critical - 0.5
    curve(rows, likely, "held out")
    report(rows, likely, PROPOSE_PROBABILITY)
    label_figures(rows, likely >= PROPOSE_PROBABILITY, first, labels)
    calibration(rows, likely)


def clusters() -> Any:
    """The cluster of each word piece of the bundled vocabulary in each clustering; those of the written model, if there is one."""
    if TARGET.exists():
        with np.load(TARGET) as arrays:
            return arrays["clusters"]
    from sklearn.cluster import MiniBatchKMeans

    from engram.embedding.static import StaticEmbedder

    pieces = model.unit(StaticEmbedder()._vectors.astype(np.float32))
    options: dict[str, Any] = {"random_state": 0, "batch_size": 2048, "n_init": 1, "max_iter": 30}
    return np.stack([MiniBatchKMeans(size, **options).fit_predict(pieces) for size in CLUSTERS]).astype(np.uint8)


def tree_arrays(name: str, booster: Any) -> dict[str, Any]:
    """The trees as arrays, a row for each; a leaf is its own child."""
    trees = [each["tree_structure"] for each in booster.dump_model()["tree_info"]]
    wide = 2 * int(BOOSTING["num_leaves"]) - 1
    arrays: dict[str, Any] = {
        "feature": np.zeros((len(trees), wide), np.uint8),
        "limit": np.zeros((len(trees), wide), np.float32),
        **{part: np.tile(np.arange(wide, dtype=np.uint8), (len(trees), 1)) for part in ("below", "above")},
        "value": np.zeros((len(trees), wide), np.float32),
    }
    depth = 0
    for at, tree in enumerate(trees):
        waiting, used = [(tree, 0, 0)], 1
        while waiting:
            node, place, deep = waiting.pop()
            depth = max(depth, deep)
            if "leaf_value" in node:
                arrays["value"][at, place] = node["leaf_value"]
                continue
            arrays["feature"][at, place] = node["split_feature"]
            arrays["limit"][at, place] = node["threshold"]
            arrays["below"][at, place], arrays["above"][at, place] = used, used + 1
            waiting += [(node["left_child"], used, deep + 1), (node["right_child"], used + 1, deep + 1)]
            used += 2
    return {**{f"{name}_{part}": array for part, array in arrays.items()}, f"{name}_depth": np.array(depth)}


def write(shown: Shown, found: Any) -> None:
    """Train on every writer and write the model.

    Probabilities are calibrated on sums made without the writer's group.
    """
    everyone = np.arange(len(shown.row_of))
    scores = scores_unseen(shown, everyone)
    seen = shown.context(scores)
    sums = np.zeros(len(everyone))
    for group in grouped(sorted(set(shown.writer))):
        inside = np.isin(shown.writer, group)
        sums[inside] = sums_of(shown, np.flatnonzero(~inside), np.flatnonzero(inside), seen)
    arrays = {"clusters": found}
    talked = shown.kind != "statements"
    for name, own in ((model.WHOLE, ~shown.is_alone), (model.ALONE, shown.is_alone & talked)):
        arrays |= tree_arrays(name, fit_trees(shown, name, everyone, seen))
        arrays[f"{name}_calibration"] = calibrated(sums[own], shown.worth[own])
    arrays |= fit_first(shown, everyone).arrays("first") | fit_labels(shown, everyone).arrays("labels")
    np.savez_compressed(TARGET, **arrays)
    print(f"{TARGET.name}: {len(shown.rows)} sentences, {TARGET.stat().st_size} bytes")


def main() -> None:
    """Train, or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--held", action="store_true")
    options = parser.parse_args()
    if options.held:
        held()
        return
    found = clusters()
    shown = Shown(everything(), (found[0].tobytes(), found[1].tobytes()))
    if options.check:
        check(shown)
    else:
        write(shown, found)


if __name__ == "__main__":
    main()
