"""The extraction rules, from the TOML tables in this folder: a pattern, the type and confidence of the fact, its rendering.

A pattern must match the whole clause without greetings and asides. The first rule that matches decides.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from engram.capture.extraction.clauses import (
    OVER,
    PASSING,
    POINTING,
    about_the_user,
    in_third_person,
    of_the_user,
    swapped,
    swapped_after,
)
from engram.gates.tables import phrases

TABLES = ("changes", "sayings", "limits", "tastes", "things")
"""The tables, in the order their rules are tried."""

EXPLICIT = 0.95
"""The speaker asked explicitly to remember it."""
CLEAR = 0.85
PLAIN = 0.7
"""DESIGN §10: implied from .70 on."""

_CONFIDENCE = {"explicit": EXPLICIT, "clear": CLEAR, "plain": PLAIN}
# A change may name its moment, which is past; its result is still true.
_DESPITE = {"": frozenset[str](), "changed": frozenset((PASSING, OVER)), "pointing": frozenset((POINTING,))}
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
    return tuple(rule for name in TABLES for rule in _rules_of(_table(name), shared))


def _rules_of(table: Mapping[str, Any], shared: Mapping[str, str]) -> list[Rule]:
    parts = _spelled_out(table["parts"], shared)
    return [_rule(row, parts) for row in table["rules"]]


def _rule(row: Mapping[str, str], parts: Mapping[str, str]) -> Rule:
    return Rule(
        row["name"],
        re.compile(rf"(?:{_filled(row['pattern'], parts)})\Z", re.IGNORECASE),
        row["type"],
        _CONFIDENCE[row.get("confidence", "clear")],
        RENDERINGS[row["render"]],
        row.get("role", "user"),
        _DESPITE[row.get("despite", "")],
    )


def _spelled_out(given: Mapping[str, str], known: Mapping[str, str]) -> dict[str, str]:
    """The known parts and the given ones; each may refer to those before it."""
    parts = dict(known)
    for name, text in given.items():
        parts[name] = _filled(text, parts)
    return parts


def _filled(text: str, parts: Mapping[str, str]) -> str:
    return _PART.sub(lambda part: parts[part[1]], text)


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / f"{name}.toml").read_text("utf-8"))


def _verbs() -> str:
    """The verbs that may start a command, as alternatives of a pattern."""
    return "|".join(sorted(phrases("imperatives.txt", "imperative").words - _NO_COMMANDS))


# -- renderings

_MEETING = re.compile(r"(?:stand-?up|retro|daily|sync|scrum|all-hands)\b", re.IGNORECASE)
_STATES = ("married", "divorced", "engaged")


def as_said(found: re.Match[str]) -> str:
    """The clause as it was said, in the third person."""
    return about_the_user(found[0])


def the_user(found: re.Match[str]) -> str:
    """ "I prefer X" → "The user prefers X"."""
    groups = found.groupdict()
    rendered = of_the_user(groups["verb"], groups["rest"] or "", groups.get("adv") or "")
    context = swapped(groups.get("ctx") or "").rstrip(" ,")
    return f"{context}, the{rendered[3:]}" if context else rendered


def the_user_is(found: re.Match[str]) -> str:
    """ "I'm X" → "The user is X"."""
    return f"The user is {(found['neg'] or '').lower()}{swapped(found['rest'])}"


def of_the_users(found: re.Match[str]) -> str:
    """ "My X" → "The user's X"."""
    return f"The user's {swapped(found['rest'])}"


def the_user_would(found: re.Match[str]) -> str:
    """ "I'd rather X" → "The user would rather X"."""
    return f"The user would {found['verb'].lower()} {swapped(found['rest'])}"


def no_longer(found: re.Match[str]) -> str:
    """ "I no longer use X" → "The user no longer uses X"."""
    return of_the_user(found["verb"], found["rest"], "no longer")


def command(found: re.Match[str]) -> str:
    """What is to be done, as a command."""
    return about_the_user(found["rest"])


def decided(found: re.Match[str]) -> str:
    """What was decided."""
    return f"Decided: {swapped(found['rest'])}"


def decided_use(found: re.Match[str]) -> str:
    """What was chosen."""
    return f"Decided: use {swapped(found['rest'])}"


def decided_not(found: re.Match[str]) -> str:
    """What is not to be done."""
    return f"Decided: do not {swapped(found['rest'])}"


def decided_against(found: re.Match[str]) -> str:
    """What was not chosen."""
    return f"Decided: do not use {swapped(found['rest']).removeprefix('using ')}"


def called(found: re.Match[str]) -> str:
    """What the user wants to be called."""
    return f"The user wants to be called {found['rest']}"


def whose(found: re.Match[str]) -> str:
    """ "My budget is …" → "The user's budget is …"."""
    clause = found[0]
    return f"The user's {swapped(clause[3:])}" if clause[:3].lower() == "my " else clause


def born(found: re.Match[str]) -> str:
    """When or where the user was born."""
    return f"The user was born {swapped(found['rest'])}"


def without_time(found: re.Match[str]) -> str:
    """The clause in the third person, without the time of the change, which is stored as a date."""
    end = found.start("ago") - found.start() if found.groupdict().get("ago") else len(found[0])
    return in_third_person(found[0][:end])


def lives(found: re.Match[str]) -> str:
    """Where the user lives since they moved."""
    return f"The user lives in {found['place']}"


def works(found: re.Match[str]) -> str:
    """Where the user works since they joined."""
    role = f" as {swapped(found['role'])}" if found["role"] else ""
    return f"The user works at {found['place']}{role}"


def switched(found: re.Match[str]) -> str:
    """What was switched to, and from what."""
    thing = f" {swapped(found['thing'])}" if found["thing"] else ""
    old = f" from {found['old']}" if found["old"] else ""
    return f"{_who(found)} switched{thing}{old} to {found['new']}"


def replaced(found: re.Match[str]) -> str:
    """What replaced what."""
    return f"{_who(found)} replaced {found['old']} with {found['new']}"


def _who(found: re.Match[str]) -> str:
    return "The user" if found["who"].lower() == "i" else str(found["who"]).capitalize()


def changed(found: re.Match[str]) -> str:
    """What the user became, left, bought or took up."""
    verb = found["verb"].lower()
    return f"The user {'gave up' if verb == 'given up' else verb} {swapped(found['rest'])}"


def not_any_more(found: re.Match[str]) -> str:
    """ "I don't use X any more" → "The user no longer uses X"."""
    if found["we"]:
        return f"We no longer {found['verb'].lower()} {swapped(found['rest'])}"
    return no_longer(found)


def we_stopped(found: re.Match[str]) -> str:
    """What a team gave up."""
    return f"We stopped {swapped(found['rest'])}"


def was_moved(found: re.Match[str]) -> str:
    """ "We moved the demo to Friday" → "The demo was moved to Friday"."""
    return f"{about_the_user(found['what'])} was moved to {swapped(found['rest'])}"


def was_made(found: re.Match[str]) -> str:
    """ "I got promoted" → "The user was promoted"; for a state, "is"."""
    return f"The user {'is' if found['rest'].lower() in _STATES else 'was'} {swapped(found['rest'])}"


def still_not(found: re.Match[str]) -> str:
    """ "I'm no longer X" → "The user is no longer X"."""
    return f"The user is {swapped(found['rest'])}"


def for_the_user(found: re.Match[str]) -> str:
    """ "Mornings work for me" → "Mornings work for the user"."""
    return f"{swapped(found['what'])} {found['verb'].lower()} for the user{swapped_after(found['rest'])}"


def does_to_the_user(found: re.Match[str]) -> str:
    """ "Noise drives me crazy" → "Noise drives the user crazy"."""
    return f"{swapped(found['what'])} {found['verb'].lower()} the user{swapped_after(found['rest'])}"


def my_favourite(found: re.Match[str]) -> str:
    """ "Tea is my favourite" → "Tea is the user's favourite"."""
    return f"{swapped(found['what'])} {found['verb'].lower()} the user's {swapped(found['rest'])}"


def it_is(found: re.Match[str]) -> str:
    """What a correction says it is."""
    return f"It is {swapped(found['rest'])}"


def meant(found: re.Match[str]) -> str:
    """What the user meant."""
    return f"The user meant {swapped(found['rest'])}"


def the_meeting(found: re.Match[str]) -> str:
    """The clause in the third person, with an article before the name of a meeting."""
    clause = without_time(found)
    return f"The {clause[0].lower()}{clause[1:]}" if _MEETING.match(clause) else clause


RENDERINGS: dict[str, Rendering] = {
    rendering.__name__: rendering
    for rendering in (
        as_said, without_time, born, called, changed, command, decided, decided_against, decided_not, decided_use, does_to_the_user,
        for_the_user, it_is, lives, meant, my_favourite, no_longer, not_any_more, of_the_users, replaced, still_not, switched,
        the_meeting, the_user, the_user_is, the_user_would, was_made, was_moved, we_stopped, whose,
        works,
    )
}  # fmt: skip
"""The renderings by the name used in the tables."""
