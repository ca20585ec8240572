"""Judges each sentence of a conversation by its words and context: whether it is worth keeping, its category, owner,
duration and mood.

It has two steps, both trained by training/train_worth.py on conversations of many writers and evaluated on held-out
writers. A linear model over hashed n-grams and the bundled vectors scores each sentence for worth and mood. A small
ensemble of trees then weighs these scores with those of the sentences around it: a figure in an unfinished story, a
quotation or an arithmetic exercise is not a fact. The result is deterministic, and only a bounded part of each sentence
is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from math import exp, log2
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from engram.embedding.vectors import dot
from engram.model.lazy import dataclass
from engram.models.weights import read_arrays
from engram.text.words import word_class

__all__ = [
    "BUCKETS",
    "CATEGORIES",
    "DURATIONS",
    "KEEP_ALONE",
    "MAYBE_ALONE",
    "MOODS",
    "OWNERS",
    "PROPOSE_PROBABILITY",
    "REVIEW_PROBABILITY",
    "USER",
    "Clusters",
    "Judgement",
    "SpokenSentence",
    "Turn",
    "judge",
    "read_sentences",
    "sparse",
]

BUCKETS = 1 << 22
"""Enough buckets that two features rarely share one; the model stores which of them occurred in training."""
USER = "user"
Clusters = tuple[bytes, bytes]
"""For each row of the bundled vocabulary the number of its cluster, in a coarse clustering and in a fine one."""

_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*|\d+(?:[.:,/]\d+)*|[^\w\s]|_+")
_CHARACTERS, _WORDS, _LETTERS = 1000, 80, 24
"""The part of a sentence that is read: a longer one was pasted, which its beginning already shows."""
_EARLIER = 240
"""The number of distinct words kept from before the turn."""
_GRAMS = (3, 4, 5)
_WEIGHTS = {"words": 3.0, "parts": 2.0, "around": 2.0, "classes": 2.0, "earlier": 1.0}
"""The weight of each block, chosen by leave-one-writer-out."""
_PLACE = 0.5
"""The weight of each position feature; their number is constant."""


@dataclass(frozen=True, slots=True)
class SpokenSentence:
    """A sentence as the model reads it: its position and its words, lower-cased, with `#` for a number."""

    turn: int
    place: int
    role: str
    text: str
    words: tuple[str, ...]

    @property
    def asks(self) -> bool:
        """Whether it ends as a question does."""
        return self.words[-1:] == ("?",)


def read_sentences(turns: Sequence[tuple[str, Sequence[str]]]) -> list[list[SpokenSentence]]:
    """The sentences of each turn, split into words."""
    return [
        [SpokenSentence(turn, place, role, text[:_CHARACTERS], _words(text)) for place, text in enumerate(sentences)]
        for turn, (role, sentences) in enumerate(turns)
    ]


def sparse(
    turns: Sequence[Sequence[SpokenSentence]], clusters: Clusters
) -> Iterator[tuple[SpokenSentence, list[tuple[float, list[int]]]]]:
    """Each sentence with its blocks: the weight of every feature in the block, and the buckets of the features.

    Each sentence is read in context: the sentences before and after it, the turn before (a short answer means nothing
    without its question), the reply, and earlier turns (for an unfinished story, example or letter). Features come in
    blocks; each block is scaled to the same length, so that a long sentence weighs no more than a short one.
    """
    earlier: dict[str, None] = {}
    for at, turn in enumerate(turns):
        around = [*_adjacent("B", turns, at - 1), *_adjacent("A", turns, at + 1)]
        for said in turn:
            blocks = {
                "words": _ngrams(said),
                "around": [*_beside(said, turn), *around],
                "classes": _classes(said, clusters),
                "earlier": list(earlier),
            }
            made = {name: [_bucket(feature) for feature in dict.fromkeys(found)] for name, found in blocks.items()}
            made["parts"] = _parts(said)
            weighed = [(_WEIGHTS[name] / len(found) ** 0.5, found) for name, found in made.items() if found]
            yield said, [*weighed, (_PLACE, [_bucket(feature) for feature in _place(said, turn, turns, at)])]
            earlier.update(dict.fromkeys(f"{said.role[:1]}:{word}" for word in said.words))
        if len(earlier) > _EARLIER:
            earlier = dict.fromkeys(list(earlier)[-_EARLIER:])


def _words(text: str) -> tuple[str, ...]:
    found = _WORD.findall(text[:_CHARACTERS].lower().replace("’", "'"))[:_WORDS]
    return tuple("#" if word[0].isdigit() else word[:_LETTERS] for word in found)


def _bucket(feature: str) -> int:
    return crc32(feature.encode("utf-8", "surrogatepass")) % BUCKETS


def _ngrams(said: SpokenSentence) -> list[str]:
    words = ("^", *said.words, "$")
    return [
        *(f"w:{word}" for word in said.words),
        *(f"2:{one} {two}" for one, two in pairwise(words)),
        *(f"3:{one} {two} {three}" for one, two, three in zip(words, words[1:], words[2:], strict=False)),
        *(f"-:{one} {three}" for one, three in zip(words, words[2:], strict=False)),
    ]


def _place(
    said: SpokenSentence, turn: Sequence[SpokenSentence], turns: Sequence[Sequence[SpokenSentence]], at: int
) -> list[str]:
    """The speaker of the sentence, its position and length, and whether it answers a question."""
    behind = len(turn) - 1 - said.place
    before = turns[at - 1] if at else ()
    answers = (said.place == 0 and before[-1].asks) if before else None
    return [
        f"role:{said.role}",
        *(f"n:{min(len(turn), 6)}", f"p:{min(said.place, 5)}", f"q:{min(behind, 5)}", f"t:{min(at, 3)}"),
        f"l:{int(2 * log2(1 + len(said.words)))}",
        f"answer:{answers}",
    ]


def _beside(said: SpokenSentence, turn: Sequence[SpokenSentence]) -> list[str]:
    """The words of the neighbouring sentences in its turn."""
    before, after = turn[said.place - 1 : said.place] if said.place else (), turn[said.place + 1 : said.place + 2]
    return [
        feature
        for name, others in (("b", before), ("a", after))
        for other in others
        if other.words
        for feature in (
            *(f"{name}:{word}" for word in other.words),
            f"{name}first:{other.words[0]}",
            f"{name}last:{other.words[-1]}",
        )
    ]


def _adjacent(name: str, turns: Sequence[Sequence[SpokenSentence]], at: int) -> list[str]:
    """The words of the turn before or of the reply."""
    if not 0 <= at < len(turns) or not any(said.words for said in turns[at]):
        return []
    words = [word for said in turns[at] for word in said.words][: 2 * _WORDS]
    return [f"{name}first:{words[0]}", f"{name}q:{turns[at][-1].asks}", *(f"{name}:{word}" for word in words)]


def _parts(said: SpokenSentence) -> list[int]:
    return list(dict.fromkeys(bucket for word in said.words for bucket in _parts_of(word)))


@lru_cache(maxsize=8192)
def _parts_of(word: str) -> tuple[int, ...]:
    """The buckets of the character n-grams of a word of more than three letters."""
    if len(word) <= _GRAMS[0]:
        return ()
    whole = f"^{word}$"
    return tuple(_bucket(f"~{whole[at : at + size]}") for size in _GRAMS for at in range(len(whole) - size + 1))


def _classes(said: SpokenSentence, clusters: Clusters) -> list[str]:
    """N-grams of the clusters of the words, with function words, signs and numbers unchanged."""
    rows = [_row(word) for word in said.words]
    coarse, fine = (
        ("^", *(word if row is None else f"c{level[row]}" for word, row in zip(said.words, rows, strict=True)), "$")
        for level in clusters
    )
    return [
        *(f"f1:{one}" for one in fine[1:-1]),
        *(f"f2:{one} {two}" for one, two in pairwise(fine)),
        *(f"c1:{one}" for one in coarse[1:-1]),
        *(f"c2:{one} {two}" for one, two in pairwise(coarse)),
        *(f"c3:{one} {two} {three}" for one, two, three in zip(coarse, coarse[1:], coarse[2:], strict=False)),
        *(f"c-:{one} {three}" for one, three in zip(coarse, coarse[2:], strict=False)),
    ]


@lru_cache(maxsize=8192)
def _row(word: str) -> int | None:
    """The row of a word's first piece in the bundled vocabulary; None for a word that is its own class."""
    from engram.embedding.word_pieces import word_rows

    if word in word_class("intent", "grammar") or not word[0].isalpha():
        return None
    rows = word_rows[word.replace("'", "")]
    return rows[0] if rows else None


if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from engram.embedding.static import StaticEmbedder
    from engram.models.trees import Trees

    Floats = npt.NDArray[np.float32]


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
"""The weight of the ensemble of exchanges in a conversation, chosen by leave-one-writer-out."""
PROPOSE_PROBABILITY = 0.81
"""The probability from which a sentence is proposed as a memory. On conversations by held-out writers recall is .77 and
precision .94, and two of a hundred exchanges with nothing to keep yield something.
"""
REVIEW_PROBABILITY = 0.35
"""The probability from which a sentence becomes a candidate that waits for review."""
KEEP_ALONE, MAYBE_ALONE = 0.80, 0.55
"""The same for a sentence without any context to judge it by (recall .64, precision .94)."""

_OWN = 2.0
"""The weight of the sentence's own vector relative to those around it."""
_ASKS = 1 + MOODS.index("question")
_FORGET = CATEGORIES.index("forget")
_RECENT = 3
_MISSING = -15.0
"""The score of a missing sentence: below any other."""
_EXCHANGE = 2
"""The number of turns in an exchange, a user's turn and its reply. With no more turns there is no earlier context, so
other trees decide.
"""
_MOST = 30.0


@dataclass(frozen=True, slots=True)
class Judgement:
    """The model's judgement of one sentence."""

    worth: float
    """The calibrated probability that it is worth keeping."""
    category: str
    """One of `CATEGORIES`; "forget" asks to remove something, "end" states that something is no longer true."""
    owner: str
    """The owner of the fact, one of `OWNERS`; "assistant" is the assistant's own claim."""
    duration: str
    """One of `DURATIONS`."""
    mood: str
    """One of `MOODS`."""
    critical: float
    """The probability that forgetting it could do harm."""
    forgets: float
    """The probability that it asks to forget something that is stored."""


def judge(turns: Sequence[Turn]) -> list[list[Judgement]]:
    """A list for each turn, with a judgement of each of its sentences. More context improves the result."""
    said = read_sentences(turns)
    if not any(said):
        return [[] for _ in turns]
    model, around = _model(), Surroundings(said)
    first, labels = model.linear(said, around.dense())
    logits = model.trees(ALONE if len(turns) <= _EXCHANGE and turns[0][0] == USER else WHOLE, around.context(first))
    found = iter([model.judgement(*each) for each in zip(logits, first, labels, strict=True)])
    return [[next(found) for _ in turn] for turn in said]


def unit(vectors: Floats) -> Floats:
    """Scale the vectors to length one."""
    import numpy as np

    lengths: Floats = np.linalg.norm(vectors, axis=-1, keepdims=True)
    made: Floats = (vectors / np.maximum(lengths, 1e-6)).astype(np.float32)
    return made


class Surroundings:
    """The sentences of a conversation with the vectors of each and of its context."""

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
        """For each sentence its vector, and those of its neighbours, the turn before, the reply and the user's earlier
        turns.
        """
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
        """The input of the trees for each sentence: its scores from the first step, those around it, its position and
        its shape.
        """
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
        """Its own scores, its neighbours', those of the rest of its turn and of the user's earlier turns."""
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
        """Its position, whether a question is before or after it, and its shape."""
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
        """Its similarity to the sentence before, the turn before, the reply, and the user's earlier turns."""
        own = self._of(self._units, at)
        mine, none = own[said.place], own[0] * 0
        others = [
            own[said.place - 1] if said.place else none,
            self._turn_vector(at - 1, none),
            self._turn_vector(at + 1, none),
        ]
        return [float(dot(mine, other)) for other in (*others, self._before[at])]


class FeatureTable:
    """Linear heads over the features that were frequent enough in training, and over the sentence's vector; others are
    ignored.
    """

    def __init__(self, name: str, arrays: dict[str, Any]) -> None:
        import numpy as np

        steps, self._weights, self._scale, self._vector, self._bias = (
            arrays[f"{name}_{part}"] for part in ("steps", "weights", "scale", "vector", "bias")
        )
        self._buckets = np.cumsum(steps, dtype=np.int32)
        self._vector = self._vector.astype(np.float32)

    def scores(self, buckets: Any, weights: Floats, starts: Any, dense: Floats) -> Floats:
        """A row for each sentence and a column for each head, given the start of each sentence's features and its
        vectors.
        """
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
        """The scores of each sentence for worth and the moods, and for the other labels."""
        import numpy as np

        by_sentence = [blocks for _, blocks in sparse(turns, self._clusters)]
        blocks = [block for each in by_sentence for block in each]
        sizes = [len(found) for _, found in blocks]
        buckets = np.fromiter((bucket for _, found in blocks for bucket in found), dtype=np.int32, count=sum(sizes))
        weights = np.repeat(np.array([weight for weight, _ in blocks], dtype=np.float32), sizes)
        starts = np.cumsum([0, *(sum(len(found) for _, found in each) for each in by_sentence[:-1])])
        return self._first.scores(buckets, weights, starts, dense), self._labels.scores(buckets, weights, starts, dense)

    def trees(self, name: str, rows: Floats) -> list[float]:
        """The log odds of worth for each row: from one ensemble, or from that of conversations blended with the other
        one.
        """
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
