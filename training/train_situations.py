"""Trains `engram.models.situations`: is a memory about the task that a prompt describes?

    python training/train_situations.py FOLDS.npz            trains, writes situations.json, reports writer by writer
    python training/train_situations.py FOLDS.npz --check    only reports, each writer judged by trees that never saw them
    python training/train_situations.py --measure FILE [--engine]    the shipped model, or the whole engine, on one set

Needs scikit-learn. FOLDS.npz is what train_task_vectors.py wrote of the same data: the task vectors of every note and prompt by a model that was not shown
them. A fifth of a writer's notes is a store; every prompt is compared with the 24 memories of its store that are nearest to it, which are nearly those
that the hook would take.
"""

import argparse
import json
import random
import tempfile
from binascii import crc32
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from task_data import MeasuredSet, Note, Writer, read_data, read_measured

from engram.embedding.plain import HALF
from engram.models import situations
from engram.models.situations import Situated, SituationMatcher
from engram.models.task_vectors import ROUNDED, TaskTable

MODELS = Path(situations.__file__).parent
FOLDS, GROUPS = 5, 4
"""Parts of a writer's notes; groups of writers (by their names up to "_") that are left out together."""
NEAREST, BY_MEANING = 16, 8
"""Memories that a prompt is compared with; the hook takes the second ones by their words."""
TREES = {
    "n_estimators": 120,
    "max_depth": 3,
    "learning_rate": 0.1,
    "min_samples_leaf": 40,
    "subsample": 0.7,
    "random_state": 15,
}
WANTED_SILENCE = 0.95
"""Of unrelated prompts by writers the trees never saw: a hook that often adds what is beside the point is worse than a silent one."""


@dataclass
class FoldStore:
    """A fifth of a writer's notes, and prompts with the note each is about, all with their vectors."""

    writer: str
    notes: list[Note]
    note_vectors: Any
    prompts: list[tuple[str, int | None]]
    prompt_vectors: Any


class FoldedMatcher(SituationMatcher):
    """A matcher whose task vector is given."""

    def __init__(self, prompt: str, tasks: TaskTable, task: Sequence[float]) -> None:
        super().__init__(prompt, tasks)
        self._given = task

    @property
    def task(self) -> Any:
        """The vector by a model that did not see the prompt."""
        return self._given


def unit_folds(file: Path) -> dict[str, Any]:
    """The vectors of a file at length one."""
    read = np.load(file)
    found = {name: read[name].astype("float32") for name in read.files}
    return {name: rows / np.linalg.norm(rows, axis=1, keepdims=True).clip(1e-9) for name, rows in found.items()}


def stores(writers: Sequence[Writer], folds: Any) -> Iterator[FoldStore]:
    """Every writer in fifths. Of a note's prompts one is taken, to save time. Raises `ValueError` where the vectors are of other data."""
    if len(folds["notes"]) != sum(len(writer.notes) for writer in writers):
        raise ValueError("the folds were made of other data; run train_task_vectors.py again")
    chosen = random.Random(15)
    place = number = asked = 0
    for writer in writers:
        parts: dict[int, FoldStore] = {}
        vectors: dict[int, tuple[list[Any], list[Any]]] = {fold: ([], []) for fold in range(FOLDS)}
        for fold in range(FOLDS):
            parts[fold] = FoldStore(writer.name, [], None, [], None)
        for note in writer.notes:
            part, (known, typed) = parts[place % FOLDS], vectors[place % FOLDS]
            pick = chosen.randrange(len(note.prompts))
            part.prompts.append((note.prompts[pick], len(part.notes)))
            part.notes.append(note)
            known.append(folds["notes"][place])
            typed.append(folds["prompts"][number + pick])
            place, number = place + 1, number + len(note.prompts)
        for at, text in enumerate(writer.unrelated):
            parts[at % FOLDS].prompts.append((text, None))
            vectors[at % FOLDS][1].append(folds["unrelated"][asked])
            asked += 1
        for fold, part in parts.items():
            part.note_vectors, part.prompt_vectors = (np.array(some, dtype="float32") for some in vectors[fold])
            yield part


def rows_of(store: FoldStore, tasks: TaskTable) -> list[tuple[Any, Any]]:
    """(memories x features) for each prompt, and which of them it is about."""
    table = tasks.table
    meanings = [
        table.embed(f"{note.statement}\n{note.situation}" if note.situation else note.statement) for note in store.notes
    ]
    largest = np.abs(store.note_vectors).max(axis=1, keepdims=True)
    rounded = np.rint(store.note_vectors / np.where(largest, largest, 1) * ROUNDED).astype(np.int8)
    known = [
        Situated(table, note.statement, note.situation, HALF.pack(*meaning), vector.tobytes())
        for note, meaning, vector in zip(store.notes, meanings, rounded, strict=True)
    ]
    near = store.prompt_vectors @ store.note_vectors.T
    alike = np.array([table.embed(text, 60) for text, _ in store.prompts]) @ np.array(meanings).T
    found = []
    for (text, memory), vector, by_task, by_meaning in zip(
        store.prompts, store.prompt_vectors, near, alike, strict=True
    ):
        compared = list(dict.fromkeys([*np.argsort(-by_task)[:NEAREST], *np.argsort(-by_meaning)[:BY_MEANING]]))
        rows = FoldedMatcher(text, tasks, vector.tolist()).features([known[at] for at in compared])
        found.append((np.array(rows), np.array([at == memory for at in compared])))
    return found


def fitted(shown: Sequence[tuple[Any, Any]]) -> Any:
    """Trees that were shown these prompts."""
    from sklearn.ensemble import GradientBoostingClassifier

    rows, labels = (np.concatenate([one[part] for one in shown]) for part in (0, 1))
    return GradientBoostingClassifier(**TREES).fit(rows, labels)


class Judgement:
    """What became of the prompts of a set."""

    def __init__(self) -> None:
        self.right: list[tuple[int, float]] = []
        self.best_unrelated: list[float] = []

    def add(self, scores: "np.ndarray[Any, Any]", memory: int | None) -> None:
        """The scores of all memories for one prompt."""
        if memory is None:
            self.best_unrelated.append(float(scores.max()))
        else:
            place = int((scores > scores[memory]).sum()) if scores[memory] > 0 else len(scores)
            self.right.append((place, float(scores[memory])))

    def told(self, floor: float) -> str:
        """The figures at a floor."""
        parts = []
        if self.right:
            first = np.mean([place < 3 for place, _ in self.right])
            shown = np.mean([place < 3 and score >= floor for place, score in self.right])
            parts.append(f"{len(self.right)} related: in first 3 {first:.2f}, and shown {shown:.2f}")
        if self.best_unrelated:
            silent = np.mean([best < floor for best in self.best_unrelated])
            parts.append(f"{len(self.best_unrelated)} unrelated: silent {silent:.2f}")
        return "; ".join(parts)


def main() -> None:
    """Train, or only check or measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folds", type=Path, nargs="?")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--measure", type=Path)
    parser.add_argument("--engine", action="store_true")
    given = parser.parse_args()
    if given.measure:
        one = read_measured(given.measure)
        print(one.name, _engine(one) if given.engine else _shipped(one))
        return
    if given.folds is None:
        parser.error("FOLDS.npz or --measure is needed")
    tasks = TaskTable()
    by_writer: dict[str, list[tuple[FoldStore, list[tuple[Any, Any]]]]] = {}
    for store in stores(read_data()[0], unit_folds(given.folds)):
        by_writer.setdefault(store.writer, []).append((store, rows_of(store, tasks)))
    floor = _cross_checked(by_writer)
    if not given.check:
        _write(fitted([one for shown in by_writer.values() for _, rows in shown for one in rows]), floor)


def _cross_checked(by_writer: dict[str, list[tuple[FoldStore, list[tuple[Any, Any]]]]]) -> float:
    """Judge each writer by trees that never saw their prompts; returns the floor that is silent often enough."""
    judged = {}
    for group in range(GROUPS):
        left_out = [name for name in by_writer if crc32(name.partition("_")[0].encode()) % GROUPS == group]
        trees = fitted(
            [one for name, more in by_writer.items() if name not in left_out for _, rows in more for one in rows]
        )
        for name in left_out:
            judged[name] = _judged(trees, by_writer[name])
    floor = float(np.quantile([best for one in judged.values() for best in one.best_unrelated], WANTED_SILENCE))
    for name, judgement in judged.items():
        print(f"{name:<20} {judgement.told(floor)}")
    everything = Judgement()
    for judgement in judged.values():
        everything.right += judgement.right
        everything.best_unrelated += judgement.best_unrelated
    print(f"{'together':<20} {everything.told(floor)}\nfloor {floor:.3f}")
    return floor


def _judged(trees: Any, shown: list[tuple[FoldStore, list[tuple[Any, Any]]]]) -> "Judgement":
    judgement = Judgement()
    for store, rows in shown:
        for (row, wanted), (_, memory) in zip(rows, store.prompts, strict=True):
            # A memory that is not among those compared is found nowhere.
            scores = np.append(trees.predict_proba(row)[:, 1], 0.0)
            place = int(np.flatnonzero(wanted)[0]) if wanted.any() else len(scores) - 1
            judgement.add(scores, None if memory is None else place)
    return judgement


def _write(trees: Any, floor: float) -> None:
    prior = trees.init_.class_prior_[1]
    model = {
        "floor": round(floor, 3),
        "bias": round(float(np.log(prior / (1 - prior))), 4),
        "trees": [_node(tree[0].tree_, 0, trees.learning_rate) for tree in trees.estimators_],
    }
    (MODELS / "situations.json").write_text(json.dumps(model, separators=(",", ":")) + "\n", "utf-8")


def _node(tree: Any, at: int, rate: float) -> Any:
    if tree.children_left[at] < 0:
        return round(float(tree.value[at][0][0]) * rate, 4)
    below, above = (_node(tree, side[at], rate) for side in (tree.children_left, tree.children_right))
    return [int(tree.feature[at]), round(float(tree.threshold[at]), 5), below, above]


def _shipped(one: MeasuredSet) -> str:
    """The hook itself on a store with these memories: candidates, trees and floor."""
    from engram.hooks.memory_index import MemoryIndex
    from engram.hooks.prompt import ranked_memories
    from engram.store.files.home import open_home

    judgement = Judgement()
    with tempfile.TemporaryDirectory() as folder:
        ids = _stored(one, Path(folder))
        index = MemoryIndex(open_home(Path(folder, "home"), Path(folder, "cache")).index)
        index.tasks(all_of_them=True)
        for prompt, memory in one.prompts:
            scores = np.zeros(len(ids))
            for chance, found in ranked_memories(index, prompt, ("global",)):
                scores[ids.index(found.id)] = chance
            judgement.add(scores, memory)
        index.close()
    return judgement.told(situations.floor())


def _stored(one: MeasuredSet, folder: Path) -> list[str]:
    from engram import Engram
    from engram.model.errors import SecretRefused

    ids = []
    with Engram.open(folder / "home", cache=folder / "cache") as mem:
        for place, note in enumerate(one.notes):
            try:
                ids.append(mem.add(note.statement, situation=note.situation, scope="global").id)
            except SecretRefused as refused:
                # What is not stored cannot be found, which counts.
                print(f"memory {place} was refused: {refused}")
                ids.append("")
    return ids


def _engine(one: MeasuredSet) -> str:
    """`mem.recall`, with its own cutoff, and `mem.inject`, for comparison."""
    from engram import Engram

    recalled, injected = Judgement(), Judgement()
    with tempfile.TemporaryDirectory() as folder:
        ids = _stored(one, Path(folder))
        with Engram.open(Path(folder, "home"), cache=Path(folder, "cache")) as mem:
            for prompt, memory in one.prompts:
                recalled.add(_places(ids, [hit.id for hit in mem.recall(prompt, scope="global").hits]), memory)
                given = mem.inject(prompt, scope="global")
                injected.add(_places(ids, [item.memory.id for item in (*given.directives, *given.consider)]), memory)
    return f"recall: {recalled.told(0.5)}\n  inject: {injected.told(0.5)}"


def _places(ids: list[str], found: list[str]) -> "np.ndarray[Any, Any]":
    scores = np.zeros(len(ids))
    for place, id_ in enumerate(found):
        scores[ids.index(id_)] = 2 - place / 1000
    return scores


if __name__ == "__main__":
    main()
