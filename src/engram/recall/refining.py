"""What a language model adds to reading a question: an intent the rules saw no sign of, and other wordings of it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, time
from typing import TYPE_CHECKING

from engram.model.errors import ModelError
from engram.recall.question import UNSAID, Question
from engram.text.time_phrases import Window

if TYPE_CHECKING:
    from engram.llm.model import LanguageModel

BY_RULES = "read by rules: "
"""Begins the reason of a question that a model could not read; what follows says why."""
Refine = Callable[[Question, datetime], Question]


def refining(model: "LanguageModel") -> Refine:
    """Reads again, with a model, what the rules found no sign in. Where it fails or says nonsense, the rules' reading stands."""
    from engram.llm.answers import QuestionReading

    def refine(question: Question, at: datetime) -> Question:
        if question.reason != UNSAID or not question.text.strip():
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
