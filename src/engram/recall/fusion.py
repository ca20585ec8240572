"""Fuses several kinds of evidence into one order. Each part of a score keeps its name, so that a trace can add them
up.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from engram.embedding.vectors import dot, scores
from engram.model.lazy import dataclass, fields, lazy_pattern
from engram.recall.coverage import Floats, Integers, Lexicon, WordMatches, match_words, rarities
from engram.recall.passages import (
    SATURATION,
    Passages,
    TermCounts,
    count_terms,
    near_in_time,
    spoken_by,
    standing_instructions,
    word_evidence,
)
from engram.recall.query import RetrievedQuery, SearchQuery
from engram.store.protocol import Candidates

__all__ = [
    "PARTS",
    "RRF_K",
    "RankEvidence",
    "Weights",
    "asks_for_reply",
    "copy_penalties",
    "evidence_of",
    "evidence_of_each",
    "reciprocal_ranks",
    "repetition_penalties",
    "score",
    "weigh_evidence",
]

RRF_K = 60
"""Spec 1's constant for reciprocal rank fusion."""
REPETITION_WEIGHT = 0.6
"""If several things are asked for: what a passage loses for each doubling of the number of earlier passages of its
session, times log 2, on a scale of about ten.
"""
MIN_COPY_CHARS = 100
"""The length of index terms in characters from which equal texts count as copies; people repeat shorter ones."""
INFORMATIVE_TERMS, MOST_INFORMATIVE = 20, 40
"""The number of terms at which a turn is half as informative as it can be, and the number beyond which more add
nothing.
"""
_ONE_SELF = lazy_pattern(r"\b(?:i|me|my|mine|myself|we|us|our|ours)\b", re.IGNORECASE)
_WORD = lazy_pattern(r"[a-z]+")
_VERB_MODIFIERS = frozenset(
    (
        "ve",
        "have",
        "d",
        "also",
        "just",
        "once",
        "already",
        "previously",
        "originally",
        "earlier",
        "then",
        "first",
        "initially",
    )
)
"""Words that may separate a subject from its verb."""
_THE_OTHER = lazy_pattern(r"\b(?:you|your|yours)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RankEvidence:
    """The evidence for or against each passage; `Weights` has the weight of each kind.

    The values are shares between 0 and 1 (`length` is a logarithm). They do not depend on the length of turns and
    sessions or on the number of speakers.
    """

    words: Floats
    """BM25 of the passage in its context, as a share of the best."""
    said: Floats
    """BM25, as a share of the score of a passage identical to the question."""
    covered: Floats
    """The share of the question, by rarity, that the best excerpt contains literally."""
    session: Floats
    """The share of the question that the session contains."""
    meaning: Floats
    """The cosine of the question and the passage, or its best excerpt, as a share of the best."""
    session_meaning: Floats
    """The highest such cosine in the session, as a share of the best."""
    named: Floats
    """Whether the person the question names is the speaker."""
    user: Floats
    """Whether the speaker is a user, not an assistant or a tool."""
    oneself: Floats
    """Whether the speaker is a user and the question is about the person who asks."""
    assistant: Floats
    """Whether the speaker is an assistant and the question addresses it."""
    replied: Floats
    """The same if the question asks for its words or actions: "the list you gave me"."""
    standing: Floats
    """Whether it is a user's standing instruction: always, never, prefer."""
    time: Floats
    """Whether it is from the time the question names."""
    telling: Floats
    """Whether it informs rather than greets."""
    length: Floats
    """How long it is; the words of a long passage say less about its subject."""
    asking: Floats
    """The share of the passage that is a question."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of each kind of evidence.

    training/train_ranking.py trained them on all development sets, with LoCoMo counted eight times in the last step.
    Five weights were then tuned as long as the pool of 916 sessions and BEAM improved and no other set got worse.
    """

    words: float = 3.37
    said: float = 7.44
    covered: float = 0.42
    session: float = 0.65
    meaning: float = 1.91
    session_meaning: float = 2.76
    named: float = 0.71
    user: float = 1.79
    oneself: float = 1.68
    assistant: float = 0.58
    replied: float = 1.5
    standing: float = 0.79
    time: float = 5.63
    telling: float = 1.78
    length: float = -0.51
    asking: float = -0.09


PARTS: Mapping[str, tuple[str, ...]] = {
    "words": ("words", "said", "covered", "session"),
    "meaning": ("meaning", "session_meaning"),
    "speaker": ("named", "user", "oneself", "assistant", "replied", "standing"),
    "time": ("time",),
    "telling": ("telling", "length", "asking"),
}
"""The parts of a trace, and the kinds of evidence that each one adds up."""


@dataclass(frozen=True, slots=True)
class JudgedEvidence:
    """The evidence, and the passages and words it was computed from."""

    evidence: RankEvidence
    passages: Passages
    alike: WordMatches
    cosines: Floats


def evidence_of(
    passages: Passages,
    query: SearchQuery,
    candidates: Candidates,
    meanings: Floats | None,
    lexicon: Lexicon,
    *,
    by_excerpt: bool = False,
) -> JudgedEvidence:
    """The evidence for each passage, for one question."""
    return evidence_of_each(passages, [(candidates, query)], meanings, lexicon, by_excerpt=by_excerpt)[0]


def evidence_of_each(
    passages: Passages,
    asked: Sequence[RetrievedQuery],
    meanings: Floats | None,
    lexicon: Lexicon,
    *,
    by_excerpt: bool = False,
) -> list[JudgedEvidence]:
    """The evidence for each passage, for a question and for each of its wordings.

    The candidates say in how many documents each term occurs; `meanings` has one vector per passage. `by_excerpt` says
    that the vectors come from the lexicon's own model, so that a long passage can be compared by its best excerpt. If
    the lexicon cannot embed, only exact words count; without vectors there is no evidence of meaning.
    """
    terms = list(dict.fromkeys(term for _, query in asked for term in query.terms))
    frequency = {term: count for candidates, _ in asked for term, count in candidates.frequency.items()}
    rarity = rarities(terms, frequency, asked[0][0].total)
    rarer = (passages.rarity[None, :] / np.maximum(rarity, 1e-6)[:, None]).astype(np.float32)
    found = match_words(terms, passages.vocabulary, lexicon, rarer)
    counts, places = count_terms(passages, found), {term: row for row, term in enumerate(terms)}
    judged = []
    for candidates, query in asked:
        rows = np.array([places[term] for term in query.terms], dtype=np.int64)
        own = rows if query.lexical_terms else rows[:0]
        cosines = _cosines(passages, query.vector, meanings)
        if by_excerpt and query.vector is not None and meanings is not None:
            cosines = _of_best_excerpt(passages, query.vector, cosines, lexicon)
        own_rarity = rarities(query.lexical_terms, candidates.frequency, candidates.total)
        evidence = _evidence(passages, query, counts.of(own), own_rarity, cosines)
        judged.append(JudgedEvidence(evidence, passages, found.of(rows), cosines))
    return judged


def _evidence(
    passages: Passages, query: SearchQuery, counts: TermCounts, rarity: Floats, cosines: Floats
) -> RankEvidence:
    text = query.text
    speaks, present = spoken_by(passages, query.lexical_terms)
    words = word_evidence(passages, counts, rarity, present)
    user, assistant = passages.roles
    oneself, other = bool(_ONE_SELF.search(text)), bool(_THE_OTHER.search(text))
    lengths = passages.lengths
    stated, whole = np.minimum(lengths[0], MOST_INFORMATIVE), lengths.sum(axis=0)
    return RankEvidence(
        words=_share_of_best(words.context),
        said=words.context / max(float(rarity.sum()) * (SATURATION + 1), 1e-6),
        covered=words.covered,
        session=words.session,
        meaning=_share_of_best(cosines),
        session_meaning=_share_of_best(_best_of_session(cosines, passages)),
        named=speaks,
        user=user.astype(np.float32),
        oneself=_speaker_column(user, oneself and not other),
        assistant=_speaker_column(assistant, other),
        replied=_speaker_column(assistant, other and asks_for_reply(text)),
        standing=standing_instructions(passages),
        time=near_in_time(passages, query.windows),
        telling=(stated / (stated + INFORMATIVE_TERMS)).astype(np.float32),
        length=np.maximum(np.log1p(whole) - np.log(MOST_INFORMATIVE), 0).astype(np.float32),
        asking=(lengths[1] / np.maximum(whole, 1)).astype(np.float32),
    )


def asks_for_reply(question: str) -> bool:
    """Whether a question asks for its addressee's words or actions: "the name you suggested", "what did you say"."""
    words = _WORD.findall(question.lower())
    return any(word == "you" and _is_past_of(words, place) for place, word in enumerate(words))


def _is_past_of(words: Sequence[str], place: int) -> bool:
    """Whether the subject at this position has a verb in the past tense."""
    from engram.text.words import PAST_AUXILIARIES, is_past  # only for questions that say "you"

    if place and words[place - 1] in PAST_AUXILIARIES:
        return True
    verb = next((word for word in words[place + 1 : place + 4] if word not in _VERB_MODIFIERS), "")
    return is_past(verb, same=True)


def _speaker_column(spoken: "np.ndarray", wanted: bool) -> Floats:
    return spoken.astype(np.float32) if wanted else np.zeros(len(spoken), dtype=np.float32)


def weigh_evidence(evidence: RankEvidence, weights: Weights | None = None) -> dict[str, Floats]:
    """The parts of every passage's score, by name; passages are ranked by their sum (`score`)."""
    weights = weights or Weights()
    parts = {}
    for name, kinds in PARTS.items():
        summed = getattr(weights, kinds[0]) * getattr(evidence, kinds[0])
        for kind in kinds[1:]:
            summed += getattr(weights, kind) * getattr(evidence, kind)
        parts[name] = summed
    return parts


def repetition_penalties(scores: Floats, homes: Sequence[str]) -> Floats:
    """The penalty of each passage if a question asks for several things: it grows with the passages of its session
    before it.

    Things to count, compare or add up are spread over several sessions. Tried with .4 and .8 on questions picked by a
    plain word test: of 55 of LongMemEval, .89 and .92 instead of .86 of the sessions are among five hits, LoCoMo gains
    .016 of its turns among ten; of 18 of our writers', .11 of the turns among five were lost, none among ten.
    """
    lost, seen = np.zeros(len(scores), dtype=np.float32), Counter[str]()
    for place in np.argsort(-scores, kind="stable").tolist():
        home = homes[place]
        lost[place] = -REPETITION_WEIGHT * np.log1p(seen[home]) if home else 0
        seen[home] += 1
    return lost


def copy_penalties(scores: Floats, passages: Passages, eligible: Integers) -> Floats:
    """A penalty of half the score for each passage that repeats a better eligible one of another session: same words
    and speaker.

    Resumed and forked conversations repeat whole sessions, which would crowd out other sessions.
    """
    lost = np.zeros(len(scores), dtype=np.float32)
    parents, first = passages.parents, dict[tuple[str, str], int]()
    for place in eligible[np.argsort(-scores[eligible], kind="stable")].tolist():
        item = passages.items[place]
        if item.parent and len(item.fields[0]) >= MIN_COPY_CHARS:
            home = first.setdefault((item.speaker, item.fields[0]), parents[place])
            lost[place] = -max(float(scores[place]), 0.0) / 2 if home != parents[place] else 0
    return lost


def score(parts: Mapping[str, Floats]) -> Floats:
    """The score: the sum of the parts, in their order."""
    first, *rest = parts.values()
    summed = first.copy()
    for values in rest:
        summed += values
    return summed


def reciprocal_ranks(rankings: Mapping[str, Sequence[int]], k: int = RRF_K) -> dict[int, dict[str, float]]:
    """Spec 1's fusion: for each document, what each ranking (best first) adds to its score."""
    parts: dict[int, dict[str, float]] = {}
    for name, ranking in rankings.items():
        for place, document in enumerate(ranking, 1):
            parts.setdefault(document, {})[name] = 1 / (k + place)
    return parts


def matrix(evidence: RankEvidence) -> Floats:
    """(passages x kinds) the evidence as one array, for training the weights."""
    return np.stack([getattr(evidence, kind.name) for kind in fields(Weights)], axis=1)


def _cosines(passages: Passages, question: Floats | None, meanings: Floats | None) -> Floats:
    if question is None or meanings is None:
        return np.zeros(len(passages), dtype=np.float32)
    return scores(meanings, question)


def _of_best_excerpt(passages: Passages, question: Floats, cosines: Floats, lexicon: Lexicon) -> Floats:
    """The cosines; for a long passage that of its best excerpt, if it is higher.

    The best excerpt is estimated by adding up what each word contributes, as if all words were independent; only that
    excerpt is embedded.
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
    vectors = np.stack([dot(weights[words], rows[words]) for words in inside])
    near = dot(vectors, question) / np.maximum(np.linalg.norm(vectors, axis=1), 1e-9)
    out = cosines.copy()
    out[long] = np.maximum(out[long], near)
    return out


def _inside(passages: Passages, first: "np.ndarray", behind: "np.ndarray") -> "list[np.ndarray]":
    """The words between these blocks. Block numbers increase with the words of the first field, so two searches find
    them.
    """
    order = np.argsort(passages.blocks, kind="stable")
    blocks = passages.blocks[order]
    starts, ends = np.searchsorted(blocks, first), np.searchsorted(blocks, behind)
    return [passages.words[order[start:end]] for start, end in zip(starts, ends, strict=True)]


def _best_of_session(values: Floats, passages: Passages) -> Floats:
    """For each passage the highest value in its session."""
    if not len(passages):
        return values
    starts = np.flatnonzero(np.diff(passages.parents, prepend=-1))
    best: Floats = np.maximum.reduceat(values, starts)[passages.parents]
    return best


def _share_of_best(values: Floats) -> Floats:
    best = float(values.max()) if values.size else 0.0
    return (np.maximum(values, 0) / best).astype(np.float32) if best > 0 else np.zeros_like(values)
