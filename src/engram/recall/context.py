"""A passage judged where it stands: with its neighbours, its session, its speaker and its time.

In a conversation the words of a question rarely all stand in the turn that answers it. So a turn is searched together with
what was said around it, nearer turns counting more, and what was asked counts for the turn that answers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np

from engram.recall.expand import Floats, Integers, Lexicon
from engram.rules.numbers import FIELD_WEIGHTS
from engram.text.tokens import tokens

__all__ = ["Passage", "Passages", "Windows", "best_parents", "near_in_time", "spoken_by", "telling", "word_evidence"]

Windows: TypeAlias = Sequence[tuple[float, float]]
"""Spans of time a question speaks of: since, until, in seconds."""

DECAY = 0.6
"""What a turn's words count one turn away. LoCoMo dev: .841 at .5, .850 at .6, .844 at .7."""
REACH = 4
"""Turns looked at on either side; beyond, DECAY leaves less than a tenth."""
ASKED_ITSELF = 0.5
"""What the words of a question count in the turn that asks, where another follows: it does not know the answer."""
ASKED_ANSWERED = 1.0
"""What they count in the next turn, which answers. With ASKED_ITSELF: words alone .785 to .805."""
SATURATION, LENGTH = 1.2, 0.75
"""BM25's k1 and b, at their customary values; b = .4 costs .01."""
FORGETTING_DAYS = 7.0
"""People speak of what happened within about a week."""
TELLING_TERMS = 20
"""Terms at which a turn is halfway to telling all a turn can tell."""
ROLES = frozenset(("user", "assistant", "system", "tool", "agent", "human", "ai", "model"))
"""Speakers that are nobody's name."""
_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Passage:
    """A candidate, or a neighbour of one. `fields` are index terms joined by blanks, as `marked_terms` writes them."""

    fields: tuple[str, ...]
    parent: str = ""
    speaker: str = ""
    time: float | None = None


class Passages:
    """Passages as arrays. Those of one parent must stand together, in the order they were said."""

    def __init__(self, items: Sequence[Passage], lexicon: Lexicon) -> None:
        self.items = items
        lexicon.lend(self)
        found = [
            (place, weight, lexicon.read(text))
            for place, item in enumerate(items)
            for weight, text in zip(FIELD_WEIGHTS, item.fields, strict=False)
        ]
        told = np.array([read[1] for _, _, read in found], dtype=np.int64)
        sizes = np.array([len(read[0]) for _, _, read in found], dtype=np.int64)
        rows = 2 * np.array([place for place, _, _ in found], dtype=np.int64)
        numbers = [read[0] for _, _, read in found]
        self.vocabulary, self._words = _distinct(np.concatenate(numbers) if numbers else rows)
        self._places = np.repeat(
            np.stack([rows, rows + 1], axis=1).ravel(), np.stack([told, sizes - told], axis=1).ravel()
        )
        self._weights = np.repeat(np.array([weight for _, weight, _ in found], dtype=np.float32), sizes)

    def __len__(self) -> int:
        return len(self.items)

    @cached_property
    def parents(self) -> Integers:
        """The session of each passage, numbered in order; a passage without one is a session of its own."""
        names = [item.parent for item in self.items]
        starts = [not name or name != before for name, before in zip(names, ["", *names], strict=False)]
        return np.cumsum(np.array(starts, dtype=np.int64)) - 1

    @cached_property
    def lengths(self) -> Floats:
        """(2 x passages) weighted number of terms told and asked."""
        return self._by_passage(self._places, self._weights)

    def counts(self, table: Floats) -> Floats:
        """(terms x 2 x passages) how often each term of a (terms x vocabulary) table is told and asked."""
        counting = np.asarray(table.any(axis=0))[self._words]
        words, places, weights = self._words[counting], self._places[counting], self._weights[counting]
        rows = [self._by_passage(places, weights * row[words]) for row in table]
        return np.stack(rows) if rows else np.zeros((0, 2, len(self)), dtype=np.float32)

    def _by_passage(self, places: Integers, weights: Floats) -> Floats:
        sums = np.bincount(places, weights, minlength=2 * len(self)).astype(np.float32)
        return sums.reshape(-1, 2).T


def _distinct(numbers: Integers) -> tuple[Integers, Integers]:
    """The distinct numbers in order, and where each number stands among them; faster than sorting."""
    present = np.zeros(int(numbers.max()) + 1 if numbers.size else 0, dtype=bool)
    present[numbers] = True
    return np.flatnonzero(present), (np.cumsum(present) - 1)[numbers]


def word_evidence(
    passages: Passages, table: Floats, rarity: Floats, named: Mapping[int, Floats]
) -> tuple[Floats, Floats]:
    """BM25 of every passage in its context, and of its whole session.

    `table` says what each word counts for each term, `rarity` what each term is worth. `named` (from `spoken_by`) marks, by
    row of the table, the passages where the term is the name of someone present: there it is taken as said once.
    """
    counts = passages.counts(table)
    turns = _saturated(_spread(counts, passages.parents), _spread(passages.lengths[None], passages.parents)[0])
    whole = counts.sum(axis=1)
    sessions = _saturated(
        _by_session(whole, passages.parents), _by_session(passages.lengths.sum(axis=0)[None], passages.parents)[0]
    )
    return _weighed(turns, rarity, named), _weighed(sessions[:, passages.parents], rarity, named)


def _spread(counts: Floats, parents: Integers) -> Floats:
    """(terms x 2 x passages) to (terms x passages): each passage with its share of what stands around it."""
    told, asked = counts[:, 0], counts[:, 1]
    both = told + asked
    answered = np.append(parents[1:] == parents[:-1], False)
    out: Floats = told + np.where(answered, ASKED_ITSELF, 1.0).astype(np.float32) * asked
    for distance in range(1, min(REACH, out.shape[1] - 1) + 1):
        share = (DECAY**distance * (parents[distance:] == parents[:-distance])).astype(np.float32)
        out[:, :-distance] += share * both[:, distance:]
        out[:, distance:] += share * both[:, :-distance]
        if distance == 1:
            out[:, 1:] += share * (ASKED_ANSWERED / DECAY - 1) * asked[:, :-1]
    return out


def _by_session(counts: Floats, parents: Integers) -> Floats:
    if not len(parents):
        return counts
    starts = np.flatnonzero(np.diff(parents, prepend=-1))
    return np.add.reduceat(counts, starts, axis=1)


def _saturated(counts: Floats, lengths: Floats) -> Floats:
    mean = float(lengths.mean()) if lengths.size else 0.0
    room = SATURATION * (1 - LENGTH + LENGTH * lengths / (mean or 1.0))
    evidence: Floats = counts * (SATURATION + 1) / (counts + np.maximum(room, 1e-6))
    return evidence


def _weighed(evidence: Floats, rarity: Floats, named: Mapping[int, Floats]) -> Floats:
    for row, present in named.items():
        evidence[row] = np.where(present > 0, 1.0, evidence[row])
        # Where everyone considered shares the name it tells nothing, and must not drown what does.
        evidence[row] -= evidence[row].min()
    total: Floats = rarity @ evidence
    return total


def spoken_by(passages: Passages, terms: Sequence[str]) -> tuple[Floats, dict[int, Floats]]:
    """Who speaks, where the question names someone: 1 for the passages of that person, and where they are present.

    The second value is for `word_evidence`; it is empty when the question is of names alone, which are then plain words.
    """
    names = [_name(item.speaker) for item in passages.items]
    everyone = frozenset().union(*set(names))
    asked = [row for row, term in enumerate(terms) if term in everyone]
    speaks = np.zeros(len(passages), dtype=np.float32)
    if not asked:
        return speaks, {}
    wanted = {terms[row] for row in asked}
    speaks = np.array([not wanted.isdisjoint(name) for name in names], dtype=np.float32)
    if len(asked) == len(terms):
        return speaks, {}
    return speaks, {row: _present(passages, names, terms[row]) for row in asked}


def _present(passages: Passages, names: Sequence[frozenset[str]], term: str) -> Floats:
    said = np.array([term in name for name in names], dtype=np.float32)
    present: Floats = _by_session(said[None], passages.parents)[0][passages.parents]
    return present


@lru_cache(maxsize=4096)
def _name(speaker: str) -> frozenset[str]:
    return frozenset() if speaker.lower() in ROLES else frozenset(tokens(speaker))


def telling(passages: Passages) -> Floats:
    """How much each passage tells, 0 to 1: questions and greetings little, a memory all it can."""
    told = passages.lengths[0]
    shares: Floats = told / (told + TELLING_TERMS)
    alone = np.array([not item.parent for item in passages.items], dtype=bool)
    return np.where(alone, np.float32(1), shares)


def near_in_time(passages: Passages, windows: Windows) -> Floats:
    """1 inside a span the question speaks of, falling off with the days outside of it; 0 without span or time."""
    times = np.array([np.nan if item.time is None else item.time for item in passages.items], dtype=np.float64)
    near = np.zeros(len(passages), dtype=np.float32)
    for since, until in windows:
        days = np.maximum(np.maximum(since - times, times - until), 0) / _DAY
        near = np.fmax(near, np.exp(-days / FORGETTING_DAYS).astype(np.float32))
    return near


def best_parents(found: Sequence[Sequence[tuple[str, float]]], limit: int) -> list[str]:
    """The sessions worth reading whole: those whose candidates score most, over (parent, score) rankings."""
    worth: dict[str, float] = {}
    for ranking in found:
        top = max((score for _, score in ranking), default=0.0)
        for parent, score in ranking:
            if parent and top > 0:
                worth[parent] = worth.get(parent, 0.0) + max(score, 0.0) / top
    return sorted(worth, key=lambda parent: (-worth[parent], parent))[:limit]
