"""Plain BM25 over turns: what every ranking here has to beat."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from engram.bench.dataset import Conversation
from engram.text.tokens import query_terms, tokens

__all__ = ["K1", "B", "Bm25"]

K1, B = 1.2, 0.75
"""The customary values, which SQLite's FTS5 uses, too."""


class Bm25:
    """An inverted index over the turns of one conversation, who spoke and what, by the terms of the store's own index."""

    def __init__(self, conversation: Conversation) -> None:
        turns = [turn for session in conversation.sessions for turn in session.turns]
        counts = [Counter(tokens(f"{turn.speaker}: {turn.text}")) for turn in turns]
        self._keys = [turn.key for turn in turns]
        self._lengths = [counted.total() for counted in counts]
        self._postings: Mapping[str, Sequence[tuple[int, int]]] = _postings(counts)

    def ranking(self, question: str, depth: int) -> list[str]:
        """The keys of the best turns, best first; equal ones in the order they were said."""
        scores = self.scores(question)
        return sorted((key for key in self._keys if key in scores), key=lambda key: -scores[key])[:depth]

    def scores(self, question: str) -> dict[str, float]:
        """The score of every turn that shares a term with the question, by key. Stop and question words do not count."""
        average = sum(self._lengths) / max(len(self._lengths), 1)
        found: dict[str, float] = defaultdict(float)
        for term in query_terms(question):
            postings = self._postings.get(term, ())
            idf = math.log(1 + (len(self._keys) - len(postings) + 0.5) / (len(postings) + 0.5))
            for place, count in postings:
                length = K1 * (1 - B + B * self._lengths[place] / average)
                found[self._keys[place]] += idf * count * (K1 + 1) / (count + length)
        return dict(found)


def _postings(counts: Sequence[Mapping[str, int]]) -> dict[str, list[tuple[int, int]]]:
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for place, counted in enumerate(counts):
        for term, count in counted.items():
            found[term].append((place, count))
    return dict(found)
