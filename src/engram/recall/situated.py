"""Memories about a task: found by their situations, in whatever words the task is told (`engram.models.task_vectors`).

"Ship main to prod" shares no word with what was learned "when deploying". The words of such a prompt say little about relevance, so that a
memory with a situation is judged by the situation; a question may also ask for what such a memory says.
"""

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from engram.embedding.products import dot
from engram.model.hit import Hit
from engram.model.lazy import lazy_pattern, replace
from engram.model.memory import Memory
from engram.models.task_vectors import TaskTable, task_relevance
from engram.recall.cutoff import ABOUT_FLOOR, is_about
from engram.recall.query import SearchQuery
from engram.recall.ranking import RankedDocument, scale_matches
from engram.recall.relevance import NONE_KNOWN, as_match
from engram.rules.cues import situation_with_cues
from engram.rules.numbers import NEAREST_TO_TASK
from engram.store.protocol import StoredRecord

if TYPE_CHECKING:
    from array import array

__all__ = [
    "LIKENESS",
    "MIN_WORD_RELEVANCE",
    "SITUATION",
    "compare_task",
    "is_about_task",
    "is_question",
    "is_situated",
    "judge_by_situation",
    "likenesses_to_each",
    "task_vector",
]

MIN_WORD_RELEVANCE = 0.3
"""From this relevance on, the words of a task alone say that a memory is about it: no unrelated prompt of ten stores reached it."""
SITUATION, LIKENESS = "situation", "likeness"
"""Parts of a match: how likely the memory is about the task, and how like the question it is. The first replaces the second because both come from the
same vectors.
"""
SITUATION_MATCH_WEIGHT = 0.3
"""What the relevance by the situation counts in a match."""
MIN_PROBABILITY = 0.05
"""Below this probability a memory with a situation answers no question either: 45 questions about what such memories say had .1 and more for the right one, nine of ten
unrelated questions that found something .03 and less."""
TASK_WORDS_WEIGHT = 0.1
"""What the words that a task shares with memories count in their order, beside their situations: they tell siblings apart, but are mostly by the way."""
MAX_CACHED_VECTORS = 4_096
"""Memories whose task vectors a process keeps."""
_ASKING = frozenset((
    "what", "who", "whom", "whose", "when", "where", "which", "why", "how", "is", "are", "was", "were", "do", "does", "did", "has", "have", "had",
    "will", "would", "should", "wer", "wo", "wann", "wie", "warum", "welche", "welcher", "welches", "wem", "wen", "qui", "quel", "quelle", "quand",
    "où", "comment", "pourquoi", "wieso", "welchen", "welchem", "wessen", "qué", "quién", "cuándo", "dónde", "cómo", "cuál",
))  # fmt: skip
_BESIDE_WORD = lazy_pattern(r"^\W+|['’]\w*$|\W+$")
"""Marks around a word, and what is drawn together with it: "what's"."""
_REQUESTS = frozenset((("would", "you"), ("will", "you"), ("do", "not"), ("how", "about")))
Considered = tuple[StoredRecord, RankedDocument]


def is_question(text: str) -> bool:
    """Whether a text asks for something known, by its first word. "Can you deploy it?" asks for a deed."""
    opening = [_BESIDE_WORD.sub("", word).lower() for word in text.split(None, 2)[:2]]
    return bool(opening) and opening[0] in _ASKING and tuple(opening) not in _REQUESTS


def is_about_task(hit: Hit) -> bool:
    """Whether a hit was judged to be about the task by its situation."""
    return hit.trace is not None and SITUATION in hit.trace.found_by and is_about(hit)


def is_situated(hit: Hit) -> bool:
    """Whether a hit is a memory that says when it matters."""
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
    """What a search found, with memories that are about the task as relevant as they are likely to be; and those of others near the task that are.

    `count` is how many memories were compared with the task.
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
    """A memory as relevant as its words or its situation say, whichever says more; its other evidence still tells it from its siblings."""
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
    """The same, with the shares of each scaled so that the best has the full match, and what its words say at this weight, if one is new."""
    if not any(SITUATION in ranked.shares for _, ranked in judged):
        return judged
    weighed = [
        {name: share * (1.0 if name == SITUATION else evidence) for name, share in ranked.shares.items()}
        for _, ranked in judged
    ]
    scaled = scale_matches([ranked for _, ranked in judged], weighed)
    return [(record, ranked) for (record, _), ranked in zip(judged, scaled, strict=True)]


class ComparedTask:
    """A task, and how like it the memories it was compared with are; the searches of one recall find much the same ones."""

    def __init__(self, task: str) -> None:
        self.vector = _table().prompt_with_numpy(task)
        self._likes: dict[bytes, float] = {}

    def likenesses(self, memories: Sequence[Memory]) -> list[float]:
        """How like the task each is."""
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
    """The task vectors of memories; those of earlier questions are kept."""
    keys = [(situation_with_cues(memory.situation, memory.cues), memory.statement) for memory in memories]
    known = {key: found for key in keys if (found := _cached_vectors.get(key)) is not None}
    missing = [key for key in dict.fromkeys(keys) if key not in known]
    if missing:
        known |= zip(missing, _table().encode_notes(missing), strict=True)
        if len(_cached_vectors) > MAX_CACHED_VECTORS:
            _cached_vectors.clear()
        _cached_vectors.update(known)
    return [known[key] for key in keys]
