"""The stretch of a long text that bears on a question: what a reader is shown instead of 300 words."""

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from engram.model.hit import Hits
from engram.recall.likeness import Lexicon, alike
from engram.recall.passages import Passage, Passages
from engram.text.tokens import tokens

__all__ = ["LONG_TEXT", "stretch_of", "with_stretches"]

LONG_TEXT = 120
"""Words from which on a text is shown by its best stretch."""
SHOWN = 60
"""Words of a stretch, unless a single sentence has more."""
MOST_SENTENCES = 400
"""Sentences looked at: the rest of a longer text is not searched for the stretch."""
_SENTENCE = re.compile(r"[^.!?。！？…\n]+(?:[.!?。！？…]+[\"'”’)\]]*|\n|$)\s*")


def with_stretches(hits: Hits, terms: Sequence[str], lexicon: Lexicon) -> Hits:
    """The hits, the long ones with the stretch that bears on the question."""
    for place, hit in enumerate(hits):
        if stretch := stretch_of(hit.text, terms, lexicon):
            hits[place] = replace(hit, stretch=stretch)
    return hits


def stretch_of(text: str, terms: Sequence[str], lexicon: Lexicon) -> str:
    """The sentences of a long text that say most of the question, in its own words; "" for a short text."""
    if len(text) < LONG_TEXT or len(text.split(None, LONG_TEXT)) <= LONG_TEXT:
        return ""
    spans = [found.span() for found in _SENTENCE.finditer(text)][:MOST_SENTENCES]
    sizes = [len(text[start:end].split()) for start, end in spans]
    if not spans or not terms:
        return ""
    passages = Passages([Passage((" ".join(tokens(text[start:end])),)) for start, end in spans], lexicon)
    found = alike(terms, passages.vocabulary, lexicon)
    said = np.where(found.same, 1, np.clip(found.cosines, 0, 1) / 2)
    near = np.zeros((len(terms), len(spans)), dtype=np.float32)
    np.maximum.at(near.T, passages.places, said[:, passages.words].T)
    best, chosen = -1.0, (0, 1)
    for first in range(len(spans)):
        behind, words = first + 1, sizes[first]
        while behind < len(spans) and words + sizes[behind] <= SHOWN:
            words += sizes[behind]
            behind += 1
        worth = float(found.weights @ near[:, first:behind].max(axis=1))
        if worth > best + 1e-6:
            best, chosen = worth, (first, behind)
    return text[spans[chosen[0]][0] : spans[chosen[1] - 1][1]].strip()
