"""Going through the turns: clause by clause, each rule in turn, and a reason with everything that is taken."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from engram.capture.extraction.doubts import PASSING, POINTING, QUOTED, asks, doubts_about, points_elsewhere
from engram.capture.extraction.grammar import CLEAR, EXPLICIT, Rule
from engram.capture.extraction.plans import dated, plan
from engram.capture.extraction.rules import rules
from engram.capture.extraction.sentences import Clause, clauses
from engram.capture.extraction.wording import as_told, sentence, stripped
from engram.gates.instructions import find_injections
from engram.gates.secrets import find_secrets

LONGEST_CLAUSE = 320
"""Characters; what is longer is an essay and says several things."""
FEWEST_WORDS = 2
SECOND_HAND = 0.6
"""How much of its confidence a fact keeps that the assistant said of the user."""
_YOU = re.compile(r"^(?:you're|you are|your|you)\b", re.IGNORECASE)
_AS_I = {"you're": "i'm", "you are": "i am", "your": "my", "you": "i"}
_INSTEAD = re.compile(
    r"^(?:no|nope|actually|wrong|correction|sorry)[,:;!. —–-]+(?=(?:i|i'm|i've|my|we|we're|our)\b)", re.IGNORECASE
)
_REDACTED = "[redacted:"
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
        read = _assistants(clause) if role == "assistant" else _users(clause, at)
        if read is not None:
            statement, type_, confidence, reason = read
            yield Extracted(statement, type_, confidence, role, number, (clause.start, clause.end), reason)


def _readable(clause: Clause) -> bool:
    return (
        len(clause.text) <= LONGEST_CLAUSE
        and len(clause.text.split()) >= FEWEST_WORDS
        and _REDACTED not in clause.text
        and not find_secrets(clause.sentence)
        and not find_injections(clause.sentence)
    )


Read = tuple[str, str, float, str]


def _users(clause: Clause, at: datetime) -> Read | None:
    text, asked = stripped(clause.text)
    doubts = doubts_about(text, clause.sentence)
    if asked:
        # "Can you remember that …?" asks for it, whatever its last sign.
        return None if QUOTED in doubts or asks(text) or _ends_asking(clause) else _asked_for(text, at)
    if told := plan(text, at):
        if doubts - {PASSING, POINTING} or points_elsewhere(told):
            return None
        return sentence(told), "commitment", CLEAR, "plan"
    return _ruled(text, "user", doubts)


def _ends_asking(clause: Clause) -> bool:
    return clause.sentence.rstrip("\"')” ").endswith(("?", "？")) and not asks(clause.text)


def _asked_for(text: str, at: datetime) -> Read | None:
    """What someone asks to be remembered is taken whatever it says: as a rule reads it, else in their words."""
    if len(text.split()) < FEWEST_WORDS:
        return None
    if told := plan(text, at):
        return sentence(told), "commitment", EXPLICIT, "plan, asked to be remembered"
    if read := _ruled(text, "user", frozenset()):
        return read[0], read[1], EXPLICIT, f"{read[3]}, asked to be remembered"
    return sentence(as_told(dated(text, at))), "fact", EXPLICIT, "asked to be remembered"


def _assistants(clause: Clause) -> Read | None:
    """What an assistant says of the work, or back to the user about the user; less sure, because it is second-hand."""
    text, _ = stripped(clause.text)
    doubts = doubts_about(text, clause.sentence)
    read = _ruled(text, "any", doubts)
    if read is None and _YOU.match(text):
        read = _ruled(_YOU.sub(lambda you: _AS_I[you[0].lower()], text), "user", doubts)
        if read is None or not read[0].startswith("The user"):
            return None
    if read is None:
        return None
    return read[0], read[1], round(read[2] * SECOND_HAND, 2), f"{read[3]}, by the assistant"


def _ruled(text: str, role: str, doubts: frozenset[str]) -> Read | None:
    fitting = _fitting(text, role, doubts)
    if fitting is None and (lead := _INSTEAD.match(text)):
        return _fitting(text[lead.end() :], role, doubts)
    return fitting


def _fitting(text: str, role: str, doubts: frozenset[str]) -> Read | None:
    for rule in _rules():
        if (role == "any" and rule.role != "any") or not doubts <= rule.despite:
            continue
        if found := rule.pattern.match(text):
            statement = sentence(rule.render(found))
            return (statement, rule.type, rule.confidence, rule.name)
    return None


@lru_cache(maxsize=1)
def _rules() -> tuple[Rule, ...]:
    """Compiled when a conversation first comes in."""
    return rules()
