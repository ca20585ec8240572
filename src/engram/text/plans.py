"""Whether a statement says what will be, not what is: "the office will move to Hamburg in 2028"."""

import re

from engram.model.lazy import lazy_pattern

__all__ = ["asks_about_now", "is_only_planned", "is_plan"]

_PLAN = lazy_pattern(
    r"\b(?:will|shall|won['’]t|(?:am|is|are) (?:going|planning|planned|due|about|scheduled) to)\b", re.IGNORECASE
)
_AT_PRESENT = lazy_pattern(
    r"\b(?:now|today|currently|presently|at (?:the moment|present)|right now|these days)\b", re.IGNORECASE
)
_FROM_NOW = lazy_pattern(r"\b(?:now|today|immediately|already|always|never)\b", re.IGNORECASE)
"""Words that make a promise or a rule of it, which counts at once: "from now on we will use tabs"."""


def is_plan(text: str) -> bool:
    """Whether a statement says what will be, or a question asks for it."""
    return bool(_PLAN.search(text)) and not _FROM_NOW.search(text)


def is_only_planned(new: str, old: str) -> bool:
    """Whether a newer statement says what will be, beside one that says what is: until it happens, the older one is current."""
    return is_plan(new) and not _PLAN.search(old)


def asks_about_now(question: str) -> bool:
    """Whether a question says that it asks for what is: "which database do we use today?"."""
    return bool(_AT_PRESENT.search(question)) and not _PLAN.search(question)
