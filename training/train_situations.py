"""Trains `engram.models.situations`: is a memory about the task that a prompt describes?

    python training/train_situations.py            trains, writes topics.json and situations.json, reports writer by writer
    python training/train_situations.py --check    only reports, each writer judged by trees that never saw them
    python training/train_situations.py --measure FILE [--engine]    the shipped model, or the whole engine, on one set

Needs scikit-learn. The data is in training/situations/: `*.txt` has lines of `situation | statement | prompt`, `unrelated.txt` prompts that nothing is
about, `*.json` and `*.jsonl` sets of {"memories": [{"situation", "statement"}], "prompts": [{"text", "memory": index or null}]}. Every prompt is
compared with all memories of its set, as in a store.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from engram.embedding.plain import HALF, PlainTable
from engram.models import situations, topics
from engram.models.situations import FEATURES, Situated, SituationMatcher, with_leads
from engram.text.tokens import tokens

DATA = Path(__file__).with_name("situations")
MODELS = Path(situations.__file__).parent
TREES = {
    "n_estimators": 150,
    "max_depth": 2,
    "learning_rate": 0.1,
    "min_samples_leaf": 15,
    "subsample": 0.7,
    "random_state": 15,
}
SMALL = (1, 6, 20)
"""Sizes of stores that each prompt is also shown, picked at random: what a lead means depends on the size."""
LITTLE = 0.35
"""The weight of a topic that says little by itself."""
WANTED_SILENCE = 0.95
"""Of unrelated prompts by writers the trees never saw: a hook that often adds what is beside the point is worse than a silent one."""
OF_TOPICS = frozenset({"data_and_ops", "everyday", "web_team"})
"""Sets whose words were at hand when topics.txt was written: to trees that saw them, topics would seem better than they are."""
Memories = list[tuple[str, str]]
Prompts = list[tuple[str, int | None]]


class SituationSet:
    """A store's memories, and prompts with the memory each is about."""

    def __init__(self, name: str, memories: Memories, prompts: Prompts) -> None:
        self.name, self.memories, self.prompts = name, memories, prompts

    def rows(self, table: PlainTable) -> list["np.ndarray[Any, Any]"]:
        """(memories x features) for each prompt."""
        vectors = [HALF.pack(*table.embed(f"{said}\n{when}" if when else said)) for when, said in self.memories]
        known = [Situated(said, when, vector) for (when, said), vector in zip(self.memories, vectors, strict=True)]
        return [np.array(SituationMatcher(prompt, table).features(known)) for prompt, _ in self.prompts]


def sets() -> Iterator[SituationSet]:
    """Every set of the training data."""
    unrelated = _lines(DATA / "unrelated.txt")
    files = [file for file in sorted(DATA.glob("*.txt")) if file.stem not in ("unrelated", "topics")]
    triples = {file.stem: [[part.strip() for part in line.split("|")] for line in _lines(file)] for file in files}
    everything = [(when, said) for rows in triples.values() for when, said, _ in rows]
    for place, (name, rows) in enumerate(triples.items()):
        prompts: Prompts = [(prompt, everything.index((when, said))) for when, said, prompt in rows]
        yield SituationSet(name, everything, [*prompts, *((line, None) for line in unrelated[place :: len(files)])])
    for file in sorted([*DATA.glob("*.json"), *DATA.glob("*.jsonl")]):
        yield from read_sets(file)


def read_sets(file: Path) -> Iterator[SituationSet]:
    """The sets of one file: one JSON object, or one per line."""
    text = file.read_text("utf-8")
    try:
        objects = [json.loads(text)]
    except ValueError:
        objects = [json.loads(line) for line in text.splitlines() if line.strip()]
    for number, one in enumerate(objects):
        memories = [(memory.get("situation") or "", memory["statement"]) for memory in one["memories"]]
        yield SituationSet(f"{file.stem}{number or ''}", memories, [(p["text"], p["memory"]) for p in one["prompts"]])


def _lines(file: Path) -> list[str]:
    return [line.strip() for line in file.read_text("utf-8").splitlines() if line.strip() and not line.startswith("#")]


def write_topics() -> None:
    """The stems of the topics' words, for `engram.models.topics`."""
    weights: list[float] = []
    found: dict[str, list[int]] = {}
    for line in _lines(DATA / "topics.txt"):
        name, _, words = line.partition(":")
        for word in words.split():
            terms = tokens(word.replace("_", " "))
            key = " ".join(terms) if "_" in word else terms[0]
            if len(weights) not in (listed := found.setdefault(key, [])):
                listed.append(len(weights))
        weights.append(LITTLE if name.startswith("~") else 1.0)
    content = json.dumps({"weights": weights, "words": dict(sorted(found.items()))}, separators=(",", ":"))
    (MODELS / "topics.json").write_text(content + "\n", "utf-8")
    topics.table.cache_clear()


def fitted(rows: Sequence["np.ndarray[Any, Any]"], wanted: Sequence["np.ndarray[Any, Any]"]) -> Any:
    """Trees that were shown these prompts."""
    from sklearn.ensemble import GradientBoostingClassifier

    random = np.random.default_rng(15)
    pairs = [part for row, one in zip(rows, wanted, strict=True) for part in ((row, one), *_smaller(row, one, random))]
    labels = np.concatenate([one for _, one in pairs])
    weights = np.where(labels, 12.0, 1.0)
    return GradientBoostingClassifier(**TREES).fit(
        np.concatenate([row for row, _ in pairs]), labels, sample_weight=weights
    )


def _smaller(row: Any, wanted: Any, random: Any) -> Iterator[tuple[Any, Any]]:
    """The same prompt in smaller stores, which have its memory where there is one."""
    for size in SMALL:
        kept = np.unique(np.concatenate([np.flatnonzero(wanted), random.choice(len(row), size, replace=False)]))
        yield np.array(with_leads(row[kept, :-2].tolist())), wanted[kept]


def labels_of(prompts: Prompts, size: int) -> list["np.ndarray[Any, Any]"]:
    """Which memory each prompt is about."""
    return [np.arange(size) == (-1 if memory is None else memory) for _, memory in prompts]


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
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--measure", type=Path)
    parser.add_argument("--engine", action="store_true")
    given = parser.parse_args()
    if given.measure:
        for one in read_sets(given.measure):
            print(one.name, _engine(one) if given.engine else _shipped(one))
        return
    write_topics()
    table, data = PlainTable(), [one for one in sets() if one.name not in OF_TOPICS]
    rows = [one.rows(table) for one in data]
    wanted = [labels_of(one.prompts, len(one.memories)) for one in data]
    floor = _cross_checked(data, rows, wanted)
    if not given.check:
        everything = fitted([row for each in rows for row in each], [row for each in wanted for row in each])
        _write(everything, floor)


def _cross_checked(data: list[SituationSet], rows: Any, wanted: Any) -> float:
    """Judge each writer by trees that never saw their prompts; returns the floor that is silent often enough."""
    judged = []
    for place, one in enumerate(data):
        others = [at for at in range(len(data)) if at != place]
        trees = fitted([row for at in others for row in rows[at]], [row for at in others for row in wanted[at]])
        judgement = Judgement()
        for row, (_, memory) in zip(rows[place], one.prompts, strict=True):
            judgement.add(trees.predict_proba(row)[:, 1], memory)
        judged.append(judgement)
    unrelated = [best for one in judged for best in one.best_unrelated]
    floor = float(np.quantile(unrelated, WANTED_SILENCE)) if unrelated else 0.5
    for one, judgement in zip(data, judged, strict=True):
        print(f"{one.name:<20} {judgement.told(floor)}")
    print(f"floor {floor:.3f}")
    return floor


def _write(trees: Any, floor: float) -> None:
    prior = trees.init_.class_prior_[1]
    model = {
        "features": FEATURES,
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


def _shipped(one: SituationSet) -> str:
    """The hook itself on a store with these memories: candidates, trees and floor."""
    from engram.hooks.memory_index import MemoryIndex
    from engram.hooks.prompt import ranked_memories
    from engram.store.files.home import open_home

    judgement = Judgement()
    with tempfile.TemporaryDirectory() as folder:
        ids = _stored(one, Path(folder))
        index = MemoryIndex(open_home(Path(folder, "home"), Path(folder, "cache")).index)
        for prompt, memory in one.prompts:
            scores = np.zeros(len(ids))
            for chance, found in ranked_memories(index, prompt, ("global",)):
                scores[ids.index(found.id)] = chance
            judgement.add(scores, memory)
        index.close()
    return judgement.told(situations.floor())


def _stored(one: SituationSet, folder: Path) -> list[str]:
    from engram import Engram

    with Engram.open(folder / "home", cache=folder / "cache") as mem:
        return [mem.add(said, situation=when, scope="global").id for when, said in one.memories]


def _engine(one: SituationSet) -> str:
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
