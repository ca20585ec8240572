"""Rewrites a sentence of a conversation so that it can be read by itself, and later.

chat spellings → fillers and greetings → parts that only matter now → references → answer with its question → dates → third person

Marks of a change stay in: now, no longer, not X but Y.
"""

import re
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from engram.capture.extraction.clauses import in_third_person, sentence, swap_pronouns, third_person
from engram.capture.extraction.references import References, can_name, has_open_reference, is_verbless, speech
from engram.text.time.calendar import Span, containing_span
from engram.text.time.grammar import Grammar
from engram.text.time.words import may_start, words
from engram.text.words import is_past, kind_of

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
    """A day, month, quarter or year that a clause names: its position, and its later wording."""

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
    """Why the day of a plan is unclear (it is past, or ambiguous); "" if it is clear, or if no time is named."""
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
        if day := _day_written(read[1], lead, phrase, grammar.at):
            start = before.start if before and lead in _LEADS else word.start
            found.append(_PlannedTime(start, end, f"{lead if lead in _BOUNDS else 'on'} {day}", read[1], True))
        elif not lead.isdecimal() and (period := _period_written(read[1])):  # not "30 February"
            written = period if lead in (*_LEADS, "of", "before", "during") else f"in {period}"
            found.append(_PlannedTime(word.start, end, written, read[1], False))
        place = read[0]
    return found


def _moment(grammar: Grammar, place: int, lead: str) -> tuple[int, Span] | None:
    """A time of at least a day that begins here: for "Friday at noon" the Friday, for "the end of May" nothing until "May"."""
    if place >= len(grammar.words) or not may_start(grammar.words[place]):
        return None
    try:
        read = grammar.moment(place, lead if lead in ("on", "at") else "in")
    except (OverflowError, ValueError):  # outside the calendar's range
        return None
    if read is not None and read[1].grain == "hour":
        return _moment(Grammar(grammar.words[: read[0] - 1], grammar.at, ahead=2), place, lead)
    return None if read is None or read[1].grain == "part" else read


def _day_written(span: Span, lead: str, phrase: str, at: datetime) -> str:
    """The date of a single day; "" for an ambiguous "next Friday" said earlier in the same week."""
    week = containing_span(at, "week")
    if span.grain == "week" and lead == "in":  # "in two weeks"
        return (at + (span.since - week.since)).date().isoformat()
    is_open = phrase == "today" or _may_be_two(span, phrase, at)
    return span.since.date().isoformat() if (span.until - span.since).days == 1 and not is_open else ""


def _may_be_two(span: Span, phrase: str, at: datetime) -> bool:
    """Whether "next Friday" was said earlier in the same week, so that two days could be meant."""
    return phrase.startswith("next ") and span.since < containing_span(at, "week").until


def _period_written(span: Span) -> str:
    if span.grain == "quarter":
        return f"Q{(span.since.month + 2) // 3} {span.since.year}"
    return {"month": f"{span.since:%B %Y}", "year": str(span.since.year)}.get(span.grain, "")


_EMOJI = re.compile("[\U0001f000-\U0001faff☀-➿←-⇿️‍⬀-⯿]+|(?<!\\S)[:;]-?[)(DPp3](?!\\S)")
_GAP = re.compile(r"\s+([,.;:!?])|,(?=\s*[,.;:!?])|^\s*[,;:.–—-]+\s*|\s{2,}")
_BRACKETS = re.compile(r"^\((.*)\)$")
_FINITE = re.compile(
    r"\b(?:is|are|am|was|were|has|have|had|do|does|did|can|can't|will|won't|must|should|may|might|would|could|don't|doesn't|didn't|isn't|aren't)\b|\w'(?:s|re|m|ve|ll|d)\b",
    re.IGNORECASE,
)
_SUBJECT = re.compile(r"(?:i|we|he|she|they|you|it|my|our|his|her|their|this|that|there|the|it's)\b", re.IGNORECASE)
_ASKED = re.compile(
    r"(?:and |so |ok(?:ay)?,? )?(?:what|which|who|when|where|how (?:long|much|many|old|big|often|far)) ?(?P<be>'s|is|are|was|were) (?P<what>(?:your|the|my|his|her|their|our|its) [^?]{2,80})\?",
    re.IGNORECASE,
)
_ASKED_OF_YOU = re.compile(
    r"(?:and |so |ok(?:ay)?,? )?(?:what|which) (?P<what>(?!time\b|day\b)[\w-]+(?: [\w-]+)?) do you (?:usually |normally |currently )?(?P<verb>[a-z]+)(?P<rest> [^?]{2,60})?\?",
    re.IGNORECASE,
)
_ASKED_SHORTLY = re.compile(
    r"(?:(?:and|what about|how about|and what about) )(?P<what>(?:your|the) [^?,]{2,60})\?", re.IGNORECASE
)
_IT_IS = re.compile(r"(?:it|that|they)(?:'s| is|'re| are| would be|'d be) (?!(?:been|got)\b)", re.IGNORECASE)
_YOU = re.compile(r"\byou're\b|\byour\b|\byours\b|\byou are\b|\byou\b", re.IGNORECASE)
_USER = {
    "you're": "the user is",
    "your": "the user's",
    "yours": "the user's",
    "you are": "the user is",
    "you": "the user",
}
_REQUEST = r"(?:can|could|would|will) (?:you|u)\b|please\b|pls\b|let's\b|lets\b|(?:so )?(?:put|add|write|make|give|send|tell|remind|draft|change|use|leave|keep|note|book|plan|set|show|find|check|take|move)\b(?= (?:it|that|this|me|him|her|them|the|in|a|an|us|out|off|down)\b)"
_TAIL = re.compile(
    rf"(?<!\s)(?:\s*+[,;]|\s++(?:[-–—]|(?=so\s)))\s*+(?:(?:so|and|but|then|anyway)\s+)*(?:{_REQUEST}|what do you think|any (?:ideas|tips|thoughts)|how (?:do|can|should)|what (?:should|can|do)|right\b|isn't it|don't you).*$",
    re.IGNORECASE,
)
_HEAD = re.compile(
    rf"^(?:(?:so|and|but|ok|then)\s+)*(?:{_REQUEST})[^,;]{{3,80}}(?:[,;]\s*|\s+(?:because|since|as)\s+)(?=(?:i|we|my|our|he|she|it|they|the)\b)",
    re.IGNORECASE,
)
_FEWEST_LEFT = 4
"""The minimum number of words that must remain when a part of a sentence is cut."""


def standalone(text: str, references: References, at: datetime, *, owner: str = "user", asked: str = "") -> str:
    """A user's sentence as a memory that can be read alone; `asked` is the question that it may answer."""
    bare = bare_sentence(text)
    fragment = is_fragment(bare)
    bare = resolve_relative_day(references.resolve_pronouns(bare), at)
    if asked and (fragment or _is_named_by(asked, bare)):
        bare = answer(asked, bare)
    elif fragment or is_past(bare.partition(" ")[0].lower()):
        bare = _with_subject(bare, references, owner)
    return sentence(in_third_person(bare))


def needs_context(text: str, references: References, *, asked: str = "") -> bool:
    """Whether a sentence still refers to the previous one after all references that can be resolved are resolved."""
    bare = bare_sentence(text)
    if asked and is_fragment(bare):
        return False
    bare = references.resolve_pronouns(bare)
    return (has_open_reference(bare) and not _is_named_by(asked, bare)) or is_verbless(bare)


def _is_named_by(asked: str, text: str) -> bool:
    """Whether the question names what the answer refers to."""
    return bool(asked) and has_open_reference(text) and not has_open_reference(asked) and can_name(asked, text)


def bare_sentence(text: str) -> str:
    """The text in full spelling, without chatter and without a request to the assistant."""
    return _cut_request(without_chatter(spelled_out(text)))


def spelled_out(text: str) -> str:
    """The text with the spellings of chat written out, without emoji."""
    text = _EMOJI.sub(" ", text.replace("’", "'"))
    return _spelling_pattern().sub(lambda word: speech()["spellings"][word[0].lower()], text).strip()


@lru_cache(maxsize=1)
def _spelling_pattern() -> re.Pattern[str]:
    words = "|".join(map(re.escape, sorted(speech()["spellings"], key=len, reverse=True)))
    return re.compile(rf"(?<![\w'/.@-])(?:{words})(?![\w'/@-])(?!\.\w)", re.IGNORECASE)


@lru_cache(maxsize=1)
def _fillers() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    tables = {name: "|".join(sorted(words, key=len, reverse=True)) for name, words in speech()["fillers"].items()}
    before = rf"{tables['before']}|{tables['anywhere']}"
    after = rf"{tables['after']}|{tables['anywhere']}"
    return (
        re.compile(rf"^\W*(?:(?:{before})(?![\w'-])[\s,:!.–—-]+)+", re.IGNORECASE),
        re.compile(rf"(?:^|(?<=[\s,(]))(?:{tables['anywhere']})(?![\w'-])\s*(?P<comma>,)?", re.IGNORECASE),
        re.compile(rf"(?:[,;\s–—-]++(?:{after}))+[\s.!…,;:?]*+$", re.IGNORECASE),
    )


def without_chatter(text: str) -> str:
    """The text without greetings, fillers and trailing chatter."""
    before, anywhere, after = _fillers()
    text = _BRACKETS.sub(r"\1", text.strip())
    bare = before.sub("", text)
    bare = after.sub("", anywhere.sub("", bare))
    bare = _GAP.sub(lambda gap: gap[1] or (" " if gap[0].isspace() else ""), bare).strip(" ,;–—-")
    return bare if len(bare.split()) >= 2 else text


def _cut_request(text: str) -> str:
    """The text without a request or question to the assistant before or after it."""
    for pattern in (_TAIL, _HEAD):
        shorter = pattern.sub("", text, count=1).strip()
        if shorter and len(shorter.split()) >= _FEWEST_LEFT:
            text = shorter
    return text


def is_fragment(text: str) -> bool:
    """Whether a text has neither a subject nor a finite verb of its own at its start."""
    first = re.split(r"[,;]| - ", text, maxsplit=1)[0]
    if _SUBJECT.match(first):
        return False
    words = first.lower().split()
    return not _FINITE.search(first) and not any(is_past(word) or kind_of(word) for word in words[1:6])


def _with_subject(text: str, references: References, owner: str) -> str:
    """A sentence that leaves out its subject, with the subject: "hate coriander", "moved to Porto"."""
    first, _, rest = text.partition(" ")
    verb = first.lower()
    subject = "I" if owner == "user" else references.last_person() if owner == "person" else ""
    if not subject or subject.lower() in text.lower():
        return text
    if verb.endswith("ing") and len(verb) > 5:
        return f"{subject} {'am' if owner == 'user' else 'is'} {text}"
    if is_past(verb) or kind_of(verb):
        form = verb if owner == "user" or is_past(verb) else third_person(verb)
        return f"{subject} {'have ' * (verb == 'been' and owner == 'user')}{form} {rest}"
    return text if owner == "user" else f"{subject}: {text}"


def answer(question: str, text: str) -> str:
    """A short answer as a statement, including the question's subject."""
    question = question.strip()
    value = _IT_IS.sub("", text)
    if asked := _ASKED.fullmatch(question):
        be = {"'s": "is"}.get(asked["be"].lower(), asked["be"].lower())
        return f"{_of_the_user(asked['what'])} {be} {value}"
    if asked := _ASKED_OF_YOU.fullmatch(question):
        return (
            f"the {asked['what']} the user {third_person(asked['verb'])}{_of_the_user(asked['rest'] or '')} is {value}"
        )
    if asked := _ASKED_SHORTLY.fullmatch(question):
        return f"{_of_the_user(asked['what'])}: {value}"
    return f"Asked “{question}”, the user answered: {swap_pronouns(text)}"


def _of_the_user(text: str) -> str:
    return _YOU.sub(lambda you: _USER[you[0].lower()], text)
