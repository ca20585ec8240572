"""Memories about a task: found by their situations, in whatever words the task is told (`engram.models.situations`).

"Ship main to prod" shares no word with what was learned "when deploying". The words of such a prompt say little about relevance, so that a
memory with a situation is judged by the situation; a question may also ask for what such a memory says.
"""

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from engram.embedding.plain import HALF
from engram.model.hit import Hit
from engram.model.lazy import replace
from engram.model.memory import Memory
from engram.models.situations import Situated, SituationMatcher, floor, probability
from engram.models.task_vectors import TaskTable, likeness
from engram.recall.ranking import Ranked
from engram.recall.relevance import as_match
from engram.rules.numbers import RELEVANCE_SCALE
from engram.store.documents import meaning_of
from engram.store.protocol import StoredRecord

if TYPE_CHECKING:
    from array import array

__all__ = ["SITUATION", "is_about_task", "is_question", "judged_by_situation", "task_vector"]

COMPARED = 12
"""Memories that are compared closely with a task: the nearest by their task vectors."""
BY_ITS_WORDS = 0.3
"""From this relevance on, the words of a task alone say that a memory is about it: no unrelated prompt of ten stores reached it."""
SITUATION = "situation"
"""In a trace: found or judged by its situation."""
KEPT = 4_096
"""Memories whose words and vectors a process keeps."""
_ASKING = frozenset(
    [
        "what",
        "who",
        "whom",
        "whose",
        "when",
        "where",
        "which",
        "why",
        "how",
        "is",
        "are",
        "was",
        "were",
        "do",
        "does",
        "did",
        "has",
        "have",
        "had",
        "will",
        "would",
        "should",
        "wer",
        "was",
        "wo",
        "wann",
        "wie",
        "warum",
        "welche",
        "welcher",
        "welches",
        "wem",
        "wen",
        "qui",
        "que",
        "quel",
        "quelle",
        "quand",
        "où",
        "comment",
        "pourquoi",
        "qué",
        "quién",
        "cuándo",
        "dónde",
        "cómo",
        "cuál",
    ]
)
_REQUESTS = frozenset((("would", "you"), ("will", "you"), ("do", "not"), ("how", "about")))
Considered = tuple[StoredRecord, Ranked]


def is_question(text: str) -> bool:
    """Whether a text asks for something known, by its first word. "Can you deploy it?" asks for a deed."""
    opening = [word.strip(".,:;!?\"'()").lower() for word in text.split()[:2]]
    return bool(opening) and opening[0] in _ASKING and tuple(opening) not in _REQUESTS


def is_about_task(hit: Hit) -> bool:
    """Whether a hit was judged to be about the task by its situation."""
    return hit.trace is not None and SITUATION in hit.trace.found_by and hit.relevance >= floor()


def task_vector(task: str) -> "array[float]":
    """The vector of a task, for the store."""
    vector: array[float] = _compared(task).matcher.task
    return vector


def judged_by_situation(task: str, found: Sequence[Considered], near: Sequence[Considered]) -> list[Considered]:
    """What a search found, the memories that are about the task as relevant as they are likely to be; and those of others near the task that are."""
    considered = [*found, *near]
    memories = {place: one.record for place, (one, _) in enumerate(considered) if isinstance(one.record, Memory)}
    chances = dict(zip(memories, _compared(task).chances(list(memories.values())), strict=True))
    asked, judged = is_question(task), []
    for place, (record, ranked) in enumerate(considered):
        if place in memories:
            ranked = _judged(ranked, memories[place], chances[place], asked=asked)
        if place < len(found) or ranked.relevance >= floor():
            judged.append((record, ranked))
    return _scaled(judged)


def _judged(ranked: Ranked, memory: Memory, chance: float, *, asked: bool) -> Ranked:
    situated = bool(memory.situation.strip())
    if chance >= floor() and chance > ranked.relevance and (situated or not asked):
        shares = {name: share for name, share in ranked.shares.items() if name != "answers"}
        found_by = {**ranked.found_by, SITUATION: ranked.found_by.get(SITUATION, 1)}
        return replace(ranked, shares={**shares, SITUATION: as_match(chance)}, found_by=found_by, relevance=chance)
    if situated and not asked and ranked.relevance < BY_ITS_WORDS:
        return replace(ranked, relevance=min(ranked.relevance, chance))
    return ranked


def _scaled(judged: list[Considered]) -> list[Considered]:
    """The same, with the shares of each scaled so that the best has the full match, if one is new."""
    if not any(SITUATION in ranked.shares for _, ranked in judged):
        return judged
    best = max(sum(ranked.shares.values()) for _, ranked in judged)
    scale = RELEVANCE_SCALE / best if best > 0 else 0.0
    found = []
    for record, ranked in judged:
        own = {name: value * scale for name, value in ranked.shares.items()}
        found.append((record, replace(ranked, shares=own, match=sum(own.values()))))
    return found


@cache
def _table() -> TaskTable:
    return TaskTable()


class ComparedTask:
    """A task, and how likely the memories it was compared with are about it; the searches of one recall find much the same ones."""

    def __init__(self, task: str) -> None:
        self.matcher = SituationMatcher(task, _table())
        self._near: dict[Situated, float] = {}
        self._chances: dict[Situated, float] = {}

    def chances(self, memories: Sequence[Memory]) -> list[float]:
        """How likely each is about the task; 0 for those that are not among the nearest."""
        known = _known(memories)
        for memory in known:
            if memory not in self._near:
                self._near[memory] = likeness(self.matcher.task, memory.task)
        nearest = sorted(known, key=lambda memory: -self._near[memory])[:COMPARED]
        new = [memory for memory in nearest if memory not in self._chances]
        self._chances |= zip(new, map(probability, self.matcher.features(new)), strict=True)
        compared = set(nearest)
        return [self._chances[memory] if memory in compared else 0.0 for memory in known]


@lru_cache(maxsize=8)
def _compared(task: str) -> ComparedTask:
    return ComparedTask(task)


_kept: dict[tuple[str, str], Situated] = {}


def _known(memories: Sequence[Memory]) -> list[Situated]:
    """The memories as the matcher sees them; those of earlier questions are kept."""
    from engram.embedding.static import StaticEmbedder

    texts = {(memory.situation, memory.statement): meaning_of(memory) for memory in memories}
    known = {key: found for key in texts if (found := _kept.get(key)) is not None}
    missing = [key for key in texts if key not in known]
    if missing:
        table, meanings = _table(), StaticEmbedder().embed([texts[key] for key in missing])
        for (when, what), task, meaning in zip(missing, table.notes(missing), meanings.tolist(), strict=True):
            known[when, what] = Situated(table.table, what, when, HALF.pack(*meaning), task)
        if len(_kept) > KEPT:
            _kept.clear()
        _kept.update(known)
    return [known[memory.situation, memory.statement] for memory in memories]
