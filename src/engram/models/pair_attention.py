"""A second opinion on how two statements relate: two small layers of attention over the words of both, by their bundled vectors.

Where `engram.models.pairs` weighs n-grams and measures of a pair, this reads the words in order: each word attends to those of its own statement and
to those of the other that are like it. Trained by training/train_pair_attention.py; numpy is imported and the weights are read on first use.
"""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from engram.models.pair_features import Alignment
from engram.models.pair_words import FUNCTION, NAME, NUMBER, TIME, WORD, Statement, word_vectors

__all__ = ["FILE", "KINDS", "LONGEST", "PairAttention", "pair_attention"]

FILE = Path(__file__).with_name("pair_attention.npz")
KINDS = (NUMBER, NAME, TIME, FUNCTION, WORD)
LONGEST = 40
"""Words of a statement that are read."""
HEADS = 4
VECTOR_SCALE, BIAS_SCALE, MOST_DEVIATIONS = 4.0, 4.0, 5.0
_NONE = -1e4


class PairAttention:
    """The layers and their weights, by the names that the training gave them."""

    def __init__(self, stored: dict[str, Any]) -> None:
        stems = bytes(stored.pop("stems")).decode("utf-8").split("\n")
        self.places = {stem: place for place, stem in enumerate(stems, 1)}
        self.weights = {name: array.astype("float32") for name, array in stored.items()}
        self.layers = sum(name.endswith("_qkv_weight") for name in stored)

    def probabilities(self, pairs: Sequence[Alignment], measures: Any) -> Any:
        """A row of probabilities of the labels for each pair, given its measures."""
        import numpy as np

        words, seen, likeness, same, other = self._read(pairs)
        hidden = words
        blocked = np.where(seen, 0.0, _NONE).astype(np.float32)[:, None, None, :]
        for layer in range(self.layers):
            hidden = self._layer(f"bl_{layer}_", hidden, (likeness, same, other), blocked)
        hidden = self._normalized("n", hidden)
        parts = self._pooled(hidden, seen, other[0, 0] > 0)
        scaled = (measures - self.weights["mean"]) / self.weights["sd"]
        parts.append(scaled.clip(-MOST_DEVIATIONS, MOST_DEVIATIONS))
        logits = self._linear("o", _gelu(self._linear("h", np.concatenate(parts, axis=1))))
        likely = np.exp(logits - logits.max(1, keepdims=True))
        return likely / likely.sum(1, keepdims=True)

    def _linear(self, name: str, rows: Any) -> Any:
        return rows @ self.weights[f"{name}_weight"].T + self.weights[f"{name}_bias"]

    def _normalized(self, name: str, rows: Any) -> Any:
        import numpy as np

        centred = rows - rows.mean(-1, keepdims=True)
        spread = (centred * centred).mean(-1, keepdims=True) + 1e-5
        return centred / np.sqrt(spread) * self.weights[f"{name}_weight"] + self.weights[f"{name}_bias"]

    def _read(self, pairs: Sequence[Alignment]) -> tuple[Any, Any, Any, Any, Any]:
        """The words of each pair as rows, which of them there are, how like each two are, which are the same, and which stand in different statements."""
        import numpy as np

        both = [(pair.older, pair.newer) for pair in pairs]
        wide = [max(len(_tokens(one[side])) for one in both) for side in (0, 1)]
        total, width = len(pairs), wide[0] + wide[1]
        vectors = np.zeros((total, width, self.weights["v_weight"].shape[1]), dtype=np.float32)
        stems, kinds, own = (np.zeros((total, width), dtype=np.int64) for _ in range(3))
        seen = np.zeros((total, width), dtype=bool)
        numbers: dict[str, int] = {}
        known = {id(each): _rows(each) for each in {id(each): each for one in both for each in one}.values()}
        for row, one in enumerate(both):
            for statement, start in zip(one, (0, wide[0]), strict=True):
                tokens = _tokens(statement)
                place = slice(start, start + len(tokens))
                vectors[row, place], kinds[row, place] = known[id(statement)]
                stems[row, place] = [numbers.setdefault(token.stem, len(numbers) + 1) for token in tokens]
                own[row, place] = [
                    0 if token.kind in (NUMBER, NAME) else self.places.get(token.stem, 0) for token in tokens
                ]
                seen[row, place] = True
        same = ((stems[:, :, None] == stems[:, None]) & seen[:, :, None] & seen[:, None]).astype(np.float32)
        likeness = np.maximum(vectors @ vectors.transpose(0, 2, 1), same)
        side = np.arange(width) >= wide[0]
        other = np.broadcast_to((side[:, None] != side).astype(np.float32), (total, width, width))
        content = ((kinds != KINDS.index(FUNCTION)) & seen).astype(np.float32)
        best = (likeness * other * content[:, None]).max(2)
        marks = np.stack([(same * other).max(2), best, best * best, content], axis=-1)
        found = (
            vectors @ (VECTOR_SCALE * self.weights["v_weight"].T)
            + self.weights["st_weight"][own]
            + self.weights["k_weight"][kinds]
            + self.weights["seg_weight"][side.astype(np.int64)]
            + self.weights["pos_weight"][np.concatenate([np.arange(each) for each in wide])]
        )
        return found + self._linear("m", marks), seen, likeness, same, other

    def _layer(self, name: str, rows: Any, likenesses: tuple[Any, Any, Any], blocked: Any) -> Any:
        """One layer: every word takes up what the words it attends to have to say."""
        import numpy as np

        total, width, size = rows.shape
        each = size // HEADS
        split = self._linear(f"{name}qkv", self._normalized(f"{name}n1", rows)).reshape(total, width, 3, HEADS, each)
        asked, offered, said = split.transpose(2, 0, 3, 1, 4)
        scores = asked @ offered.transpose(0, 1, 3, 2) / each**0.5 + blocked
        for weight, likeness in zip(self.weights[f"{name}b"], likenesses, strict=True):
            scores += BIAS_SCALE * weight[None, :, None, None] * likeness[:, None]
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        heard = (scores / scores.sum(-1, keepdims=True)) @ said
        rows = rows + self._linear(f"{name}p", heard.transpose(0, 2, 1, 3).reshape(total, width, size))
        return rows + self._linear(f"{name}f2", _gelu(self._linear(f"{name}f1", self._normalized(f"{name}n2", rows))))

    @staticmethod
    def _pooled(hidden: Any, seen: Any, newer: Any) -> list[Any]:
        """The mean and the largest of the words of each statement."""
        import numpy as np

        sides = [(seen & side)[..., None].astype(np.float32) for side in (~newer, newer)]
        means = [(hidden * side).sum(1) / np.maximum(side.sum(1), 1.0) for side in sides]
        return [*means, *((hidden + _NONE * (1 - side)).max(1).clip(-50.0) for side in sides)]


def _tokens(statement: Statement) -> Any:
    return statement.tokens[:LONGEST]


def _rows(statement: Statement) -> tuple[Any, list[int]]:
    """A unit vector for each word, none for numbers; and the kinds of the words."""
    import numpy as np

    tokens = _tokens(statement)
    kinds = [KINDS.index(token.kind) for token in tokens]
    rows = word_vectors([token.key for token in tokens])
    rows /= np.maximum(np.sqrt((rows * rows).sum(1)), 1e-6)[:, None]
    rows[[kind == KINDS.index(NUMBER) for kind in kinds]] = 0.0
    return rows, kinds


def _gelu(rows: Any) -> Any:
    import numpy as np

    return 0.5 * rows * (1.0 + np.tanh(0.7978845608 * (rows * (1.0 + 0.044715 * rows * rows))))


@lru_cache(maxsize=1)
def pair_attention() -> PairAttention:
    """The model as it is bundled."""
    import numpy as np

    with np.load(FILE) as stored:
        return PairAttention({name: stored[name] for name in stored.files})
