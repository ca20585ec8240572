"""Compares which terms of the question each hit covers in meaning, and finds hits that cover less of it than another
one.
"""

import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from engram.embedding.vectors import products
from engram.model.forks import ForkedLock
from engram.model.hit import Hit
from engram.model.lazy import dataclass
from engram.model.memory import Memory
from engram.recall.cutoff import LOOKED_UP_RELEVANCE, SURE_RELEVANCE, asks_for_several, best_relevance, is_read
from engram.text.entities import entities
from engram.text.tokens import QUESTION_MARKER, query_terms, tokens
from engram.text.words import word_of

if TYPE_CHECKING:
    import numpy as np

    from engram.recall.freshness import Replacements

__all__ = [
    "MIN_SHARE",
    "Floats",
    "Integers",
    "Lexicon",
    "TermSimilarity",
    "WordMatches",
    "find_covering_less",
    "find_siblings",
    "match_words",
    "measure_coverage",
    "rarities",
    "rarity",
    "terms_of_hit",
]

MIN_SHARE = 0.5
"""A hit that covers less than this share of the distinguishing words that the best hit covers is about something
else.
"""
MIN_SHARE_OF_SEVERAL = 0.6
"""The same if several things are asked for, for a hit whose relevance is also below this share of the best one's."""


def find_covering_less(
    question: str, hits: Sequence[Hit], searched: Sequence[Hit], replaced: "Replacements"
) -> frozenset[str]:
    """The ids of the memories that are about another entity, or cover less of the question than another hit.

    `searched` are the hits of the search, whatever their relevance. A memory also covers the terms of the memories it
    replaced. A memory that was looked up, not searched for, need not share a word with the question.

    In "when does the trucking client pay?" every memory about that client matches two words of three, and each seems
    relevant by itself. Compared with the memory that says when the client pays, the others are about something else:
    the words of the question that not all hits have distinguish them. A word counts by the most similar word of a
    memory and its cues.

    A memory about another entity of the same kind does not answer either: "the lamp of the Hartwig microscope" when the
    question is about the Leitz microscope.
    """
    hits = [
        hit for hit in hits if hit.memory is not None and hit.relevance < LOOKED_UP_RELEVANCE and not _is_for_task(hit)
    ]
    siblings = find_siblings(question, searched)
    # A memory about the named entity that lacks what its siblings say does not answer either.
    names = {term for name in entities(question) for term in query_terms(name)} if siblings else set()
    terms = [term for term in dict.fromkeys(query_terms(question)) if term not in names]
    rivals = [*hits, *(hit for hit in searched if hit.id in siblings and hit not in hits)]
    if len(rivals) < 2 or not terms:
        return siblings
    shares = dict(zip([hit.id for hit in rivals], measure_coverage(terms, rivals), strict=True))
    for older, found in replaced.newer.items():
        for newer in found:
            is_likely = (older, newer.id) not in replaced.unmentioned
            if newer.id in shares and is_likely and (shares[newer.id] or _is_recorded(older, newer)):
                shares[newer.id] = max(shares[newer.id], shares.get(older, 0.0))
    # Evidence from documents sets no standard for people's own statements.
    standard = [hit for hit in rivals if not is_read(hit)] or rivals
    most = max([shares[hit.id] for hit in standard if hit in hits], default=0.0)
    if asks_for_several(question):
        far = [hit for hit in hits if hit.relevance < MIN_SHARE_OF_SEVERAL * best_relevance(hits)]
        return siblings | {hit.id for hit in far if shares[hit.id] < MIN_SHARE_OF_SEVERAL * most}
    # A sibling may share the question's words while the answer uses others, so it only refutes unlikely hits.
    most_of_all = max(shares[hit.id] for hit in standard)
    least = {hit.id: MIN_SHARE * (most if hit.relevance >= SURE_RELEVANCE else most_of_all) for hit in hits}
    return siblings | {hit.id for hit in hits if shares[hit.id] < least[hit.id]}


def find_siblings(question: str, hits: Sequence[Hit]) -> frozenset[str]:
    """The ids of the memories that answer for another entity than the only one the question names.

    Empty unless some hit has that name.
    """
    names = [frozenset(query_terms(name)) for name in entities(question)]
    if len(names) != 1 or not names[0] or not any(names[0] <= terms_of_hit(hit) for hit in hits):
        return frozenset()
    asked = set(query_terms(question))
    return frozenset(
        hit.id
        for hit in hits
        if hit.memory is not None
        and names[0].isdisjoint(own := terms_of_hit(hit))
        and asked & own
        and _names_another(hit, asked)
    )


def measure_coverage(terms: Sequence[str], hits: Sequence[Hit]) -> list[float]:
    """For each hit, its weighted share of the terms that not all hits have; 1 if nothing distinguishes the hits."""
    import numpy as np

    exact, near, weights = _compare(terms, [terms_of_hit(hit) for hit in hits])
    distinguishing = ~exact.all(axis=0)
    if not distinguishing.any():
        return [1.0] * len(hits)
    chosen = weights * distinguishing
    shares: list[float] = ((near * chosen).sum(axis=1) / np.maximum(chosen.sum(), 1e-9)).tolist()
    return shares


def terms_of_hit(hit: Hit) -> set[str]:
    """The index terms of a hit's text and cues."""
    cues = hit.memory.cues if hit.memory is not None else ()
    return set(tokens(" . ".join((hit.text, *cues))))


def _compare(terms: Sequence[str], told: Sequence[Collection[str]]) -> "tuple[np.ndarray, Floats, Floats]":
    """(texts x terms) whether a text has a term, and how similar its closest word is; and the weight of each term."""
    import numpy as np

    from engram.recall.ranking import shared_lexicon

    lexicon = shared_lexicon(alike=True)
    read = [lexicon.read(" ".join(sorted(words)))[0] for words in told]
    vocabulary, places = np.unique(np.concatenate(read), return_inverse=True)
    found = match_words(terms, vocabulary, lexicon)
    columns = np.split(places, np.cumsum([len(words) for words in read])[:-1])
    exact = np.array([found.same[:, own].any(axis=1) for own in columns])
    near = np.array([found.cosines[:, own].max(axis=1, initial=0.0) for own in columns])
    near[near < TermSimilarity().floor] = 0.0
    return exact, np.where(exact, np.float32(1), near), found.weights


def _names_another(hit: Hit, asked: Collection[str]) -> bool:
    return any(set(query_terms(name)).isdisjoint(asked) for name in entities(hit.text) if query_terms(name))


def _is_recorded(older: str, newer: Memory) -> bool:
    """Whether a replacement is recorded, not only inferred by a model."""
    return older in newer.supersedes or any(link.target == older for link in newer.associations)


def _is_for_task(hit: Hit) -> bool:
    """Whether a memory was found by its situation. It need not share a word with the task."""
    from engram.recall.situated import is_about_task, is_situated

    return is_about_task(hit) and is_situated(hit)


Floats: TypeAlias = npt.NDArray[np.float32]
Integers: TypeAlias = npt.NDArray[np.int64]
ReadText: TypeAlias = tuple[Integers, int]

MAX_CACHED_TERMS = 30_000
"""Terms a process caches: 30 MB of vectors, more terms than a fluent speaker knows."""
MOST_TEXTS, LONG_TEXT = 20_000, 4_000
"""The number of texts a process caches and their maximum length. These are turns of conversation, about 10 MB."""
MAX_CACHED_LONG_TEXTS = 500
"""The number of longer texts it caches, such as answers of assistants, also about 10 MB."""
UNKNOWN_WEIGHT = 12.0
"""The weight of a word the model does not know: that of a rare known word."""


@dataclass(frozen=True, slots=True)
class TermSimilarity:
    """How similar words count. Floors from .15 to .3 and shares from .5 to .7 differ by .006 on LoCoMo and BEAM.

    A question about exercises should find yoga. The bundled static model has a vector for every word, so the similarity
    of two words is one dot product. A similar term counts as a share of an exact match, and less if it is commonplace.
    A word's informativeness is the length of its vector, which is the same in every store.
    """

    floor: float = 0.25
    """The cosine from which two words count as similar; random pairs are below it."""
    share: float = 0.5
    """The weight of a word with the same meaning, relative to the word itself."""


@dataclass(frozen=True, slots=True)
class WordMatches:
    """How much each word of a vocabulary counts for each term of a question; rows are terms, columns are words."""

    same: npt.NDArray[np.bool_]
    """Whether the word is the term."""
    cosines: Floats
    """The cosines of term and word; zero without a model."""
    worth: Floats
    """How many occurrences of the term one occurrence of a similar word counts as; zero for the term itself."""
    weights: Floats
    """How informative each term is, independent of the store."""

    def of(self, rows: Integers) -> "WordMatches":
        """The same for the given terms."""
        return WordMatches(self.same[rows], self.cosines[rows], self.worth[rows], self.weights[rows])


class Lexicon:
    """The terms a process has seen, numbered, with their word vectors. Each text is read once and each word embedded
    once.

    Terms are stems, so the most common word with each stem is embedded. Without `embed`, no two words are similar.
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
        """The numbers of the terms of a text written by `marked_terms`, and how many of them come from statements, not
        questions.
        """
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
        """A unit row for each term, zero if the model does not know it, and how informative each is; None without a
        model.
        """
        if self._embed is None:
            return None
        with self._lock:
            if self._embedded < len(self._terms):
                self._learn([word_of(term) for term in self._terms[self._embedded :]], self._embed)
            return self._rows[numbers], self._weights[numbers]

    def _learn(self, words: Sequence[str], embed: Callable[[Sequence[str]], Floats]) -> None:
        """Add words. The arrays grow by doubling, so adding words one by one does not copy them each time."""
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
    """The rarity of each term, by the number of documents that contain it."""
    return rarity([frequency.get(term, 0) for term in terms], total)


def match_words(
    terms: Sequence[str],
    vocabulary: Integers,
    lexicon: Lexicon,
    rarer: Floats | None = None,
    rule: TermSimilarity | None = None,
) -> WordMatches:
    """How much each word of the vocabulary counts for each term.

    A similar but more commonplace word counts less: "thing" says little about any one thing. A word that is more common
    in this store also counts less: `rarer` says, for each term and word, how rare the word is relative to the term.
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
