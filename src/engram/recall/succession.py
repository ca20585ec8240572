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

from engram.model.lazy import dataclass

if TYPE_CHECKING:
    from engram.models.pair_words import Statement

__all__ = ["FEATURES", "FILE", "REPLACED", "Claim", "features", "probabilities"]

REPLACED = 0.45
"""The probability from which the newer statement comes first: of slots of writers left out that changed, the current value came first for .42
instead of .33, an outdated one for .23 instead of .33; of those that did not change, the right one for .451 instead of .456. The pair
model, of which this reads the probabilities, had seen these slots, so that the gain is smaller elsewhere."""
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
    read = {claim.text: _answer(asked, read_statement(claim.text)) for pair in pairs for claim in pair}
    relations = relate_pairs([(older.text, newer.text) for older, newer in pairs])
    rows = [
        (
            *(relation.same, relation.update, relation.contradiction, relation.refinement, relation.different),
            *_relevances(older, newer, best),
            *_worded(asked, read[older.text], read[newer.text]),
            *_besides(asked, read[older.text].told, read[newer.text].told),
        )
        for (older, newer), relation in zip(pairs, relations, strict=True)
    ]
    return np.array(rows, dtype=np.float32).reshape(len(rows), len(FEATURES))


def _relevances(older: Claim, newer: Claim, best: float) -> tuple[float, ...]:
    old, new, most = (log(max(each, _LEAST_RELEVANT)) for each in (older.relevance, newer.relevance, best))
    return old, new, new - old, old - most


@dataclass(frozen=True, slots=True)
class _Answer:
    """A statement beside the question: how nearly it has each word of it, and how much of it altogether."""

    told: "Statement"
    likeness: Any
    said: Any
    cosine: float
    covered: float
    share: float


def _answer(asked: "Statement", told: "Statement") -> _Answer:
    import numpy as np

    stems = {token.stem for token in told.words}
    said = np.array([token.stem in stems for token in asked.words], dtype=bool)
    if asked.words and told.words:
        likeness = np.maximum((asked.rows @ told.rows.T).max(axis=1).clip(0.0), said)
    else:
        likeness = np.zeros(len(asked.words), dtype=np.float32)
    said = likeness > _SAID
    weights = _weights(asked)
    return _Answer(told, likeness, said, _cosine(asked.sum, told.sum), float(weights @ likeness), float(weights @ said))


def _weights(asked: "Statement") -> Any:
    import numpy as np

    weights = np.array(asked.weights, dtype=np.float32)
    return weights / max(float(weights.sum()), 1e-6)


def _cosine(one: Any, other: Any) -> float:
    length = float(one @ one) * float(other @ other)
    return float(one @ other) / length**0.5 if length > 1e-9 else 0.0


def _worded(asked: "Statement", old: _Answer, new: _Answer) -> tuple[float, ...]:
    """How both have the question's words, and what of these only the older one has."""
    from engram.models.pair_words import NAME

    weights, change = _weights(asked), new.likeness - old.likeness
    lost, unsaid = (-change).clip(0.0), old.said & ~new.said
    names = [token.kind == NAME for token in asked.words]
    return (
        _cosine(old.told.sum, new.told.sum), old.cosine, new.cosine, old.covered, new.covered, old.share, new.share,
        float(weights @ lost), float(lost.max(initial=0.0)), float(weights @ change.clip(0.0)),
        float(weights @ unsaid), float((weights * unsaid).max(initial=0.0)), sum(names), float(unsaid[names].sum()),
    )  # fmt: skip


def _besides(asked: "Statement", old: "Statement", new: "Statement") -> tuple[float, ...]:
    """What the two share, and what each has that neither the question nor the other has: its value."""
    from engram.models.pair_words import NAME, NUMBER, TIME, WORD

    stems = [{token.stem for token in each.words} for each in (asked, old, new)]
    shared = stems[1] & stems[2]
    known = stems[0] | shared
    places = [[at for at, token in enumerate(each.words) if token.stem not in known] for each in (old, new)]
    kinds = [[each.words[at].kind for at in own] for each, own in zip((old, new), places, strict=True)]
    likeness = float((old.rows[places[0]] @ new.rows[places[1]].T).max()) if all(places) else -1.0
    counts = (own.count(kind) for kind in (NAME, NUMBER, TIME, WORD) for own in kinds)
    return len(shared), len(shared - stems[0]), likeness, len(new.words), *counts


@cache
def _trees() -> Any:
    import numpy as np

    from engram.models.trees import Trees

    with np.load(FILE, allow_pickle=False) as data:
        return Trees(*(data[name] for name in ("feature", "threshold", "below", "above", "value")))
