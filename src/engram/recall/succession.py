"""Whether a newer statement took the place of an older one as the answer to a question.

Two statements alone often leave open whether they are about one slot; the question says which slot is meant. What the pair model
(`engram.models.pairs`) says of the two is weighed with how much each is about the question: its relevance, the words of the
question that it has, and what it has besides, which is its value. Small trees turn that into a probability;
training/train_succession.py trains them on the slots of many writers.
"""

from collections.abc import Sequence
from functools import cache
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram.embedding.products import dot
from engram.model.lazy import dataclass

if TYPE_CHECKING:
    from engram.models.pair_words import Statement

__all__ = ["FEATURES", "FILE", "MIN_MENTION", "MIN_REPLACED", "Claim", "features", "probabilities"]

MIN_REPLACED = 0.45
"""The probability from which the newer statement comes first: of slots of writers left out that changed, the current value came first for .42
instead of .33, an outdated one for .23 instead of .33; of those that did not change, the right one for .451 instead of .456. The pair
model, of which this reads the probabilities, had seen these slots, so that the gain is smaller elsewhere."""
MIN_MENTION = 0.6
"""The probability from which a note says that the newer statement may replace the older one. Rules that complement each other often score
between the two limits."""
FILE = Path(__file__).with_name("succession.npz")
FEATURES = (
    "same", "update", "contradiction", "refinement", "different",
    "relevance_old", "relevance_new", "relevance_ratio", "relevance_best",
    "cosine", "cosine_old", "cosine_new", "covered_old", "covered_new", "said_old", "said_new",
    "lost", "lost_most", "gained", "unsaid", "unsaid_most", "names_asked", "names_unsaid", "shared", "shared_besides",
    "value_likeness", "words_new",
    "names_old", "names_new", "numbers_old", "numbers_new", "times_old", "times_new", "words_besides_old", "words_besides_new",
)  # fmt: skip
_LEAST_RELEVANT = 0.002
"""The relevance of what no search found."""
_SAID = 0.995
_NO_LENGTH = 1e-9**0.5
"""Vectors whose lengths have a smaller product are taken for none."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement, and how likely it is about the question."""

    text: str
    relevance: float = 0.0


def probabilities(question: str, pairs: Sequence[tuple[Claim, Claim]], best: float) -> list[float]:
    """How likely the newer claim of each pair, the second, replaced the older one as the answer; `best` is the highest relevance of a hit."""
    found: list[float] = _trees()(features(question, pairs, best)).tolist()
    return found


def features(question: str, pairs: Sequence[tuple[Claim, Claim]], best: float) -> Any:
    """(pairs x FEATURES) the input of the trees."""
    import numpy as np

    from engram.models.pair_words import read_statement
    from engram.models.pairs import relate_pairs

    asked = read_statement(question)
    texts = list(dict.fromkeys(claim.text for pair in pairs for claim in pair))
    answers = _Answers(asked, [read_statement(text) for text in texts])
    places = {text: place for place, text in enumerate(texts)}
    steps = [(places[older.text], places[newer.text]) for older, newer in pairs]
    relations = relate_pairs([(older.text, newer.text) for older, newer in pairs], reasons=False)
    rows = [
        (
            *(relation.same, relation.update, relation.contradiction, relation.refinement, relation.different),
            *_relevances(older, newer, best),
            *worded,
            *_besides(asked, answers.told[old], answers.told[new]),
        )
        for (older, newer), relation, worded, (old, new) in zip(
            pairs, relations, answers.word_features(steps), steps, strict=True
        )
    ]
    return np.array(rows, dtype=np.float32).reshape(len(rows), len(FEATURES))


def _relevances(older: Claim, newer: Claim, best: float) -> tuple[float, ...]:
    old, new, most = (log(max(each, _LEAST_RELEVANT)) for each in (older.relevance, newer.relevance, best))
    return old, new, new - old, old - most


class _Answers:
    """Statements beside the question: how nearly each has each word of it, and how much of it altogether. One row for each statement."""

    def __init__(self, asked: "Statement", told: "Sequence[Statement]") -> None:
        import numpy as np

        self.asked, self.told = asked, told
        weights = np.array(asked.weights, dtype=np.float32)
        self._weights = weights / max(float(weights.sum()), 1e-6)
        likeness = np.array([self._likeness_of(each) for each in told], dtype=np.float32)
        self._likeness = likeness.reshape(len(told), len(weights))
        self._said = self._likeness > _SAID
        self._covered, self._share = dot(self._likeness, self._weights), dot(self._said, self._weights)
        sums = np.array([asked.sum, *(each.sum for each in told)])
        products = dot(sums, sums.T).astype(np.float64)
        lengths = np.sqrt(np.outer(products.diagonal(), products.diagonal()))
        self._cosines = np.where(lengths > _NO_LENGTH, products / np.maximum(lengths, _NO_LENGTH), 0.0)

    def _likeness_of(self, told: "Statement") -> Any:
        import numpy as np

        if not self.asked.words or not told.words:
            return np.zeros(len(self.asked.words), dtype=np.float32)
        said = [token.stem in told.word_stems for token in self.asked.words]
        return np.maximum(dot(self.asked.rows, told.rows.T).max(axis=1).clip(0.0), said)

    def word_features(self, steps: Sequence[tuple[int, int]]) -> list[list[float]]:
        """For each older statement and newer one: how both have the question's words, and what of these only the older one has."""
        import numpy as np

        from engram.models.pair_words import NAME

        old, new = np.array(steps, dtype=np.int64).reshape(-1, 2).T
        change = self._likeness[new] - self._likeness[old]
        lost, unsaid = (-change).clip(0.0), self._said[old] & ~self._said[new]
        names = np.array([token.kind == NAME for token in self.asked.words], dtype=bool)
        columns = (
            *(self._cosines[old + 1, new + 1], self._cosines[0, old + 1], self._cosines[0, new + 1]),
            *(self._covered[old], self._covered[new], self._share[old], self._share[new]),
            *(dot(lost, self._weights), lost.max(axis=1, initial=0.0), dot(change.clip(0.0), self._weights)),
            *(dot(unsaid, self._weights), (self._weights * unsaid).max(axis=1, initial=0.0)),
            *(np.full(len(steps), names.sum()), unsaid[:, names].sum(axis=1)),
        )
        found: list[list[float]] = np.array(columns).T.tolist()
        return found


def _besides(asked: "Statement", old: "Statement", new: "Statement") -> tuple[float, ...]:
    """What the two share, and what each has that neither the question nor the other has: its value."""
    from engram.models.pair_words import NAME, NUMBER, TIME, WORD

    shared = old.word_stems & new.word_stems
    known = asked.word_stems | shared
    places = [[at for at, token in enumerate(each.words) if token.stem not in known] for each in (old, new)]
    kinds = ["".join([each.words[at].kind for at in own]) for each, own in zip((old, new), places, strict=True)]
    likeness = float(dot(old.rows.take(places[0], 0), new.rows.take(places[1], 0).T).max()) if all(places) else -1.0
    counts = [own.count(kind) for kind in (NAME, NUMBER, TIME, WORD) for own in kinds]
    return len(shared), len(shared - asked.word_stems), likeness, len(new.words), *counts


@cache
def _trees() -> Any:
    from engram.models.arrays import read_arrays
    from engram.models.trees import Trees

    data = read_arrays(FILE)
    return Trees(*(data[name] for name in ("feature", "threshold", "below", "above", "value")))
