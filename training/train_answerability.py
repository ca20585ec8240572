"""Train the model that tells how likely a memory answers a question: src/engram/recall/answerability.npz.

    pip install lightgbm
    python training/train_answerability.py            # write it
    python training/train_answerability.py --check    # measure each store by a model trained without it, then the held-out writers; write nothing

It learns from the questions of training/relevance/memories, asked of real stores: a search ranks the memories, and the model sees what the ranking saw
of each. Small stores are also searched joined with others and in parts, because with more memories the first ones are more like the question by chance,
and asked the questions of other stores, which nothing there answers.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from judged_questions import WRITERS, swap_names
from train_relevance import tree_arrays

from engram import Engram
from engram.model.errors import Refused, SecretRefused
from engram.models.trees import Trees
from engram.recall.cutoff import MIN_KNOWN, MIN_SHARE_OF_BEST, asks_for_several
from engram.recall.query import SearchQuery
from engram.recall.ranking import rank
from engram.recall.relevance import ANSWERABILITY_FILE
from engram.recall.search import Searcher
from engram.recall.situated import compare_memories, measure_likeness
from engram.store.protocol import Filters

SMALL, JOINED, PARTS = 40, 7, 5
"""Memories below which a store is also joined with others and divided, the number of joined stores, and the number
of parts."""
OF_OTHERS = 12
"""Questions of other stores asked of each small store."""
FOLDS = 7
TREES, RATE, LEAVES, DEPTH, MIN_ROWS = 150, 0.05, 8, 4, 40
UNANSWERABLE = 2.0
"""The weight of a memory for an unanswerable question: a wrong answer is worse than none."""
MARGIN = 0.32
"""Subtracted from the log odds, so that seven of ten unanswerable questions get no answer at the floor of known hits
(`MIN_KNOWN`); a larger value loses answers."""
KNOWN_SHARES = (0.35, 0.45, 0.55, 0.65, 0.75)
Floats = npt.NDArray[np.float32]
Store = tuple[str, list[dict[str, Any]], list[dict[str, Any]]]


@dataclass(frozen=True)
class Asked:
    """A question, and the memories that a search found for it."""

    store: str
    """The store, or the joined ones."""
    text: str
    label: str
    rows: Floats
    answers: npt.NDArray[np.bool_]


def read_stores(folder: str) -> list[Store]:
    """The stores of our writers: name, memories, questions."""
    paths = sorted((WRITERS / folder).glob("*.json"))
    read = [(path.stem, json.loads(path.read_text("utf-8"))) for path in paths]
    return [(name, data["memories"], data["questions"]) for name, data in read]


def join_stores(stores: Sequence[Store]) -> Iterator[Store]:
    """Small stores in groups, each joined into one store."""
    small = [store for store in stores if len(store[1]) < SMALL]
    for group in range(JOINED):
        chosen = small[group::JOINED]
        memories = [{**each, "id": f"{name} {each['id']}"} for name, every, _ in chosen for each in every]
        questions = [
            {**each, "answer": [f"{name} {key}" for key in each["answer"]]}
            for name, _, every in chosen
            for each in every
        ]
        if chosen:
            yield "+".join(name for name, *_ in chosen), memories, questions


def divide_stores(stores: Sequence[Store]) -> Iterator[Store]:
    """The parts of small stores, with the questions they answer and a share of the unanswerable ones."""
    for name, memories, questions in stores:
        unknown = [each for each in questions if not each["answer"]]
        for part in range(PARTS if len(memories) < SMALL else 0):
            kept = memories[part::PARTS]
            ids = {each["id"] for each in kept}
            answered = [each for each in questions if not ids.isdisjoint(each["answer"])]
            yield name, kept, [*answered, *unknown[part::PARTS]]


def mix_questions(stores: Sequence[Store]) -> Iterator[Store]:
    """Small stores with questions of others."""
    chance = random.Random(0)
    for name, memories, _ in stores:
        if len(memories) < SMALL:
            others = [each["q"] for other, _, questions in stores if other != name for each in questions]
            asked = [{"q": text, "label": "unrelated", "answer": []} for text in chance.sample(others, OF_OTHERS)]
            yield name, memories, asked


def ask_about_others(stores: Sequence[Store]) -> Iterator[Store]:
    """Large stores with questions about somebody else in the same store: a fact about Ben does not answer a question about Ada."""
    for name, memories, questions in stores:
        if len(memories) >= SMALL:
            yield name, memories, list(swap_names({"memories": memories, "questions": questions}))


def ask_questions(store: Store) -> Iterator[Asked]:
    """Each question with its search results. A memory that contains a secret is refused, as it should be."""
    name, memories, questions = store
    with Engram.open(ephemeral=True) as mem:
        keys = {}
        for each in memories:
            with suppress(Refused, SecretRefused):
                keys[mem.add(each["text"]).id] = each["id"]
        searcher = Searcher(mem.store, lambda: datetime.now(UTC))
        for question in questions:
            answer = set(question["answer"])
            if answer and answer.isdisjoint(keys.values()):
                continue
            query = SearchQuery(question["q"], filters=Filters(kinds=("memory",)))
            asked = searcher.retrieve(query)
            ranking = rank(mem.store, [asked])[0]
            found = {record.n: record for record in mem.store.get_many([place.n for place in ranking])}
            considered = [(found[place.n], place) for place in ranking]
            numbers, rows = compare_memories(question["q"], ranking, *measure_likeness(question["q"], considered))
            answers = np.array([keys[found[n].record.id] in answer for n in numbers], dtype=bool)
            yield Asked(name, question["q"], question["label"], rows, answers)


def fit_trees(asked: Sequence[Asked]) -> dict[str, npt.NDArray[Any]]:
    """Boosted trees as arrays."""
    import lightgbm

    read = [each for each in asked if len(each.rows)]
    weights = [np.full(len(each.rows), 1.0 if each.label == "answerable" else UNANSWERABLE) for each in read]
    data = lightgbm.Dataset(
        np.concatenate([each.rows for each in read]),
        np.concatenate([each.answers for each in read]).astype(float),
        weight=np.concatenate(weights),
    )
    settings = {
        "objective": "binary", "num_leaves": LEAVES, "max_depth": DEPTH, "learning_rate": RATE, "min_data_in_leaf": MIN_ROWS,
        "bagging_fraction": 0.8, "bagging_freq": 1, "feature_fraction": 0.5, "seed": 0, "verbose": -1, "deterministic": True,
    }  # fmt: skip
    trees = tree_arrays(lightgbm.train(settings, data, num_boost_round=TREES).dump_model()["tree_info"])
    trees["value"][0] -= MARGIN
    return trees


def describe(title: str, asked: Sequence[Asked], likely: Sequence[Floats]) -> str:
    """The known hits of the answerable questions, and the share of the others without an answer, at the floor and further floors."""
    right, wrong = [], []
    for each, values in zip(asked, likely, strict=True):
        best = float(values.max(initial=0))
        if each.label == "answerable":
            least = 0.0 if asks_for_several(each.text) else MIN_SHARE_OF_BEST * best
            right.append(max((value for value in values[each.answers].tolist() if value >= least), default=0.0))
        elif each.label == "unknown":
            wrong.append(best)
    known, unknown = np.array(right), np.array(wrong)
    floors = [(share, np.quantile(known, 1 - share)) for share in KNOWN_SHARES]
    curve = "  ".join(f"{share} → {(unknown < floor).mean():.2f}" for share, floor in floors)
    return (
        f"{title:34} known {(known >= MIN_KNOWN).mean():.2f}  silent {(unknown < MIN_KNOWN).mean():.2f}  "
        f"({len(known)}, {len(unknown)}); silent by share known: {curve}"
    )


def check(alone: Sequence[Asked], more: Sequence[Asked]) -> None:
    """Measure each store by a model trained without it, and the held-out writers by a model of all stores."""
    stores = sorted({each.store for each in alone})
    likely: dict[int, Floats] = {}
    for fold in range(FOLDS):
        left = set(stores[fold::FOLDS])
        taught = [each for each in (*alone, *more) if left.isdisjoint(each.store.split("+"))]
        trees = Trees(**fit_trees(taught))
        likely |= {id(each): trees(each.rows) for each in alone if each.store in left}
    for title, chosen in (
        ("stores of 80 memories, left out", [each for each in alone if each.store[1:].isdigit()]),
        ("stores of 20 memories, left out", [each for each in alone if not each.store[1:].isdigit()]),
    ):
        print(describe(title, chosen, [likely[id(each)] for each in chosen]))
    trees = Trees(**fit_trees([*alone, *more]))
    held = [each for store in read_stores("held") for each in ask_questions(store)]
    print(describe("held-out writers", held, [trees(each.rows) for each in held]))


def main() -> None:
    """Train, or measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="measure, write nothing")
    given = parser.parse_args()
    stores = read_stores("memories")
    alone = [each for store in stores for each in ask_questions(store)]
    others = [*join_stores(stores), *divide_stores(stores), *mix_questions(stores), *ask_about_others(stores)]
    more = [each for store in others for each in ask_questions(store)]
    if given.check:
        check(alone, more)
    else:
        np.savez_compressed(ANSWERABILITY_FILE, **fit_trees([*alone, *more]))
        print(f"{Path(ANSWERABILITY_FILE).name}: {len(alone)} questions, {len(more)} of them in other stores")


if __name__ == "__main__":
    main()
