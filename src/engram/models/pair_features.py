"""The features of `engram.models.pairs`: what two statements share, what one has in place of the other, and how each is worded.

Words are aligned by their stems and by the bundled word vectors, so that "boss" stands beside "manager"; what is left over on both sides is
what was replaced. Names and numbers count by their kind, never by themselves, so that the model carries over to people and things it has
never met. training/train_pairs.py uses the same functions.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise, starmap
from typing import Any

from engram.model.lazy import dataclass
from engram.models.pair_words import (
    FUNCTION,
    NAME,
    NUMBER,
    TIME,
    WORD,
    WORDING,
    Statement,
    Token,
)
from engram.text.polarity import canonical, opposite, rival

__all__ = ["Alignment", "align", "dense", "sparse", "vectors"]

_SAME = 0.995
_ALIKE = 0.45
"""The cosine from which two words that are left over are taken for one another."""
_CONTRASTED = tuple(
    (f"word_{word}", word)
    for word in (
        "also",
        "too",
        "another",
        "other",
        "both",
        "now",
        "new",
        "still",
        "only",
        "was",
        "used",
        "had",
        "but",
        "so",
    )
)
"""Words that often tell many values from one, or the present from the past; any other is left to the n-grams."""
_ARTICLES = frozenset(("the", "a", "an", ","))


@dataclass(frozen=True, slots=True)
class Alignment:
    """Two statements side by side: the likeness of their words with meaning, and which of them the other has too."""

    older: Statement
    newer: Statement
    cosines: Any
    """A row for each such word of the newer, a column for each of the older."""
    best_old: list[float]
    best_new: list[float]
    matched_old: list[bool]
    matched_new: list[bool]
    sums: tuple[Any, Any, Any, Any]
    """The summed vectors of the older, the newer, what only the older has, and what only the newer has."""


def align(older: Statement, newer: Statement) -> Alignment:
    """The two statements' words beside one another."""
    import numpy as np

    cosines = newer.rows @ older.rows.T
    stems = [token.stem for token in older.words]
    numbers = [at for at, token in enumerate(older.words) if token.kind == NUMBER]
    for at, mine in enumerate(newer.words):
        if numbers and mine.kind == NUMBER:
            cosines[at, numbers] = 0.0
        if mine.stem in stems:
            cosines[at, [other for other, theirs in enumerate(stems) if theirs == mine.stem]] = 1.0
    empty = not (older.words and newer.words)
    best_old = [0.0] * len(older.words) if empty else cosines.max(0).tolist()
    best_new = [0.0] * len(newer.words) if empty else cosines.max(1).tolist()
    matched_old, matched_new = ([each > _SAME for each in best] for best in (best_old, best_new))
    only = [
        np.asarray([0.0 if hit else weight for hit, weight in zip(hits, each.weights, strict=True)], dtype=np.float32)
        @ each.rows
        for each, hits in ((older, matched_old), (newer, matched_new))
    ]
    sums = (older.sum, newer.sum, only[0], only[1])
    return Alignment(older, newer, cosines, best_old, best_new, matched_old, matched_new, sums)


_SIDE = ("covered", "shared", "words", "length", "left")
_ENDS = ("first", "second", "last", "runs", "subject", "subject_least", "object")
_SIDES = {side: tuple(f"{name}_{side}" for name in (*_SIDE, *_ENDS, *WORDING)) for side in ("old", "new")}


def dense(pair: Alignment) -> dict[str, float]:
    """Measures of a pair, by name; always the same names in the same order."""
    old, new = pair.older, pair.newer
    found: dict[str, float] = {}
    for side, each, best, hits in (
        ("old", old, pair.best_old, pair.matched_old),
        ("new", new, pair.best_new, pair.matched_new),
    ):
        covered, shared = _mean([max(0.0, one) for one in best], each.weights), _mean(hits, each.weights)
        counts = (len(each.words), len(each.tokens), hits.count(False))
        found.update(
            zip(_SIDES[side], (covered, shared, *counts, *_ends(each, best, hits), *each.wording), strict=True)
        )
    found.update(_cosines(pair))
    found.update(_kinds(pair))
    found.update(_leftovers(pair))
    found.update(_frame(pair))
    found.update(_numbers(pair))
    for name, word in _CONTRASTED:
        found[name] = (word in new.keys) - (word in old.keys)
    found["not_either"] = float((found["not_old"] > 0) != (found["not_new"] > 0))
    found["me_either"] = float(found["me_old"] != found["me_new"])
    found["verb"] = float(old.verb == new.verb != "")
    return found


def _mean(values: Sequence[float], weights: Sequence[float]) -> float:
    total = sum(weights)
    return sum(value * weight for value, weight in zip(values, weights, strict=True)) / total if total else 0.0


def _cosines(pair: Alignment) -> dict[str, float]:
    """The likeness of the whole statements, of what only one has, and of that to the whole other statement."""
    import numpy as np

    sums = np.array(pair.sums)
    products = (sums @ sums.T).tolist()

    def of(one: int, other: int) -> float:
        length = (products[one][one] * products[other][other]) ** 0.5
        return float(products[one][other] / length) if length > 1e-6 else 0.0

    return {"cosine": of(0, 1), "left_cosine": of(2, 3), "left_old_new": of(2, 1), "left_new_old": of(3, 0)}


def _ends(each: Statement, best: list[float], hits: list[bool]) -> tuple[float, ...]:
    """The values of `_ENDS`: how well the other has the first words, the last one, and those before and after the verb."""
    if not best:
        return (0.0, 0.0, 0.0, 0, -1.0, -1.0, -1.0)
    runs = sum([one and not two for one, two in pairwise(hits)])
    verb = each.verb_place
    before = [likeness for likeness, place in zip(best, each.places, strict=True) if place < verb]
    after = [likeness for likeness, place in zip(best, each.places, strict=True) if place > verb]
    subject = (sum(before) / len(before), min(before)) if before else (-1.0, -1.0)
    second = best[1] if len(best) > 1 else 0.0
    return (best[0], second, best[-1], runs, *subject, sum(after) / len(after) if after else -1.0)


def _kinds(pair: Alignment) -> dict[str, float]:
    """For names, numbers, times and other words: how many both have, how many only one; and names that only one has before its verb."""
    found: dict[str, float] = dict.fromkeys(_COUNTS, 0)
    for side, each, hits in (("old", pair.older, pair.matched_old), ("new", pair.newer, pair.matched_new)):
        for token, hit, place in zip(each.words, hits, each.places, strict=True):
            found[f"{token.kind}_{'both' if hit else side}"] += 1
            if token.kind == NAME and not hit and place < each.verb_place:
                found[f"subject_name_{side}"] += 1
    for kind in _KINDS:
        found[f"{kind}_replaced"] = min(found[f"{kind}_old"], found[f"{kind}_new"])
    return found


_KINDS = (NAME, NUMBER, TIME, WORD)
_COUNTS = (
    *(f"{kind}_{each}" for kind in _KINDS for each in ("both", "old", "new", "replaced")),
    "subject_name_old",
    "subject_name_new",
)


def _leftovers(pair: Alignment) -> dict[str, float]:
    """The likeness of what only one has to what only the other has."""
    old = [at for at, hit in enumerate(pair.matched_old) if not hit]
    new = [at for at, hit in enumerate(pair.matched_new) if not hit]
    names = ("best", "mean_new", "mean_old", "soft_new", "soft_old", "opposite", "rival")
    found = dict.fromkeys((f"left_{name}" for name in names), 0.0)
    if not old or not new:
        return found
    block = pair.cosines[new][:, old]
    rows, columns = block.max(1).tolist(), block.max(0).tolist()
    found["left_best"] = max(rows)
    found["left_mean_new"], found["left_mean_old"] = sum(rows) / len(rows), sum(columns) / len(columns)
    found["left_soft_new"] = sum(each > _ALIKE for each in rows) / len(rows)
    found["left_soft_old"] = sum(each > _ALIKE for each in columns) / len(columns)
    theirs = [canonical(pair.older.words[at].key) for at in old]
    mine = [canonical(pair.newer.words[at].key) for at in new]
    crossed = [(one, two) for one in mine for two in theirs]
    found["left_opposite"] = float(any(starmap(opposite, crossed)))
    found["left_rival"] = float(any(starmap(rival, crossed)))
    return found


_MIDDLES = (
    ("middle_name", NAME),
    ("middle_number", NUMBER),
    ("middle_time", TIME),
    ("middle_word", WORD),
    ("middle_function", FUNCTION),
)


def _frame(pair: Alignment) -> dict[str, float]:
    """What stands between the words that both begin with and those that both end with."""
    old = [token for token in pair.older.tokens if token.key not in _ARTICLES]
    new = [token for token in pair.newer.tokens if token.key not in _ARTICLES]
    least = min(len(old), len(new))
    head = next((at for at in range(least) if old[at].stem != new[at].stem), least)
    tail = next((at for at in range(least - head) if old[-1 - at].stem != new[-1 - at].stem), least - head)
    middle_old, middle_new = old[head : len(old) - tail], new[head : len(new) - tail]
    found: dict[str, float] = {"head": head, "tail": tail, "frame": (head + tail) / max(1, least)}
    found["middle_old"], found["middle_new"] = len(middle_old), len(middle_new)
    found["head_words"] = sum(token.kind != FUNCTION for token in old[:head])
    found["tail_words"] = sum(token.kind != FUNCTION for token in old[len(old) - tail :])
    kinds = {token.kind for token in middle_old}, {token.kind for token in middle_new}
    for name, kind in _MIDDLES:
        found[name] = (kind in kinds[0]) + (kind in kinds[1])
    stems = {token.stem for token in old}, {token.stem for token in new}
    found["common"] = len(stems[0] & stems[1]) / max(1, len(stems[0] | stems[1]))
    return found


def _numbers(pair: Alignment) -> dict[str, float]:
    """Whether a number that was replaced stands beside the same words, and on which side of the verb."""
    found = dict.fromkeys(("number_after", "number_before", "number_subject", "number_ratio"), 0.0)
    for place, number in _unmatched(pair.newer, pair.matched_new):
        for other, twin in _unmatched(pair.older, pair.matched_old):
            found["number_after"] = max(found["number_after"], _beside(pair, other, place, 1))
            found["number_before"] = max(found["number_before"], _beside(pair, other, place, -1))
            if place < pair.newer.verb_place and other < pair.older.verb_place:
                found["number_subject"] = 1.0
            found["number_ratio"] = max(found["number_ratio"], _ratio(number.stem, twin.stem))
    return found


def _unmatched(each: Statement, hits: list[bool]) -> list[tuple[int, Token]]:
    return [
        (place, token)
        for place, token, hit in zip(each.places, each.words, hits, strict=True)
        if token.kind == NUMBER and not hit
    ]


def _beside(pair: Alignment, old: int, new: int, step: int) -> float:
    one, two = pair.older.beside(old, step), pair.newer.beside(new, step)
    return float(one != "" and one == two)


def _ratio(one: str, other: str) -> float:
    try:
        low, high = sorted((abs(float(one.replace(":", "."))), abs(float(other.replace(":", ".")))))
    except ValueError:
        return 0.0
    return low / high if high and high < float("inf") else 0.0


def vectors(pair: Alignment) -> Any:
    """The vectors of what only the newer has, only the older, and both, each at most of length one."""
    import numpy as np

    old, _, left, right = pair.sums
    parts = (right, left, old - left)
    return np.concatenate([part / max(1.0, float(part @ part) ** 0.5) for part in parts])


def _masked(each: Statement, hits: list[bool]) -> list[str]:
    """Words as the model learns them: `=` for what both have, a kind for a name, number or time, else the stem."""
    found = ["^", *each.shown, "$"]
    for place, token, hit in zip(each.places, each.words, hits, strict=True):
        if hit:
            found[place + 1] = "=" if token.kind == WORD else f"={token.kind}"
    return found


def sparse(pair: Alignment) -> set[str]:
    """N-grams of each statement with what both have masked, the words both have, and the pairs of what is left over."""
    found = {"1"}
    for label, each, hits in (("n", pair.newer, pair.matched_new), ("o", pair.older, pair.matched_old)):
        keys = _masked(each, hits)
        found.update([label + key for key in keys])
        found.update([f"{label}{one} {two}" for one, two in pairwise(keys)])
        found.update([f"{label}{one} {two} {three}" for one, two, three in zip(keys, keys[1:], keys[2:], strict=False)])
        found.update([f"{label}{one} * {three}" for one, three in zip(keys, keys[2:], strict=False)])
        found.update([f"{label}@{token.key}" for token in each.tokens if token.kind == FUNCTION])
    found.update(_pairs(pair))
    return found


def _pairs(pair: Alignment) -> Iterator[str]:
    twins = pair.cosines.argmax(0).tolist() if pair.newer.words else []
    for at, token in enumerate(pair.older.words):
        if pair.matched_old[at]:
            yield f"s{token.stem}" if token.kind == WORD else f"s{token.kind}"
        elif twins:
            twin = pair.newer.words[twins[at]]
            likeness = int(max(0.0, pair.best_old[at]) * 4)
            yield f"k{token.kind}{twin.kind}{likeness}"
            if token.kind == WORD == twin.kind and likeness:
                yield f"p{token.stem} {twin.stem}"
