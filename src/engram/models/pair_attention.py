"""A second opinion on how two statements relate: two small layers of attention over the words of both, by their bundled vectors.

Where `engram.models.pairs` weighs n-grams and measures of a pair, this reads the words in order: each word attends to those of its own statement and
to those of the other that are like it. Trained by training/train_pair_attention.py; numpy is imported and the weights are read on first use.
"""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from engram.models.pair_words import FUNCTION, NAME, NUMBER, TIME, WORD, Statement, Token, word_vectors

__all__ = ["FILE", "KINDS", "LONGEST", "PairAttention", "pair_attention", "read_attention"]

FILE = Path(__file__).with_name("pair_attention.npz")
KINDS = (NUMBER, NAME, TIME, FUNCTION, WORD)
LONGEST = 40
"""Words of a statement that are read."""
HEADS = 4
VECTOR_SCALE, BIAS_SCALE, MOST_DEVIATIONS = 4.0, 4.0, 5.0
SCALE = "_scale"
"""Ends the name of what the bytes of a weight are multiplied by, a number for each row."""
_NONE = -1e4
_MOST_SCORED = 80.0


class PairAttention:
    """The layers and their weights, by the names that the training gave them."""

    def __init__(self, stored: dict[str, Any]) -> None:
        import numpy as np

        stems = bytes(stored.pop("stems")).decode("utf-8").split("\n")
        self.places = {stem: place for place, stem in enumerate(stems, 1)}
        self.weights = {name: array.astype("float32") for name, array in stored.items() if not name.endswith(SCALE)}
        for name in stored:
            if name.endswith(SCALE):
                self.weights[name.removesuffix(SCALE)] *= stored[name]
        self.weights["v_weight"] *= VECTOR_SCALE
        self.layers = sum(name.endswith("_qkv_weight") for name in stored)
        for layer in range(self.layers):
            self._fold(f"bl_{layer}_")
        # What rows are multiplied with lies as the products need it.
        self.turned = {name: np.ascontiguousarray(array.T) for name, array in self.weights.items() if array.ndim > 1}

    def _fold(self, name: str) -> None:
        """Put into the weights of a layer what each row would else be multiplied with: the weights of the norms, and the scale of the scores."""
        weights, size = self.weights, self.weights[f"{name}n1_weight"].size
        for norm, linear in (("n1", "qkv"), ("n2", "f1")):
            weights[f"{name}{linear}_bias"] += weights[f"{name}{linear}_weight"] @ weights[f"{name}{norm}_bias"]
            weights[f"{name}{linear}_weight"] *= weights[f"{name}{norm}_weight"]
        for part in ("weight", "bias"):
            weights[f"{name}qkv_{part}"][:size] /= (size // HEADS) ** 0.5

    def probabilities(self, pairs: Sequence[tuple[Statement, Statement]], measures: Any = None) -> Any:
        """A row of probabilities of the labels for each pair, given its measures if the model was trained with any."""
        import numpy as np

        rows, seen, likenesses, newer = self._read(pairs)
        places = np.flatnonzero(seen)
        for layer, biases in enumerate(self._biases(likenesses)):
            rows = self._layer(f"bl_{layer}_", rows, places, biases)
        hidden = _normalized(rows)
        hidden *= self.weights["n_weight"]
        hidden += self.weights["n_bias"]
        parts = self._pooled(_spread(hidden, places, seen.shape), seen, newer)
        if measures is not None:
            scaled = (measures - self.weights["mean"]) / self.weights["sd"]
            parts.append(scaled.clip(-MOST_DEVIATIONS, MOST_DEVIATIONS))
        logits = self._linear("o", _gelu(self._linear("h", np.concatenate(parts, axis=1))))
        likely = np.exp(logits - logits.max(1, keepdims=True))
        return likely / likely.sum(1, keepdims=True)

    def _linear(self, name: str, rows: Any) -> Any:
        from engram.embedding.products import multiplied

        found = multiplied(rows, self.turned[f"{name}_weight"])
        found += self.weights[f"{name}_bias"]
        return found

    def _biases(self, likenesses: Any) -> Any:
        """(layers x pairs x heads x words x words) what is added to the scores of a word for another, whatever the two say."""
        import numpy as np

        total, kinds, width, _ = likenesses.shape
        weights = np.full((self.layers * HEADS, kinds), _NONE, dtype=np.float32)
        weights[:, :-1] = BIAS_SCALE * np.hstack([self.weights[f"bl_{layer}_b"] for layer in range(self.layers)]).T
        found = weights @ likenesses.reshape(total, kinds, -1)
        return found.reshape(total, self.layers, HEADS, width, width).swapaxes(0, 1)

    def _read(self, pairs: Sequence[tuple[Statement, Statement]]) -> tuple[Any, Any, Any, Any]:
        """The words of all pairs as rows, one after the other; which places of each pair have one; how like each two are, whether they are the same,
        whether they stand in different statements and whether the second is missing; and which places are those of the newer statement.
        """
        import numpy as np

        from engram.embedding.products import crossed

        known = {id(token): token for pair in pairs for each in pair for token in each.tokens[:LONGEST]}
        numbers = {token: place for place, token in enumerate(known, 1)}
        read = {id(each): [numbers[id(token)] for token in each.tokens[:LONGEST]] for pair in pairs for each in pair}
        wide = [max(len(read[id(pair[side])]) for pair in pairs) for side in (0, 1)]
        # Each word is worked out once; place 0 is for no word.
        at = np.zeros((len(pairs), sum(wide)), dtype=np.int64)
        for row, (older, newer) in zip(at, pairs, strict=True):
            for statement, start in ((older, 0), (newer, wide[0])):
                row[start : start + len(read[id(statement)])] = read[id(statement)]
        words, vectors, hashes, content = self._words(list(known.values()))
        seen, stems = at > 0, hashes[at]
        same = ((stems[:, :, None] == stems[:, None]) & seen[:, :, None] & seen[:, None]).astype(np.float32)
        likeness = np.maximum(crossed(vectors[at]), same)
        side = np.arange(sum(wide)) >= wide[0]
        other = np.broadcast_to((side[:, None] != side).astype(np.float32), same.shape)
        best = (likeness * other * content[at][:, None]).max(2)
        marks = np.stack([(same * other).max(2), best, best * best, content[at]], axis=-1)
        placed = self.weights["seg_weight"][side.astype(np.int64)]
        placed = placed + self.weights["pos_weight"][np.concatenate([np.arange(each) for each in wide])]
        missing = np.broadcast_to(~seen[:, None], same.shape)
        return (
            words[at[seen]] + placed[np.nonzero(seen)[1]] + self._linear("m", marks[seen]),
            seen,
            np.stack([likeness, same, other, missing], axis=1),
            side,
        )

    def _words(self, tokens: Sequence[Token]) -> tuple[Any, Any, Any, Any]:
        """Words by themselves, the first row for none: their rows, their unit vectors, the hashes of their stems, and whether they have a meaning of
        their own.
        """
        import numpy as np

        from engram.embedding.products import multiplied

        kinds = np.array([0, *(KINDS.index(token.kind) for token in tokens)])
        vectors = np.zeros((len(kinds), self.weights["v_weight"].shape[1]), dtype=np.float32)
        vectors[1:], _ = word_vectors([token.key for token in tokens])
        vectors[kinds == KINDS.index(NUMBER)] = 0.0
        own = [0 if token.kind in (NUMBER, NAME) else self.places.get(token.stem, 0) for token in tokens]
        hashes = np.array([0, *(hash(token.stem) for token in tokens)])
        content = (kinds != KINDS.index(FUNCTION)).astype(np.float32)
        content[0] = 0.0
        rows = multiplied(vectors, self.turned["v_weight"])
        rows += self.weights["st_weight"][[0, *own]] + self.weights["k_weight"][kinds]
        return rows, vectors, hashes, content

    def _layer(self, name: str, rows: Any, places: Any, biases: Any) -> Any:
        """One layer: every word takes up what the words it attends to have to say."""
        import numpy as np

        (total, heads, width, _), size = biases.shape, rows.shape[1]
        split = _spread(self._linear(f"{name}qkv", _normalized(rows)), places, (total, width))
        asked, offered, said = split.reshape(total, width, 3, heads, -1).transpose(2, 0, 3, 1, 4)
        scores = asked @ offered.transpose(0, 1, 3, 2)
        scores += biases
        # What is larger would be too large for a sum; it is not met.
        np.exp(np.minimum(scores, _MOST_SCORED, out=scores), out=scores)
        heard = (scores @ said) / scores.sum(-1, keepdims=True)
        heard = heard.transpose(0, 2, 1, 3).reshape(-1, size).take(places, 0)
        rows = rows + self._linear(f"{name}p", heard)
        return rows + self._linear(f"{name}f2", _gelu(self._linear(f"{name}f1", _normalized(rows))))

    @staticmethod
    def _pooled(hidden: Any, seen: Any, newer: Any) -> list[Any]:
        """The mean and the largest of the words of each statement."""
        import numpy as np

        sides = np.stack([seen & ~newer, seen & newer], axis=1).astype(np.float32)
        means = (sides @ hidden) / np.maximum(sides.sum(2, keepdims=True), 1.0)
        most = np.where(sides[..., None] > 0, hidden[:, None], _NONE).max(2).clip(-50.0)
        return [each.reshape(len(seen), -1) for each in (means, most)]


def _spread(rows: Any, places: Any, shape: tuple[int, int]) -> Any:
    """Rows in their places in each pair, zeros where there is no word."""
    import numpy as np

    found = np.zeros((shape[0] * shape[1], rows.shape[1]), dtype=np.float32)
    found[places] = rows
    return found.reshape(*shape, -1)


def _normalized(rows: Any) -> Any:
    """Rows with a mean of zero and a deviation of one."""
    import numpy as np

    centred = rows - rows.sum(1, keepdims=True) / rows.shape[1]
    centred /= np.sqrt(np.einsum("ij,ij->i", centred, centred)[:, None] / rows.shape[1] + 1e-5)
    return centred


def _gelu(rows: Any) -> Any:
    import numpy as np

    found = rows * rows
    found *= 0.044715 * 0.7978845608
    found += 0.7978845608
    found *= rows
    np.tanh(found, out=found)
    found += 1.0
    found *= rows
    found *= 0.5
    return found


@lru_cache(maxsize=1)
def pair_attention() -> PairAttention:
    """The model as it is bundled."""
    return read_attention(FILE)


def read_attention(file: Path) -> PairAttention:
    """The model that a training script has written."""
    from engram.models.arrays import read_arrays

    return PairAttention(read_arrays(file))
