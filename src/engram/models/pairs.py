"""Classifies how a new statement relates to an older one: the same, an update, a contradiction, a refinement, or
different.

The result is the mean of two models that make different errors: scores of n-grams and a small hidden layer over the
features of `engram.models.pair_features`, trained by training/train_pairs.py, and, unless these already say
"different", the attention of `PairAttention`. Both are trained on pairs by many writers and evaluated on held-out
writers. numpy is imported and the weights are read on first use; the result is deterministic.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import nan
from pathlib import Path
from typing import Any, NamedTuple

from engram.embedding.vectors import cross_products, dot, multiply
from engram.model.forks import ForkedLock
from engram.model.lazy import dataclass
from engram.models.pair_features import BUCKETS, Alignment, Alignments, bucket
from engram.models.pair_words import FUNCTION, NAME, NUMBER, TIME, WORD, Statement, Token, read_statement, word_vectors

__all__ = [
    "ATTENTION_FILE",
    "KINDS",
    "LABELS",
    "LIKELY_CHANGE",
    "MAX_STATEMENT_WORDS",
    "MIN_SAME",
    "SURE_UPDATE",
    "PairAttention",
    "Relation",
    "pair_attention",
    "probabilities",
    "read_attention",
    "relate",
    "relate_all",
    "relate_pairs",
]

ATTENTION_FILE = Path(__file__).with_name("pair_attention.npz")
KINDS = (NUMBER, NAME, TIME, FUNCTION, WORD)
MAX_STATEMENT_WORDS = 40
"""The maximum number of words of a statement that are read."""
HEADS = 4
VECTOR_SCALE, BIAS_SCALE, MAX_INPUT_DEVIATIONS = 4.0, 4.0, 5.0
SCALE = "_scale"
"""The suffix of the name of a weight's scale: the factor for the bytes of each row."""
_NONE = -1e4
_MOST_SCORED = 80.0
_MOST_KNOWN = 4_096
"""The number of words that a model caches, about 6 MB."""


class PairAttention:
    """The layers and their weights, by the names that the training gave them.

    While the n-gram model weighs n-grams and measures of a pair, this one reads the words in order: each word attends
    to those of its own statement and to similar ones of the other. Trained by training/train_pair_attention.py; numpy
    is imported and the weights are read on first use.
    """

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
        # Matrices are stored in the memory order that the products need.
        self.turned = {name: np.ascontiguousarray(array.T) for name, array in self.weights.items() if array.ndim > 1}
        self._known = _KnownWords(self)

    def _fold(self, name: str) -> None:
        """Fold constant factors into the weights of a layer: the weights of the norms, and the scale of the scores."""
        weights, size = self.weights, self.weights[f"{name}n1_weight"].size
        for norm, linear in (("n1", "qkv"), ("n2", "f1")):
            weights[f"{name}{linear}_bias"] += dot(weights[f"{name}{linear}_weight"], weights[f"{name}{norm}_bias"])
            weights[f"{name}{linear}_weight"] *= weights[f"{name}{norm}_weight"]
        for part in ("weight", "bias"):
            weights[f"{name}qkv_{part}"][:size] /= (size // HEADS) ** 0.5

    def probabilities(self, pairs: Sequence[tuple[Statement, Statement]], measures: Any = None) -> Any:
        """A row of label probabilities for each pair, given its measures if the model was trained with any."""
        import numpy as np

        rows, seen, likenesses, newer = self._read(pairs)
        places = np.flatnonzero(seen)
        for layer, biases in enumerate(self._biases(likenesses)):
            rows = self._layer(f"bl_{layer}_", rows, places, biases)
        hidden = _normalize_rows(rows)
        hidden *= self.weights["n_weight"]
        hidden += self.weights["n_bias"]
        parts = self._pool_words(_spread(hidden, places, seen.shape), seen, newer)
        if measures is not None:
            scaled = (measures - self.weights["mean"]) / self.weights["sd"]
            parts.append(scaled.clip(-MAX_INPUT_DEVIATIONS, MAX_INPUT_DEVIATIONS))
        logits = self._linear("o", _gelu(self._linear("h", np.concatenate(parts, axis=1))))
        likely = np.exp(logits - logits.max(1, keepdims=True))
        return likely / likely.sum(1, keepdims=True)

    def _linear(self, name: str, rows: Any) -> Any:
        found = multiply(rows, self.turned[f"{name}_weight"])
        found += self.weights[f"{name}_bias"]
        return found

    def _biases(self, likenesses: Any) -> Any:
        """(layers x pairs x heads x words x words) the bias on the score of one word for another, independent of their
        content.
        """
        import numpy as np

        total, kinds, width, _ = likenesses.shape
        weights = np.full((self.layers * HEADS, kinds), _NONE, dtype=np.float32)
        weights[:, :-1] = BIAS_SCALE * np.hstack([self.weights[f"bl_{layer}_b"] for layer in range(self.layers)]).T
        found = dot(weights, likenesses.reshape(total, kinds, -1))
        return found.reshape(total, self.layers, HEADS, width, width).swapaxes(0, 1)

    def _read(self, pairs: Sequence[tuple[Statement, Statement]]) -> tuple[Any, Any, Any, Any]:
        """The words of all pairs as rows, one after the other, with the masks and similarities that attention needs.

        Returns which positions of each pair have a word; the similarity of any two words, whether they are the same,
        whether they are in different statements, and whether the second is missing; and which positions belong to the
        newer statement.
        """
        import numpy as np

        read = {id(each): each.tokens[:MAX_STATEMENT_WORDS] for pair in pairs for each in pair}
        places, words = self._known.of([token for tokens in read.values() for token in tokens])
        ends = np.cumsum([len(tokens) for tokens in read.values()])
        found = dict(zip(read, np.split(places, ends[:-1]), strict=True))
        first, second = (max(len(read[id(pair[side])]) for pair in pairs) for side in (0, 1))
        # Position 0 means no word.
        at = np.zeros((len(pairs), first + second), dtype=np.int64)
        for row, (older, newer) in zip(at, pairs, strict=True):
            for statement, start in ((older, 0), (newer, first)):
                row[start : start + len(found[id(statement)])] = found[id(statement)]
        seen, stems, content = at > 0, words.hashes[at], words.content[at]
        same = ((stems[:, :, None] == stems[:, None]) & seen[:, :, None] & seen[:, None]).astype(np.float32)
        likeness = np.maximum(cross_products(words.vectors[at]), same)
        side = np.arange(first + second) >= first
        other = np.broadcast_to((side[:, None] != side).astype(np.float32), same.shape)
        # Only words of different statements are compared, so a quarter of the table is enough.
        across, repeated = likeness[:, :first, first:], same[:, :first, first:]
        best, again = np.zeros_like(content), np.zeros_like(content)
        best[:, :first] = (across * content[:, None, first:]).max(2, initial=0.0)
        best[:, first:] = (across * content[:, :first, None]).max(1, initial=0.0)
        again[:, :first], again[:, first:] = repeated.max(2, initial=0.0), repeated.max(1, initial=0.0)
        marks = np.stack([again, best, best * best, content], axis=-1)
        placed = self.weights["seg_weight"][side.astype(np.int64)]
        placed = placed + self.weights["pos_weight"][np.concatenate([np.arange(first), np.arange(second)])]
        missing = np.broadcast_to(~seen[:, None], same.shape)
        return (
            words.rows[at[seen]] + placed[np.nonzero(seen)[1]] + self._linear("m", marks[seen]),
            seen,
            np.stack([likeness, same, other, missing], axis=1),
            side,
        )

    def _layer(self, name: str, rows: Any, places: Any, biases: Any) -> Any:
        """One layer: each word adds a weighted sum of the words it attends to."""
        import numpy as np

        (total, heads, width, _), size = biases.shape, rows.shape[1]
        split = _spread(self._linear(f"{name}qkv", _normalize_rows(rows)), places, (total, width))
        asked, offered, said = split.reshape(total, width, 3, heads, -1).transpose(2, 0, 3, 1, 4)
        scores = dot(asked, offered.transpose(0, 1, 3, 2))
        scores += biases
        # Larger values would overflow the sum; they do not occur.
        np.exp(np.minimum(scores, _MOST_SCORED, out=scores), out=scores)
        heard = dot(scores, said) / scores.sum(-1, keepdims=True)
        heard = heard.transpose(0, 2, 1, 3).reshape(-1, size).take(places, 0)
        rows = rows + self._linear(f"{name}p", heard)
        return rows + self._linear(f"{name}f2", _gelu(self._linear(f"{name}f1", _normalize_rows(rows))))

    @staticmethod
    def _pool_words(hidden: Any, seen: Any, newer: Any) -> list[Any]:
        """The mean and the maximum over the words of each statement."""
        import numpy as np

        means, most = [], []
        for side in (~newer, newer):
            there, said = seen[:, side], hidden[:, side]
            means.append(said.sum(1) / np.maximum(there.sum(1, keepdims=True), 1).astype(np.float32))
            said[~there] = _NONE
            most.append(said.max(1).clip(-50.0))
        return means + most


class _Words(NamedTuple):
    """Properties of single words, the first row for a missing word: rows, unit vectors, hashes of stems, and whether
    they are content words.
    """

    rows: Any
    vectors: Any
    hashes: Any
    content: Any


class _KnownWords:
    """Caches the properties of words. Existing rows never change, so other threads may read the arrays while words are
    added.
    """

    def __init__(self, model: PairAttention) -> None:
        self._model = model
        self._lock = ForkedLock()
        self._places: dict[tuple[str, str, str], int] = {}
        self._words: _Words | None = None

    def of(self, tokens: Sequence[Token]) -> "tuple[Any, _Words]":
        """The index of each word in the arrays, and the arrays."""
        import numpy as np

        keys = [(token.key, token.stem, token.kind) for token in tokens]
        with self._lock:
            if len(self._places) > _MOST_KNOWN:
                self._places, self._words = {}, None
            new = [key for key in dict.fromkeys(keys) if key not in self._places]
            if new or self._words is None:
                self._add(new)
            assert self._words is not None
            return np.array([self._places[key] for key in keys], dtype=np.int64), self._words

    def _add(self, keys: Sequence[tuple[str, str, str]]) -> None:
        """Add words. The arrays grow by doubling, so adding a few words does not copy them each time."""
        import numpy as np

        weights = self._model.weights
        kinds = np.array([KINDS.index(kind) for _, _, kind in keys], dtype=np.int64)
        vectors = word_vectors([key for key, _, _ in keys])[0]
        vectors[kinds == KINDS.index(NUMBER)] = 0.0
        own = [0 if kind in (NUMBER, NAME) else self._model.places.get(stem, 0) for _, stem, kind in keys]
        hashes = np.array([hash(stem) for _, stem, _ in keys], dtype=np.int64)
        content = (kinds != KINDS.index(FUNCTION)).astype(np.float32)
        rows = multiply(vectors, self._model.turned["v_weight"])
        rows += weights["st_weight"][own] + weights["k_weight"][kinds]
        known, size = len(self._places) + 1, len(self._places) + 1 + len(keys)
        if self._words is None or size > len(self._words.rows):
            self._words = _enlarge(self._words, known, (rows, vectors, hashes, content), 2 * size)
        for array, new in zip(self._words, (rows, vectors, hashes, content), strict=True):
            array[known:size] = new
        self._places.update(zip(keys, range(known, size), strict=True))


def _enlarge(words: "_Words | None", known: int, like: tuple[Any, ...], room: int) -> "_Words":
    """The given number of first words in larger arrays."""
    import numpy as np

    arrays = [np.zeros((room, *each.shape[1:]), dtype=each.dtype) for each in like]
    for array, old in zip(arrays, words or (), strict=False):
        array[:known] = old[:known]
    return _Words(*arrays)


def _spread(rows: Any, places: Any, shape: tuple[int, int]) -> Any:
    """Put rows at their positions in each pair, with zeros if there is no word."""
    import numpy as np

    found = np.zeros((shape[0] * shape[1], rows.shape[1]), dtype=np.float32)
    found[places] = rows
    return found.reshape(*shape, -1)


def _normalize_rows(rows: Any) -> Any:
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
    """The bundled model."""
    return read_attention(ATTENTION_FILE)


def read_attention(file: Path) -> PairAttention:
    """Read a model written by a training script."""
    from engram.models.weights import read_arrays

    return PairAttention(read_arrays(file))


LABELS = ("same", "update", "contradiction", "refinement", "different")
LIKELY_CHANGE = 0.60
"""The probability of an update or contradiction from which a person or the caller is notified. On held-out writers,
before the last training, .53 of the changes reached it and .029 of the look-alikes; for the two who wrote plainly .69
and .017.
"""
SURE_UPDATE = 0.75
"""The probability of an update from which the older statement may be superseded, unless their words speak against it
(`engram.gates.certainty`). Before the last training .29 of the updates reached it and .005 of the look-alikes.
"""
MIN_SAME = 0.65
"""The probability from which the newer statement adds nothing new."""

NETWORK_FILE = Path(__file__).with_name("pairs.bin")
MEASURES = 107
"""The number of measures of a pair; its vectors follow them."""
HIDDEN = 144
MOST_DEVIATIONS = 5.0
_APART_FROM = 0.85
"""The probability of "different" from which the second model is skipped. None of 12,276 skipped pairs would have been
reported.
"""
_FAR = 0.1
"""Statements with a lower cosine are not compared: they are about different things, or their words show no relation."""
_CUE = 0.05
"""The minimum weight of a word for a change to be given as a reason."""
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
    """The words replaced and the word that indicates a change; "" if the two are about different things."""

    @property
    def label(self) -> str:
        """The most probable of `LABELS`."""
        return max(LABELS, key=lambda label: float(getattr(self, label)))

    @property
    def change(self) -> float:
        """The probability that the two cannot both be true now."""
        return self.update + self.contradiction


_APART = Relation(0.0, 0.0, 0.0, 0.0, 1.0)
_SAME = Relation(1.0, 0.0, 0.0, 0.0, 0.0, "says the same")


def relate(older: str, newer: str, cosine: float = nan) -> Relation:
    """How a newer statement relates to an older one. A very low cosine of the two makes the comparison unnecessary."""
    return relate_all([older], newer, [cosine])[0]


def relate_all(older: Sequence[str], newer: str, cosines: Sequence[float] | None = None) -> list[Relation]:
    """How a new statement relates to each of its neighbours."""
    near = [at for at in range(len(older)) if not (cosines and cosines[at] < _FAR)]
    found = [_APART] * len(older)
    for at, relation in zip(near, relate_pairs([(older[at], newer) for at in near]), strict=True):
        found[at] = relation
    return found


def relate_pairs(pairs: Sequence[tuple[str, str]], *, reasons: bool = True) -> list[Relation]:
    """How the newer statement of each pair, the second, relates to the older one. One call for many pairs is faster,
    and faster still without reasons.
    """
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
    """The input of the network: a row of measures and vectors for each pair, and the buckets of its n-grams."""
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
    """Scores by n-grams, measures and vectors, and a hidden layer over the measures and the scores; the weights are as
    in the file.
    """

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
        """The weight of each n-gram for a label over `different`."""
        rows = self.grams[[bucket(gram) for gram in grams]] * self.gram_scale
        found: list[float] = (rows[:, LABELS.index(label)] - rows[:, -1]).tolist()
        return found


@lru_cache(maxsize=1)
def _network() -> PairNetwork:
    return PairNetwork(NETWORK_FILE.read_bytes())


# -- reasons


def _reason(pair: Alignment, label: str) -> str:
    """The words replaced and the word that indicates it: `npm → pnpm ("moved from")`."""
    if label == "same":
        return "says the same"
    if label == "refinement":
        added = [token.key for token, hit in zip(pair.newer.words, pair.matched_new, strict=True) if not hit]
        return f"adds {', '.join(added[:3])}"[:_LONGEST_REASON]
    replaced, cue = _describe_replacement(pair), _cue(pair, label)
    return " ".join(filter(None, (replaced, f'("{cue}")' if cue else "")))[:_LONGEST_REASON]


def _describe_replacement(pair: Alignment) -> str:
    """The word of the older statement that was most likely replaced, and its replacement; "" if there is none."""
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
    """The one or two words of the newer statement with the most weight for a change."""
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
