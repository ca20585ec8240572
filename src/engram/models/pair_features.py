"""The features of `engram.models.pairs`: what two statements share, what replaces what, and how each is worded.

Words are aligned by their stems and by the bundled word vectors, so that "boss" aligns with "manager"; the words left
over on both sides are what was replaced. Names and numbers count only by their kind, so that the model also works for
people and things that were not in its training data. training/train_pairs.py uses the same functions.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any
from zlib import crc32

from engram.embedding.vectors import dot
from engram.model.lazy import cached_property, dataclass
from engram.models.pair_words import FUNCTION, KINDS, NAME, NUMBER, TIME, WORD, WORDING, Statement, Token
from engram.text.statements import has_opposite, has_rival

__all__ = ["BUCKETS", "Alignment", "Alignments", "align", "bucket"]

BUCKETS = 1 << 16
_SAME = 0.995
_ALIKE = 0.45
"""The cosine from which two left-over words count as alike."""
_NONE = -2.0
"""Less than any cosine: the value for a word that a shorter statement lacks."""
_KINDS = slice(3, 3 + len(KINDS))
"""The columns of the kinds in `Statement.marks`."""
_NUMBERS = 3 + KINDS.index(NUMBER)
_COUNTED = 2 + len(WORDING)
"""The position in `Statement.wording` at which the contrasted words begin."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """Two aligned statements: the similarity of their content words, and which of these the other statement also
    has.
    """

    older: Statement
    newer: Statement
    cosines: Any
    """A row for each content word of the newer statement, a column for each of the older one."""
    matched_old: list[bool]
    matched_new: list[bool]


def align(older: Statement, newer: Statement) -> Alignment:
    """Align the words of two statements."""
    return Alignments([(older, newer)])[0]


class Alignments:
    """Many pairs of statements, the older first, aligned together because numpy has a high cost per call.

    Arrays have a row for each older statement, followed by one for each newer statement; shorter statements are padded
    with zeros.
    """

    def __init__(self, pairs: Sequence[tuple[Statement, Statement]]) -> None:
        import numpy as np

        self.pairs = pairs
        self._each = [older for older, _ in pairs] + [newer for _, newer in pairs]
        sizes = np.array([len(each.words) for each in self._each])
        self._seen = np.arange(max(2, sizes.max())) < sizes[:, None]
        self._rows, self._marks, self._hashes = (
            _pad_arrays([getattr(each, name) for each in self._each], self._seen)
            for name in ("rows", "marks", "hashes")
        )
        self._cosines = self._compare_words()
        best = np.concatenate([self._cosines.max(1), self._cosines.max(2)])
        self._best = np.where(best > _NONE, best, 0.0)
        self._hits = self._best > _SAME
        self._left = self._seen & ~self._hits

    def __getitem__(self, at: int) -> Alignment:
        return self._alignments[at]

    @cached_property
    def _alignments(self) -> list[Alignment]:
        hits, half = self._hits.tolist(), len(self.pairs)
        return [
            Alignment(old, new, self._cosines[at], hits[at][: len(old.words)], hits[half + at][: len(new.words)])
            for at, (old, new) in enumerate(self.pairs)
        ]

    def _cross_words(self, each: Any) -> tuple[Any, Any]:
        """Values of the words of the newer statements as rows, and of the older as columns."""
        return each[len(self.pairs) :, :, None], each[: len(self.pairs), None]

    def _compare_words(self) -> Any:
        """The similarity of any two words of a pair: different numbers are never alike, and words with the same stem
        are equal.
        """
        import numpy as np

        (new, old), half = self._cross_words(self._seen), len(self.pairs)
        cosines = np.where(new & old, dot(self._rows[half:], self._rows[:half].transpose(0, 2, 1)), _NONE)
        new_number, old_number = self._cross_words(self._marks[:, :, _NUMBERS] > 0)
        cosines[new_number & old_number] = 0.0
        new_stem, old_stem = self._cross_words(self._hashes)
        cosines[(new_stem == old_stem) & new & old] = 1.0
        return cosines

    # -- measures

    def measures(self) -> Any:
        """A row of measures for each pair."""
        import numpy as np

        # The sums of four values and a one over all words, by the marks of the words.
        values = np.stack([self._best, self._best.clip(0.0), self._hits, self._left, self._seen], axis=1)
        summed = dot(values, self._marks).transpose(1, 2, 0)
        wording = np.array([each.wording for each in self._each]).T
        half, sides = len(self.pairs), self._of_sides(summed)
        sides = np.concatenate([sides[:2], wording[:2], sides[2:], wording[2:_COUNTED]])
        either = np.array([wording[2 + WORDING.index("not")] > 0, wording[2 + WORDING.index("me")]])
        worded = np.array(list(map(_of_words, self._alignments)), dtype=np.float32).T
        parts = (
            *(sides[:, :half], sides[:, half:], self._of_sums(), self._of_kinds(summed), self._of_leftovers()),
            *(worded[:-1], wording[_COUNTED:, half:] - wording[_COUNTED:, :half]),
            *(either[:, :half] != either[:, half:], worded[-1:]),
        )
        return np.concatenate(parts, dtype=np.float32).T

    def _of_sides(self, summed: Any) -> Any:
        """Measures of each statement against the other one.

        How much of it the other has, approximately and exactly; how many words are left over; how well the other covers
        its first, second and last word; how often a shared word precedes one that is left over; how well the other
        covers what precedes the verb, on average and at least, and what follows it.
        """
        import numpy as np

        best, (likeness, covered, hits, left, every) = self._best, summed
        total, before, after = np.maximum(every[:3], 1e-6)
        has_before, has_after = every[1] > 0, every[2] > 0
        least = np.where(self._marks[:, :, 1] > 0, best, 1.0).min(1)
        return np.array(
            [
                *(covered[0] / total, hits[0] / total, left[_KINDS].sum(0)),
                *(best[:, 0], best[:, 1], best[np.arange(len(best)), self._seen.sum(1) - 1]),
                (self._hits[:, :-1] & self._left[:, 1:]).sum(1),
                np.where(has_before, likeness[1] / before, -1.0),
                np.where(has_before, least, -1.0),
                np.where(has_after, likeness[2] / after, -1.0),
            ]
        )

    def _of_sums(self) -> Any:
        """The similarity of the whole statements, of the parts that only one has, and of these parts to the whole other
        statement.
        """
        import numpy as np

        sums = np.stack(self.sums, axis=1)
        products = dot(sums, sums.transpose(0, 2, 1)).transpose(1, 2, 0)
        one, other = [0, 2, 2, 3], [1, 3, 1, 0]
        lengths = np.sqrt(products[one, one] * products[other, other])
        return np.where(lengths > 1e-6, products[one, other] / np.maximum(lengths, 1e-6), 0.0)

    @cached_property
    def sums(self) -> tuple[Any, Any, Any, Any]:
        """The summed vectors of the older statements, the newer ones, what only the older have, and what only the newer
        have.
        """
        import numpy as np

        half, sums = len(self.pairs), np.array([each.sum for each in self._each])
        only = dot((self._left * self._marks[:, :, 0])[:, None], self._rows)[:, 0]
        return sums[:half], sums[half:], only[:half], only[half:]

    def vectors(self) -> Any:
        """The vectors of what only the newer has, only the older, and both, each of length one at most; a row for each
        pair.
        """
        import numpy as np

        old, _, left, right = self.sums
        parts = np.stack([right, left, old - left], axis=1)
        lengths = np.sqrt((parts * parts).sum(2, keepdims=True))
        return (parts / np.maximum(1.0, lengths)).reshape(len(parts), -1)

    def _of_kinds(self, summed: Any) -> Any:
        """Counts for names, numbers, times and other words.

        For each kind: how many both have, only the older, only the newer, and how many were replaced; then how many
        names only the older has before its verb, and how many only the newer.
        """
        import numpy as np

        half, hits, left = len(self.pairs), summed[2, _KINDS], summed[3, _KINDS]
        old, new = left[:, :half], left[:, half:]
        counts = np.stack([hits[:, :half] + hits[:, half:], old, new, np.minimum(old, new)], axis=1)
        return np.concatenate([counts.reshape(-1, half), summed[3, -1].reshape(2, half)])

    def _of_leftovers(self) -> Any:
        """The similarity of what only one has to what only the other has: the best, the average, and how many words
        have a match.
        """
        import numpy as np

        half, (new, old) = len(self.pairs), self._cross_words(self._left)
        block = np.where(new & old, self._cosines, _NONE)
        nearest = np.concatenate([block.max(1), block.max(2)])
        found = nearest > _NONE
        counts = np.maximum(found.sum(1), 1)
        mean, soft = (nearest * found).sum(1) / counts, (nearest > _ALIKE).sum(1) / counts
        best = np.where(found[:half].any(1), nearest[:half].max(1), 0.0)
        return np.array([best, mean[half:], mean[:half], soft[half:], soft[:half]])

    # -- n-grams

    def buckets(self) -> tuple[Any, Any]:
        """The hash buckets of the n-grams of each statement with shared words masked, of the shared words, and of the
        pairs of left-over words.

        Returns the buckets of all pairs in one array, and the start of each pair.
        """
        import numpy as np

        twins, best = self._cosines.argmax(1).tolist(), self._best.tolist()
        found: list[Any] = []
        for at, pair in enumerate(self._alignments):
            found.append(_grams("n", _mask_words(pair.newer, pair.matched_new), pair.newer.functions))
            found.append(_grams("o", _mask_words(pair.older, pair.matched_old), pair.older.functions))
            found.append([bucket("1"), *map(bucket, _twins(pair, twins[at], best[at]))])
        firsts = np.arange(0, len(self.pairs) * BUCKETS, BUCKETS)
        places = np.concatenate(found) + np.repeat(np.repeat(firsts, 3), list(map(len, found)))
        # Each counts once in a pair; `np.unique` is much slower for so few.
        places.sort()
        places = places[np.append(True, places[1:] != places[:-1])]
        return places % BUCKETS, places.searchsorted(firsts)


def _pad_arrays(parts: Sequence[Any], seen: Any) -> Any:
    """Arrays of different lengths as one, padded with zeros."""
    import numpy as np

    found = np.zeros((*seen.shape, *parts[0].shape[1:]), dtype=parts[0].dtype)
    found[seen] = np.concatenate(parts)
    return found


def _of_words(pair: Alignment) -> tuple[float, ...]:
    """Features that are easier to compute word by word: opposites and rivals among left-over words, the frame, numbers,
    and whether the verb is the same.
    """
    old, new = pair.older, pair.newer
    contrast = _contrast(pair) if old.contrastive or new.contrastive else (False, False)
    return (*contrast, *_frame(old, new), *_numbers(pair), old.verb == new.verb != "")


def _contrast(pair: Alignment) -> tuple[bool, bool]:
    """Whether there are opposites and rivals among the left-over words of both.

    Of two opposites at least one is contrastive; of two rivals both are.
    """
    older, newer = pair.older, pair.newer
    their_own = [older.canonical[at] for at in older.contrastive if not pair.matched_old[at]]
    my_own = [newer.canonical[at] for at in newer.contrastive if not pair.matched_new[at]]
    if not their_own and not my_own:
        return False, False
    theirs = [word for word, hit in zip(older.canonical, pair.matched_old, strict=True) if not hit]
    mine = [word for word, hit in zip(newer.canonical, pair.matched_new, strict=True) if not hit]
    return has_opposite(my_own, theirs) or has_opposite(their_own, mine), has_rival(my_own, their_own)


def _frame(older: Statement, newer: Statement) -> tuple[float, ...]:
    """The words that both begin with and that both end with, and what is between them.

    How many there are at either end, and how many of them are content words; how many words are between them in each,
    and of which kinds; and how many of all words both share.
    """
    old, new = older.stems, newer.stems
    least = min(len(old), len(new))
    head = _count_equal_starts(old, new)
    tail = min(_count_equal_starts(reversed(old), reversed(new)), least - head)
    begin, end = older.kinds[:head], older.kinds[len(old) - tail :]
    one, two = older.kinds[head : len(old) - tail], newer.kinds[head : len(new) - tail]
    common = len(older.stem_set & newer.stem_set)
    return (
        *(head, tail, (head + tail) / max(1, least), len(one), len(two)),
        *(head - begin.count(FUNCTION), tail - end.count(FUNCTION)),
        *[(kind in one) + (kind in two) for kind in _MIDDLES],
        common / max(1, len(older.stem_set) + len(newer.stem_set) - common),
    )


_MIDDLES = (NAME, NUMBER, TIME, WORD, FUNCTION)


def _count_equal_starts(some: Iterable[str], others: Iterable[str]) -> int:
    """The number of equal items at the beginning."""
    count = 0
    for one, other in zip(some, others, strict=False):
        if one != other:
            break
        count += 1
    return count


def _numbers(pair: Alignment) -> tuple[float, float, float, float]:
    """Whether a replaced number comes before the same word, after it, and before the verb; and the ratio of the two
    numbers.
    """
    after = before = subject = ratio = 0.0
    if NUMBER not in pair.older.kinds or NUMBER not in pair.newer.kinds:
        return after, before, subject, ratio
    for place, number in _find_unmatched(pair.newer, pair.matched_new):
        for other, twin in _find_unmatched(pair.older, pair.matched_old):
            after = max(after, _beside(pair, other, place, 1))
            before = max(before, _beside(pair, other, place, -1))
            subject = max(subject, float(place < pair.newer.verb_place and other < pair.older.verb_place))
            ratio = max(ratio, _ratio(number.stem, twin.stem))
    return after, before, subject, ratio


def _find_unmatched(each: Statement, hits: list[bool]) -> list[tuple[int, Token]]:
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


def _mask_words(each: Statement, hits: list[bool]) -> tuple[str, ...]:
    """Words in the form the model learns: `=` for a shared word, a kind for a name, number or time, otherwise the
    stem.
    """
    found = ["^", *each.model_tokens, "$"]
    for place, token, hit in zip(each.places, each.words, hits, strict=True):
        if hit:
            found[place + 1] = "=" if token.kind == WORD else f"={token.kind}"
    return tuple(found)


@lru_cache(maxsize=1 << 13)
def _grams(label: str, keys: tuple[str, ...], functions: tuple[str, ...]) -> Any:
    """The buckets of n-grams of up to three words, and of the function words."""
    import numpy as np

    follows = [f" {key}".encode("utf-8", "surrogatepass") for key in keys]
    # The hash of a longer n-gram continues that of the shorter one.
    ones = [crc32(f"{label}{key}".encode("utf-8", "surrogatepass")) for key in keys]
    twos = list(map(crc32, follows[1:], ones))
    threes = map(crc32, follows[2:], twos)
    apart = (crc32(b" *" + third, one) for third, one in zip(follows[2:], ones, strict=False))
    return np.array([*ones, *twos, *threes, *apart, *(bucket(f"{label}@{key}") for key in functions)]) % BUCKETS


def _twins(pair: Alignment, twins: list[int], best: list[float]) -> Iterator[str]:
    """Each word of the older statement: marked as shared, or with the most similar word of the newer statement."""
    words = pair.newer.words
    # The lists continue if a longer statement has more words.
    for token, hit, place, nearest in zip(pair.older.words, pair.matched_old, twins, best, strict=False):
        kind = token.kind
        if hit:
            yield f"s{token.stem}" if kind == WORD else f"s{kind}"
        elif words:
            twin, likeness = words[place], int(nearest * 4) if nearest > 0 else 0
            yield f"k{kind}{twin.kind}{likeness}"
            if likeness and kind == WORD == twin.kind:
                yield f"p{token.stem} {twin.stem}"


@lru_cache(maxsize=1 << 16)
def bucket(gram: str) -> int:
    """The hash bucket of an n-gram."""
    return crc32(gram.encode("utf-8", "surrogatepass")) % BUCKETS
