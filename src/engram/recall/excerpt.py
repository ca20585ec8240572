"""The excerpt of a long text that is about a question: shown instead of 300 words."""

from collections.abc import Iterator, Sequence

import numpy as np

from engram.model.hit import Hits
from engram.model.lazy import replace
from engram.recall.passages import Passage, Passages
from engram.recall.similarity import Floats, Lexicon, alike
from engram.text.sentences import SENTENCE_END
from engram.text.tokens import tokens

__all__ = ["SHOWN", "WHOLE", "add_excerpts", "excerpt_of"]

WHOLE = 120
"""Index terms up to which a text is shown whole."""
SHOWN = 60
"""Index terms of an excerpt, unless a single sentence has more."""
MOST_SENTENCES = 2_000
"""Sentences that are read; the rest of a longer text is not searched for the excerpt."""
_LONGEST_SENTENCE = 600
"""Characters after which what has no full stop is cut at a blank."""


def add_excerpts(hits: Hits, terms: Sequence[str], lexicon: Lexicon) -> Hits:
    """Give each long hit the excerpt that is about the question."""
    for place, hit in enumerate(hits):
        if excerpt := excerpt_of(hit.text, terms, lexicon):
            hits[place] = replace(hit, stretch=excerpt)
    return hits


def excerpt_of(text: str, terms: Sequence[str], lexicon: Lexicon) -> str:
    """The sentences of a long text that say most of the question, an ellipsis where something is left out; "" for a short text."""
    spans = list(_sentences(text))[:MOST_SENTENCES]
    read = [tokens(text[start:end]) for start, end in spans]
    sizes = [len(each) for each in read]
    if not terms or len(spans) < 2 or sum(sizes) <= WHOLE:
        return ""
    passages = Passages([Passage((" ".join(each),)) for each in read], lexicon)
    found = alike(terms, passages.vocabulary, lexicon)
    said = np.where(found.same, 1, np.clip(found.cosines, 0, 1) / 2).astype(np.float32)
    near = np.zeros((len(terms), len(spans)), dtype=np.float32)
    np.maximum.at(near.T, passages.places, said[:, passages.words].T)
    first, behind = _best(near, found.weights, sizes)
    start, end = spans[first][0], spans[behind - 1][1]
    shown = text[start:end].strip()
    return f"{'… ' if first else ''}{shown}{' …' if end < len(text.rstrip()) else ''}"


def _best(near: Floats, weights: Floats, sizes: Sequence[int]) -> tuple[int, int]:
    """The sentences that together say most of the question within the room there is, beginning with one that adds to it."""
    ends = [_filled(first, sizes) for first in range(len(sizes))]
    worth = [float(weights @ near[:, first:behind].max(axis=1)) for first, behind in enumerate(ends)]
    first = max(range(len(sizes)), key=worth.__getitem__)
    while first + 1 < ends[first] and worth[first + 1] >= worth[first] - 1e-6:
        first += 1
    return first, ends[first]


def _filled(first: int, sizes: Sequence[int]) -> int:
    """The sentence behind the last one that still fits."""
    behind, room = first + 1, SHOWN - sizes[first]
    while behind < len(sizes) and sizes[behind] <= room:
        room -= sizes[behind]
        behind += 1
    return behind


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Where each sentence begins and ends; what has no full stop is cut at blanks."""
    start = 0
    for end in [*(match.end() for match in SENTENCE_END.finditer(text)), len(text)]:
        while end - start > _LONGEST_SENTENCE:
            cut = text.rfind(" ", start + 1, start + _LONGEST_SENTENCE // 2) + 1 or start + _LONGEST_SENTENCE // 2
            yield start, cut
            start = cut
        if text[start:end].strip():
            yield start, end
            start = end
