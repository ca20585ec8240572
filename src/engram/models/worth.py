"""Judges every sentence of a conversation: is it worth keeping, what kind of thing is it, whose, for how long, how is it meant?

Two steps, both trained by training/train_worth.py on the talk of many writers and judged on writers it has never seen. A linear model
over hashed n-grams and the bundled vectors scores each sentence for worth and mood; a small ensemble of trees then weighs these scores
with those of the sentences around it: a figure in a story under way, a quotation or an arithmetic exercise is no fact.
Deterministic, and bounded in what it reads of a sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram.embedding.products import dot
from engram.model.lazy import dataclass
from engram.models.arrays import read_arrays
from engram.models.talk import USER, SpokenSentence, read_sentences, sparse

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from engram.embedding.static import StaticEmbedder
    from engram.models.trees import Trees

    Floats = npt.NDArray[np.float32]

__all__ = [
    "CATEGORIES",
    "DURATIONS",
    "KEEP_ALONE",
    "MAYBE_ALONE",
    "MOODS",
    "OWNERS",
    "PROPOSE_PROBABILITY",
    "REVIEW_PROBABILITY",
    "Judgement",
    "Turn",
    "judge",
]

Turn = tuple[str, Sequence[str]]
"""The role ("user" or "assistant") and the sentences."""

CATEGORIES = (
    *("fact", "preference", "correction", "entity", "decision", "relationship", "principle", "commitment", "moment"),
    *("skill", "constraint", "convention", "procedure", "forget", "end"),
)
OWNERS = ("user", "person", "project", "assistant", "world")
DURATIONS = ("lasting", "temporary", "event")
MOODS = ("asserted", "question", "request", "hypothetical", "quoted", "sarcastic")

FILE = "worth.npz"
WHOLE, ALONE = "whole", "alone"
"""The two ensembles: for a conversation, and for an exchange alone."""
SHARE = 0.25
"""What the ensemble of exchanges counts in a conversation, chosen leave-one-writer-out."""
PROPOSE_PROBABILITY = 0.81
"""From this probability on, a sentence is proposed as a memory: of conversations by writers left out, recall .77 and precision .94, and two of a hundred
exchanges with nothing to keep leave something."""
REVIEW_PROBABILITY = 0.35
"""From this probability on, it becomes a candidate that waits for review."""
KEEP_ALONE, MAYBE_ALONE = 0.80, 0.55
"""The same for a sentence that is all that was said: nothing around it tells what it is about (recall .64, precision .94)."""

_OWN = 2.0
"""How much the sentence's own vector counts next to those around it."""
_ASKS = 1 + MOODS.index("question")
_FORGET = CATEGORIES.index("forget")
_RECENT = 3
_MISSING = -15.0
"""The score of a sentence that is not there: below any other."""
_EXCHANGE = 2
"""A user's turn and its reply: with no more than that given, there is nothing earlier to learn from, and other trees decide."""
_MOST = 30.0


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the model says of one sentence."""

    worth: float
    """The calibrated probability that it is worth keeping."""
    category: str
    """One of `CATEGORIES`; "forget" asks to remove something, "end" says that something no longer holds."""
    owner: str
    """Whose fact it is, one of `OWNERS`; "assistant" is its own claim."""
    duration: str
    """One of `DURATIONS`."""
    mood: str
    """One of `MOODS`."""
    critical: float
    """The probability that forgetting it could do harm."""
    forgets: float
    """The probability that it asks to forget something that is stored."""


def judge(turns: Sequence[Turn]) -> list[list[Judgement]]:
    """A list for each turn, with a judgement of each of its sentences. The more of the conversation is given, the better."""
    said = read_sentences(turns)
    if not any(said):
        return [[] for _ in turns]
    model, around = _model(), Surroundings(said)
    first, labels = model.linear(said, around.dense())
    logits = model.trees(ALONE if len(turns) <= _EXCHANGE and turns[0][0] == USER else WHOLE, around.context(first))
    found = iter([model.judgement(*each) for each in zip(logits, first, labels, strict=True)])
    return [[next(found) for _ in turn] for turn in said]


def unit(vectors: Floats) -> Floats:
    """The vectors brought to length one."""
    import numpy as np

    lengths: Floats = np.linalg.norm(vectors, axis=-1, keepdims=True)
    made: Floats = (vectors / np.maximum(lengths, 1e-6)).astype(np.float32)
    return made


class Surroundings:
    """The sentences of a conversation with the vectors of each and of what is around it."""

    def __init__(self, turns: Sequence[Sequence[SpokenSentence]]) -> None:
        import numpy as np

        flat = [said for turn in turns for said in turn]
        self._turns, self._vectors = turns, _embedder().sum_texts([said.text for said in flat])
        self._units = unit(self._vectors)
        self._starts = np.cumsum([0, *(len(turn) for turn in turns)]).tolist()
        users = np.array([said.role == USER for said in flat])
        self._earlier = [np.flatnonzero(users[:start]) for start in self._starts[:-1]]
        self._by_turn = [unit(self._of(self._vectors, at).sum(axis=0)) for at in range(len(turns))]
        self._before = [unit(self._vectors[each].sum(axis=0)) for each in self._earlier]

    def dense(self) -> Floats:
        """For each sentence its vector, and those of its neighbours, the turn before, the reply and what the user said before."""
        import numpy as np

        none = np.zeros(self._vectors.shape[1], dtype=np.float32)
        rows = []
        for at, turn in enumerate(self._turns):
            own = self._of(self._units, at)
            around = [self._turn_vector(at - 1, none), self._turn_vector(at + 1, none), self._before[at]]
            for place in range(len(turn)):
                before = own[place - 1] if place else none
                after = own[place + 1] if place + 1 < len(turn) else none
                rows.append(np.concatenate([own[place] * _OWN, before, after, *around]))
        return np.asarray(rows, dtype=np.float32)

    def context(self, scores: Floats) -> Floats:
        """What the trees see of each sentence: its scores of the first step, those around it, its place and its shape."""
        import numpy as np

        rows: list[Any] = []
        for at, turn in enumerate(self._turns):
            for said in turn:
                rows.append(
                    np.concatenate(
                        [self._scores(scores, at, said), self._place(scores, at, said), self._likeness(at, said)]
                    )
                )
        return np.asarray(rows, dtype=np.float32)

    def _of(self, values: Floats, at: int) -> Floats:
        return values[self._starts[at] : self._starts[at + 1]]

    def _turn_vector(self, at: int, none: Floats) -> Floats:
        return self._by_turn[at] if 0 <= at < len(self._turns) else none

    def _scores(self, scores: Floats, at: int, said: SpokenSentence) -> Floats:
        """Its own scores, its neighbours', those of the rest of its turn and of what the user said before."""
        import numpy as np

        none = np.full(scores.shape[1], _MISSING, dtype=np.float32)
        turn, place = self._of(scores, at), said.place
        others, earlier = np.delete(turn, place, axis=0), scores[self._earlier[at]]
        return np.concatenate(
            [
                turn[place],
                turn[place - 1] if place else none,
                turn[place + 1] if place + 1 < len(turn) else none,
                others.mean(axis=0) if len(others) else none,
                others.max(axis=0) if len(others) else none,
                earlier.mean(axis=0) if len(earlier) else none,
                earlier[-_RECENT:].mean(axis=0) if len(earlier) else none,
            ]
        )

    def _place(self, scores: Floats, at: int, said: SpokenSentence) -> list[float]:
        """Where it stands, whether a question is before or after it, and its shape."""
        import numpy as np

        turn, words = self._turns[at], said.text.split()
        before, after = self._of(scores, at - 1) if at else scores[:0], scores[:0]
        if at + 1 < len(self._turns):
            after = self._of(scores, at + 1)
        length = float(np.linalg.norm(self._vectors[self._starts[at] + said.place]))
        return [
            float(before[-1, _ASKS]) if len(before) else 0.0,
            float(after[0, _ASKS]) if len(after) else 0.0,
            *(len(before), len(turn), said.place, len(turn) - said.place, at, len(self._earlier[at])),
            *(len(said.text), len(words), said.text.count(",")),
            sum(word[0].isupper() for word in words[1:]),
            sum(sign.isdigit() for sign in said.text),
            float("?" in said.text),
            float('"' in said.text or "“" in said.text),
            float(said.role == USER),
            *(length, length / max(1, len(words))),
        ]

    def _likeness(self, at: int, said: SpokenSentence) -> list[float]:
        """How like it is to the sentence before, the turn before, the reply, and what the user said before."""
        own = self._of(self._units, at)
        mine, none = own[said.place], own[0] * 0
        others = [
            own[said.place - 1] if said.place else none,
            self._turn_vector(at - 1, none),
            self._turn_vector(at + 1, none),
        ]
        return [float(dot(mine, other)) for other in (*others, self._before[at])]


class FeatureTable:
    """Linear heads over the features the model was shown often enough, and over the sentence's vector; others count nothing."""

    def __init__(self, name: str, arrays: dict[str, Any]) -> None:
        import numpy as np

        steps, self._weights, self._scale, self._vector, self._bias = (
            arrays[f"{name}_{part}"] for part in ("steps", "weights", "scale", "vector", "bias")
        )
        self._buckets = np.cumsum(steps, dtype=np.int32)
        self._vector = self._vector.astype(np.float32)

    def scores(self, buckets: Any, weights: Floats, starts: Any, dense: Floats) -> Floats:
        """A row for each sentence, given where its features start among all, and its vectors; a column for each head."""
        import numpy as np

        places = np.searchsorted(self._buckets[:-1], buckets)
        weights = np.where(self._buckets[places] == buckets, weights, np.float32(0))
        sums = np.add.reduceat(self._weights[places] * weights[:, None], starts, axis=0)
        made: Floats = sums * self._scale + dot(dense, self._vector) + self._bias
        return made


class Worth:
    """The trained model: two tables, and trees."""

    def __init__(self, arrays: dict[str, Any]) -> None:
        self._arrays = arrays
        self._first, self._labels = FeatureTable("first", arrays), FeatureTable("labels", arrays)
        coarse, fine = arrays["clusters"]
        self._clusters = (coarse.tobytes(), fine.tobytes())
        self._trees = {name: _ensemble(name, arrays) for name in (ALONE, WHOLE)}

    def linear(self, turns: Sequence[Sequence[SpokenSentence]], dense: Floats) -> tuple[Floats, Floats]:
        """The scores of each sentence: for worth and the moods, and for the other labels."""
        import numpy as np

        by_sentence = [blocks for _, blocks in sparse(turns, self._clusters)]
        blocks = [block for each in by_sentence for block in each]
        sizes = [len(found) for _, found in blocks]
        buckets = np.fromiter((bucket for _, found in blocks for bucket in found), dtype=np.int32, count=sum(sizes))
        weights = np.repeat(np.array([weight for weight, _ in blocks], dtype=np.float32), sizes)
        starts = np.cumsum([0, *(sum(len(found) for _, found in each) for each in by_sentence[:-1])])
        return self._first.scores(buckets, weights, starts, dense), self._labels.scores(buckets, weights, starts, dense)

    def trees(self, name: str, rows: Floats) -> list[float]:
        """The log odds of being worth keeping of each row: by one ensemble alone, or by that of conversations with a share of it."""
        sums = self._trees[name].sums(rows)
        if name == WHOLE:
            sums = sums + SHARE * self._trees[ALONE].sums(rows)
        slope, shift = self._arrays[f"{name}_calibration"].tolist()
        logits: list[float] = (slope * sums + shift).tolist()
        return logits

    @staticmethod
    def judgement(logit: float, first: Floats, labels: Floats) -> Judgement:
        """The labels with the highest scores, and probabilities."""
        category, rest = labels[: len(CATEGORIES)], labels[len(CATEGORIES) :]
        owner, rest = rest[: len(OWNERS)], rest[len(OWNERS) :]
        return Judgement(
            worth=_probability(logit),
            category=CATEGORIES[int(category.argmax())],
            owner=OWNERS[int(owner.argmax())],
            duration=DURATIONS[int(rest[: len(DURATIONS)].argmax())],
            mood=MOODS[int(first[1:].argmax())],
            critical=_probability(float(rest[-1])),
            forgets=_probability(float(category[_FORGET])),
        )


def _ensemble(name: str, arrays: dict[str, Any]) -> Trees:
    from engram.models.trees import Trees

    feature, limit, below, above, value = (
        arrays[f"{name}_{part}"] for part in ("feature", "limit", "below", "above", "value")
    )
    return Trees(feature, limit, below, above, value.astype("float64"))


def _probability(logit: float) -> float:
    return 1 / (1 + exp(-max(-_MOST, min(_MOST, logit))))


@lru_cache(maxsize=1)
def _embedder() -> StaticEmbedder:
    from engram.embedding.static import StaticEmbedder

    return StaticEmbedder()


@lru_cache(maxsize=1)
def _model() -> Worth:
    return Worth(read_arrays(Path(__file__).with_name(FILE)))
