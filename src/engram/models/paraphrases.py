"""Judges whether a new statement paraphrases an older one, and how likely it repeats one that a person rejected or
retired.
"""

import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import log
from pathlib import Path
from typing import Any

from engram.embedding.vectors import dot
from engram.models.pair_features import BUCKETS, Alignments
from engram.models.pair_words import read_statement
from engram.models.pairs import LABELS, MEASURES, MOST_DEVIATIONS, Relation, inputs
from engram.models.remarks import cue_patterns
from engram.text.statements import NormalizedStatement, normalize_statement
from engram.text.words import stem

__all__ = [
    "PARAPHRASE_FILE",
    "RECURRENCE_FEATURES",
    "REFUSE_LOG_ODDS",
    "REVIEW_LOG_ODDS",
    "SAME_LOG_ODDS",
    "SURELY_SAME_LOG_ODDS",
    "ParaphraseModel",
    "count_negatives",
    "likeness",
    "recurrence",
    "recurrence_features",
    "second_inputs",
]

PARAPHRASE_FILE = Path(__file__).with_name("paraphrases.bin")
SAME_LOG_ODDS = -0.25
"""The score from which two statements have the same meaning. On held-out writers, and with the checks of
`engram.capture.stage`, .64 of the paraphrases of rules reach it, 2 of 520 pairs of different rules about one topic, 3
of 280 changed rules and 13 of 480 that were written to be mistaken for the rule.
"""
SURELY_SAME_LOG_ODDS = 1.4
"""The score from which keeping only one of the two loses nothing: none of those changed or mistaken rules reaches
it.
"""
_MIN_RELATION_PROBABILITY = 1e-4
_MAX_TEXT_CHARACTERS = 2_000
"""The maximum number of characters that are searched for cues."""
_PARAPHRASE_CUES = PARAPHRASE_FILE.with_name("paraphrase_cues.txt")
_SECTIONS = ("permits", "ends", "obliges", "forbids", "repeats")
_CONTRASTS = 23 + 3 * len(_SECTIONS)
"""The number of values of `_contrast` and `_compare_cues`."""
SECOND_STAGE_VALUES = 1 + MEASURES + len(LABELS) + 2 + _CONTRASTS
"""The number of values in the input of the second stage."""


def likeness(pairs: Sequence[tuple[str, str]], cosines: Sequence[float], relations: Sequence[Relation]) -> list[float]:
    """The log odds that the newer statement of each pair, the second, has the same meaning as the older one.

    The caller passes the cosine of the two and their relation from `engram.models.pairs`; an unknown cosine is ignored.

    `engram.models.pairs` distinguishes five relations and was trained on what people say about their lives. This model
    answers one question, and was also trained on rules for work: rephrased, changed, and easily mistaken for one
    another (training/rules). Its first stage scores n-grams, measures and word vectors of the pair; the second weighs
    that score against the relations, the cosine, what each statement negates, names and counts, and words that
    distinguish a change from a repetition. Trained by training/train_paraphrases.py; numpy is imported and the weights
    are read on first use.
    """
    import numpy as np

    if not pairs:
        return []
    aligned = Alignments([(read_statement(older), read_statement(newer)) for older, newer in pairs])
    model = _read_paraphrase_model()
    rows, buckets = inputs(aligned)
    first = model.first(rows, *buckets)
    likely = np.array([[getattr(one, label) for label in LABELS] for one in relations], dtype=np.float32)
    found: list[float] = model.second(second_inputs(first, rows, likely, cosines, pairs)).tolist()
    return found


def second_inputs(
    first: Any, rows: Any, relations: Any, cosines: Sequence[float], pairs: Sequence[tuple[str, str]]
) -> Any:
    """The input of the second stage: the first stage's score, measures, relations, the cosine, and what each statement
    negates, names and counts.
    """
    import numpy as np

    cosine = np.nan_to_num(np.asarray(cosines, dtype=np.float32)).clip(0.0)
    contrast = np.array(
        [
            (*_contrast(normalize_statement(older), normalize_statement(newer)), *_compare_cues(older, newer))
            for older, newer in pairs
        ],
        dtype=np.float32,
    )
    parts = (
        first[:, None],
        rows[:, :MEASURES],
        np.log(relations + _MIN_RELATION_PROBABILITY),
        cosine[:, None],
        cosine[:, None] ** 2,
    )
    return np.hstack([*parts, contrast]).astype(np.float32)


class ParaphraseModel:
    """Two linear stages, with the weights as in the file."""

    def __init__(self, stored: bytes) -> None:
        import numpy as np

        self.grams: Any = np.frombuffer(stored, np.int8, BUCKETS)
        rest = np.frombuffer(stored, np.float16, offset=BUCKETS).astype(np.float32)
        wide = (len(rest) - 3 - 3 * SECOND_STAGE_VALUES) // 3
        sizes = (1, 1, wide, wide, wide, 1, SECOND_STAGE_VALUES, SECOND_STAGE_VALUES, SECOND_STAGE_VALUES)
        parts = np.split(rest, np.cumsum(sizes)[:-1])
        self.gram_scale, self.bias, self.mean, self.scale, self.weights = parts[:5]
        self.second_bias, self.second_mean, self.second_scale, self.second_weights = parts[5:]

    def first(self, rows: Any, places: Any, starts: Any) -> Any:
        """The first stage's score of each pair of `pairs.inputs`."""
        import numpy as np

        grams = np.add.reduceat(self.grams.take(places), starts, dtype=np.int32)
        return dot(_scale_rows(rows, self.mean, self.scale), self.weights) + grams * self.gram_scale + self.bias

    def second(self, rows: Any) -> Any:
        """The log odds of each row of `second_inputs`."""
        return dot(_scale_rows(rows, self.second_mean, self.second_scale), self.second_weights) + self.second_bias


def _scale_rows(rows: Any, mean: Any, scale: Any) -> Any:
    return ((rows - mean) * scale).clip(-MOST_DEVIATIONS, MOST_DEVIATIONS)


def _contrast(older: NormalizedStatement, newer: NormalizedStatement) -> tuple[float, ...]:
    """What only one statement negates, the names and numbers of either, and how many words only one has."""
    shared = older.content & newer.content
    turned = {word for word in shared if (word in older.negated) != (word in newer.negated)}
    denied = turned & newer.negated
    affirmed = turned - denied
    old, new = set(older.numbers), set(newer.numbers)
    return (
        *(len(shared), len(turned), len(denied), len(affirmed), bool(denied and affirmed)),
        *(len(turned) / max(1, len(shared)), len(shared & older.negated & newer.negated)),
        *(older.negations, newer.negations, abs(older.negations - newer.negations)),
        *(older.negations % 2 != newer.negations % 2, bool(older.negations) != bool(newer.negations)),
        *(len(older.names & newer.names), len(older.names - newer.content), len(newer.names - older.content)),
        *(len(older.names & newer.names & turned), _alone(older, newer), _alone(newer, older)),
        *(older.past != newer.past, len(old & new), len(old - new), len(new - old), bool(old - new and new - old)),
    )


def _compare_cues(older: str, newer: str) -> Iterator[bool]:
    """For each kind of cue: whether only the newer statement has one, only the older, or both."""
    before, after = _cues_of(older), _cues_of(newer)
    for old, new in zip(before, after, strict=True):
        yield from (new and not old, old and not new, old and new)


@lru_cache(maxsize=1 << 12)
def _cues_of(statement: str) -> tuple[bool, ...]:
    text = statement[:_MAX_TEXT_CHARACTERS].replace("’", "'")
    return tuple(bool(pattern.search(text)) for pattern in _patterns())


@lru_cache(maxsize=1)
def _patterns() -> list[re.Pattern[str]]:
    patterns = cue_patterns(_PARAPHRASE_CUES)
    return [patterns[name] for name in _SECTIONS]


def _alone(one: NormalizedStatement, other: NormalizedStatement) -> float:
    return len(one.content - other.content) / max(1, len(one.content))


@lru_cache(maxsize=1)
def _read_paraphrase_model() -> ParaphraseModel:
    return ParaphraseModel(PARAPHRASE_FILE.read_bytes())


REVIEW_LOG_ODDS = 0.0
"""The log odds from which a statement waits for review. Of the half of training/rejections that was not used for
training, 63 of 70 rewordings reach it, and 5 of 35 opposites and 3 of 70 other statements about the topic, if the exact
rules of `engram.gates.comparison` find no opposite.
"""
REFUSE_LOG_ODDS = 1.0
"""The log odds from which a statement is refused, if the pair model agrees: 51 of those rewordings, 2 of the opposites,
none of the others.
"""
RECURRENCE_FILE = Path(__file__).with_name("recurrence.json")
RECURRENCE_FEATURES = (
    "cosine", "same", "log same", "log update", "log contradiction", "log different", "likeness", "shared words", "turned", "turned and close",
    "negated", "numbers", "names",
)  # fmt: skip
_NEGATIVE_WORDS = RECURRENCE_FILE.with_name("recurrence_cues.txt")
_WORD = re.compile(r"[^\W\d_]+(?:'t)?")
_MIN_PROBABILITY_IN_LOG = 0.01
_LIKENESS = (-5.0, 3.0)


def recurrence(pairs: Sequence[tuple[str, str]], relations: Sequence[Relation]) -> list[float]:
    """The log odds that the second statement of each pair repeats the first, which somebody rejected or retired.

    The caller passes their relations from `engram.models.pairs`.

    A logistic model over the results of the pair models (`engram.models.pairs`, `engram.models.paraphrases`), the
    cosine, the shared words, and whether only one of the two is negated: the opposite of a rejected statement is what
    the person wants. Trained by training/train_recurrence.py on training/rejections.
    """
    model = _read_recurrence_model()
    weights = model["features"]
    rows = recurrence_features(pairs, relations)
    return [model["bias"] + sum(weight * row[name] for name, weight in weights.items()) for row in rows]


def recurrence_features(pairs: Sequence[tuple[str, str]], relations: Sequence[Relation]) -> list[dict[str, float]]:
    """The features of each pair: the values of `RECURRENCE_FEATURES`."""
    cosines = _cosines(pairs)
    likely = likeness(pairs, cosines, relations)
    return [
        dict(zip(RECURRENCE_FEATURES, _values(*each), strict=True))
        for each in zip(pairs, cosines, relations, likely, strict=True)
    ]


def _values(pair: tuple[str, str], cosine: float, relation: Relation, likely: float) -> tuple[float, ...]:
    older, newer = normalize_statement(pair[0]), normalize_statement(pair[1])
    shared, union = older.content & newer.content, older.content | newer.content
    old, new = set(older.numbers), set(newer.numbers)
    is_turned = (count_negatives(pair[0]) - count_negatives(pair[1])) % 2
    return (
        cosine,
        relation.same,
        *(
            log(value + _MIN_PROBABILITY_IN_LOG)
            for value in (relation.same, relation.update, relation.contradiction, relation.different)
        ),
        min(max(likely, _LIKENESS[0]), _LIKENESS[1]),
        len(shared) / max(1, len(union)),
        is_turned,
        is_turned * cosine,
        (older.negations - newer.negations) % 2,
        bool(old - new and new - old),
        bool(older.names - newer.names and newer.names - older.names),
    )


def _cosines(pairs: Sequence[tuple[str, str]]) -> list[float]:
    """The cosines by the bundled embedder, even if the store has another: the model was trained with these."""
    from engram.embedding.static import StaticEmbedder

    vectors = StaticEmbedder().embed([text for pair in pairs for text in pair])
    return [float(dot(vectors[at], vectors[at + 1])) for at in range(0, len(vectors), 2)]


def count_negatives(text: str) -> int:
    """How many words of a text negate or tell somebody to avoid something."""
    words = _WORD.findall(text.lower().replace("’", "'"))
    return sum(word.endswith("n't") or stem(word) in _negative_stems() for word in words)


@lru_cache(maxsize=1)
def _negative_stems() -> frozenset[str]:
    lines = _NEGATIVE_WORDS.read_text("utf-8").splitlines()
    return frozenset(stem(word) for line in lines if not line.startswith("#") for word in line.split())


@lru_cache(maxsize=1)
def _read_recurrence_model() -> dict[str, Any]:
    model: dict[str, Any] = json.loads(RECURRENCE_FILE.read_text("utf-8"))
    return model
