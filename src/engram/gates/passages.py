"""The passages of long or many texts that may repeat what a person took out of use.

A text is cut into sentences and, for words that are spread over several or disguised, into overlapping windows. A linear search for shared words
and runs of letters finds the few passages that are near to one of the memories; only these are compared in full.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from engram.model.lazy import dataclass
from engram.models.readings import letters_of
from engram.text.confusables import fold_text
from engram.text.sentences import split_sentences
from engram.text.tokens import query_terms, tokens

__all__ = ["MAX_JUDGED_CHARS", "NearPassages", "find_near_passages", "split_passages"]

MAX_JUDGED_CHARS = 100_000
"""Characters of a text that are searched; what an agent says in a longer one waits for a person."""
MAX_PASSAGES = 24
"""Pairs of a passage and a memory that are compared in full."""
MAX_WINDOWS = 6
"""The same of windows, each of which takes several times as long."""
MAX_SENTENCE_CHARS = 300
WINDOW_CHARS, WINDOW_STEP = 900, 500
MAX_DISGUISED_CHARS = 40_000
"""Characters of a text whose letters are compared without regard to what is between them."""
_GRAM = 5
_LEAST_SHARED = 0.3
"""The share of a memory's words or runs of letters that a passage has, from which the two may be compared."""
_MOST_SHARED = 0.8
"""The share from which every passage must be compared: where there are more than can be, a person decides."""


@dataclass(frozen=True, slots=True)
class NearPassages:
    """The pairs of a passage and the place of a statement that are worth comparing, nearest first."""

    sentences: Sequence[tuple[str, int]]
    windows: Sequence[tuple[str, int]] = ()
    """Longer passages, whose words and letters alone are compared: the pair model knows sentences."""
    left_out: int | None = None
    """A statement that more passages are near to than can be compared."""


def split_passages(text: str) -> list[str]:
    """The sentences of a text, a long one in windows of a few clauses."""
    found: list[str] = []
    for sentence in split_sentences(text):
        found += _windows(sentence, MAX_SENTENCE_CHARS, MAX_SENTENCE_CHARS // 2)
    return found


def find_near_passages(texts: Iterable[str], statements: Sequence[str]) -> NearPassages:
    """The passages of some texts that share most with one of the statements; all of them, if they are few."""
    sentences: dict[str, None] = {}
    windows: dict[str, int] = {}
    for text in texts:
        folded = fold_text(text[:MAX_JUDGED_CHARS])
        sentences |= dict.fromkeys(split_passages(folded))
        if len(folded) > MAX_SENTENCE_CHARS:
            windows |= {window: at for at, window in enumerate(_windows(folded, WINDOW_CHARS, WINDOW_STEP))}
    if len(sentences) * len(statements) <= MAX_PASSAGES:
        near = NearPassages([(sentence, at) for at in range(len(statements)) for sentence in sentences])
    else:
        near = _rank([(one, _shared_words(one, statements)) for one in sentences], MAX_PASSAGES)
    last = MAX_DISGUISED_CHARS // WINDOW_STEP
    found = _rank(
        [(one, _shares_of_statements(one, statements, letters=at < last)) for one, at in windows.items()], MAX_WINDOWS
    )
    left_out = near.left_out if near.left_out is not None else found.left_out
    return NearPassages(near.sentences, found.sentences, left_out)


def _rank(shares: Sequence[tuple[str, Sequence[float]]], most: int) -> NearPassages:
    near = [(share, passage, at) for passage, row in shares for at, share in enumerate(row) if share >= _LEAST_SHARED]
    near.sort(key=lambda one: one[0], reverse=True)
    left_out = near[most][2] if len(near) > most and near[most][0] >= _MOST_SHARED else None
    return NearPassages([(passage, at) for _, passage, at in near[:most]], left_out=left_out)


def _windows(text: str, size: int, step: int) -> list[str]:
    """A text in overlapping windows that begin and end between words, if it has spaces."""
    if len(text) <= size:
        return [text]
    found = []
    for start in range(0, len(text) - size + step, step):
        window = text[start : start + size]
        first, last = window.find(" ") + 1, window.rfind(" ")
        found.append(window[first if start and first < step // 4 else 0 : last if last > size - step // 4 else size])
    return found


def _shares_of_statements(passage: str, statements: Sequence[str], *, letters: bool) -> list[float]:
    words = _shared_words(passage, statements)
    if not letters:
        return words
    spelled = letters_of(passage)
    grams = [_grams(statement) for statement in statements]
    return [
        max(share, sum(gram in spelled for gram in each) / len(each) if each else 0.0)
        for share, each in zip(words, grams, strict=True)
    ]


def _shared_words(passage: str, statements: Sequence[str]) -> list[float]:
    """The share of each statement's words that a passage has."""
    terms = set(tokens(passage))
    wanted = [_terms(statement) for statement in statements]
    return [len(each & terms) / len(each) if each else 0.0 for each in wanted]


@lru_cache(maxsize=1024)
def _terms(statement: str) -> frozenset[str]:
    return frozenset(query_terms(statement[:WINDOW_CHARS]))


@lru_cache(maxsize=1024)
def _grams(statement: str) -> frozenset[str]:
    letters = letters_of(statement[:WINDOW_CHARS])
    return frozenset(letters[at : at + _GRAM] for at in range(len(letters) - _GRAM + 1))
