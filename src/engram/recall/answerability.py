"""Answerability: how likely a memory answers the question, not only is about the same thing.

`relevance` says how much of the question a passage contains. That is much even if only the detail asked for is missing: the store knows Halcyon's
e-mail address, the question asks for the fax number. The evidence here is what is left over: the terms of the question that the memory lacks, how rare
they are in this store, whether the head of the question is among them, and whether the memory states a value of the type asked for. Small trees
(training/train_answerability.py) turn both and the likeness into a probability.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from engram.embedding.products import dot
from engram.models.arrays import read_arrays
from engram.models.trees import Trees
from engram.recall.answer_types import TYPES, find_asked_types, find_head_terms, measure_stated_types
from engram.recall.passages import Passages
from engram.recall.query import SearchQuery
from engram.recall.similarity import Floats, Integers, rarity
from engram.store.protocol import Candidates

__all__ = ["EVIDENCE", "FILE", "ComparedMemory", "answer_probabilities", "answer_rows", "measure_answerability"]

FILE = Path(__file__).with_name("answerability.npz")
NOT_ASKED = -1.0
"""The evidence of a type, or of a head, that the question does not ask for."""
EVIDENCE = (
    *TYPES, "names_added", "numbers_added", "types_asked", "least_stated", "mean_stated", "head_covered", "head_alike", "head_in_store",
    "head_size", "covered_by_rarity", "alike_by_rarity", "unseen_lacking", "unseen_alike", "unseen", "rarest_covered", "rarest_lacking",
    "least_alike", "lacking_alike",
)  # fmt: skip
"""What `measure_answerability` says of each passage, in this order."""


class ComparedMemory(NamedTuple):
    """A memory compared with a question."""

    evidence: Floats
    """That of relevance, then `EVIDENCE`."""
    odds: float
    """The log odds of its relevance by words."""
    like: float
    """Its likeness."""


def measure_answerability(
    query: SearchQuery, candidates: Candidates, exact: Floats, near: Floats, passages: Passages, wanted: Integers
) -> Floats:
    """(wanted x EVIDENCE) what each passage has of what the question asks for.

    `exact` and `near` (terms x wanted) say whether and how nearly a passage contains each term, `candidates` how many documents of the store do.
    """
    counts = np.array([candidates.frequency.get(term, 0) for term in query.terms], dtype=np.float32)
    types = _measure_types(query, passages, wanted)
    terms = _measure_terms(query, counts, max(candidates.total, 1), exact, near)
    return np.concatenate([types, terms], axis=1)


def _measure_types(query: SearchQuery, passages: Passages, wanted: Integers) -> Floats:
    asked, terms = np.array(find_asked_types(query.text)), frozenset(query.terms)
    stated = np.empty((len(wanted), len(TYPES) + 2), dtype=np.float32)
    for row, place in enumerate(wanted.tolist()):
        fields = passages.items[place].fields
        stated[row] = measure_stated_types(frozenset(fields[0].split()), frozenset(fields[1].split()), terms)
    of_types = stated[:, : len(TYPES)]
    chosen = of_types[:, asked] if asked.any() else np.ones((len(wanted), 1), dtype=np.float32)
    summed = np.stack([np.full(len(wanted), asked.sum()), chosen.min(axis=1), chosen.mean(axis=1)], axis=1)
    measured: Floats = np.concatenate(
        [np.where(asked, of_types, NOT_ASKED), stated[:, len(TYPES) :], summed], axis=1, dtype=np.float32
    )
    return measured


def _measure_terms(query: SearchQuery, counts: Floats, total: int, exact: Floats, near: Floats) -> Floats:
    heads = find_head_terms(query.text)
    head, unseen = np.array([term in heads for term in query.terms], dtype=bool), counts == 0
    rare = rarity(counts.astype(np.int64), total)
    shares, scaled = rare / max(float(rare.sum()), 1e-9), (rare / np.log1p(total))[:, None]
    lacking = exact < 1
    lack = lacking.sum(axis=0)
    columns = (
        exact[head].max(axis=0) if head.any() else NOT_ASKED,
        near[head].min(axis=0) if head.any() else NOT_ASKED,
        (~unseen[head]).mean() if head.any() else NOT_ASKED,
        head.sum(),
        dot(shares, exact),
        dot(shares, near),
        dot(shares * unseen, 1 - near),
        near[unseen].min(axis=0) if unseen.any() else 1.0,
        unseen.mean(),
        (scaled * ~lacking).max(axis=0),
        (scaled * lacking).max(axis=0),
        np.where(lacking, near, 1).min(axis=0),
        np.where(lack, (near * lacking).sum(axis=0) / np.maximum(lack, 1), 1),
    )
    out: Floats = np.empty((exact.shape[1], len(columns)), dtype=np.float32)
    for place, column in enumerate(columns):
        out[:, place] = column
    return out


def answer_rows(question: str, compared: Sequence[ComparedMemory], usual: float) -> Floats:
    """The input of the trees: a row for each memory. `usual` is the usual likeness for the question."""
    words = len(question.split())
    if not compared:
        return np.zeros((0, 0), dtype=np.float32)
    more = [(each.odds, each.like, usual, words, each.like - usual) for each in compared]
    rows: Floats = np.concatenate([[each.evidence for each in compared], more], axis=1, dtype=np.float32)
    return rows


def answer_probabilities(rows: Floats) -> list[float]:
    """How likely each memory answers the question."""
    found: list[float] = _trees()(rows).tolist()
    return found


@cache
def _trees() -> Trees:
    data = read_arrays(FILE)
    return Trees(*(data[name] for name in ("feature", "threshold", "below", "above", "value")))
