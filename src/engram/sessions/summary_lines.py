"""Extracts the lines of a summary: sentences of events, each classified as a goal, a constraint, a decision and so on.

English is classified by the tables below. In other languages a sentence is weighted by its place, its speaker and its
rare words.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache

from engram.gates.comparison import relation
from engram.gates.tables import phrases, plain
from engram.model.lazy import dataclass, replace
from engram.model.records import SUMMARY_ROLE, Event
from engram.text.display import cut, one_line
from engram.text.tokens import query_terms, sentence_spans, tokens
from engram.text.words import hedge_pattern

KINDS = ("goal", "constraints", "progress", "decisions", "next", "critical")
"""The kinds of lines, in the order of a summary; a line without a signal is context (`critical`)."""

LONGEST_LINE = 240
"""Maximum characters of one extract; a longer sentence is cut at the end of a word."""
_READ_CHARS = 20_000
_OUTPUT_CHARS = 2_000
"""Characters read at each end of a tool's output: the command is at its beginning, errors are at its end."""
_MOST_LINES = 12
_MOST_OUTPUT_LINES = 3
_OUTPUTS = frozenset(("tool_result", "error"))
_PROMPTS = frozenset(("system", "developer"))

SIGNALS: dict[str, tuple[str, ...]] = {
    "goal": (
        r"(?:the|our|my|your|main|overall) (?:goal|aim|objective|task|mission)\b",
        r"goal:|objective:|task:|what (?:i|we) want\b",
    ),
    "request": (
        r"^(?:so |ok(?:ay)?,? |now |also |then |and )*(?:please |let's |can you |could you |would you |help me )*(?:{imperative})\b",
        r"^(?:hi|hello|hey)?\W*(?:can|could|would) you\b|\bhelp me\b",
        r"\b(?:i|we) (?:need|want|would like|'d like)\b|\bi'd like\b|\bwe'd like\b",
    ),
    "constraints": (
        r"\b(?:must|mustn't|never|always|shall|forbidden|prohibited|mandatory|cannot exceed|not allowed)\b",
        r"\b(?:do not|don't)(?! (?:know|think|have|see|worry|remember|understand|need|mind|believe|get)\b)",
        r"\bonly (?:use|touch|change|edit|write|read|run|in|on|for|by|with|via|allowed|support)\b|\buse only\b",
        r"\b(?:no more than|at most|at least|under no circumstances|required to|has to be|have to be|make sure|avoid)\b",
        r"\b(?:constraint|requirement|rule):",
    ),
    "decisions": (
        r"\b(?:decided|decision|agreed|settled on|opted for|opt for|chose|chosen|picked|going with|go with)\b",
        r"\b(?:let's|we'll|we will|i'll|i will) (?:use|keep|stick|adopt|stay|take|switch|move to)\b",
        r"\b(?:switch|switched|switching|moving|moved) to\b|\binstead of\b|\brather than\b",
    ),
    "next": (
        r"\b(?:next|todo|to-do|remaining|outstanding|pending|follow[- ]up)\b",
        r"\b(?:still|yet) (?:need|needs|have|has|to|missing|open|left)\b|\bleft to do\b|\bnot yet\b|\bafter that\b",
        r"\b(?:plan to|will need to|i'll then|we should then|need to follow)\b",
    ),
    "did": (r"^(?:(?:i|we|i've|we've|i have|we have|ok(?:ay)?|and|also|now|just|great)\b[ ,:.—-]*)*(?:{done})\b",),
    "progress": (r"\b(?:{done})\b", r"\b(?:works now|all green|is ready|are ready|succeeded|exit code 0)\b"),
    "error": (
        r"\b(?:\w*error|\w*exception|traceback|panic|fatal|segfault|fail(?:s|ed|ing|ure|ures)?|crash(?:es|ed|ing)?)\b",
        r"\b(?:blocked|blocker|outage|urgent|data loss|timed out|denied|exit code [1-9])\b",
    ),
    "deadline": (
        r"\b(?:deadline|due (?:on|by|date)|expires?|no later than)\b",
        r"\bby (?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\bby (?:end of|eod|tomorrow|noon|\d)",
    ),
    "fact": (r"\w/[\w.-]|\w\.(?:py|ts|js|rs|go|md|sql|toml|ya?ml|json|txt)\b|https?://|\d",),
    "hedge": (r"\b(?:{hedge}|wondering)\b",),
    "open": (
        r"(?:\b(?:not|never|to be|yet to|unable to)|n't)(?: \w+){0,2} (?:{done}|decided|agreed|chosen|settled)\b",
    ),
    "no_error": (
        r"\b(?:0|no|zero|without(?: any)?) (?:error|failure|fail|warning|exception|crash|problem)(?:s|es|ed|ures)?\b",
    ),
    "tests": (r"\btests?\b|\btests?[/_]|::|\bassert|\b\d+ (?:failed|passed|errors?)\b",),
}
"""Patterns by signal, matched on lower-cased text."""
IMPERATIVES = (
    "add|analyse|analyze|audit|build|change|check|clean|compare|configure|convert|create|debug|deploy|describe|design|"
    "document|draft|explain|extend|find|fix|generate|implement|improve|install|integrate|investigate|make|migrate|move|"
    "optimise|optimize|organise|organize|plan|port|prepare|refactor|remove|rename|replace|research|review|rewrite|set|ship|"
    "simplify|sort|summarise|summarize|support|test|translate|update|upgrade|use|verify|wire|write"
)
"""Verbs that begin a request to an agent."""
DONE = (
    "done|fixed|passed|passes|passing|merged|completed|finished|implemented|added|deployed|shipped|resolved|committed|"
    "created|updated|released|migrated|removed|wrote|written|refactored|renamed|installed|verified|built|closed|published"
)
"""Words for completed work."""
_FENCED = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_MARK = re.compile(r"\s*(?:[-*+•>]\s+|#{1,6}\s+|\d{1,3}[.)]\s+|\[[ xX]\]\s+|>)+")
_SPEAKER = re.compile(r"[^\w-]+")
_PROBE = "zzqx"
_LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True, slots=True)
class Line:
    """One extract, with its speaker, event number (0 if unknown) and kind."""

    seq: int
    place: int
    speaker: str
    text: str
    kind: str


@cache
def _pattern(name: str) -> re.Pattern[str]:
    alternatives = "|".join(f"(?:{entry})" for entry in SIGNALS[name])
    words = {"imperative": IMPERATIVES, "done": DONE, "hedge": hedge_pattern("guess", "possible", "vague")}
    for label, alternative in words.items():
        alternatives = alternatives.replace(f"{{{label}}}", alternative)
    return re.compile(alternatives)


@lru_cache(maxsize=4096)
def signal(name: str, text: str) -> bool:
    """Whether a text matches a signal."""
    return bool(_pattern(name).search(text.lower().replace("’", "'")))


def kind_of(text: str, speaker: str) -> str:
    """Which of `KINDS` a sentence is; a tool's output is always progress or context."""
    lowered = _pattern("no_error").sub(" ", text.lower().replace("’", "'"))
    if speaker in _OUTPUTS or speaker == "tool":
        return "progress" if signal("progress", lowered) and not signal("error", lowered) else "critical"
    if text.rstrip().endswith(("?", "？", "؟")):
        return "goal" if signal("request", lowered) and speaker == "user" else "critical"
    return _kind_by_signals(lowered, speaker)


def _kind_by_signals(lowered: str, speaker: str) -> str:
    """The first kind whose signal matches; something not yet done, fixed or decided is an open step."""
    if signal("open", lowered):
        return "next"
    if signal("did", lowered) and not signal("next", lowered):
        return "progress"
    for kind in ("goal", "decisions", "next", "constraints", "progress"):
        if signal(kind, lowered):
            return kind
    asks = speaker == "user" and signal("request", lowered) and not signal("error", lowered)
    return "goal" if asks else "critical"


def lines_of(event: Event) -> list[Line]:
    """The extracts of an event, in order; for a tool's output, only the lines that report an outcome.

    Tool calls, system prompts and summaries yield none.
    """
    if event.event_type == "tool_call" or event.role in (*_PROMPTS, SUMMARY_ROLE) or not event.content.strip():
        return []
    speaker = _speaker(event)
    if event.event_type in _OUTPUTS or speaker == "tool":
        found = _output_lines(event.content, speaker)
    else:
        found = [text for text in sentences(event.content[:_READ_CHARS]) if not is_small_talk(text)]
        found = _best(found, speaker, _MOST_LINES)
    return [Line(event.seq, place, speaker, text, kind_of(text, speaker)) for place, text in enumerate(found)]


def _speaker(event: Event) -> str:
    """One word for the speaker: the role, or the event's type if the role is not informative."""
    name = event.event_type if event.event_type in (*_OUTPUTS, "artifact") else event.role
    return _SPEAKER.sub("", name)[:24].lower() or "unknown"


def _output_lines(content: str, speaker: str) -> list[str]:
    ends = content if len(content) <= 2 * _OUTPUT_CHARS else f"{content[:_OUTPUT_CHARS]}\n{content[-_OUTPUT_CHARS:]}"
    found = [one_line(line) for line in ends.splitlines() if _LETTER.search(line)]
    telling = [line for line in found if signal("error", line) or signal("progress", line)]
    if not telling and speaker == "error":
        telling = found[-1:]
    # The last lines name the exception and count the passed tests; "Traceback (most recent call last)" is not
    # informative.
    return [cut(line, LONGEST_LINE) for line in telling[-_MOST_OUTPUT_LINES:]]


def _best(found: list[str], speaker: str, most: int) -> list[str]:
    """Select this many sentences of a long message, in order: those with a signal first, then from the beginning."""
    if len(found) <= most:
        return found
    ranked = sorted(range(len(found)), key=lambda place: (_is_unmarked(found[place], speaker), place))
    return [found[place] for place in sorted(ranked[:most])]


def _is_unmarked(text: str, speaker: str) -> bool:
    return kind_of(text, speaker) == "critical" and not signal("error", text) and not signal("deadline", text)


def sentences(text: str) -> list[str]:
    """The sentences of a text, each on one line and bounded, without code, tables, list marks and heading marks."""
    found = []
    for paragraph in _paragraphs(_FENCED.sub("\n\n", text)):
        for start, end in sentence_spans(paragraph, 0, len(paragraph)):
            if _LETTER.search(sentence := paragraph[start:end]):
                found.append(cut(one_line(sentence), LONGEST_LINE))
    return found


def _paragraphs(text: str) -> Iterator[str]:
    """Split a text into paragraphs: continued lines are joined; a list item, a heading or an empty line starts a new one."""
    current: list[str] = []
    for line in text.splitlines():
        mark = _MARK.match(line)
        if (mark or not line.strip() or line.lstrip().startswith("|")) and current:
            yield " ".join(current)
            current = []
        rest = (line[mark.end() :] if mark else line).strip()
        if rest and not rest.startswith("|"):
            current.append(rest)
        if line.lstrip().startswith("#") and current:
            yield " ".join(current)
            current = []
    if current:
        yield " ".join(current)


def is_small_talk(text: str) -> bool:
    """Whether a sentence is only a greeting, thanks or an acknowledgement, which is never worth a line."""
    filler = phrases("trivial.txt", "filler")
    return all(word.strip("'-") in filler.words or word in filler.runs for word in plain(text).split())


@cache
def _signal_terms() -> frozenset[str]:
    """Stems that signal the kind of a sentence, not its subject."""
    verbs = f"{IMPERATIVES} {DONE}".replace("|", " ")
    return frozenset(
        tokens(f"{verbs} next todo remaining pending still need must never always agreed decided error fail run let we")
    )


@lru_cache(maxsize=4096)
def content_terms(text: str) -> frozenset[str]:
    """The stems of a sentence's subject, without the words that signal its kind."""
    # A query of stop words alone is searched by them; adding the probe word, then removing it, keeps them out.
    return frozenset(query_terms(f"{text} {_PROBE}")) - _signal_terms()


WEIGHTS = {"goal": 4.0, "constraints": 6.0, "decisions": 6.0, "next": 5.0, "progress": 3.5, "critical": 1.0}
"""The base weight of a line, by kind."""
OPENING, STATED_GOAL = 12.0, 7.0
"""The weight of the goal that opens a session, and of one that is explicitly called a goal."""
USERS_WORD = 1.0
"""Added to the weight of a line by a person, compared with an agent's."""
UNSOLVED, DATED, FACT = 3.5, 3.0, 1.0
"""Added to the weight of a line with an error, a deadline, or a path or number."""
DOUBT_WEIGHT = -1.5
RECENCY_WEIGHT, HALVED_AFTER = 1.5, 20
"""Added to the weight of the newest lines; it halves after this many events. Rulings and chatter do not age."""
REPEATED, CLOSED, SOLVED = 0.8, 0.6, 0.5
"""The share of common terms from which a later line replaces an earlier one.

The share is of all terms for a repetition, of the open step's terms if the line closes that step, and of the error's
terms if it solves that error.
"""

PERSON_AUTHORITY = 2
"""The authority of a person; an agent's is 1, a tool's 0. No line overrules one with more authority."""
_DURABLE = frozenset(("goal", "constraints", "decisions", "next"))
_RULINGS = frozenset(("constraints", "decisions"))
_TOOL_OUTPUTS = frozenset(("tool", "tool_result", "error"))
_INSTEAD = re.compile(
    r"\b(?:instead of|rather than|no longer(?: using| use)?|drop(?:ping)?|replac(?:e|ing)|not)\s+((?:[\w.+#/-]+\s*){1,3})",
    re.IGNORECASE,
)
_DENIAL = re.compile(r"\b(?:not|never|no longer|avoid|without|forbidden)\b|n't\b", re.IGNORECASE)


def is_durable(line: Line) -> bool:
    """Whether the line states something that still applies, not just an event."""
    return line.kind in _DURABLE or signal("deadline", line.text)


def mark_goal(lines: Sequence[Line]) -> tuple[list[Line], frozenset[Line]]:
    """The lines, with those that open the session marked as its goal, and the marked lines.

    A user's first meaningful words are the goal, whatever their form. The number 0 marks a line from a model's summary,
    whose goal is older than any available event.
    """
    goals = [line for line in lines if line.seq == 0 and line.kind == "goal"]
    if not goals:
        asked = [line for line in lines if _authority(line) == PERSON_AUTHORITY and line.seq]
        opening = [line for line in asked if line.seq == asked[0].seq]
        goals = [line for line in opening if line.kind == "goal"] or opening[:1]
    chosen = {id(line) for line in goals}
    marked = [replace(line, kind="goal") if id(line) in chosen else line for line in lines]
    return marked, frozenset(line for line, old in zip(marked, lines, strict=True) if id(old) in chosen)


def drop_obsolete(lines: Sequence[Line], kept: frozenset[Line]) -> list[Line]:
    """Drop lines that another line repeats, a later line contradicts, or later work closes; the order stays.

    A passing test run closes the failures of all runs before it. Lines in `kept` stay. Lines are looked up by shared
    terms, which avoids quadratic cost in sessions of thousands of lines.
    """
    terms = [content_terms(line.text) for line in lines]
    later: defaultdict[str, list[int]] = defaultdict(list)
    gone: set[int] = set()
    runs = {line.seq for line in lines if line.speaker in _TOOL_OUTPUTS and signal("tests", line.text)}
    passed = False
    for place in range(len(lines) - 1, -1, -1):
        line = lines[place]
        shared = Counter(other for term in terms[place] for other in later[term] if other not in gone)
        for other, common in shared.items():
            loser = _obsolete_line(line, lines[other], common, terms[place], terms[other])
            if loser is not None and loser not in kept:
                gone.add(place if loser is line else other)
        if passed and line.seq in runs and line.kind == "critical":
            gone.add(place)
        passed = passed or (line.seq in runs and line.kind == "progress")
        if place not in gone:
            for term in terms[place]:
                later[term].append(place)
    return [line for place, line in enumerate(lines) if place not in gone]


def _obsolete_line(
    old: Line, new: Line, common: int, old_terms: frozenset[str], new_terms: frozenset[str]
) -> Line | None:
    """Which of two lines is made obsolete by the other, if any."""
    if old.kind == new.kind and common / len(old_terms | new_terms) >= REPEATED and not _is_negated(old, new):
        return new if old.kind == "goal" or _authority(old) > _authority(new) else old
    if _echoes(new, old) and common == len(new_terms):
        return new
    if new.kind in _RULINGS and old.kind in _RULINGS and _authority(new) >= _authority(old):
        contradicted = relation(old.text, new.text).relation == "opposite" or _replaces(new, old)
        return old if contradicted else None
    if new.kind != "progress":
        return None
    is_unsolved = old.kind == "critical" and signal("error", old.text)
    least = CLOSED if old.kind == "next" else SOLVED if is_unsolved else math.inf
    return old if common / len(old_terms) >= least else None


def _echoes(new: Line, old: Line) -> bool:
    """Whether the new line may merely agree with the old: a ruling to the same effect, with no more authority."""
    return (
        old.kind in _RULINGS
        and new.kind in _RULINGS
        and _authority(new) <= _authority(old)
        and not _is_negated(old, new)
    )


def _is_negated(old: Line, new: Line) -> bool:
    """Whether only one of the two lines is negated, so that they are not a repetition."""
    return bool(_DENIAL.search(old.text)) != bool(_DENIAL.search(new.text))


def _authority(line: Line) -> int:
    return PERSON_AUTHORITY if line.speaker in ("user", "human") else 0 if line.speaker in _TOOL_OUTPUTS else 1


def _replaces(new: Line, old: Line) -> bool:
    """Whether the new line rejects the old one's choice after "instead of" or "not"."""
    chosen = _INSTEAD.sub(" ", old.text)
    if _DENIAL.search(chosen):
        return False
    named = [content_terms(found[1]) for found in _INSTEAD.finditer(new.text)]
    return any(terms and terms <= content_terms(chosen) for terms in named)


def weights(lines: Sequence[Line], goals: frozenset[Line]) -> list[float]:
    """The weight of each line: by its kind, its speaker, its age, and how rare its words are in this session."""
    terms = [content_terms(line.text) for line in lines]
    held = Counter(term for own in terms for term in own)
    last = max((line.seq for line in lines), default=0)
    return [
        _worth(line, line in goals, last - line.seq) + _rarity(own, held, len(lines))
        for line, own in zip(lines, terms, strict=True)
    ]


def _worth(line: Line, opens: bool, age: int) -> float:
    if opens:
        return OPENING - min(line.place, 10) / 10
    worth = STATED_GOAL if line.kind == "goal" and signal("goal", line.text) else WEIGHTS[line.kind]
    if line.kind == "critical":
        worth += UNSOLVED if signal("error", line.text) else DATED if signal("deadline", line.text) else 0.0
    worth += USERS_WORD * (_authority(line) == PERSON_AUTHORITY)
    worth += FACT * signal("fact", line.text) + DOUBT_WEIGHT * (signal("hedge", line.text) or line.text.endswith("?"))
    ageless = line.kind in _RULINGS or worth < FACT + WEIGHTS["critical"]
    return worth if ageless else worth + RECENCY_WEIGHT * 0.5 ** (age / HALVED_AFTER)


def _rarity(terms: frozenset[str], held: Counter[str], lines: int) -> float:
    """How rare the terms are in the session, from 0 to 1; 0 for a sentence without content terms."""
    if not terms:
        return 0.0
    spread = math.log(lines + 1)
    return sum(1 - math.log(held[term]) / spread for term in terms) / (len(terms) + 2)
