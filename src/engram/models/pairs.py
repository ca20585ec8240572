"""How a new statement relates to an older one: the same, an update, a contradiction, a refinement, or something different.

The mean of two models that err differently: scores of n-grams and a small hidden layer over the features of `engram.models.pair_features`, trained by
training/train_pairs.py, and, where these do not already say "different", the attention of `engram.models.pair_attention`. Both were trained on
pairs by many writers and judged on writers they have never seen. numpy is imported and the weights are read on first use; the result is deterministic.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import nan
from pathlib import Path
from typing import Any

from engram.embedding.products import dot, multiply
from engram.model.lazy import dataclass
from engram.models.pair_attention import pair_attention
from engram.models.pair_features import BUCKETS, Alignment, Alignments, bucket
from engram.models.pair_words import FUNCTION, NAME, NUMBER, TIME, Statement, read_statement

__all__ = [
    "LABELS",
    "LIKELY_CHANGE",
    "MIN_SAME",
    "SURE_UPDATE",
    "Relation",
    "probabilities",
    "relate",
    "relate_all",
    "relate_pairs",
]

LABELS = ("same", "update", "contradiction", "refinement", "different")
LIKELY_CHANGE = 0.60
"""The probability of an update or contradiction from which a person or the caller is told. Of writers left out, before the last training,
.53 of the changes reached it and .029 of the look-alikes; of the two who wrote plainly .69 and .017."""
SURE_UPDATE = 0.75
"""The probability of an update from which the older statement may be superseded, if nothing in their words speaks against it
(`engram.gates.certainty`): before the last training .29 of the updates reached it and .005 of the look-alikes."""
MIN_SAME = 0.65
"""The probability from which the newer statement says nothing new."""

FILE = Path(__file__).with_name("pairs.bin")
MEASURES = 107
"""Measures of a pair; its vectors follow them."""
HIDDEN = 144
MOST_DEVIATIONS = 5.0
_APART_FROM = 0.85
"""The probability of "different" from which the second model is not asked: none of 12,276 pairs would have been noticed all the same."""
_FAR = 0.1
"""Statements with a lower cosine are not compared: they are about different things, or nothing in their words shows otherwise."""
_CUE = 0.05
"""The least weight for a change of a word that is given as a reason."""
_LONGEST_REASON = 80


@dataclass(frozen=True, slots=True)
class Relation:
    """How a statement relates to an older one, as probabilities that add up to 1."""

    same: float
    update: float
    contradiction: float
    refinement: float
    different: float
    reason: str = ""
    """The words replaced and the word that tells of a change; "" where the two are about different things."""

    @property
    def label(self) -> str:
        """The most probable of `LABELS`."""
        return max(LABELS, key=lambda label: float(getattr(self, label)))

    @property
    def change(self) -> float:
        """The probability that the two cannot both hold now."""
        return self.update + self.contradiction


_APART = Relation(0.0, 0.0, 0.0, 0.0, 1.0)
_SAME = Relation(1.0, 0.0, 0.0, 0.0, 0.0, "says the same")


def relate(older: str, newer: str, cosine: float = nan) -> Relation:
    """How a newer statement relates to an older one; the cosine of the two spares the comparison where it is very low."""
    return relate_all([older], newer, [cosine])[0]


def relate_all(older: Sequence[str], newer: str, cosines: Sequence[float] | None = None) -> list[Relation]:
    """How a new statement relates to each of its neighbours."""
    near = [at for at in range(len(older)) if not (cosines and cosines[at] < _FAR)]
    found = [_APART] * len(older)
    for at, relation in zip(near, relate_pairs([(older[at], newer) for at in near]), strict=True):
        found[at] = relation
    return found


def relate_pairs(pairs: Sequence[tuple[str, str]], *, reasons: bool = True) -> list[Relation]:
    """How the newer statement of each pair, the second, relates to the older one; many pairs cost less in one go, and less without reasons."""
    read = [(read_statement(older), read_statement(newer)) for older, newer in pairs]
    found = [_SAME if _is_identical(*each) else _APART for each in read]
    unlike = [at for at, known in enumerate(found) if known is _APART]
    if not unlike:
        return found
    aligned = Alignments([read[at] for at in unlike])
    for place, (at, row) in enumerate(zip(unlike, probabilities(aligned).tolist(), strict=True)):
        label = LABELS[row.index(max(row))]
        reason = _reason(aligned[place], label) if reasons and label != "different" else ""
        found[at] = Relation(row[0], row[1], row[2], row[3], row[4], reason)
    return found


def _is_identical(older: Statement, newer: Statement) -> bool:
    if older.stems != newer.stems or not newer.tokens:
        return False
    return [token.stem for token in older.tokens] == [token.stem for token in newer.tokens]


def inputs(pairs: Alignments) -> tuple[Any, tuple[Any, Any]]:
    """What the network reads: a row of measures and vectors for each pair, and the buckets of its n-grams."""
    import numpy as np

    return np.hstack([pairs.measures(), pairs.vectors()]), pairs.buckets()


def probabilities(pairs: Alignments) -> Any:
    """A row of probabilities of `LABELS` for each pair, by both models."""
    rows, buckets = inputs(pairs)
    found = _network().probabilities(rows, *buckets)
    doubtful = (found[:, LABELS.index("different")] < _APART_FROM).tolist()
    asked = [at for at, (old, new) in enumerate(pairs.pairs) if doubtful[at] and old.tokens and new.tokens]
    if asked:
        second = pair_attention().probabilities([pairs.pairs[at] for at in asked], rows[asked, :MEASURES])
        found[asked] = (found[asked] + second) / 2
    return found


class PairNetwork:
    """Scores by n-grams, measures and vectors, and a hidden layer over the measures and the scores; weights as the file has them."""

    def __init__(self, stored: bytes) -> None:
        import numpy as np

        labels = len(LABELS)
        self.grams: Any = np.frombuffer(stored, np.int8, BUCKETS * labels).reshape(BUCKETS, labels)
        rest = np.frombuffer(stored, np.float16, offset=BUCKETS * labels).astype(np.float32)
        seen = MEASURES + labels
        wide = (len(rest) - 3 * labels - HIDDEN * (seen + 1 + labels)) // (2 + labels)
        shapes = (
            (labels,),
            (wide,),
            (wide,),
            (wide, labels),
            (labels,),
            (seen, HIDDEN),
            (HIDDEN,),
            (HIDDEN, labels),
            (labels,),
        )
        parts = np.split(rest, np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1])
        arrays = [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]
        self.gram_scale, self.mean, self.scale, self.measures, self.bias, *self.hidden = arrays

    def probabilities(self, rows: Any, places: Any, starts: Any) -> Any:
        """A row of probabilities of `LABELS` for each pair of `inputs`."""
        import numpy as np

        rows = ((rows - self.mean) * self.scale).clip(-MOST_DEVIATIONS, MOST_DEVIATIONS)
        grams = np.add.reduceat(self.grams.take(places, 0), starts, 0, dtype=np.int32)
        scores = dot(rows, self.measures) + grams.astype(np.float32) * self.gram_scale + self.bias
        hidden, hidden_bias, out, bias = self.hidden
        seen = np.hstack([rows[:, :MEASURES], scores])
        logits = dot(np.maximum(multiply(seen, hidden) + hidden_bias, 0), out) + bias
        likely = np.exp(logits - logits.max(1, keepdims=True))
        return likely / likely.sum(1, keepdims=True)

    def weights(self, grams: Sequence[str], label: str) -> list[float]:
        """What each n-gram counts for a label over `different`."""
        rows = self.grams[[bucket(gram) for gram in grams]] * self.gram_scale
        found: list[float] = (rows[:, LABELS.index(label)] - rows[:, -1]).tolist()
        return found


@lru_cache(maxsize=1)
def _network() -> PairNetwork:
    return PairNetwork(FILE.read_bytes())


# -- reasons


def _reason(pair: Alignment, label: str) -> str:
    """The words replaced and the word that tells of it: `npm → pnpm ("moved from")`."""
    if label == "same":
        return "says the same"
    if label == "refinement":
        added = [token.key for token, hit in zip(pair.newer.words, pair.matched_new, strict=True) if not hit]
        return f"adds {', '.join(added[:3])}"[:_LONGEST_REASON]
    replaced, cue = _describe_replacement(pair), _cue(pair, label)
    return " ".join(filter(None, (replaced, f'("{cue}")' if cue else "")))[:_LONGEST_REASON]


def _describe_replacement(pair: Alignment) -> str:
    """The word of the older statement that most likely gave way, and what took its place; "" for none."""
    old = [at for at, hit in enumerate(pair.matched_old) if not hit]
    new = [at for at, hit in enumerate(pair.matched_new) if not hit]
    if not old or not new:
        return ""

    def fit(places: tuple[int, int]) -> tuple[bool, float]:
        one, two = pair.older.words[places[0]], pair.newer.words[places[1]]
        return one.kind == two.kind and one.kind in (NUMBER, NAME, TIME), float(pair.cosines[places[1], places[0]])

    one, two = max(((one, two) for one in old for two in new), key=fit)
    return f"{pair.older.words[one].key} → {pair.newer.words[two].key}"


def _cue(pair: Alignment, label: str) -> str:
    """The word or two of the newer statement with the most weight for a change."""
    tokens, shown = pair.newer.tokens, pair.newer.model_tokens
    matched = {place for place, hit in zip(pair.newer.places, pair.matched_new, strict=True) if hit}
    places = [at for at, token in enumerate(tokens) if at not in matched and token.key != "," and shown[at][0] != "<"]
    following = [tokens[at + 1] if at + 1 < len(tokens) else None for at in places]
    grams = [f"n{tokens[at].stem}" for at in places]
    grams += [f"{gram} {token.stem if token else ''}" for gram, token in zip(grams, following, strict=True)]
    weights = _network().weights(grams, label)
    best, cue = _CUE, ""
    for at, token, alone, joined in zip(places, following, weights, weights[len(places) :], strict=False):
        is_joined = token is not None and token.kind == FUNCTION and joined > 0
        if alone + (joined if is_joined else 0.0) > best:
            best = alone + (joined if is_joined else 0.0)
            cue = f"{tokens[at].key} {token.key}" if token and is_joined else tokens[at].key
    return cue.replace("@me", "I").replace("@we", "we").replace("@not", "not")
