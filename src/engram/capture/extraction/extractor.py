"""Going through the turns: clause by clause, each rule in turn, and a reason with everything that is taken."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from engram.capture.extraction.clauses import Clause, clauses
from engram.capture.extraction.doubts import (
    PASSING,
    POINTING,
    QUESTION,
    QUOTED,
    asks,
    doubts_about,
    points_elsewhere,
)
from engram.capture.extraction.plans import dated, plan
from engram.capture.extraction.rendering import as_told, sentence, stripped
from engram.capture.extraction.rules import CLEAR, EXPLICIT, rules
from engram.gates.instructions import find_injections
from engram.gates.secrets.scan import find_secrets
from engram.text.time.windows import time_phrase

LONGEST_CLAUSE = 320
"""Characters; what is longer is an essay and says several things."""
FEWEST_WORDS = 2
LONGEST_TAG = 2
"""Words after a comma that still ask about what stands before it: "right?", "isn't it?"."""
SECOND_HAND = 0.6
"""How much of its confidence a fact keeps that the assistant said of the user."""
_YOU = re.compile(r"^(?:you're|you are|your|you)\b", re.IGNORECASE)
_AS_I = {"you're": "i'm", "you are": "i am", "your": "my", "you": "i"}
_INSTEAD = re.compile(
    r"^(?:no|nope|actually|wrong|correction|sorry)[,:;!. —–-]+(?=(?:i|i'm|i've|my|we|we're|our)\b)", re.IGNORECASE
)
REDACTED = "[redacted:"
"""How what stands for a secret begins."""
# What follows is another clause, unless it goes on with the first.
_REMARK = re.compile(
    r",\s+|(?<!\s)\s+so\s+(?=(?:let's|we|i|my|our|the|it|this|that|there|you|please|don't|can|could)\b)"
    r"|(?<!\s)\s+(?:and|but)\s+(?=(?:the|it|there|they|this|that)\b)",
    re.IGNORECASE,
)
_GOING_ON = re.compile(r"(?:not|and|or|but|nor|instead|rather|never|if|unless|although|though|except)\b", re.IGNORECASE)
_OWN = re.compile(r"(?:i|we|my|our|i'm|i've|we're|we've)\b", re.IGNORECASE)
# The rest is said of what these open, and not without it.
_LEANING = re.compile(
    r"(?:if|when|whenever|while|since|because|as|although|unless|once|after|before|until|for|in|on|at|with|without|every|each|had|were)\b",
    re.IGNORECASE,
)
_TAG = re.compile(r"(?:right|correct|yes|no|ok|okay|isn't|don't|doesn't|aren't|won't|am i|or)\b", re.IGNORECASE)
_SINCE = re.compile(r"\bsince \S.*$", re.IGNORECASE)
# What follows is a part to play, or a text to work on: nothing in it is said in earnest.
_MATERIAL = re.compile(
    r"\b(?:act as|pretend|role-?play|in character|write (?:me )?an? (?:\w+ ){0,3}(?:story|poem|letter|song|script|dialogue|email|essay|speech|post)|"
    r"translate|proofread|paraphrase|rephrase|rewrite th|summari[sz]e th|fix the (?:grammar|typos?|spelling)|what does .{1,60} mean)\b",
    re.IGNORECASE,
)
_USER_ROLES = ("user", "human")


@dataclass(frozen=True, slots=True)
class Extracted:
    """Something worth remembering: a statement that can be read alone, and exactly where it was said."""

    statement: str
    type: str
    confidence: float
    role: str
    turn: int
    """Which of the turns, from 0."""
    span: tuple[int, int]
    """Where in that turn's content, in characters."""
    reason: str
    since: datetime | None = None
    """When it began to hold, where the turn says so: "last month", "in 2015"."""


def extract(
    turns: Sequence[Mapping[str, Any]], *, at: datetime, extract_assistant_response: bool = False
) -> list[Extracted]:
    """What the turns (`role`, `content`) say that is worth remembering, in order; the same statement once.

    `at` is when they were said: it gives "tomorrow" a date. Assistants are listened to only where asked for.
    """
    found: dict[str, Extracted] = {}
    for number, turn in enumerate(turns):
        role, content = str(turn.get("role", "")).strip().lower(), turn.get("content")
        if not isinstance(content, str) or not (
            role in _USER_ROLES or (role == "assistant" and extract_assistant_response)
        ):
            continue
        for taken in _of_turn(content, number, role, at):
            found.setdefault(taken.statement.casefold(), taken)
    return list(found.values())


def _of_turn(content: str, number: int, role: str, at: datetime) -> Iterator[Extracted]:
    if _MATERIAL.search(content):
        return
    for clause in clauses(content):
        if not _readable(clause):
            continue
        read = _assistants(clause, at) if role == "assistant" else _users(clause, at)
        if read is not None:
            span = (clause.start, clause.end)
            yield Extracted(read.statement, read.type, read.confidence, role, number, span, read.reason, read.since)


def _readable(clause: Clause) -> bool:
    return (
        len(clause.text) <= LONGEST_CLAUSE
        and len(clause.text.split()) >= FEWEST_WORDS
        and REDACTED not in clause.text
        and not find_secrets(clause.sentence)
        and not find_injections(clause.sentence)
    )


class _Read(NamedTuple):
    """What a clause says, as a rule puts it down."""

    statement: str
    type: str
    confidence: float
    reason: str
    since: datetime | None = None


def _users(clause: Clause, at: datetime) -> _Read | None:
    text, asked = stripped(clause.text)
    doubts = doubts_about(text, clause.sentence)
    if asked:
        # "Can you remember that …?" asks for it, whatever its last sign.
        return None if QUOTED in doubts or asks(text) or _ends_asking(clause) else _asked_for(text, at)
    return _told(text, doubts, at) or _told_first(text, clause, at)


def _told(text: str, doubts: frozenset[str], at: datetime) -> _Read | None:
    if told := plan(text, at):
        if doubts - {PASSING, POINTING} or points_elsewhere(told):
            return None
        return _Read(sentence(told), "commitment", CLEAR, "plan")
    return _ruled(text, "user", doubts, at)


def _told_first(text: str, clause: Clause, at: datetime) -> _Read | None:
    """What stands before the first comma, where the rest is another remark: "I moved to Porto, still unpacking"; else the rest."""
    cut = _REMARK.search(text)
    if cut is None or _GOING_ON.match(text, cut.end()) or len(text[: cut.start()].split()) < FEWEST_WORDS:
        return None
    first, rest = text[: cut.start()], text[cut.end() :]
    doubts = doubts_about(first, clause.sentence)
    if len(rest.split()) > LONGEST_TAG and not _TAG.match(rest) and not asks(first):
        doubts -= {QUESTION}
    read = _told(first, doubts, at)
    if read is None and _OWN.match(rest) and not _LEANING.match(first):
        return _told(rest, doubts_about(rest, clause.sentence), at)
    return read


def _ends_asking(clause: Clause) -> bool:
    return clause.sentence.rstrip("\"')” ").endswith(("?", "？")) and not asks(clause.text)


def _asked_for(text: str, at: datetime) -> _Read | None:
    """What someone asks to be remembered is taken whatever it says: as a rule reads it, else in their words."""
    if len(text.split()) < FEWEST_WORDS:
        return None
    if told := plan(text, at):
        return _Read(sentence(told), "commitment", EXPLICIT, "plan, asked to be remembered")
    if read := _ruled(text, "user", frozenset(), at):
        return read._replace(confidence=EXPLICIT, reason=f"{read.reason}, asked to be remembered")
    return _Read(sentence(as_told(dated(text, at))), "fact", EXPLICIT, "asked to be remembered", _since(text, at))


def _assistants(clause: Clause, at: datetime) -> _Read | None:
    """What an assistant says of the work, or back to the user about the user; less sure, because it is second-hand."""
    text, _ = stripped(clause.text)
    doubts = doubts_about(text, clause.sentence)
    read = _ruled(text, "any", doubts, at)
    if read is None and _YOU.match(text):
        read = _ruled(_YOU.sub(lambda you: _AS_I[you[0].lower()], text), "user", doubts, at)
        if read is None or not read.statement.startswith("The user"):
            return None
    if read is None:
        return None
    confidence = round(read.confidence * SECOND_HAND, 2)
    return read._replace(confidence=confidence, reason=f"{read.reason}, by the assistant")


def _ruled(text: str, role: str, doubts: frozenset[str], at: datetime) -> _Read | None:
    fitting = _fitting(text, role, doubts, at)
    if fitting is None and (lead := _INSTEAD.match(text)):
        return _fitting(text[lead.end() :], role, doubts, at)
    return fitting


def _fitting(text: str, role: str, doubts: frozenset[str], at: datetime) -> _Read | None:
    for rule in rules():
        if (role == "any" and rule.role != "any") or not doubts <= rule.despite:
            continue
        if found := rule.pattern.match(text):
            when = found.groupdict().get("ago")
            since = _begun(when, at) if when else _since(text, at)
            return _Read(sentence(rule.render(found)), rule.type, rule.confidence, rule.name, since)
    return None


def _since(text: str, at: datetime) -> datetime | None:
    """Since when a clause holds, where it says so itself: "since 2019"."""
    told = _SINCE.search(text)
    return _begun(told[0], at) if told else None


def _begun(when: str, at: datetime) -> datetime | None:
    """The beginning of what a time phrase means to who says it at that moment; None where it names no time gone by."""
    phrase = time_phrase(when, at)
    since = phrase.window.since if phrase is not None and phrase.window is not None else None
    return since if since is not None and since <= at else None
