"""Extracts facts from turns: clause by clause, by the first rule that matches, each with the reason it was extracted.

A plan ("I'm flying to Oslo next Friday") becomes a sentence with the date, so that it can be read later.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from engram.capture.extraction.clauses import (
    PASSING,
    POINTING,
    QUESTION,
    QUOTED,
    Clause,
    clauses,
    doubts_about,
    has_unclear_reference,
    in_third_person,
    is_question,
    sentence,
    stripped,
    swapped,
)
from engram.capture.extraction.rules import CLEAR, EXPLICIT, rules
from engram.gates.instructions import find_injections
from engram.gates.secrets.scan import find_secrets
from engram.model.lazy import dataclass
from engram.text.time.calendar import Span, holding
from engram.text.time.grammar import Grammar
from engram.text.time.windows import time_phrase
from engram.text.time.words import may_start, words

LONGEST_CLAUSE = 320
"""Characters; longer clauses say several things."""
FEWEST_WORDS = 2
LONGEST_TAG = 2
"""Words after a comma that still form a tag question: "right?", "isn't it?"."""
SECOND_HAND = 0.6
"""The factor on the confidence of what the assistant said about the user."""
_YOU = re.compile(r"^(?:you're|you are|your|you)\b", re.IGNORECASE)
_AS_I = {"you're": "i'm", "you are": "i am", "your": "my", "you": "i"}
_INSTEAD = re.compile(
    r"^(?:no|nope|actually|wrong|correction|sorry)[,:;!. —–-]+(?=(?:i|i'm|i've|my|we|we're|our)\b)", re.IGNORECASE
)
REDACTED = "[redacted:"
"""The start of a redacted secret."""
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
# A part to play or a text to work on: nothing in such a turn is meant as a fact.
_MATERIAL = re.compile(
    r"\b(?:act as|pretend|role-?play|in character|write (?:me )?an? (?:\w+ ){0,3}(?:story|poem|letter|song|script|dialogue|email|essay|speech|post)|"
    r"translate|proofread|paraphrase|rephrase|rewrite th|summari[sz]e th|fix the (?:grammar|typos?|spelling)|what does .{1,60} mean)\b",
    re.IGNORECASE,
)
_USER_ROLES = ("user", "human")


@dataclass(frozen=True, slots=True)
class Extracted:
    """A fact worth remembering: a statement that can be read alone, and the exact span it comes from."""

    statement: str
    type: str
    confidence: float
    role: str
    turn: int
    """The index of the turn, from 0."""
    span: tuple[int, int]
    """The span in that turn's content, in characters."""
    reason: str
    since: datetime | None = None
    """Since when it is true, if the turn says so: "last month", "in 2015"."""


def extract(
    turns: Sequence[Mapping[str, Any]], *, at: datetime, extract_assistant_response: bool = False
) -> list[Extracted]:
    """The facts in the turns (`role`, `content`) that are worth remembering, in order, without repetitions.

    `at` is when the turns were said; it gives "tomorrow" a date. Turns of the assistant are skipped unless
    `extract_assistant_response` is set.
    """
    found: dict[str, Extracted] = {}
    for number, turn in enumerate(turns):
        role, content = str(turn.get("role", "")).strip().lower(), turn.get("content")
        if not isinstance(content, str) or not (
            role in _USER_ROLES or (role == "assistant" and extract_assistant_response)
        ):
            continue
        for fact in _of_turn(content, number, role, at):
            found.setdefault(fact.statement.casefold(), fact)
    return list(found.values())


def _of_turn(content: str, number: int, role: str, at: datetime) -> Iterator[Extracted]:
    if _MATERIAL.search(content):
        return
    for clause in clauses(content):
        if not _readable(clause):
            continue
        fact = _assistants(clause, at) if role == "assistant" else _users(clause, at)
        if fact is not None:
            span = (clause.start, clause.end)
            yield Extracted(fact.statement, fact.type, fact.confidence, role, number, span, fact.reason, fact.since)


def _readable(clause: Clause) -> bool:
    return (
        len(clause.text) <= LONGEST_CLAUSE
        and len(clause.text.split()) >= FEWEST_WORDS
        and REDACTED not in clause.text
        and not find_secrets(clause.sentence)
        and not find_injections(clause.sentence)
    )


class _Fact(NamedTuple):
    """The fact in a clause, as a rule renders it."""

    statement: str
    type: str
    confidence: float
    reason: str
    since: datetime | None = None


def _users(clause: Clause, at: datetime) -> _Fact | None:
    text, is_request = stripped(clause.text)
    doubts = doubts_about(text, clause.sentence)
    if is_request:
        # "Can you remember that …?" is a request, not a question.
        return None if QUOTED in doubts or is_question(text) or _ends_as_question(clause) else _requested(text, at)
    return _stated(text, doubts, at) or _stated_first(text, clause, at)


def _stated(text: str, doubts: frozenset[str], at: datetime) -> _Fact | None:
    if planned := plan(text, at):
        if doubts - {PASSING, POINTING} or has_unclear_reference(planned):
            return None
        return _Fact(sentence(planned), "commitment", CLEAR, "plan")
    return _ruled(text, "user", doubts, at)


def _stated_first(text: str, clause: Clause, at: datetime) -> _Fact | None:
    """The fact before the first comma if the rest is another remark ("I moved to Porto, still unpacking"), else the fact in the rest."""
    cut = _REMARK.search(text)
    if cut is None or _GOING_ON.match(text, cut.end()) or len(text[: cut.start()].split()) < FEWEST_WORDS:
        return None
    first, rest = text[: cut.start()], text[cut.end() :]
    doubts = doubts_about(first, clause.sentence)
    if len(rest.split()) > LONGEST_TAG and not _TAG.match(rest) and not is_question(first):
        doubts -= {QUESTION}
    fact = _stated(first, doubts, at)
    if fact is None and _OWN.match(rest) and not _LEANING.match(first):
        return _stated(rest, doubts_about(rest, clause.sentence), at)
    return fact


def _ends_as_question(clause: Clause) -> bool:
    return clause.sentence.rstrip("\"')” ").endswith(("?", "？")) and not is_question(clause.text)


def _requested(text: str, at: datetime) -> _Fact | None:
    """What someone asks to remember, whatever it is: as a rule renders it, else in their own words."""
    if len(text.split()) < FEWEST_WORDS:
        return None
    if planned := plan(text, at):
        return _Fact(sentence(planned), "commitment", EXPLICIT, "plan, asked to be remembered")
    if fact := _ruled(text, "user", frozenset(), at):
        return fact._replace(confidence=EXPLICIT, reason=f"{fact.reason}, asked to be remembered")
    return _Fact(
        sentence(in_third_person(dated(text, at))), "fact", EXPLICIT, "asked to be remembered", _since(text, at)
    )


def _assistants(clause: Clause, at: datetime) -> _Fact | None:
    """What the assistant says about the work or the user; with less confidence, because it is second-hand."""
    text, _ = stripped(clause.text)
    doubts = doubts_about(text, clause.sentence)
    fact = _ruled(text, "any", doubts, at)
    if fact is None and _YOU.match(text):
        fact = _ruled(_YOU.sub(lambda you: _AS_I[you[0].lower()], text), "user", doubts, at)
        if fact is None or not fact.statement.startswith("The user"):
            return None
    if fact is None:
        return None
    confidence = round(fact.confidence * SECOND_HAND, 2)
    return fact._replace(confidence=confidence, reason=f"{fact.reason}, by the assistant")


def _ruled(text: str, role: str, doubts: frozenset[str], at: datetime) -> _Fact | None:
    fitting = _fitting(text, role, doubts, at)
    if fitting is None and (lead := _INSTEAD.match(text)):
        return _fitting(text[lead.end() :], role, doubts, at)
    return fitting


def _fitting(text: str, role: str, doubts: frozenset[str], at: datetime) -> _Fact | None:
    for rule in rules():
        if (role == "any" and rule.role != "any") or not doubts <= rule.despite:
            continue
        if found := rule.pattern.match(text):
            when = found.groupdict().get("ago")
            since = _start_of(when, at) if when else _since(text, at)
            return _Fact(sentence(rule.render(found)), rule.type, rule.confidence, rule.name, since)
    return None


def _since(text: str, at: datetime) -> datetime | None:
    """Since when a clause is true, if it says so: "since 2019"."""
    since = _SINCE.search(text)
    return _start_of(since[0], at) if since else None


def _start_of(when: str, at: datetime) -> datetime | None:
    """The start of the time that a phrase means if said at `at`; None unless it is in the past."""
    phrase = time_phrase(when, at)
    since = phrase.window.since if phrase is not None and phrase.window is not None else None
    return since if since is not None and since <= at else None


# -- plans

_BOUNDS = ("by", "until", "for")
_LEADS = ("on", "in", "at", *_BOUNDS)
_RELATIVE = re.compile(r"(?:(?:on|by|until|for) )?(?:in|tomorrow|the day after|next|this)\b", re.IGNORECASE)
_OF_THIS = re.compile(r"\bof the (?=(?:year|quarter|month)\b)", re.IGNORECASE)
_DOING = (
    r"flying|travell?ing|going on|going to|moving|relocating|starting|launching|releasing|shipping|visiting|meeting|getting (?:married|surgery)|having (?:surgery|a baby)|"
    r"presenting|speaking|leaving|migrating|switching|cutting over|on (?:vacation|holiday|leave|parental leave)|away|out of office|off|retiring|graduating|hosting|"
    r"deprecating|sunsetting|dropping|upgrading|rolling out|opening|closing|renewing|freezing|planning to|aiming to|hoping to|taking|running (?:a|the|my)|giving a|due"
)
_WILL = (
    r"fly|travel|move|relocate|launch|release|ship|visit|marry|present|leave|migrate|switch|retire|graduate|host|deprecate|sunset|drop|upgrade|roll out|open|close|renew|"
    r"freeze|start|stop supporting|hire|replace|cut over|be (?:on|away|out|off|in)"
)
_EVENT = (
    r"appointment|deadline|release|launch|flight|exam|interview|wedding|demo|trip|surgery|vacation|holiday|conference|talk|cutover|migration|code freeze|freeze|audit|"
    r"go-live|maternity leave|parental leave|review|beta|alpha|proposal|report|contract|lease|subscription|licen[cs]e|certificate|domain|visa|passport|invoice|thesis|paper|"
    r"submission|application|project|feature|version|milestone|kickoff|kick-off|workshop|training|course|meetup|hackathon|onboarding|offsite|off-site|party|concert|"
    r"graduation|term|semester|season|move|operation|election|hearing|trial|renewal|payment|rent|tax return|taxes|sprint|phase \w+|mvp|app|site|website|store|office"
)
_HAPPENS = (
    r"is|are|is due|are due|starts|ends|begins|launches|ships|opens|closes|expires|renews|lands|arrives|goes live|kicks off|takes place|happens|is happening|runs out|"
    r"(?:is|are) (?:scheduled|planned|set|booked|expected)|has to be (?:done|ready|in|out)|must be (?:done|ready|in|out)|will (?:be|start|end|launch|ship|open|close|happen|go live|take place)"
)
_SCHEDULED = r"starts?|ends?|begins?|launches|opens|closes|expires|renews|kicks off|goes live|is due|are due|graduates|gets married|moves|retires|arrives|leaves|departs|lands|takes off|turns"
_PLAN = re.compile(
    rf"(?P<who>i'm|i am|we're|we are) (?:currently |also )?(?P<doing>(?:{_DOING})\b.*)"
    rf"|(?:i|we)(?:'ll| will|'re going to| are going to|'m going to| plan to| intend to| aim to) (?:{_WILL})\b.*"
    rf"|(?:i|we)(?: have|'ve got| have got) (?:an?|my|our|the) (?:[\w'.-]+ ){{0,4}}(?:{_EVENT}|dentist|doctor)\b.*"
    rf"|(?:my|our|the) (?:[\w'.-]+ ){{0,4}}(?:{_EVENT}) (?:{_HAPPENS})\b.*"
    rf"|(?:my|our) (?:[\w'.-]+ ){{1,5}}(?:{_SCHEDULED})\b.*",
    re.IGNORECASE,
)


class _PlannedTime(NamedTuple):
    """A day, month, quarter or year that a clause names: its place, and how it reads later."""

    start: int
    end: int
    written: str
    span: Span
    is_day: bool


def plan(clause: str, at: datetime) -> str:
    """The plan in a clause, with its time as a date; "" if there is none, or if its time is past or unclear."""
    if _PLAN.fullmatch(clause) is None:
        return ""
    clause = _OF_THIS.sub("of this ", clause)
    times = _planned_times(clause, at)
    is_past = any(time.span.until <= at.replace(tzinfo=None) for time in times)
    if not times or is_past or sum(time.is_day for time in times) > 1:
        return ""
    for time in reversed(times):
        clause = _with_time(clause, time)
    if clause.lower().startswith("we're "):
        return f"We are {swapped(clause[6:])}"
    return in_third_person(clause)


def dated(text: str, at: datetime) -> str:
    """The text with "tomorrow" and the like as a date; a bare "Tuesday" may recur and stays."""
    days = [time for time in _planned_times(text, at) if time.is_day and _RELATIVE.match(text, time.start)]
    return _with_time(text, days[0]) if len(days) == 1 else text


def _with_time(text: str, time: _PlannedTime) -> str:
    return f"{text[: time.start]}{time.written}{text[time.end :]}"


def _planned_times(text: str, at: datetime) -> list[_PlannedTime]:
    grammar = Grammar(words(text), at, ahead=2)
    found: list[_PlannedTime] = []
    place = 0
    while place < len(grammar.words):
        word = grammar.words[place]
        before = grammar.words[place - 1] if place else None
        lead = before.key if before else ""
        read = _moment(grammar, place, lead)
        if read is None:
            place += 1
            continue
        end = grammar.words[read[0] - 1].end
        phrase = text[word.start : end].lower()
        if day := _day(read[1], lead, phrase, grammar.at):
            start = before.start if before and lead in _LEADS else word.start
            found.append(_PlannedTime(start, end, f"{lead if lead in _BOUNDS else 'on'} {day}", read[1], True))
        elif not lead.isdecimal() and (period := _period(read[1])):  # not "30 February"
            written = period if lead in (*_LEADS, "of", "before", "during") else f"in {period}"
            found.append(_PlannedTime(word.start, end, written, read[1], False))
        place = read[0]
    return found


def _moment(grammar: Grammar, place: int, lead: str) -> tuple[int, Span] | None:
    """A time of at least a day that begins here: of "Friday at noon" the Friday, of "the end of May" nothing until "May"."""
    if place >= len(grammar.words) or not may_start(grammar.words[place]):
        return None
    try:
        read = grammar.moment(place, lead if lead in ("on", "at") else "in")
    except (OverflowError, ValueError):  # further away than the calendar reaches
        return None
    if read is not None and read[1].grain == "hour":
        return _moment(Grammar(grammar.words[: read[0] - 1], grammar.at, ahead=2), place, lead)
    return None if read is None or read[1].grain == "part" else read


def _day(span: Span, lead: str, phrase: str, at: datetime) -> str:
    """The date of a single day; "" for an ambiguous "next Friday" said earlier in the same week."""
    week = holding(at, "week")
    if span.grain == "week" and lead == "in":  # "in two weeks"
        return (at + (span.since - week.since)).date().isoformat()
    is_ambiguous = phrase == "today" or (phrase.startswith("next ") and span.since < week.until)
    return span.since.date().isoformat() if (span.until - span.since).days == 1 and not is_ambiguous else ""


def _period(span: Span) -> str:
    if span.grain == "quarter":
        return f"Q{(span.since.month + 2) // 3} {span.since.year}"
    return {"month": f"{span.since:%B %Y}", "year": str(span.since.year)}.get(span.grain, "")
