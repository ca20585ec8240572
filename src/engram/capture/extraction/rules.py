"""The extraction rules, from the TOML tables in this folder, and how they phrase the most common statements.
A rule's pattern must match a whole clause without greetings and asides; the first rule that matches decides.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from engram.capture.extraction.clauses import (
    ENDED,
    MOMENTARY,
    QUESTION,
    QUOTATION,
    UNCLEAR_REFERENCE,
    Clause,
    doubts_about,
    has_unclear_reference,
    in_third_person,
    is_question,
    replace_speaker,
    sentence,
    strip_asides,
    swap_pronouns,
    swap_pronouns_in_tail,
    user_clause,
)
from engram.capture.extraction.statement import plan, resolve_relative_day
from engram.gates.tables import phrases
from engram.model.lazy import dataclass
from engram.text.time.windows import time_phrase

TABLES = ("changes", "sayings", "limits", "tastes", "things")
"""The tables, in the order their rules are tried."""

EXPLICIT_CONFIDENCE = 0.95
"""The confidence of a fact that the speaker explicitly asked to remember."""
CLEAR_CONFIDENCE = 0.85
PLAIN_CONFIDENCE = 0.7
"""The confidence of an implied fact (DESIGN §10: from .70 on)."""

_CONFIDENCE = {"explicit": EXPLICIT_CONFIDENCE, "clear": CLEAR_CONFIDENCE, "plain": PLAIN_CONFIDENCE}
# A change may name its moment, which is past; its result is still true.
_DESPITE = {"": frozenset[str](), "changed": frozenset((MOMENTARY, ENDED)), "pointing": frozenset((UNCLEAR_REFERENCE,))}
_PART = re.compile(r"\{\{(\w+)\}\}")
# These precede a command without being one.
_NO_COMMANDS = frozenset(("mind", "never", "always", "do", "don't"))

Rendering = Callable[[re.Match[str]], str]


@dataclass(frozen=True, slots=True)
class Rule:
    """One way to phrase a lasting fact."""

    name: str
    pattern: re.Pattern[str]
    type: str
    """ "fact" if the policy may choose a more specific type."""
    confidence: float
    render: Rendering
    role: str = "user"
    """The role whose turns it applies to; "any" for both."""
    despite: frozenset[str] = frozenset()
    """The doubts it ignores."""


@lru_cache(maxsize=1)
def rules() -> tuple[Rule, ...]:
    """Every rule in the order they are tried, compiled on first use."""
    shared = _spelled_out(_table("parts"), {"verbs": _verbs()})
    found = []
    for table in map(_table, TABLES):
        parts = _spelled_out(table["parts"], shared)
        found += [_rule(row, parts) for row in table["rules"]]
    return tuple(found)


def _rule(row: Mapping[str, str], parts: Mapping[str, str]) -> Rule:
    return Rule(
        row["name"],
        re.compile(rf"(?:{_fill_parts(row['pattern'], parts)})\Z", re.IGNORECASE),
        row["type"],
        _CONFIDENCE[row.get("confidence", "clear")],
        rendering(row["render"]),
        row.get("role", "user"),
        _DESPITE[row.get("despite", "")],
    )


def _spelled_out(given: Mapping[str, str], known: Mapping[str, str]) -> dict[str, str]:
    """The known parts and the given ones; each may refer to those before it."""
    parts = dict(known)
    for name, text in given.items():
        parts[name] = _fill_parts(text, parts)
    return parts


def _fill_parts(text: str, parts: Mapping[str, str]) -> str:
    return _PART.sub(lambda part: parts[part[1]], text)


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / f"{name}.toml").read_text("utf-8"))


def _verbs() -> str:
    """The verbs that may start a command, as alternatives of a pattern."""
    return "|".join(sorted(phrases("imperatives.txt", "imperative").words - _NO_COMMANDS))


# -- renderings

_MEETING = re.compile(r"(?:stand-?up|retro|daily|sync|scrum|all-hands)\b", re.IGNORECASE)
_GROUP = re.compile(r"\{(\w+)\}")
_STATES = ("married", "divorced", "engaged")


def as_said(found: re.Match[str]) -> str:
    """The original clause, in the third person."""
    return replace_speaker(found[0])


def the_user(found: re.Match[str]) -> str:
    """ "I prefer X" → "The user prefers X"."""
    groups = found.groupdict()
    rendered = user_clause(groups["verb"], groups["rest"] or "", groups.get("adv") or "")
    context = swap_pronouns(groups.get("ctx") or "").rstrip(" ,")
    return f"{context}, the{rendered[3:]}" if context else rendered


def no_longer(found: re.Match[str]) -> str:
    """ "I no longer use X" → "The user no longer uses X"."""
    return user_clause(found["verb"], found["rest"], "no longer")


def command(found: re.Match[str]) -> str:
    """The instruction, as a command."""
    return replace_speaker(found["rest"])


def decided_against(found: re.Match[str]) -> str:
    """The rejected option."""
    return f"Decided: do not use {swap_pronouns(found['rest']).removeprefix('using ')}"


def whose(found: re.Match[str]) -> str:
    """ "My budget is …" → "The user's budget is …"."""
    clause = found[0]
    return f"The user's {swap_pronouns(clause[3:])}" if clause[:3].lower() == "my " else clause


def without_time(found: re.Match[str]) -> str:
    """The clause in the third person, without the time of the change, which is stored as a date."""
    end = found.start("ago") - found.start() if found.groupdict().get("ago") else len(found[0])
    return in_third_person(found[0][:end])


def works(found: re.Match[str]) -> str:
    """Where the user works since they joined."""
    role = f" as {swap_pronouns(found['role'])}" if found["role"] else ""
    return f"The user works at {found['place']}{role}"


def switched(found: re.Match[str]) -> str:
    """The new and the old choice of a switch."""
    thing = f" {swap_pronouns(found['thing'])}" if found["thing"] else ""
    old = f" from {found['old']}" if found["old"] else ""
    return f"{_who(found)} switched{thing}{old} to {found['new']}"


def replaced(found: re.Match[str]) -> str:
    """The replacement and the replaced thing."""
    return f"{_who(found)} replaced {found['old']} with {found['new']}"


def _who(found: re.Match[str]) -> str:
    return "The user" if found["who"].lower() == "i" else str(found["who"]).capitalize()


def changed(found: re.Match[str]) -> str:
    """The user's change: something they became, left, bought or took up."""
    verb = found["verb"].lower()
    return f"The user {'gave up' if verb == 'given up' else verb} {swap_pronouns(found['rest'])}"


def not_any_more(found: re.Match[str]) -> str:
    """ "I don't use X any more" → "The user no longer uses X"."""
    if found["we"]:
        return f"We no longer {found['verb'].lower()} {swap_pronouns(found['rest'])}"
    return no_longer(found)


def was_moved(found: re.Match[str]) -> str:
    """ "We moved the demo to Friday" → "The demo was moved to Friday"."""
    return f"{replace_speaker(found['what'])} was moved to {swap_pronouns(found['rest'])}"


def was_made(found: re.Match[str]) -> str:
    """ "I got promoted" → "The user was promoted"; for a state, "is"."""
    return f"The user {'is' if found['rest'].lower() in _STATES else 'was'} {swap_pronouns(found['rest'])}"


def the_meeting(found: re.Match[str]) -> str:
    """The clause in the third person, with an article before the name of a meeting."""
    clause = without_time(found)
    return f"The {clause[0].lower()}{clause[1:]}" if _MEETING.match(clause) else clause


RENDERINGS: dict[str, Rendering] = {
    rendering.__name__: rendering
    for rendering in (
        as_said, without_time, changed, command, decided_against, no_longer, not_any_more, replaced, switched, the_meeting,
        the_user, was_made, was_moved, whose, works,
    )
}  # fmt: skip
"""The renderings by the name used in the tables; any other rendering there is a template such as "Decided: {rest}"."""


def rendering(name: str) -> Rendering:
    """The function for a rule's `render`."""
    return RENDERINGS.get(name) or partial(_from_template, name)


def _from_template(template: str, found: re.Match[str]) -> str:
    return _GROUP.sub(lambda group: _group(group[1], found[group[1]] or ""), template)


def _group(name: str, text: str) -> str:
    return text.lower() if name in ("verb", "neg") else swap_pronouns_in_tail(text)


MIN_CLAUSE_WORDS = 2
MAX_TAG_WORDS = 2
"""Words after a comma that still form a tag question: "right?", "isn't it?"."""
SECOND_HAND_FACTOR = 0.6
"""The factor on the confidence of an assistant's statement about the user."""
YOU = re.compile(r"^(?:you're|you are|your|you)\b", re.IGNORECASE)
AS_I = {"you're": "i'm", "you are": "i am", "your": "my", "you": "i"}
_INSTEAD = re.compile(
    r"^(?:no|nope|actually|wrong|correction|sorry)[,:;!. —–-]+(?=(?:i|i'm|i've|my|we|we're|our)\b)", re.IGNORECASE
)
# The following text is another remark, unless it continues the first.
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
    if len(rest.split()) > MAX_TAG_WORDS and not _TAG.match(rest) and not is_question(first):
        doubts -= {QUESTION}
    fact = _match_plan_or_rule(first, doubts, at)
    if fact is None and _OWN.match(rest) and not _LEANING.match(first):
        return _match_plan_or_rule(rest, doubts_about(rest, clause.sentence), at)
    return fact


def _ends_as_question(clause: Clause) -> bool:
    return clause.sentence.rstrip("\"')” ").endswith(("?", "？")) and not is_question(clause.text)


def _match_request(text: str, at: datetime) -> RuleFact | None:
    """The content of a request to remember: as a rule renders it, else in the speaker's own words."""
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
    """An assistant's statement about the work or the user; its confidence is lower because it is second-hand."""
    text, _ = strip_asides(clause.text)
    doubts = doubts_about(text, clause.sentence)
    fact = _match_own_rules(text, "any", doubts, at)
    if fact is None and YOU.match(text):
        fact = _match_own_rules(YOU.sub(lambda you: AS_I[you[0].lower()], text), "user", doubts, at)
        if fact is None or not fact.statement.startswith("The user"):
            return None
    if fact is None:
        return None
    confidence = round(fact.confidence * SECOND_HAND_FACTOR, 2)
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
