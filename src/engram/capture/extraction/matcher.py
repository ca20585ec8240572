"""Matches the clauses of a sentence against the rules, which phrase the commonest statements exactly."""

import re
from datetime import datetime
from typing import NamedTuple

from engram.capture.extraction.clauses import (
    MOMENTARY,
    QUESTION,
    QUOTATION,
    UNCLEAR_REFERENCE,
    Clause,
    doubts_about,
    has_unclear_reference,
    in_third_person,
    is_question,
    sentence,
    strip_asides,
)
from engram.capture.extraction.plans import plan, resolve_relative_day
from engram.capture.extraction.rules import CLEAR_CONFIDENCE, EXPLICIT_CONFIDENCE, rules
from engram.text.time.windows import time_phrase

MIN_CLAUSE_WORDS = 2
LONGEST_TAG = 2
"""Words after a comma that still form a tag question: "right?", "isn't it?"."""
SECOND_HAND = 0.6
"""The factor on the confidence of what the assistant said about the user."""
YOU = re.compile(r"^(?:you're|you are|your|you)\b", re.IGNORECASE)
AS_I = {"you're": "i'm", "you are": "i am", "your": "my", "you": "i"}
_INSTEAD = re.compile(
    r"^(?:no|nope|actually|wrong|correction|sorry)[,:;!. —–-]+(?=(?:i|i'm|i've|my|we|we're|our)\b)", re.IGNORECASE
)
# What follows is another remark, unless it continues the first.
_REMARK = re.compile(
    r",\s+|(?<!\s)\s+so\s+(?=(?:let's|we|i|my|our|the|it|this|that|there|you|please|don't|can|could)\b)"
    r"|(?<!\s)\s+(?:and|but)\s+(?=(?:the|it|there|they|this|that)\b)",
    re.IGNORECASE,
)
_GOING_ON = re.compile(r"(?:not|and|or|but|nor|instead|rather|never|if|unless|although|though|except)\b", re.IGNORECASE)
_OWN = re.compile(r"(?:i|we|my|our|i'm|i've|we're|we've)\b", re.IGNORECASE)
# A clause that starts with these modifies the rest, which cannot be read without it.
_LEANING = re.compile(
    r"(?:if|when|whenever|while|since|because|as|although|unless|once|after|before|until|for|in|on|at|with|without|every|each|had|were)\b",
    re.IGNORECASE,
)
_TAG = re.compile(r"(?:right|correct|yes|no|ok|okay|isn't|don't|doesn't|aren't|won't|am i|or)\b", re.IGNORECASE)
_SINCE = re.compile(r"\bsince \S.*$", re.IGNORECASE)


class RuleFact(NamedTuple):
    """The fact in a clause, as a rule renders it."""

    statement: str
    type: str
    confidence: float
    reason: str
    since: datetime | None = None


def users_fact(clause: Clause, at: datetime) -> RuleFact | None:
    """The fact in a clause of the user; None if no rule matches."""
    text, is_request = strip_asides(clause.text)
    doubts = doubts_about(text, clause.sentence)
    if is_request:
        # "Can you remember that …?" is a request, not a question.
        return (
            None if QUOTATION in doubts or is_question(text) or _ends_as_question(clause) else _match_request(text, at)
        )
    return _match_plan_or_rule(text, doubts, at) or _stated_first(text, clause, at)


def _match_plan_or_rule(text: str, doubts: frozenset[str], at: datetime) -> RuleFact | None:
    if planned := plan(text, at):
        if doubts - {MOMENTARY, UNCLEAR_REFERENCE} or has_unclear_reference(planned):
            return None
        return RuleFact(sentence(planned), "commitment", CLEAR_CONFIDENCE, "plan")
    return _match_own_rules(text, "user", doubts, at)


def _stated_first(text: str, clause: Clause, at: datetime) -> RuleFact | None:
    """The fact before the first comma if the rest is another remark ("I moved to Porto, still unpacking"), else the fact in the rest."""
    cut = _REMARK.search(text)
    if cut is None or _GOING_ON.match(text, cut.end()) or len(text[: cut.start()].split()) < MIN_CLAUSE_WORDS:
        return None
    first, rest = text[: cut.start()], text[cut.end() :]
    doubts = doubts_about(first, clause.sentence)
    if len(rest.split()) > LONGEST_TAG and not _TAG.match(rest) and not is_question(first):
        doubts -= {QUESTION}
    fact = _match_plan_or_rule(first, doubts, at)
    if fact is None and _OWN.match(rest) and not _LEANING.match(first):
        return _match_plan_or_rule(rest, doubts_about(rest, clause.sentence), at)
    return fact


def _ends_as_question(clause: Clause) -> bool:
    return clause.sentence.rstrip("\"')” ").endswith(("?", "？")) and not is_question(clause.text)


def _match_request(text: str, at: datetime) -> RuleFact | None:
    """What someone asks to remember, whatever it is: as a rule renders it, else in their own words."""
    if len(text.split()) < MIN_CLAUSE_WORDS:
        return None
    if planned := plan(text, at):
        return RuleFact(sentence(planned), "commitment", EXPLICIT_CONFIDENCE, "plan, asked to be remembered")
    if fact := _match_own_rules(text, "user", frozenset(), at):
        return fact._replace(confidence=EXPLICIT_CONFIDENCE, reason=f"{fact.reason}, asked to be remembered")
    return RuleFact(
        sentence(in_third_person(resolve_relative_day(text, at))),
        "fact",
        EXPLICIT_CONFIDENCE,
        "asked to be remembered",
        since_when(text, at),
    )


def assistants_fact(clause: Clause, at: datetime) -> RuleFact | None:
    """What the assistant says about the work or the user; with less confidence, because it is second-hand."""
    text, _ = strip_asides(clause.text)
    doubts = doubts_about(text, clause.sentence)
    fact = _match_own_rules(text, "any", doubts, at)
    if fact is None and YOU.match(text):
        fact = _match_own_rules(YOU.sub(lambda you: AS_I[you[0].lower()], text), "user", doubts, at)
        if fact is None or not fact.statement.startswith("The user"):
            return None
    if fact is None:
        return None
    confidence = round(fact.confidence * SECOND_HAND, 2)
    return fact._replace(confidence=confidence, reason=f"{fact.reason}, by the assistant")


def _match_own_rules(text: str, role: str, doubts: frozenset[str], at: datetime) -> RuleFact | None:
    fitting = _first_fitting(text, role, doubts, at)
    if fitting is None and (lead := _INSTEAD.match(text)):
        return _first_fitting(text[lead.end() :], role, doubts, at)
    return fitting


def _first_fitting(text: str, role: str, doubts: frozenset[str], at: datetime) -> RuleFact | None:
    for rule in rules():
        if (role == "any" and rule.role != "any") or not doubts <= rule.despite:
            continue
        if found := rule.pattern.match(text):
            when = found.groupdict().get("ago")
            since = _start_of(when, at) if when else since_when(text, at)
            return RuleFact(sentence(rule.render(found)), rule.type, rule.confidence, rule.name, since)
    return None


def since_when(text: str, at: datetime) -> datetime | None:
    """Since when a clause is true, if it says so: "since 2019"."""
    since = _SINCE.search(text)
    return _start_of(since[0], at) if since else None


def _start_of(when: str, at: datetime) -> datetime | None:
    """The start of the time that a phrase means if said at `at`; None unless it is in the past."""
    phrase = time_phrase(when, at)
    since = phrase.window.since if phrase is not None and phrase.window is not None else None
    return since if since is not None and since <= at else None
