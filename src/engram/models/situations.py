"""Whether a memory is about the task that a prompt describes: a probability, on the standard library alone.

A prompt rarely repeats the words of a memory's situation ("bump the axios version" is "upgrading a dependency"), so both are
compared by their task vectors (`engram.models.task_vectors`), by their words, and by the bundled vectors of single words and of the whole texts. Some small
trees turn that into a probability; training/train_situations.py trains them.
"""

import json
from collections.abc import Sequence
from math import exp, log1p
from pathlib import Path
from typing import Any

from engram.embedding.plain import HALF, PlainTable, Word, code_of_values, cosine, similarity
from engram.embedding.tokenizer import words
from engram.model.lazy import cached_property, dataclass
from engram.models.task_vectors import CHARACTERS_READ, WORDS_READ, TaskTable, likeness
from engram.text.tokens import query_terms, tokens

__all__ = ["FEATURES", "Situated", "SituationMatcher", "probability"]

FEATURES = (
    "task", "meaning", "situation_meaning", "situation_covered", "prompt_covered",
    "prompt_in_situation", "strongest", "second", "shared", "rarest_shared", "shared_count", "situation_shared",
    "prompt_size", "memory_size", "has_situation",
)  # fmt: skip
LEAST_WEIGHT = 0.5
"""Words that say less ("the", "with") are not compared."""
_NAME_WEIGHT = 3.0
_ALIKE = 0.35
"""From this similarity on two words count as related."""


@dataclass(frozen=True)
class Situated:
    """A memory as the matcher sees it. What is derived of it is kept for the next prompts."""

    table: PlainTable
    statement: str
    situation: str
    vector: bytes
    """Of both, as the index stores it; b"" where there is none."""
    task: bytes
    """Its task vector, rounded."""

    @cached_property
    def when(self) -> list[Word]:
        """The words of its situation that say something."""
        return _known(self.table, self.situation[:CHARACTERS_READ])

    @cached_property
    def what(self) -> list[Word]:
        """Those of its statement."""
        return _known(self.table, self.statement[:CHARACTERS_READ])

    @cached_property
    def terms(self) -> frozenset[str]:
        """The stems of all its words."""
        return frozenset((*tokens(self.situation[:CHARACTERS_READ]), *tokens(self.statement[:CHARACTERS_READ])))

    @cached_property
    def situation_terms(self) -> frozenset[str]:
        """The stems of its situation that say something."""
        return frozenset(query_terms(self.situation[:CHARACTERS_READ])) if self.when else frozenset()

    @cached_property
    def meaning(self) -> Any:
        """The unit vector of the whole."""
        if len(self.vector) == HALF.size:
            return HALF.unpack(self.vector)
        when, what = self.situation[:CHARACTERS_READ], self.statement[:CHARACTERS_READ]
        return self.table.embed(f"{what}\n{when}" if when else what)

    @cached_property
    def situation_meaning(self) -> Any:
        """That of its situation; None without one."""
        return self.table.embed(self.situation[:CHARACTERS_READ], WORDS_READ) if self.when else None


class SituationMatcher:
    """One prompt, and what it is compared by."""

    def __init__(self, prompt: str, tasks: TaskTable) -> None:
        self.tasks, self.table = tasks, tasks.table
        self._text = prompt[:CHARACTERS_READ]

    @cached_property
    def vector(self) -> Any:
        """The prompt's unit vector."""
        return self.table.embed(self._text, WORDS_READ)

    @cached_property
    def task(self) -> Any:
        """The prompt's task vector."""
        return self.tasks.prompt(self._text)

    @property
    def code(self) -> int:
        """The code of the task vector."""
        return code_of_values(self.task)

    @cached_property
    def _words(self) -> list[Word]:
        return _known(self.table, self._text)

    @cached_property
    def _terms(self) -> dict[str, float]:
        """The stems of the prompt's words, and how much each says; a word that the vocabulary cannot spell is a name."""
        found: dict[str, float] = {}
        for word in dict.fromkeys(words(self._text)[:WORDS_READ]):
            weight = self.table.word(word)[1] or _NAME_WEIGHT
            if weight >= LEAST_WEIGHT:
                found |= dict.fromkeys(tokens(word), weight)
        return found

    def features(self, memories: Sequence[Situated]) -> list[list[float]]:
        """A row of FEATURES for each memory."""
        return [self._row(memory) for memory in memories]

    def _row(self, memory: Situated) -> list[float]:
        about, whole = memory.when, [*memory.when, *memory.what]
        in_whole, in_situation = self._best(whole), self._best(about)
        weights = [weight for _, weight in self._words]
        strong = sorted((w * s for w, s in zip(weights, in_whole, strict=True) if s >= _ALIKE), reverse=True)
        shared = [weight for term, weight in self._terms.items() if term in memory.terms]
        known, about_terms = sum(self._terms.values()), memory.situation_terms
        return [
            likeness(self.task, memory.task),
            cosine(self.vector, memory.meaning),
            cosine(self.vector, memory.situation_meaning) if about else 0.0,
            _weighted([w for _, w in about], self._covered(about)),
            _weighted(weights, in_whole),
            _weighted(weights, in_situation),
            strong[0] if strong else 0.0,
            strong[1] if len(strong) > 1 else 0.0,
            sum(shared) / known if known else 0.0,
            max(shared, default=0.0),
            log1p(len(shared)),
            sum(term in about_terms for term in self._terms) / len(about_terms) if about_terms else 0.0,
            log1p(len(self._words)),
            log1p(len(whole)),
            1.0 if about else 0.0,
        ]

    def _best(self, others: Sequence[Word]) -> list[float]:
        """How well each word of the prompt is matched by one of the others."""
        codes = [code for code, _ in others]
        return [max([similarity(code, other) for other in codes], default=0.0) for code, _ in self._words]

    def _covered(self, others: Sequence[Word]) -> list[float]:
        """How well each of the others is matched by a word of the prompt."""
        codes = [code for code, _ in self._words]
        return [max([similarity(code, other) for other in codes], default=0.0) for code, _ in others]


def _known(table: PlainTable, text: str) -> list[Word]:
    found = [table.word(word) for word in dict.fromkeys(words(text)[:WORDS_READ])]
    return [one for one in found if one[1] >= LEAST_WEIGHT]


def _weighted(weights: Sequence[float], values: Sequence[float]) -> float:
    total = sum(weights)
    return sum(w * max(v, 0.0) for w, v in zip(weights, values, strict=True)) / total if total else 0.0


def probability(row: Sequence[float]) -> float:
    """How likely a memory with these features is about the prompt."""
    model = _model()
    total = model["bias"] + sum(_leaf(tree, row) for tree in model["trees"])
    return 1 / (1 + exp(-max(-30.0, min(30.0, total))))


def _leaf(node: Any, row: Sequence[float]) -> float:
    while isinstance(node, list):
        feature, threshold, below, above = node
        node = above if row[feature] > threshold else below
    return float(node)


_loaded: dict[str, Any] = {}


def _model() -> dict[str, Any]:
    if not _loaded:
        _loaded.update(json.loads(Path(__file__).with_name("situations.json").read_bytes()))
    return _loaded


def floor() -> float:
    """The probability from which a memory is shown."""
    return float(_model()["floor"])
