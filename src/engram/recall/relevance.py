"""Estimates two calibrated probabilities: that a hit is about the question, and that it answers it.

The second also compares the kind of value asked for with the values the hit states.
"""

import math
import re
from collections.abc import Collection, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from engram.embedding.vectors import dot
from engram.model.lazy import dataclass, lazy_pattern
from engram.models.trees import Trees
from engram.models.weights import read_arrays
from engram.recall.coverage import Floats, Integers, WordMatches, rarity
from engram.recall.passages import Mentions, Passages
from engram.recall.query import SearchQuery
from engram.store.protocol import Candidates
from engram.text.entities import entities
from engram.text.tokens import query_terms, tokens
from engram.text.words import word_class

__all__ = [
    "ANSWERABILITY_FILE",
    "EVIDENCE",
    "FEATURES",
    "NONE_KNOWN",
    "TYPES",
    "ComparedMemory",
    "RelevanceQuery",
    "answer_probabilities",
    "answer_rows",
    "as_match",
    "evidence_of_each",
    "find_asked_types",
    "find_head_terms",
    "judge_passages",
    "log_odds",
    "measure_answerability",
    "measure_stated_types",
    "probabilities_of",
]

TYPES = ("money", "count", "measure", "time", "place", "person", "reason", "contact", "name", "colour")
_STATED = ("money", "measure", "time", "place", "person", "reason", "contact", "colour")
PARTIAL_TYPE_MATCH = 0.5
"""How much a value counts that may have the type asked for, such as a number without its unit."""
MAX_CACHED_PASSAGES = 2_048
"""The number of passages whose stated values a process caches, about 3 MB."""
_CONTACT_DIGITS = 5
"""A number with at least this many digits is more likely a telephone number, a code or an account than an amount."""
_WORD = lazy_pattern(r"[^\W_]+")
_HEAD = lazy_pattern(
    r"\w['’]s\s+(\w+(?:\s+\w+)?)"
    r"|\b(?:what|which)\s+((?!is\b|are\b|was\b|were\b|do\b|does\b|did\b|has\b|can\b|should\b)\w+)"
    r"|\b(?:the|of) (\w+) of\b|^(\w+(?: \w+)?) (?:of|for|at|on) ",
)
"""The noun asked for: after an owner ("Ada's age"), after "what" or "which", or before "of"."""


@lru_cache(maxsize=256)
def find_asked_types(question: str) -> tuple[bool, ...]:
    """Whether a question asks for a value of each type.

    "What is Halcyon's fax number?" shares its name with every statement about Halcyon, but only one with a number can
    answer it. The types are evidence for the trees of `judge_passages`, which learn how much a missing value matters.
    """
    text = f" {' '.join(_WORD.findall(question.lower()))} "
    return tuple(any(phrase in text for phrase in _asking(name)) for name in TYPES)


@lru_cache(maxsize=256)
def find_head_terms(question: str) -> frozenset[str]:
    """The index terms of the thing a question asks for, without its owner."""
    found = [part for match in _HEAD.finditer(question.lower()) for part in match.groups() if part]
    return frozenset(term for part in found for term in query_terms(part))


class _Stated(NamedTuple):
    """The types of the values a passage states, independent of the question."""

    kinds: int
    """The types of its words, one bit each, without those of its numbers."""
    numbers: dict[str, int]
    """The types of each of its numbers."""
    names: frozenset[str]


def measure_stated_types(statement: Collection[str], about: Collection[str], asked: frozenset[str]) -> list[float]:
    """How far a passage states a value of each type that the question lacks, from 0 to 1; then how many names and
    numbers it adds.

    `statement` and `about` are the index terms of the passage and of its entities, `asked` those of the question.
    """
    stated = _read_stated(frozenset(statement), frozenset(about))
    kinds, numbers, names = stated.kinds, 0, len(stated.names - asked)
    for term, kind in stated.numbers.items():
        if term not in asked:
            kinds |= kind
            numbers += 1
    number = float(numbers > 0)
    has = {name: float(kinds >> place & 1) for place, name in enumerate(_STATED)}
    return [
        number * max(has["money"], PARTIAL_TYPE_MATCH),
        number,
        max(number * PARTIAL_TYPE_MATCH, has["measure"] * (number or PARTIAL_TYPE_MATCH)),
        has["time"],
        has["place"],
        1.0 if names else has["person"] * PARTIAL_TYPE_MATCH,
        has["reason"],
        max(has["contact"], number * PARTIAL_TYPE_MATCH),
        float(names > 0),
        has["colour"],
        float(names),
        float(numbers),
    ]


@lru_cache(maxsize=MAX_CACHED_PASSAGES)
def _read_stated(statement: frozenset[str], about: frozenset[str]) -> _Stated:
    """The types of a passage's values, cached because every wording of a question needs them."""
    kinds, numbers = 0, dict[str, int]()
    for term in statement:
        kind = _kinds(term)
        if kind & _NUMBER_BIT:
            numbers[term] = kind
        else:
            kinds |= kind
    return _Stated(kinds, numbers, frozenset(term for term in about & statement if not _kinds(term) & _NUMBER_BIT))


@cache
def _asking(name: str) -> tuple[str, ...]:
    return tuple(f" {phrase.replace('_', ' ')} " for phrase in sorted(word_class("answertypes", f"{name}_asked")))


_NUMBER_BIT = 1 << len(_STATED)


@lru_cache(maxsize=20_000)
def _kinds(term: str) -> int:
    """The types that an index term states, one bit each, and whether it is a number."""
    found = _type_bits().get(term, 0)
    digits = sum(map(str.isdigit, term))
    if digits:
        found |= _NUMBER_BIT
        if digits >= _CONTACT_DIGITS:
            found |= 1 << _STATED.index("contact")
    return found


@cache
def _type_bits() -> dict[str, int]:
    kinds: dict[str, int] = {}
    for place, name in enumerate(_STATED):
        for word in word_class("answertypes", f"{name}_stated"):
            for term in tokens(word):
                kinds[term] = kinds.get(term, 0) | 1 << place
    for word in _number_words():
        kinds[word] = kinds.get(word, 0) | _NUMBER_BIT
    return kinds


@cache
def _number_words() -> frozenset[str]:
    words = (
        "two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty fifty hundred thousand"
    )
    return frozenset(tokens(f"one {words} half quarter third twice once dozen double both couple several"))


ANSWERABILITY_FILE = Path(__file__).with_name("answerability.npz")
NOT_ASKED = -1.0
"""The evidence value for a type, or a head, that the question does not ask for."""
EVIDENCE = (
    *TYPES, "names_added", "numbers_added", "types_asked", "least_stated", "mean_stated", "head_covered", "head_alike", "head_in_store",
    "head_size", "covered_by_rarity", "alike_by_rarity", "unseen_lacking", "unseen_alike", "unseen", "rarest_covered", "rarest_lacking",
    "least_alike", "lacking_alike",
)  # fmt: skip
"""The values that `measure_answerability` returns for each passage, in this order."""


class ComparedMemory(NamedTuple):
    """A memory compared with a question."""

    evidence: Floats
    """The evidence of its relevance, then `EVIDENCE`."""
    odds: float
    """The log odds of its relevance by words."""
    like: float
    """Its likeness to the question."""


def measure_answerability(
    query: SearchQuery, candidates: Candidates, exact: Floats, near: Floats, passages: Passages, wanted: Integers
) -> Floats:
    """(wanted x EVIDENCE) evidence of whether each passage has the thing the question asks for.

    `exact` and `near` (terms x wanted) say whether and how closely a passage contains each term; `candidates` has the
    number of documents in the store for each term.

    `judge_passages` measures how much of the question a passage contains. That is much even if only the detail asked
    for is missing: the store knows Halcyon's e-mail address, the question asks for the fax number. This function
    measures the rest: the terms of the question that the memory lacks, how rare they are in this store, whether the
    head of the question is among them, and whether the memory states a value of the type asked for. Small trees
    (training/train_answerability.py) turn both and the likeness into a probability.
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
    """The input of the trees, a row for each memory. `usual` is the usual likeness for the question."""
    words = len(question.split())
    if not compared:
        return np.zeros((0, 0), dtype=np.float32)
    more = [(each.odds, each.like, usual, words, each.like - usual) for each in compared]
    rows: Floats = np.concatenate([[each.evidence for each in compared], more], axis=1, dtype=np.float32)
    return rows


def answer_probabilities(rows: Floats) -> list[float]:
    """The probability that each memory answers the question."""
    found: list[float] = _answerability_trees()(rows).tolist()
    return found


@cache
def _answerability_trees() -> Trees:
    data = read_arrays(ANSWERABILITY_FILE)
    return Trees(*(data[name] for name in ("feature", "threshold", "below", "above", "value")))


NONE_KNOWN = 0.02
"""The relevance of every passage for a question without a single index term."""
NEIGHBOURS = 2
"""Turns on either side whose words count, because an answer rarely repeats the question."""
_LEAST_ODDS = 0.001
_IN_MATCH = 3.0
"""The weight of the log odds of relevance in the order of memories; the other evidence is on a scale of ten."""
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
    """A question, or one of its wordings, and the passages whose relevance is wanted."""

    query: SearchQuery
    candidates: Candidates
    """The candidates of the retrievers, with the number of documents that contain each term."""
    known: WordMatches
    """How much each word of the passages counts for each of the query's terms."""
    cosines: Floats
    """The bundled model's cosines of the question and the wanted passages."""
    wanted: Integers


def judge_passages(asked: Sequence[RelevanceQuery], passages: Passages) -> list[tuple[Floats, Floats | None]]:
    """For each question, the probability that each wanted passage is about it, and a row of evidence for each.

    The evidence is used to judge memories again (`answerability`). The order of hits uses all the evidence of a search
    (`fusion`), on a scale of that search. Relevance depends on the question and one passage alone: which of the
    question's words its best excerpt contains, literally or by similarity, how informative each is, how close the two
    are in meaning, whether the names agree, and whether it has the kind of value asked for (a time, a number); for a
    turn, also which of the words its neighbours contain. A hundred and twenty small trees turn that into a probability;
    training/train_relevance.py trains them on questions of many writers, some of which nothing answers.
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
    return _relevance_trees()(rows)


def as_match(relevance: float) -> float:
    """A relevance as a part of the match, at least 0."""
    return _IN_MATCH * (log_odds(relevance) - log_odds(_LEAST_ODDS))


def log_odds(probability: float) -> float:
    """The log odds of a probability, bounded."""
    kept = min(max(probability, _LEAST_ODDS), 1 - _LEAST_ODDS)
    return math.log(kept / (1 - kept))


def evidence_of_each(asked: Sequence[RelevanceQuery], passages: Passages) -> list[Floats]:
    """For each question, the input of the trees (wanted x evidence): `FEATURES`, then the values of `answerability`.

    The passages are read once.
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
    """(terms x excerpts) whether an excerpt contains each term, and how closely."""

    exact: Floats
    """By block."""
    near: Floats

    def best(self, weights: Floats, rows: slice, passages: Passages, wanted: Integers) -> tuple[Floats, Floats]:
        """(terms x wanted) the same for the excerpt of each passage that covers most of the question."""
        excerpts, near, exact = passages.excerpts, self.near[rows], self.exact[rows]
        best = excerpts.best(dot(weights, near))[wanted]
        first, last = excerpts.first[best], excerpts.behind[best] - 1
        return np.maximum(exact[:, first], exact[:, last]), near[:, best]


def _read_excerpts(known: WordMatches, mentions: Mentions, passages: Passages, wanted: Integers) -> _Excerpts:
    """The terms that the excerpts of the wanted passages contain."""
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
    """(terms x passages) whether a passage or one of its neighbours contains a term."""
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
def _relevance_trees() -> Trees:
    data = read_arrays(Path(__file__).with_name("relevance.npz"))
    return Trees(*(data[name] for name in ("feature", "threshold", "below", "above", "value")))
