"""Parses a question: its intent, the time it asks about, and the words to search for.

There are four intents, each answered by a different search:

- **current**: the present value ("where do I live"), and any other question. Searches live memories.
- **historical**: an earlier value or state ("where did I live", "my previous employer"). Searches superseded memories too.
- **event**: an action or utterance, or its time ("what did I decide", "who told me"). Searches the ledger.
- **lineage**: how one fact changed over time ("how has … changed", "every version"). Searches the whole timeline.

A trained model decides the intent (`engram.models.intent`); rules read the time phrase. A weekday may mean every such
day: "can I ship on Friday?"
"""

from datetime import datetime

from engram.model.lazy import dataclass
from engram.models.intent import INTENTS, classify
from engram.text.time.dates import unread_times
from engram.text.time.windows import TimePhrase, Window, time_phrase
from engram.text.time.words import words
from engram.text.words import is_past, stem, word_class

__all__ = ["INTENTS", "ParsedQuestion", "is_recurring_weekday", "parse"]

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
    """Whether a yes/no question uses a weekday as a rule does, asking about permission or habit and not about plans."""
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


UNSAID = "no other time is mentioned"
"""The reason given for a question in which no word indicates the intent."""


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """A question, parsed."""

    text: str
    intent: str
    """One of `INTENTS`."""
    window: Window | None
    phrase: str
    """The words of the question that name a time; empty if there are none."""
    anchor: str
    """The event that the time depends on: "I moved" in "before I moved"."""
    relation: str
    """How the time relates to the anchor: before, after, during."""
    subject: str
    """The question without its time phrase: what to search for."""
    reason: str
    """The words that decided the intent."""
    at: datetime
    """When it was asked."""
    unread: tuple[str, ...] = ()
    """Times in the question that could not be turned into a window: "Feb 30"."""
    confidence: float = 1.0
    """The probability of the intent."""


def parse(text: str, at: datetime) -> ParsedQuestion:
    """Parse a question asked at `at` (aware). Any text can be parsed; an empty one is `current` without a time."""
    phrase = time_phrase(text, at)
    if phrase is not None and is_recurring_weekday(text, phrase):
        phrase = None
    intent = classify(text, phrase, at)
    reason = intent.reason or UNSAID
    if phrase is None:
        unread = unread_times(text, None)
        return ParsedQuestion(text, intent.name, None, "", "", "", text.strip(), reason, at, unread, intent.probability)
    return ParsedQuestion(
        text=text,
        intent=intent.name,
        window=phrase.window,
        phrase=phrase.text,
        anchor=phrase.anchor,
        relation=phrase.relation,
        subject=_without(text, phrase),
        reason=reason,
        at=at,
        unread=unread_times(text, (phrase.start, phrase.end)),
        confidence=intent.probability,
    )


def _without(text: str, phrase: TimePhrase) -> str:
    rest = f"{text[: phrase.start].rstrip()} {text[phrase.end :].lstrip()}".strip(" ,;")
    for mark in "?,.!":
        rest = rest.replace(f" {mark}", mark)
    return rest if any(letter.isalnum() for letter in rest) else text.strip()
