"""What a language model adds to parsing a question: an intent the trained classifier is unsure of, and other wordings of it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, time
from typing import TYPE_CHECKING

from engram.model.errors import ModelError
from engram.recall.parse import ParsedQuestion
from engram.text.time.windows import Window

if TYPE_CHECKING:
    from engram.llm.model import LanguageModel

BY_RULES = "read by rules: "
"""Begins the reason of a question that a model could not read; what follows says why."""
SURE = 0.95
"""The probability of an intent from which no model is asked for a second opinion."""
Refine = Callable[[ParsedQuestion, datetime], ParsedQuestion]


def refining(model: "LanguageModel") -> Refine:
    """Classify with a language model what the small one is unsure of. Where it fails or answers nonsense, the first reading stays."""
    from engram.llm.answers import QuestionReading

    def refine(question: ParsedQuestion, at: datetime) -> ParsedQuestion:
        if question.confidence >= SURE or not question.text.strip():
            return question
        try:
            read = model.ask("question", QuestionReading, {"today": at.date().isoformat(), "question": question.text})
            window = question.window or _window(read.since, read.until, at)
        except ModelError as error:
            return replace(question, reason=f"{BY_RULES}{error}")
        except ValueError:
            return replace(question, reason=f"{BY_RULES}{model.name} named a day that is none")
        return replace(question, intent=read.intent, window=window, reason=f"read by {model.name}")

    return refine


def permuting(model: "LanguageModel") -> Callable[[str, int], Sequence[str]]:
    """Other wordings by a model."""
    from engram.llm.answers import Permutations

    def permute(question: str, count: int) -> Sequence[str]:
        return model.ask("permutations", Permutations, {"query": question, "count": str(count)}).queries

    return permute


def _window(since: str, until: str, at: datetime) -> Window | None:
    first, last = (_midnight(day, at) for day in (since, until))
    if (first is None and last is None) or (first is not None and last is not None and first >= last):
        return None
    return Window(first, last)


def _midnight(day: str, at: datetime) -> datetime | None:
    return datetime.combine(datetime.fromisoformat(day).date(), time(), at.tzinfo) if day.strip() else None
