"""From several kinds of evidence to one relevance, every part kept by name so that a trace can add them up again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from engram.recall.context import Passages, Windows, near_in_time, spoken_by, telling, word_evidence
from engram.recall.expand import Floats, Frequencies, Lexicon, term_table

__all__ = ["RRF_K", "Asked", "Weights", "judge", "reciprocal_ranks", "score"]

RRF_K = 60
"""Spec 1's constant for reciprocal rank fusion."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What each kind of evidence is worth beside the words, set by hand on LoCoMo dev: .850, and between .835 and .851 with
    any one of them halved or doubled. A linear model fitted on four conversations and tried on the fifth does no better."""

    words: float = 1.0
    """BM25 of the passage in its context: the measure of the others."""
    session: float = 0.2
    """BM25 of the whole session: what is talked about there. Worth .002."""
    meaning: float = 0.6
    """Cosine of question and passage."""
    speaker: float = 0.1
    """The passage was said by whom the question names. More helps plain questions and misleads those that mix people up."""
    time: float = 0.6
    """It was said when the question says."""
    telling: float = 0.3
    """It tells rather than asks or greets."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as the ranking needs it: its terms without the words of its time phrase, its vector, the spans it names."""

    terms: tuple[str, ...]
    vector: Floats | None = None
    windows: Windows = ()


def judge(
    passages: Passages,
    asked: Asked,
    meanings: Floats | None,
    lexicon: Lexicon,
    frequencies: Frequencies,
    total: int,
    weights: Weights | None = None,
) -> dict[str, Floats]:
    """The parts of every passage's relevance; their sum (`score`) ranks.

    `meanings` holds one vector per passage, `total` counts the documents of the store. With a lexicon that cannot embed only
    exact words count, without vectors there is no part for meaning: a search by keyword is the same with less evidence.
    """
    speaks, named = spoken_by(passages, asked.terms)
    table, idf = term_table(asked.terms, passages.vocabulary, lexicon, frequencies, total)
    words, session = word_evidence(passages, table, idf, named)
    evidence = {
        "words": _share_of_best(words),
        "session": _share_of_best(session),
        "meaning": _share_of_best(_cosines(passages, asked.vector, meanings)),
        "speaker": speaks,
        "time": near_in_time(passages, asked.windows),
        "telling": telling(passages),
    }
    weights = weights or Weights()
    return {name: getattr(weights, name) * evidence[name] for name in (part.name for part in fields(weights))}


def score(parts: Mapping[str, Floats]) -> Floats:
    """The score: the sum of the parts, in their order."""
    summed: Floats = np.stack(list(parts.values())).sum(axis=0)
    return summed


def reciprocal_ranks(rankings: Mapping[str, Sequence[int]], k: int = RRF_K) -> dict[int, dict[str, float]]:
    """Spec 1's fusion: by document, what each ranking (best first) adds to its score."""
    parts: dict[int, dict[str, float]] = {}
    for name, ranking in rankings.items():
        for place, document in enumerate(ranking, 1):
            parts.setdefault(document, {})[name] = 1 / (k + place)
    return parts


def _cosines(passages: Passages, question: Floats | None, meanings: Floats | None) -> Floats:
    if question is None or meanings is None:
        return np.zeros(len(passages), dtype=np.float32)
    return meanings @ question


def _share_of_best(values: Floats) -> Floats:
    best = float(values.max()) if values.size else 0.0
    return values / best if best > 0 else np.zeros_like(values)
