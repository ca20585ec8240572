"""Word similarity: which terms of the candidates match a term of the question in meaning, and how well.

A question about exercises should find yoga. The bundled static model has a vector for every word, so the similarity of two
words is one dot product. A similar term counts a share of an exact match, and less when it is commonplace: how informative
a word is, is the length of its vector, which is the same in every store.
"""

import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from engram.embedding.products import products
from engram.model.forks import ForkedLock
from engram.model.lazy import dataclass
from engram.text.stems import word_of
from engram.text.tokens import QUESTION_MARKER

__all__ = ["Floats", "Integers", "Lexicon", "TermSimilarity", "WordMatches", "match_words", "rarities", "rarity"]

Floats: TypeAlias = npt.NDArray[np.float32]
Integers: TypeAlias = npt.NDArray[np.int64]
ReadText: TypeAlias = tuple[Integers, int]

MAX_CACHED_TERMS = 30_000
"""Terms a process caches: 30 MB of vectors, more than a fluent speaker's vocabulary."""
MOST_TEXTS, LONG_TEXT = 20_000, 4_000
"""Texts a process caches, and their longest length: turns of conversation, some 10 MB."""
MAX_CACHED_LONG_TEXTS = 500
"""Longer texts it caches: answers of assistants, some 10 MB too."""
UNKNOWN_WEIGHT = 12.0
"""The weight of a word the model does not know: that of a rare one it knows."""


@dataclass(frozen=True, slots=True)
class TermSimilarity:
    """How similar words count. On LoCoMo and BEAM floors from .15 to .3 and shares from .5 to .7 differ by .006."""

    floor: float = 0.25
    """The cosine from which two words count as similar; random pairs are below."""
    share: float = 0.5
    """The weight of a word of the same meaning, relative to the word itself."""


@dataclass(frozen=True, slots=True)
class WordMatches:
    """What each word of a vocabulary counts for each term of a question; the rows are the terms, the columns the words."""

    same: npt.NDArray[np.bool_]
    """The word is the term."""
    cosines: Floats
    """Of term and word; zero without a model."""
    worth: Floats
    """How many occurrences of the term one occurrence of a similar word counts as; zero for the term itself."""
    weights: Floats
    """How informative each term is, independent of the store."""

    def of(self, rows: Integers) -> "WordMatches":
        """The same for some of the terms."""
        return WordMatches(self.same[rows], self.cosines[rows], self.worth[rows], self.weights[rows])


class Lexicon:
    """The terms a process has seen, numbered, with their word vectors; each text is read and each word embedded once.

    Terms are stems, so their most common word is embedded. Without `embed` no two words are similar.
    """

    def __init__(self, embed: Callable[[Sequence[str]], Floats] | None = None) -> None:
        self._embed = embed
        self._lock = ForkedLock()
        self._readers: weakref.WeakSet[object] = weakref.WeakSet()
        self._clear()

    def _clear(self) -> None:
        self._numbers: dict[str, int] = {}
        self._terms: list[str] = []
        self._rows: Floats = np.zeros((0, 0), dtype=np.float32)
        self._weights: Floats = np.zeros(0, dtype=np.float32)
        self._embedded = 0
        self._remembered = lru_cache(MOST_TEXTS)(self._read)
        self._long_remembered = lru_cache(MAX_CACHED_LONG_TEXTS)(self._read)

    def lend(self, reader: object) -> None:
        """Keep the numbers valid for as long as the reader lives."""
        with self._lock:
            self._readers.add(reader)

    def trim(self) -> None:
        """Clear the cache once it is too large and no reader uses its numbers; called between questions."""
        with self._lock:
            if len(self._terms) > MAX_CACHED_TERMS and not self._readers:
                self._clear()

    def read(self, text: str) -> ReadText:
        """The numbers of the terms of a text written by `marked_terms`, and how many of them are told, not asked."""
        return self._remembered(text) if len(text) <= LONG_TEXT else self._long_remembered(text)

    def _read(self, text: str) -> ReadText:
        numbers, terms = self._numbers, text.split()
        told = terms.index(QUESTION_MARKER) if QUESTION_MARKER in terms else len(terms)
        del terms[told : told + 1]
        with self._lock:
            for term in terms:
                if term not in numbers:
                    numbers[term] = len(self._terms)
                    self._terms.append(term)
        return np.fromiter(map(numbers.__getitem__, terms), dtype=np.int64, count=len(terms)), told

    def terms(self, numbers: Integers) -> list[str]:
        """Terms by number."""
        return [self._terms[number] for number in numbers.tolist()]

    def vectors(self, numbers: Integers) -> tuple[Floats, Floats] | None:
        """One unit row per term, zero where the model knows nothing of it, and how much each term tells; None without a model."""
        if self._embed is None:
            return None
        with self._lock:
            if self._embedded < len(self._terms):
                self._learn([word_of(term) for term in self._terms[self._embedded :]], self._embed)
            return self._rows[numbers], self._weights[numbers]

    def _learn(self, words: Sequence[str], embed: Callable[[Sequence[str]], Floats]) -> None:
        """Add words; the arrays double, so that adding one by one does not copy them each time."""
        new = embed(words)
        lengths = np.linalg.norm(new, axis=1)
        size = self._embedded + len(new)
        if size > len(self._rows):
            grown, weights = np.zeros((2 * size, new.shape[1]), dtype=np.float32), np.zeros(2 * size, dtype=np.float32)
            if self._embedded:
                grown[: self._embedded] = self._rows[: self._embedded]
                weights[: self._embedded] = self._weights[: self._embedded]
            self._rows, self._weights = grown, weights
        self._rows[self._embedded : size] = new / np.maximum(lengths, 1e-9)[:, None]
        self._weights[self._embedded : size] = np.where(lengths > 0, lengths, UNKNOWN_WEIGHT)
        self._embedded = size


def rarity(frequencies: "Sequence[int] | Integers", total: int) -> Floats:
    """BM25's inverse document frequency."""
    found = np.asarray(frequencies, dtype=np.float32)
    idf: Floats = np.log1p((np.maximum(total - found, 0) + 0.5) / (found + 0.5))
    return idf


def rarities(terms: Sequence[str], frequency: Mapping[str, int], total: int) -> Floats:
    """The rarity of each term, by how many of all documents contain it."""
    return rarity([frequency.get(term, 0) for term in terms], total)


def match_words(
    terms: Sequence[str],
    vocabulary: Integers,
    lexicon: Lexicon,
    rarer: Floats | None = None,
    rule: TermSimilarity | None = None,
) -> WordMatches:
    """What each word of the vocabulary counts for each term. A similar but more commonplace word counts less: "thing" says little
    about any one thing. So does one that is more common here: `rarer` says, for each term and word, how rare the word is
    relative to the term.
    """
    rule = rule or TermSimilarity()
    asked, _ = lexicon.read(" ".join(terms))
    same = asked[:, None] == vocabulary[None, :]
    known, words = lexicon.vectors(asked), lexicon.vectors(vocabulary)
    if known is None or words is None or not len(terms):
        nothing = np.zeros((len(terms), len(vocabulary)), dtype=np.float32)
        return WordMatches(same, nothing, nothing, np.ones(len(terms), dtype=np.float32))
    (rows, weights), (word_rows, word_weights) = known, words
    cosines = products(rows, word_rows)
    worth = rule.share * np.clip((cosines - rule.floor) / (1 - rule.floor), 0, 1)
    relative = word_weights[None, :] / weights[:, None]
    worth *= np.minimum(relative if rarer is None else np.minimum(relative, rarer), 1)
    worth[same] = 0
    return WordMatches(same, cosines, worth.astype(np.float32), weights)
