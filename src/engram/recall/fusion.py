"""From several kinds of evidence to one order, every part kept by name so that a trace can add them up again."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from engram.embedding.products import scores
from engram.recall.passages import (
    SATURATION,
    Passages,
    near_in_time,
    spoken_by,
    standing,
    word_evidence,
)
from engram.recall.query import SearchQuery
from engram.recall.similarity import Alike, Floats, Lexicon, alike, rarities
from engram.store.protocol import Candidates

__all__ = [
    "PARTS",
    "RRF_K",
    "RankEvidence",
    "Weights",
    "evidence_of",
    "reciprocal_ranks",
    "repeated",
    "score",
    "weighed",
]

RRF_K = 60
"""Spec 1's constant for reciprocal rank fusion."""
REPEATED = 0.6
"""Where several are asked for: what a passage loses for each doubling of those of its session before it, times log 2. Of about
ten, before scores are scaled."""
TELLING_TERMS, TELLS_ALL = 20, 40
"""Terms at which a turn is halfway to telling all a turn can tell, and from which on more of them add nothing."""
_ONE_SELF = re.compile(r"\b(?:i|me|my|mine|myself|we|us|our|ours)\b", re.IGNORECASE)
_THE_OTHER = re.compile(r"\b(?:you|your|yours)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RankEvidence:
    """What speaks for each passage, or against it: shares between 0 and 1 (`length` is a logarithm), independent of how long
    turns and sessions are and of how many speak. `Weights` says what each is worth.
    """

    words: Floats
    """BM25 of the passage in its context, as a share of the best."""
    said: Floats
    """The same, as a share of what a passage could have that says nothing but the question."""
    covered: Floats
    """The share of the question, by rarity, that its best excerpt says in so many words."""
    session: Floats
    """The share of the question that its session says."""
    meaning: Floats
    """Cosine of question and passage, or its best excerpt, as a share of the best."""
    named: Floats
    """It was said by whom the question names."""
    user: Floats
    """A user said it, not an assistant or a tool."""
    oneself: Floats
    """The same, and the question is about the one who asks."""
    assistant: Floats
    """An assistant said it, and the question is about what it said."""
    standing: Floats
    """A user said what is always, never or preferably to be done."""
    time: Floats
    """It was said when the question says."""
    telling: Floats
    """It tells rather than greets."""
    length: Floats
    """It is so long that its words say less of what it is about."""
    asking: Floats
    """The share of it that asks."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What each kind of evidence is worth, learned on all development sets together as scripts/train_ranking.py does; in the last
    step LoCoMo counted eight times."""

    words: float = 3.59
    said: float = 3.49
    covered: float = 0.24
    session: float = 1.16
    meaning: float = 3.38
    named: float = 0.78
    user: float = 1.08
    oneself: float = 1.86
    assistant: float = 0.96
    standing: float = 0.59
    time: float = 5.64
    telling: float = 1.52
    length: float = -0.5
    asking: float = -0.09


PARTS: Mapping[str, tuple[str, ...]] = {
    "words": ("words", "said", "covered", "session"),
    "meaning": ("meaning",),
    "speaker": ("named", "user", "oneself", "assistant", "standing"),
    "time": ("time",),
    "telling": ("telling", "length", "asking"),
}
"""The parts of a trace, and the evidence each sums up."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The evidence, and what it was read from."""

    evidence: RankEvidence
    passages: Passages
    alike: Alike
    cosines: Floats


def evidence_of(
    passages: Passages,
    query: SearchQuery,
    candidates: Candidates,
    meanings: Floats | None,
    lexicon: Lexicon,
    *,
    by_excerpt: bool = False,
) -> Judged:
    """The evidence for each passage.

    `candidates` says in how many documents each term occurs; `meanings` has one vector per passage. `by_excerpt` says that
    the vectors are of the lexicon's own model, so that a long passage is compared by its best excerpt. With a lexicon that
    cannot embed only exact words count; without vectors there is no evidence of meaning.
    """
    terms, text = query.lexical_terms, query.text
    speaks, present = spoken_by(passages, terms)
    rarity = rarities(terms, candidates.frequency, candidates.total)
    rarer = (passages.rarity[None, :] / np.maximum(rarity, 1e-6)[:, None]).astype(np.float32)
    found = alike(terms, passages.vocabulary, lexicon, rarer)
    words = word_evidence(passages, found, rarity, present)
    cosines = _cosines(passages, query.vector, meanings)
    if by_excerpt and query.vector is not None and meanings is not None:
        cosines = _of_best_excerpt(passages, query.vector, cosines, lexicon)
    user, assistant = passages.roles
    oneself, other = bool(_ONE_SELF.search(text)), bool(_THE_OTHER.search(text))
    lengths = passages.lengths
    told, whole = np.minimum(lengths[0], TELLS_ALL), lengths.sum(axis=0)
    evidence = RankEvidence(
        words=_share_of_best(words.context),
        said=words.context / max(float(rarity.sum()) * (SATURATION + 1), 1e-6),
        covered=words.covered,
        session=words.session,
        meaning=_share_of_best(cosines),
        named=speaks,
        user=user.astype(np.float32),
        oneself=_where(user, oneself and not other),
        assistant=_where(assistant, other),
        standing=standing(passages),
        time=near_in_time(passages, query.windows),
        telling=(told / (told + TELLING_TERMS)).astype(np.float32),
        length=np.maximum(np.log1p(whole) - np.log(TELLS_ALL), 0).astype(np.float32),
        asking=(lengths[1] / np.maximum(whole, 1)).astype(np.float32),
    )
    return Judged(evidence, passages, found, cosines)


def _where(spoken: "np.ndarray", wanted: bool) -> Floats:
    return spoken.astype(np.float32) if wanted else np.zeros(len(spoken), dtype=np.float32)


def weighed(evidence: RankEvidence, weights: Weights | None = None) -> dict[str, Floats]:
    """The parts of every passage's score, by name; their sum (`score`) ranks."""
    weights = weights or Weights()
    parts = {}
    for name, kinds in PARTS.items():
        summed = getattr(weights, kinds[0]) * getattr(evidence, kinds[0])
        for kind in kinds[1:]:
            summed += getattr(weights, kind) * getattr(evidence, kind)
        parts[name] = summed
    return parts


def repeated(scores: Floats, homes: Sequence[str]) -> Floats:
    """What each passage loses where a question asks for several things: more the more passages of its session come before it.

    What is counted, compared or summed up is told in several sessions. Tried with .4 and .8 on questions picked by a plain word test:
    of 55 of LongMemEval .89 and .92 instead of .86 of the sessions are among five hits, LoCoMo gains .016 of its turns among ten; of
    18 of our writers' .11 of the turns among five were lost, none among ten.
    """
    lost, seen = np.zeros(len(scores), dtype=np.float32), Counter[str]()
    for place in np.argsort(-scores, kind="stable").tolist():
        home = homes[place]
        lost[place] = -REPEATED * np.log1p(seen[home]) if home else 0
        seen[home] += 1
    return lost


def score(parts: Mapping[str, Floats]) -> Floats:
    """The score: the sum of the parts, in their order."""
    first, *rest = parts.values()
    summed = first.copy()
    for values in rest:
        summed += values
    return summed


def reciprocal_ranks(rankings: Mapping[str, Sequence[int]], k: int = RRF_K) -> dict[int, dict[str, float]]:
    """Spec 1's fusion: by document, what each ranking (best first) adds to its score."""
    parts: dict[int, dict[str, float]] = {}
    for name, ranking in rankings.items():
        for place, document in enumerate(ranking, 1):
            parts.setdefault(document, {})[name] = 1 / (k + place)
    return parts


def matrix(evidence: RankEvidence) -> Floats:
    """(passages x kinds) the evidence as one array, for whoever learns the weights."""
    return np.stack([getattr(evidence, kind.name) for kind in fields(Weights)], axis=1)


def _cosines(passages: Passages, question: Floats | None, meanings: Floats | None) -> Floats:
    if question is None or meanings is None:
        return np.zeros(len(passages), dtype=np.float32)
    return scores(meanings, question)


def _of_best_excerpt(passages: Passages, question: Floats, cosines: Floats, lexicon: Lexicon) -> Floats:
    """The cosines; for a long passage that of its best excerpt, where it is higher.

    The best excerpt is estimated by adding up what each word contributes, as if no two words had anything in common;
    only that one is embedded.
    """
    excerpts = passages.excerpts
    long = np.bincount(excerpts.passage, minlength=len(passages)) > 1
    known = lexicon.vectors(passages.vocabulary) if long.any() else None
    if known is None:
        return cosines
    rows, weights = known
    towards = scores(rows, question) * weights
    values = (towards[passages.words], (weights * weights)[passages.words])
    blocks = [np.bincount(passages.blocks, row, passages.block_total).astype(np.float32) for row in values]
    sums = excerpts.sums(np.stack(blocks))
    best = excerpts.best(sums[0] / np.sqrt(np.maximum(sums[1], 1e-9)))[long]
    inside = _inside(passages, excerpts.first[best], excerpts.behind[best])
    vectors = np.stack([weights[words] @ rows[words] for words in inside])
    near = (vectors @ question) / np.maximum(np.linalg.norm(vectors, axis=1), 1e-9)
    out = cosines.copy()
    out[long] = np.maximum(out[long], near)
    return out


def _inside(passages: Passages, first: "np.ndarray", behind: "np.ndarray") -> "list[np.ndarray]":
    """The words between these blocks. Blocks rise with the words of the first field, so two searches find them."""
    order = np.argsort(passages.blocks, kind="stable")
    blocks = passages.blocks[order]
    starts, ends = np.searchsorted(blocks, first), np.searchsorted(blocks, behind)
    return [passages.words[order[start:end]] for start, end in zip(starts, ends, strict=True)]


def _share_of_best(values: Floats) -> Floats:
    best = float(values.max()) if values.size else 0.0
    return (np.maximum(values, 0) / best).astype(np.float32) if best > 0 else np.zeros_like(values)
