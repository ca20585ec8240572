"""Plans and dates: "I'm flying to Oslo next Friday" becomes a sentence with the date, so that it can be read later."""

import re
from datetime import datetime
from typing import NamedTuple

from engram.capture.extraction.clauses import in_third_person, swap_pronouns
from engram.text.time.calendar import Span, containing_span
from engram.text.time.grammar import Grammar
from engram.text.time.words import may_start, words

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
        return f"We are {swap_pronouns(clause[6:])}"
    return in_third_person(clause)


def resolve_relative_day(text: str, at: datetime) -> str:
    """The text with "tomorrow" and the like as a date; a bare "Tuesday" may recur and stays."""
    days = [time for time in _planned_times(text, at) if time.is_day and _RELATIVE.match(text, time.start)]
    return _with_time(text, days[0]) if len(days) == 1 else text


def unclear_day_reason(text: str, at: datetime) -> str:
    """Why the day of a plan cannot be told: it is past, or could be two; "" if it can, or if no time is named."""
    grammar, times = Grammar(words(text), at, ahead=2), _planned_times(text, at)
    if times and all(time.span.until <= at.replace(tzinfo=None) for time in times):
        return "its day is past"
    for place, word in enumerate(grammar.words):
        read = _moment(grammar, place, "")
        if read and _may_be_two(read[1], text[word.start : grammar.words[read[0] - 1].end].lower(), grammar.at):
            return "its day is unclear"
    return ""


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
    week = containing_span(at, "week")
    if span.grain == "week" and lead == "in":  # "in two weeks"
        return (at + (span.since - week.since)).date().isoformat()
    is_open = phrase == "today" or _may_be_two(span, phrase, at)
    return span.since.date().isoformat() if (span.until - span.since).days == 1 and not is_open else ""


def _may_be_two(span: Span, phrase: str, at: datetime) -> bool:
    """Whether "next Friday" was said earlier in the same week, so that two days could be meant."""
    return phrase.startswith("next ") and span.since < containing_span(at, "week").until


def _period(span: Span) -> str:
    if span.grain == "quarter":
        return f"Q{(span.since.month + 2) // 3} {span.since.year}"
    return {"month": f"{span.since:%B %Y}", "year": str(span.since.year)}.get(span.grain, "")
