"""Make the model that tells whether a newer statement replaced an older one as the answer to a question: src/engram/recall/succession.npz.

    pip install lightgbm scikit-learn
    python training/train_succession.py             # writes it; a quarter of an hour
    python training/train_succession.py --check     # figures on slots of writers it never saw

A store is filled with statements of all slots of a writer (training/hearing/slots/), in an order of time: values that change, that are told
again or stay, look-alikes, and in some rounds the same told of another subject. Each question is searched for as recall does, and the
hits about it are compared with newer ones. The newer one replaced the older one if both tell the slot's value and the values differ.

The pair model, of which it reads the probabilities, was trained on the same slots, so that the figures on slots are too good by what that
knows of them; benchmarks/hearing/years has statements that neither has seen.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from hearing_slots import FOLDER, NAMES, SPEAKERS, Slot, filled, read_slots, renamed, subject
from train_relevance import tree_arrays

from engram import Engram
from engram.model.errors import Refused, SecretRefused
from engram.recall.cutoff import ABOUT_FLOOR, MIN_SHARE_OF_BEST
from engram.recall.freshness import (
    MAX_COMPARED_HITS,
    MIN_REPLACED,
    SUCCESSION_FEATURES,
    SUCCESSION_FILE,
    Claim,
    succession_features,
)
from engram.recall.query import SearchQuery
from engram.recall.search import Searcher
from engram.store.protocol import Filters

PLAIN, WITH_TWINS = (0, 1, 2), (11, 12)
"""The seeds of the rounds without and with statements about another subject."""
FOLDS, READ = 7, 30
RETOLD, BESIDE = 0.5, 0.3
"""The weight of a pair that repeats the same value, and of one whose older statement does not answer the question."""
RISING = ("update", "relevance_new", "relevance_ratio", "said_new", "covered_new")
FALLING = ("different", "unsaid", "unsaid_most", "names_unsaid", "lost", "lost_most")
"""Features that can only count for a replacement, or against it."""


@dataclass(frozen=True)
class Told:
    """A hit: its time, its slot, what it states about the slot (`value 0`, `value 1`, `alike`, `many`, `twin`), and its rank."""

    order: int
    slot: int
    tells: str
    claim: Claim

    @property
    def has_value(self) -> bool:
        return self.tells.startswith("value")


@dataclass(frozen=True)
class Found:
    """The search results for a question about a slot, or about something nearby."""

    writer: str
    slot: int
    many: bool
    direct: bool
    question: str
    hits: tuple[Told, ...]

    @property
    def best(self) -> float:
        return max((hit.claim.relevance for hit in self.hits), default=0.0)

    def pairs(self) -> list[tuple[Told, Told]]:
        """Hits about the question, each with the newer ones next to it, as `engram.recall.freshness` compares them."""
        near, least = self.hits[:MAX_COMPARED_HITS], max(ABOUT_FLOOR, MIN_SHARE_OF_BEST * self.best)
        return [(old, new) for old in near if old.claim.relevance >= least for new in near if old.order < new.order]

    def label(self, old: Told, new: Told) -> tuple[bool, float]:
        """Whether the newer one replaced the older one, and the weight of the pair.

        Nothing for a change that was not asked about.
        """
        asked = self.direct and old.slot == self.slot
        changed = old.tells != new.tells
        if old.slot == new.slot and old.has_value and new.has_value:
            return changed, (1.0 if changed else RETOLD) if asked else 0.0
        return False, 1.0 if old.slot == self.slot and old.has_value else BESIDE


# -- stores


def statements(slot: Slot, chance: random.Random) -> list[tuple[str, str]]:
    """The statements about a slot, in order: the content of each, and its text."""
    lines, values = slot.lines, chance.sample(slot.values, min(len(slot.values), 4))
    old = third = values[-1]
    told: list[tuple[str, str]] = []
    if slot.many:
        told += [("many", filled(chance.choice(lines["holds"]), value, third, third)) for value in values[:2]]
    else:
        for number, value in enumerate(values[: chance.choices((1, 2, 3), (0.15, 0.6, 0.25))[0]]):
            holds = not lines["changes"] or chance.random() < (0.25 if number else 0.8)
            line = chance.choice(lines["holds" if holds else "changes"])
            told.append((f"value {number}", filled(line, value, old, third)))
            if chance.random() < 0.12:
                told.append((f"value {number}", filled(chance.choice(lines["holds"]), value, old, third)))
            old = value
    for line in chance.sample(lines["lookalikes"], min(2, len(lines["lookalikes"]))):
        value, place = chance.choice(values), chance.randint(0, len(told))
        told.insert(place, ("alike", filled(line, value, third, chance.choice(values))))
    return told


def twins(slot: Slot, about: str, name: str, names: Sequence[str], chance: random.Random) -> Iterator[str]:
    """Some statements of a slot, applied to another subject."""
    others = [other for other in names if other not in ("", *SPEAKERS, name, about)]
    far = not others or chance.random() >= 0.6
    other = chance.choice([each for each in NAMES if each != name] if far else others)
    for _ in range(chance.choice((1, 2))):
        values = chance.sample(slot.values, 3)
        changes = slot.lines["changes"] and chance.random() < 0.5
        yield renamed(filled(chance.choice(slot.lines["changes" if changes else "holds"]), *values), about, other)


def searched(path: Path, seed: int) -> Iterator[Found]:
    """Questions about the slots of a writer, searched for in a store with their values."""
    chance = random.Random(f"{path.stem} {seed}")
    slots = read_slots(path)
    subjects, known = [subject(slot) for slot in slots], chance.sample(NAMES, 5)
    named = [about not in ("", *SPEAKERS) for about in subjects]
    names = [
        chance.choice(known) if is_named and chance.random() < 0.6 else about
        for is_named, about in zip(named, subjects, strict=True)
    ]
    told: list[tuple[float, int, str, str]] = []
    for number, slot in enumerate(slots):
        rows = statements(slot, chance)
        times = sorted(chance.random() for _ in rows)
        about, name = subjects[number], names[number]
        told += [(time, number, tells, _of(text, about, name)) for time, (tells, text) in zip(times, rows, strict=True)]
        if seed in WITH_TWINS and named[number] and chance.random() < 0.6:
            told += [(chance.random(), number, "twin", text) for text in twins(slot, about, name, names, chance)]
    with Engram.open(ephemeral=True) as mem:
        for order, (_, number, tells, text) in enumerate(sorted(told)):
            with suppress(Refused, SecretRefused):
                mem.add(text, metadata={"key": f"{order}|{number}|{tells}"})
        searcher = Searcher(mem.store, lambda: datetime.now(UTC))
        for number, slot in enumerate(slots):
            for section, count in (("questions", 3), ("nearby", 1)):
                lines = slot.lines[section]
                for line in chance.sample(lines, min(count, len(lines))):
                    question = _of(line, subjects[number], names[number])
                    hits = searcher.search(SearchQuery(question, READ, filters=Filters(kinds=("memory",))))
                    read = tuple(map(_told, hits))
                    yield Found(path.stem, number, slot.many, section == "questions", question, read)


def _of(text: str, about: str, name: str) -> str:
    return text if name == about else renamed(text, about, name)


def _told(hit: Any) -> Told:
    order, number, tells = hit.metadata["key"].split("|")
    return Told(int(order), int(number), tells, Claim(hit.text, hit.relevance))


# -- the model


@dataclass(frozen=True)
class Rows:
    """Every pair of every question: its features, whether it is a replacement, its weight, and the index of the question."""

    succession_features: Any
    labels: Any
    weights: Any
    questions: Any


def rows_of(every: Sequence[Found]) -> Rows:
    """The pairs of some questions."""
    blocks, labels, places = [], [], []
    for place, found in enumerate(every):
        if pairs := found.pairs():
            blocks.append(
                succession_features(found.question, [(old.claim, new.claim) for old, new in pairs], found.best)
            )
            labels += [found.label(*pair) for pair in pairs]
            places += [place] * len(pairs)
    answers, weights = zip(*labels, strict=True)
    return Rows(np.concatenate(blocks), np.array(answers), np.array(weights), np.array(places))


def fitted(rows: Rows, chosen: Any) -> Any:
    """Boosted trees."""
    import lightgbm

    made = lightgbm.LGBMClassifier(
        n_estimators=150, num_leaves=8, max_depth=4, learning_rate=0.06, min_child_samples=60, subsample=0.8,
        subsample_freq=1, colsample_bytree=0.4, random_state=0, verbose=-1, n_jobs=1,
        monotone_constraints=[(name in RISING) - (name in FALLING) for name in SUCCESSION_FEATURES],
    )  # fmt: skip
    chosen = chosen & (rows.weights > 0)
    return made.fit(rows.features[chosen], rows.labels[chosen], sample_weight=rows.weights[chosen])


def check(every: Sequence[Found], rows: Rows) -> None:
    """Print the first hits with models trained without the writer, as the search ranks them and with current values first."""
    from sklearn.metrics import roc_auc_score

    writers = sorted({found.writer for found in every})
    folds = np.array([writers.index(every[place].writer) % FOLDS for place in rows.questions])
    likely = np.zeros(len(folds))
    for fold in range(FOLDS):
        own = folds == fold
        likely[own] = fitted(rows, ~own).predict_proba(rows.features[own])[:, 1]
    counted = rows.weights > 0
    area = roc_auc_score(rows.labels[counted], likely[counted], sample_weight=rows.weights[counted])
    print(f"{counted.sum()} pairs, {rows.labels[counted].sum()} replacements, area under the curve {area:.3f}")
    counts: Counter[str] = Counter()
    for place, found in enumerate(every):
        values = {hit.tells for hit in found.hits if hit.slot == found.slot and hit.has_value}
        if not found.direct or not values or found.best < ABOUT_FLOOR:
            continue
        kind = "changed" if len(values) > 1 else "unchanged"
        counts[kind] += 1
        steps = dict(zip(found.pairs(), likely[rows.questions == place].tolist(), strict=True))
        for how, least in (("search", 2.0), ("current first", MIN_REPLACED)):
            top = first(found, steps, least)
            answers = top.slot == found.slot and top.has_value
            counts[f"{kind}, {how}, right"] += answers and top.tells == max(values)
            counts[f"{kind}, {how}, outdated"] += answers and top.tells != max(values)
    for kind in ("changed", "unchanged"):
        for name in sorted(name for name in counts if name.startswith(f"{kind},")):
            print(f"  {name} first: {counts[name] / counts[kind]:.3f} of {counts[kind]}")


def first(found: Found, steps: dict[tuple[Told, Told], float], least: float) -> Told:
    """The first hit after replacements are moved before the hit they replaced."""
    top = (
        found.hits[0]
        if found.hits[0].claim.relevance >= ABOUT_FLOOR
        else max(found.hits, key=lambda hit: hit.claim.relevance)
    )
    while later := [new for (old, new), likely in steps.items() if old == top and likely >= least]:
        top = max(later, key=lambda hit: hit.order)
    return top


def main() -> None:
    """Train or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="measure, write nothing")
    options = parser.parse_args()
    every = [
        found
        for seed in (*PLAIN, *WITH_TWINS)
        for path in sorted(FOLDER.glob("*.txt"))
        for found in searched(path, seed)
    ]
    rows = rows_of(every)
    if options.check:
        check(every, rows)
        return
    made = fitted(rows, np.ones(len(rows.labels), dtype=bool))
    np.savez_compressed(SUCCESSION_FILE, **tree_arrays(made.booster_.dump_model()["tree_info"]))
    print(f"{SUCCESSION_FILE.name}: {len(rows.labels)} pairs, {SUCCESSION_FILE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
