"""Whether the words of a hit are about the question: a calibrated probability, the same whatever else a search found.

The order of hits uses all the evidence of a search (`fusion`), on a scale of that search. Relevance depends on the question and one
passage alone: which of the question's words its best excerpt contains, literally or by similarity, how informative each is, how
close the two are in meaning, whether the names agree and whether it has what is asked for (a time, a number); for a turn also
which of the words its neighbours contain.
A hundred and twenty small trees turn that into a probability; training/train_relevance.py trains them on questions of many writers, some
of which nothing answers.

`likeness` then compares memories with the question by other vectors, and `answerability` judges from all of this whether one answers it.
"""

import math
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from engram.embedding.products import dot
from engram.model.lazy import dataclass, lazy_pattern
from engram.models.arrays import read_arrays
from engram.models.trees import Trees
from engram.recall.answerability import measure_answerability
from engram.recall.passages import Mentions, Passages
from engram.recall.query import SearchQuery
from engram.recall.similarity import Floats, Integers, WordMatches
from engram.store.protocol import Candidates
from engram.text.entities import entities
from engram.text.tokens import query_terms, tokens

__all__ = [
    "FEATURES",
    "NONE_KNOWN",
    "RelevanceQuery",
    "as_match",
    "evidence_of_each",
    "judge_passages",
    "log_odds",
    "probabilities_of",
]

NONE_KNOWN = 0.02
"""The relevance of every passage for a question without a single index term."""
NEIGHBOURS = 2
"""Turns on either side whose words count: an answer rarely repeats the question."""
_LEAST_ODDS = 0.001
_IN_MATCH = 3.0
"""What the log odds of relevance count beside the evidence, which is of ten, in the order of memories."""
FEATURES = (
    "covered", "alike", "least", "least_two", "weightiest", "said", "asked", "missing", "meaning", "names_missing",
    "names_said", "rest_covered", "rest_alike", "rest_best", "only_names", "time_told", "time_missing", "number_told",
    "number_missing", "place_asked", "reason_asked", "way_asked", "person_asked", "length", "short", "around", "in_talk",
    "assistant", "questioning",
)  # fmt: skip
_TIME = lazy_pattern(r"\b(?:when|what time|what day|which day|what date|how long|deadline|due)\b", re.IGNORECASE)
_NUMBER = lazy_pattern(
    r"\b(?:how (?:many|much|long|often|old|far|big)|number|percent|price|cost|phone)\b", re.IGNORECASE
)
_PLACE = lazy_pattern(r"\b(?:where|address|location|city)\b", re.IGNORECASE)
_REASON = lazy_pattern(r"\b(?:why|reason|cause)\b", re.IGNORECASE)
_WAY = lazy_pattern(r"\bhow (?:do|to|can|should|did|does)\b", re.IGNORECASE)
_PERSON = lazy_pattern(r"\b(?:who|whom|whose)\b", re.IGNORECASE)
_DIGIT = lazy_pattern(r"[0-9]")


@cache
def _counts() -> frozenset[str]:
    words = "one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty hundred thousand half twice once"
    return frozenset(tokens(words))


@cache
def _times() -> frozenset[str]:
    return frozenset(
        tokens(
            "january february march april may june july august september october november december jan feb mar apr jun jul aug "
            "sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday today tomorrow yesterday week month "
            "year morning evening noon midnight spring summer autumn winter daily weekly monthly am pm"
        )
    )


@dataclass(frozen=True, slots=True)
class RelevanceQuery:
    """A question, or one of its wordings, and the passages whose relevance is asked for."""

    query: SearchQuery
    candidates: Candidates
    """What the retrievers found, with the number of documents that contain each term."""
    known: WordMatches
    """What each word of the passages counts for each of the query's terms."""
    cosines: Floats
    """Of the question and the wanted passages, by the bundled model."""
    wanted: Integers


def judge_passages(asked: Sequence[RelevanceQuery], passages: Passages) -> list[tuple[Floats, Floats | None]]:
    """For each question, how likely each passage it wants is about it, and a row of evidence for each, from which memories are judged again
    (`answerability`).
    """
    readable = [each for each in asked if each.query.terms and len(each.wanted)]
    rows = evidence_of_each(readable, passages)
    if rows:
        likely = probabilities_of(np.concatenate([own[:, : len(FEATURES)] for own in rows]))
        found = zip(np.split(likely, np.cumsum([len(own) for own in rows])[:-1]), rows, strict=True)
    else:
        found = zip((), (), strict=True)
    return [
        next(found)
        if each.query.terms and len(each.wanted)
        else (np.full(len(each.wanted), NONE_KNOWN, dtype=np.float32), None)
        for each in asked
    ]


def probabilities_of(rows: Floats) -> Floats:
    """The probabilities of rows of features."""
    return _trees()(rows)


def as_match(relevance: float) -> float:
    """A relevance as a part of the match, from 0 up."""
    return _IN_MATCH * (log_odds(relevance) - log_odds(_LEAST_ODDS))


def log_odds(probability: float) -> float:
    """The log odds of a probability, bounded."""
    kept = min(max(probability, _LEAST_ODDS), 1 - _LEAST_ODDS)
    return math.log(kept / (1 - kept))


def evidence_of_each(asked: Sequence[RelevanceQuery], passages: Passages) -> list[Floats]:
    """For each question (wanted x evidence) the input of the trees, which is `FEATURES`, then what `answerability` measures. The passages are
    read once.
    """
    if not asked:
        return []
    wanted = np.unique(np.concatenate([each.wanted for each in asked]))
    known = _join_rows([each.known for each in asked])
    mentions = passages.mentions(known.same.astype(np.float32))
    excerpts, around = _read_excerpts(known, mentions, passages, wanted), _around(mentions, passages)
    says = _value_flags(passages, wanted)
    read, start = [], 0
    for each in asked:
        rows = slice(start, start + len(each.query.terms))
        start = rows.stop
        exact, near = excerpts.best(each.known.weights, rows, passages, each.wanted)
        own_says = says[:, np.searchsorted(wanted, each.wanted)]
        features = _features(each, passages, exact, near, own_says, around[rows][:, each.wanted].astype(np.float32))
        more = measure_answerability(each.query, each.candidates, exact, near, passages, each.wanted)
        read.append(np.concatenate([features, more], axis=1))
    return read


def _join_rows(known: Sequence[WordMatches]) -> WordMatches:
    """The rows of several questions, one after another."""
    if len(known) == 1:
        return known[0]
    return WordMatches(
        np.concatenate([each.same for each in known]),
        np.concatenate([each.cosines for each in known]),
        np.concatenate([each.worth for each in known]),
        np.concatenate([each.weights for each in known]),
    )


def _features(
    asked: RelevanceQuery, passages: Passages, exact: Floats, near: Floats, says: "np.ndarray", around: Floats
) -> Floats:
    query, terms, cosines, wanted, known = asked.query, asked.query.terms, asked.cosines, asked.wanted, asked.known
    weights = known.weights / known.weights.sum()
    named = _name_mask(query.text, terms)
    others, said_names = not named.all(), exact[named].mean(axis=0) if named.any() else None
    rest_weights = np.where(named, 0, weights)
    rest_weights = rest_weights / max(float(rest_weights.sum()), 1e-9)
    lengths = passages.lengths[:, wanted]
    whole = lengths.sum(axis=0)
    lowest = np.sort(near, axis=0)
    asks = {kind: bool(sign.search(query.text)) for kind, sign in _SIGNS.items()}
    _, assistant = passages.roles
    columns = (
        dot(weights, exact),
        dot(weights, near),
        lowest[0],
        lowest[:2].mean(axis=0),
        near[int(np.argmax(weights))],
        np.log1p(exact.sum(axis=0)),
        np.log1p(len(terms)),
        np.log1p((exact < 1).sum(axis=0)),
        cosines,
        1 - said_names if said_names is not None else 0.0,
        said_names if said_names is not None else 0.0,
        dot(rest_weights, exact) if others else 0.5,
        dot(rest_weights, near) if others else 0.5,
        near[~named].max(axis=0) if others else 0.5,
        not others,
        asks["time"] * says[0],
        asks["time"] * ~says[0],
        asks["number"] * says[1],
        asks["number"] * ~says[1],
        asks["place"],
        asks["reason"],
        asks["way"],
        asks["person"],
        np.log1p(np.maximum(whole - 40, 0)),
        whole < 6,
        dot(weights, around),
        np.array([bool(passages.items[place].parent) for place in wanted.tolist()]),
        assistant[wanted],
        lengths[1] / np.maximum(whole, 1),
    )
    out: Floats = np.empty((len(wanted), len(columns)), dtype=np.float32)
    for place, column in enumerate(columns):
        out[:, place] = column
    return out


_SIGNS = {"time": _TIME, "number": _NUMBER, "place": _PLACE, "reason": _REASON, "way": _WAY, "person": _PERSON}


def _name_mask(question: str, terms: Sequence[str]) -> "np.ndarray":
    names = {term for name in entities(question) for term in query_terms(name)}
    return np.array([term in names for term in terms], dtype=bool)


@dataclass(frozen=True, slots=True)
class _Excerpts:
    """(terms x excerpts) whether an excerpt says each term, and how nearly."""

    exact: Floats
    """By block."""
    near: Floats

    def best(self, weights: Floats, rows: slice, passages: Passages, wanted: Integers) -> tuple[Floats, Floats]:
        """(terms x wanted) the same for the excerpt of each passage that says most of the question."""
        excerpts, near, exact = passages.excerpts, self.near[rows], self.exact[rows]
        best = excerpts.best(dot(weights, near))[wanted]
        first, last = excerpts.first[best], excerpts.behind[best] - 1
        return np.maximum(exact[:, first], exact[:, last]), near[:, best]


def _read_excerpts(known: WordMatches, mentions: Mentions, passages: Passages, wanted: Integers) -> _Excerpts:
    """What the excerpts of the wanted passages say."""
    said = np.where(known.same, 1, np.clip(known.cosines, 0, 1)).astype(np.float32)
    total = passages.block_total
    picked = np.zeros(len(passages), dtype=bool)
    picked[wanted] = True
    inside = np.flatnonzero(picked[passages.places])
    inside = inside[np.argsort(passages.blocks[inside], kind="stable")]
    words, blocks = passages.words[inside], passages.blocks[inside]
    starts = np.flatnonzero(np.diff(blocks, prepend=-1))
    near, exact = np.zeros((len(said), total), dtype=np.float32), np.zeros((len(said), total), dtype=np.float32)
    if len(words):
        near[:, blocks[starts]] = np.maximum.reduceat(said[:, words], starts, axis=1)
    exact[mentions.terms, passages.blocks[mentions.words]] = 1
    excerpts = passages.excerpts
    return _Excerpts(exact, np.maximum(near[:, excerpts.first], near[:, excerpts.behind - 1]))


def _around(mentions: Mentions, passages: Passages) -> "np.ndarray":
    """(terms x passages) whether a term is said in a passage or by a neighbour of it."""
    said = np.zeros((mentions.size, len(passages)), dtype=bool)
    said[mentions.terms, passages.places[mentions.words]] = True
    if passages.stand_alone:
        return said
    out, parents = said.copy(), passages.parents
    for distance in range(1, min(NEIGHBOURS, len(passages) - 1) + 1):
        together = parents[distance:] == parents[:-distance]
        out[:, :-distance] |= said[:, distance:] & together
        out[:, distance:] |= said[:, :-distance] & together
    return out


def _value_flags(passages: Passages, wanted: Integers) -> "np.ndarray":
    """(2 x wanted) whether a passage has a time, and whether it has a number."""
    out = np.zeros((2, len(wanted)), dtype=bool)
    for row, place in enumerate(wanted.tolist()):
        text = passages.items[place].fields[0]
        words = text.split()
        digits = _DIGIT.search(text) is not None
        out[:, row] = digits or not _times().isdisjoint(words), digits or not _counts().isdisjoint(words)
    return out


@cache
def _trees() -> Trees:
    data = read_arrays(Path(__file__).with_name("relevance.npz"))
    return Trees(*(data[name] for name in ("feature", "threshold", "below", "above", "value")))
