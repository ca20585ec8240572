"""Recurring weekdays: "can I ship on Friday?" asks for a rule, not for the events of last Friday."""

from engram.text.stems import stem
from engram.text.time.windows import TimePhrase
from engram.text.time.words import words
from engram.text.verbs import is_past
from engram.text.word_tables import word_class

__all__ = ["is_recurring_weekday"]

_DAYS = frozenset(("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "weekend"))
_CALENDAR_WORDS = frozenset(
    ["last", "next", "past", "previous", "coming", "following", "since", "after", "before", "ago"]
)
_PERMISSION_VERBS = frozenset(["can", "can't", "could", "may", "might", "must", "shall", "should"])
"""Verbs that begin a question about permission."""
_HABIT_VERBS = frozenset(["is", "isn't", "are", "aren't", "am", "do", "don't", "does", "doesn't"])
"""Verbs that begin a question about habits or plans."""
_PLAN_WORDS = frozenset(
    ["anything", "something", "nothing", "free", "busy", "happen", "tell", "remind", "remember", "have", "this"]
)
_NON_PLAN_WORDS = frozenset(["during", "according", "morning", "evening"])


def is_recurring_weekday(question: str, phrase: TimePhrase) -> bool:
    """Whether a yes/no question uses a weekday as rules do, asking about permission or habit and not about plans."""
    keys = [word.key for word in words(question)]
    when = {word.key.removesuffix("s") for word in words(phrase.text)}
    if not keys or phrase.anchor or when.isdisjoint(_DAYS) or not when.isdisjoint(_CALENDAR_WORDS):
        return False
    if any(is_past(key, same=True) for key in keys[1:]) or not word_class("asking", "wh").isdisjoint(keys):
        return False
    if keys[1:2] == ["you"]:
        return False  # "could you show me Friday's commits" is a request
    return keys[0] in _PERMISSION_VERBS or (keys[0] in _HABIT_VERBS and not any(map(_is_planned, keys)))


def _is_planned(key: str) -> bool:
    agenda = {stem(word) for word in word_class("asking", "agenda")}
    return key in _PLAN_WORDS or stem(key) in agenda or (key.endswith("ing") and key not in _NON_PLAN_WORDS)
