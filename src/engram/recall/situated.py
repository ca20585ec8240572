"""Finds the memories about a task by their situations, and compares memories with a question by the same vectors."""

import math
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from engram.embedding.vectors import dot
from engram.model.hit import Hit
from engram.model.lazy import lazy_pattern, replace
from engram.model.memory import Memory
from engram.models.task_vectors import TaskTable, task_relevance
from engram.recall.coverage import Floats
from engram.recall.cutoff import ABOUT_FLOOR, is_about
from engram.recall.query import SearchQuery
from engram.recall.ranking import RankedDocument, scale_matches, scaled_to_best
from engram.recall.relevance import NONE_KNOWN, ComparedMemory, answer_probabilities, answer_rows, as_match, log_odds
from engram.rules.labels import situation_with_cues
from engram.rules.numbers import NEAREST_TO_TASK
from engram.store.protocol import StoredRecord

if TYPE_CHECKING:
    from array import array

__all__ = [
    "LIKENESS",
    "MIN_WORD_RELEVANCE",
    "SITUATION",
    "add_likeness",
    "compare_memories",
    "compare_task",
    "is_about_task",
    "is_question",
    "is_situated",
    "judge_by_situation",
    "likenesses_to_each",
    "measure_likeness",
    "task_vector",
]

MIN_WORD_RELEVANCE = 0.3
"""The relevance from which a task's words alone are enough to connect a memory with it. No unrelated prompt of ten
stores reached it.
"""
SITUATION, LIKENESS = "situation", "likeness"
"""Parts of a match: the probability that the memory is about the task, and its likeness to the question. The first
replaces the second because both come from the same vectors.
"""
SITUATION_MATCH_WEIGHT = 0.3
"""The weight in a match of the relevance by situation."""
MIN_PROBABILITY = 0.05
"""Below this probability, a memory with a situation does not answer a question either. For 45 questions about such
memories the right one had .1 and more; nine of ten unrelated questions that found something had .03 and less.
"""
TASK_WORDS_WEIGHT = 0.1
"""The weight of a task's words in the order of memories, relative to their situations. Words distinguish siblings but
are mostly incidental.
"""
MAX_CACHED_VECTORS = 4_096
"""The maximum number of memories whose task vectors a process caches."""
_ASKING = frozenset((
    "what", "who", "whom", "whose", "when", "where", "which", "why", "how", "is", "are", "was", "were", "do", "does", "did", "has", "have", "had",
    "will", "would", "should", "wer", "wo", "wann", "wie", "warum", "welche", "welcher", "welches", "wem", "wen", "qui", "quel", "quelle", "quand",
    "où", "comment", "pourquoi", "wieso", "welchen", "welchem", "wessen", "qué", "quién", "cuándo", "dónde", "cómo", "cuál",
))  # fmt: skip
_BESIDE_WORD = lazy_pattern(r"^\W+|['’]\w*$|\W+$")
"""Marks around a word, and contractions: "what's"."""
_REQUESTS = frozenset((("would", "you"), ("will", "you"), ("do", "not"), ("how", "about")))
Considered = tuple[StoredRecord, RankedDocument]


def is_question(text: str) -> bool:
    """Whether a text asks for information, by its first word. "Can you deploy it?" asks for an action."""
    opening = [_BESIDE_WORD.sub("", word).lower() for word in text.split(None, 2)[:2]]
    return bool(opening) and opening[0] in _ASKING and tuple(opening) not in _REQUESTS


def is_about_task(hit: Hit) -> bool:
    """Whether a hit was judged by its situation to be about the task."""
    return hit.trace is not None and SITUATION in hit.trace.found_by and is_about(hit)


def is_situated(hit: Hit) -> bool:
    """Whether a hit is a memory with a situation."""
    return hit.memory is not None and bool(hit.memory.situation.strip())


def likenesses_to_each(texts: Sequence[str], memories: Sequence[Memory]) -> list[list[float]]:
    """The likeness of each memory to each of some questions or tasks."""
    vectors = _vectors(memories)
    return [compare_task(text).likenesses_of_vectors(vectors) for text in texts]


def task_vector(task: str) -> "array[float]":
    """The vector of a task, for the store."""
    return compare_task(task).vector


def judge_by_situation(
    query: SearchQuery, found: Sequence[Considered], near: Sequence[Considered], count: int
) -> list[Considered]:
    """The results of a search, with the relevance of situated memories set to the probability that they are about the
    task, and other memories close to the task.

    `count` is the number of memories compared with the task.

    "Ship main to prod" shares no word with a memory learned "when deploying". The words of such a prompt say little
    about relevance, so a memory with a situation is judged by the situation. A question may also ask for the content of
    such a memory.
    """
    considered, asked = [*found, *near], is_question(query.task)
    memories = {place: one.record for place, (one, _) in enumerate(considered) if isinstance(one.record, Memory)}
    likes = dict(zip(memories, compare_task(query.task).likenesses(list(memories.values())), strict=True))
    nearest = set(sorted(likes, key=lambda place: -likes[place])[:NEAREST_TO_TASK])
    judged: list[Considered] = []
    for place, (record, ranked) in enumerate(considered):
        if place in memories and memories[place].situation.strip():
            ranked = _judge_ranked(ranked, task_relevance(likes[place], count), asked=asked)
        if place < len(found) or (place in nearest and ranked.relevance >= ABOUT_FLOOR):
            judged.append((record, ranked))
    return _scale_shares(judged, 1.0 if asked else TASK_WORDS_WEIGHT)


def _judge_ranked(ranked: RankedDocument, relevance: float, *, asked: bool) -> RankedDocument:
    """Set a memory's relevance to the higher one of its words and its situation; its other evidence still separates
    siblings.
    """
    if relevance < (MIN_PROBABILITY if asked else ABOUT_FLOOR) and ranked.relevance < MIN_WORD_RELEVANCE:
        return replace(ranked, relevance=min(ranked.relevance, relevance, NONE_KNOWN))
    if relevance < ABOUT_FLOOR:
        return ranked
    ranked = replace(ranked, found_by={SITUATION: 1, **ranked.found_by})
    if relevance <= ranked.relevance:
        return ranked
    shares = {name: share for name, share in ranked.shares.items() if name != LIKENESS}
    shares[SITUATION] = SITUATION_MATCH_WEIGHT * as_match(relevance)
    return replace(ranked, shares=shares, relevance=relevance)


def _scale_shares(judged: list[Considered], evidence: float) -> list[Considered]:
    """Scale the shares so that the best memory has the full match, with the evidence of words at this weight.

    Unchanged if no memory is judged by its situation.
    """
    if not any(SITUATION in ranked.shares for _, ranked in judged):
        return judged
    weighed = [
        {name: share * (1.0 if name == SITUATION else evidence) for name, share in ranked.shares.items()}
        for _, ranked in judged
    ]
    scaled = scale_matches([ranked for _, ranked in judged], weighed)
    return [(record, ranked) for (record, _), ranked in zip(judged, scaled, strict=True)]


class ComparedTask:
    """A task and its likeness to the memories compared with it, cached because the searches of one recall find many of
    the same memories.
    """

    def __init__(self, task: str) -> None:
        self.vector = _table().prompt_with_numpy(task)
        self._likes: dict[bytes, float] = {}

    def likenesses(self, memories: Sequence[Memory]) -> list[float]:
        """The likeness of each memory to the task."""
        return self.likenesses_of_vectors(_vectors(memories))

    def likenesses_of_vectors(self, vectors: Sequence[bytes]) -> list[float]:
        """The same, by the task vectors of the memories."""
        new = [vector for vector in dict.fromkeys(vectors) if vector not in self._likes]
        self._likes.update(zip(new, likenesses(self.vector, new), strict=True))
        return [self._likes[vector] for vector in vectors]


def likenesses(vector: "array[float]", stored: Sequence[bytes]) -> list[float]:
    """The `likeness` of a prompt's unit vector and each of some stored ones."""
    if not stored:
        return []
    import numpy as np

    rows = np.frombuffer(b"".join(stored), dtype=np.int8).reshape(len(stored), -1).astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    found: list[float] = (dot(rows, np.asarray(vector)) / np.where(lengths, lengths, 1.0)).tolist()
    return found


@cache
def _table() -> TaskTable:
    return TaskTable()


@lru_cache(maxsize=32)
def compare_task(task: str) -> ComparedTask:
    """Prepare a task for comparison with memories."""
    return ComparedTask(task)


_cached_vectors: dict[tuple[str, str], bytes] = {}


def _vectors(memories: Sequence[Memory]) -> list[bytes]:
    """The task vectors of memories, cached across questions."""
    keys = [(situation_with_cues(memory.situation, memory.cues), memory.statement) for memory in memories]
    known = {key: found for key in keys if (found := _cached_vectors.get(key)) is not None}
    missing = [key for key in dict.fromkeys(keys) if key not in known]
    if missing:
        known |= zip(missing, _table().encode_notes(missing), strict=True)
        if len(_cached_vectors) > MAX_CACHED_VECTORS:
            _cached_vectors.clear()
        _cached_vectors.update(known)
    return [known[key] for key in keys]


MATCH_WEIGHT = 15.0
"""The weight of likeness in a match; the evidence of words is on a scale of ten."""
MAX_COMPARED = 20
"""The number of first memories in a ranking whose mean likeness is the usual one for the question."""
DEFAULT_LIKENESS = 0.17
"""The usual likeness in other stores, which completes the mean if fewer memories are found."""

WORDS_WEIGHT, LIKENESS_WEIGHT, USUAL_SHARE, LENGTH_WEIGHT, BIAS = 0.8, 10.3, 0.94, 0.7, 3.6
"""The weights of a logistic regression on the questions of six stores: the log odds by words, the likeness beyond this share of the usual one,
and the question's length."""
MAX_SHARE, MANY = 0.5, 50
"""The weight of answerability, and the number of found memories from which it applies in full: a small store says
little about how rare words are.
"""
MAX_LOSS, MAX_GAIN = 0.5, 1.5
"""How far likeness may lower and raise the log odds from words. The vectors miss some wordings and cannot distinguish
names.
"""


def add_likeness(asked: Sequence[tuple[str, Sequence[Considered]]]) -> list[list[RankedDocument]]:
    """For a question and each of its wordings, add the likeness of memories to their match and rank them again, best
    first.

    Each memory is judged again on whether it answers the question. Other records get the usual likeness.
    """
    records = {place.n: found.record for _, considered in asked for found, place in considered}
    memories = {n: record for n, record in records.items() if isinstance(record, Memory)}
    compared = likenesses_to_each([question for question, _ in asked], list(memories.values()))
    return [
        _add_likeness(question, [place for _, place in considered], dict(zip(memories, likes, strict=True)))
        for (question, considered), likes in zip(asked, compared, strict=True)
    ]


def _add_likeness(question: str, ranking: Sequence[RankedDocument], likes: Mapping[int, float]) -> list[RankedDocument]:
    known = [likes[place.n] for place in ranking if place.n in likes]
    if not known:
        return list(ranking)
    usual = _usual_likeness(known[:MAX_COMPARED])
    numbers, rows = compare_memories(question, ranking, likes, usual)
    answering = dict(zip(numbers, answer_probabilities(rows), strict=True)) if numbers else {}
    words, share = len(question.split()), MAX_SHARE * min(len(known) / MANY, 1.0)
    shares = [{**place.shares, LIKENESS: MATCH_WEIGHT * max(likes.get(place.n, usual), 0.0)} for place in ranking]
    compared = [
        RankedDocument(
            place.n, sum(own.values()), own, place.found_by, place.raw,
            _join_judgments(place.relevance, answering[place.n], likes[place.n] - USUAL_SHARE * usual, words, share)
            if place.n in answering else place.relevance,
            place.wording,
        )
        for place, own in zip(ranking, scaled_to_best(shares), strict=True)
    ]  # fmt: skip
    return sorted(compared, key=lambda place: (-place.match, place.n))


def measure_likeness(question: str, considered: Sequence[Considered]) -> tuple[dict[int, float], float]:
    """The likeness of each memory to the question, by the number of its document, and the usual one for the question.

    The vectors were trained on prompts and the memories that help with them, so they distinguish an answer from a
    statement that only shares words with the question. A cue counts as a situation because both describe when the
    memory is needed.
    """
    memories = {place.n: found.record for found, place in considered if isinstance(found.record, Memory)}
    likes = likenesses_to_each([question], list(memories.values()))[0]
    return dict(zip(memories, likes, strict=True)), _usual_likeness(likes[:MAX_COMPARED])


def compare_memories(
    question: str, ranking: Sequence[RankedDocument], likes: Mapping[int, float], usual: float
) -> tuple[list[int], Floats]:
    """The document numbers of the memories with evidence, and the input of the answerability model for each."""
    found = [
        (place.n, ComparedMemory(place.evidence, log_odds(place.relevance), likes[place.n]))
        for place in ranking
        if place.n in likes and place.evidence is not None
    ]
    return [n for n, _ in found], answer_rows(question, [each for _, each in found], usual)


def _join_judgments(relevance: float, answering: float, like: float, words: int, share: float) -> float:
    """The weighted mean of two log odds: that a memory answers the question, and that it is about it by words and
    likeness.

    The first detects a missing detail, the second recognises memories that were found by their cues. Together they
    leave out more than either at the same share of answers.
    """
    by_words = log_odds(relevance)
    odds = WORDS_WEIGHT * by_words + LIKENESS_WEIGHT * like + LENGTH_WEIGHT * math.log1p(words) - BIAS
    about = min(max(odds, by_words - MAX_LOSS), by_words + MAX_GAIN)
    return 1 / (1 + math.exp(-((1 - share) * about + share * log_odds(answering))))


def _usual_likeness(likes: Sequence[float]) -> float:
    return (sum(likes) + DEFAULT_LIKENESS * (MAX_COMPARED - len(likes))) / MAX_COMPARED
