"""Which lines of a summary still stand, and what each is worth: pure rules over extracts."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

from engram.gates.comparison import relation
from engram.sessions.summary_parts import Line, content_terms, signal

__all__ = ["is_durable", "settled", "weights", "with_goal"]

WEIGHTS = {"goal": 4.0, "constraints": 6.0, "decisions": 6.0, "next": 5.0, "progress": 3.5, "critical": 1.0}
"""What a line is worth by what it tells."""
OPENING, STATED_GOAL = 12.0, 7.0
"""The goal a session opened with, and one that is called a goal."""
USERS_WORD = 1.0
"""What a person says counts for more than what an agent says."""
UNSOLVED, DATED, FACT = 3.5, 3.0, 1.0
"""On top of mere context: an error, a deadline, a path or a number."""
DOUBT = -1.5
RECENT, HALVED_AFTER = 1.5, 20
"""What happened last is worth this more, half of it so many events later. What was ruled does not age, nor does chatter."""
REPEATED, CLOSED, SOLVED = 0.8, 0.6, 0.5
"""Shared terms over all, over those of the open step, over those of the error, from where a later line replaces it."""

PERSON = 2
"""The authority of a person's words; an agent's have 1, a tool's output none. Nothing overrules what has more."""
_DURABLE = frozenset(("goal", "constraints", "decisions", "next"))
_RULINGS = frozenset(("constraints", "decisions"))
_OUTPUTS = frozenset(("tool", "tool_result", "error"))
_INSTEAD = re.compile(
    r"\b(?:instead of|rather than|no longer(?: using| use)?|drop(?:ping)?|replac(?:e|ing)|not)\s+((?:[\w.+#/-]+\s*){1,3})",
    re.IGNORECASE,
)
_DENIAL = re.compile(r"\b(?:not|never|no longer|avoid|without|forbidden)\b|n't\b", re.IGNORECASE)


def is_durable(line: Line) -> bool:
    """Whether losing the line would lose something that still holds, not only something that happened."""
    return line.kind in _DURABLE or signal("deadline", line.text)


def with_goal(lines: Sequence[Line]) -> tuple[list[Line], frozenset[Line]]:
    """The lines, those that open the session as its goal, and which they are.

    A user's first words that say anything are the goal, whatever their form. The number 0 marks a line that came from a
    model's summary: its goal is older than any event at hand.
    """
    goals = [line for line in lines if line.seq == 0 and line.kind == "goal"]
    if not goals:
        asked = [line for line in lines if _authority(line) == PERSON and line.seq]
        opening = [line for line in asked if line.seq == asked[0].seq]
        goals = [line for line in opening if line.kind == "goal"] or opening[:1]
    chosen = {id(line) for line in goals}
    marked = [replace(line, kind="goal") if id(line) in chosen else line for line in lines]
    return marked, frozenset(line for line, old in zip(marked, lines, strict=True) if id(old) in chosen)


def settled(lines: Sequence[Line], kept: frozenset[Line]) -> list[Line]:
    """Lines in order, without those that another repeats, a later one contradicts, or later work closes.

    A run of tests that passes closes the failures of every run before it. Lines in `kept` stay. Looked up by shared terms,
    so that a session of thousands of lines costs no square of them.
    """
    terms = [content_terms(line.text) for line in lines]
    later: defaultdict[str, list[int]] = defaultdict(list)
    gone: set[int] = set()
    runs = {line.seq for line in lines if line.speaker in _OUTPUTS and signal("tests", line.text)}
    passed = False
    for place in range(len(lines) - 1, -1, -1):
        line = lines[place]
        shared = Counter(other for term in terms[place] for other in later[term] if other not in gone)
        for other, common in shared.items():
            loser = _loser(line, lines[other], common, terms[place], terms[other])
            if loser is not None and loser not in kept:
                gone.add(place if loser is line else other)
        if passed and line.seq in runs and line.kind == "critical":
            gone.add(place)
        passed = passed or (line.seq in runs and line.kind == "progress")
        if place not in gone:
            for term in terms[place]:
                later[term].append(place)
    return [line for place, line in enumerate(lines) if place not in gone]


def _loser(old: Line, new: Line, common: int, old_terms: frozenset[str], new_terms: frozenset[str]) -> Line | None:
    """Which of two lines falls for the other, if any."""
    if old.kind == new.kind and common / len(old_terms | new_terms) >= REPEATED and not _turned(old, new):
        return new if old.kind == "goal" or _authority(old) > _authority(new) else old
    if _echoes(new, old) and common == len(new_terms):
        return new
    if new.kind in _RULINGS and old.kind in _RULINGS and _authority(new) >= _authority(old):
        contradicted = relation(old.text, new.text).relation == "opposite" or _replaces(new, old)
        return old if contradicted else None
    if new.kind != "progress":
        return None
    least = CLOSED if old.kind == "next" else SOLVED if _is_unsolved(old) else math.inf
    return old if common / len(old_terms) >= least else None


def _echoes(new: Line, old: Line) -> bool:
    """Whether the new line could be an assent: a ruling by no one greater, to the same effect."""
    return (
        old.kind in _RULINGS and new.kind in _RULINGS and _authority(new) <= _authority(old) and not _turned(old, new)
    )


def _turned(old: Line, new: Line) -> bool:
    """The same words with and without a "not" are no repetition."""
    return bool(_DENIAL.search(old.text)) != bool(_DENIAL.search(new.text))


def _authority(line: Line) -> int:
    return PERSON if line.speaker in ("user", "human") else 0 if line.speaker in _OUTPUTS else 1


def _replaces(new: Line, old: Line) -> bool:
    """Whether the new line names, behind "instead of" or "not", what the old one had chosen."""
    chosen = _INSTEAD.sub(" ", old.text)
    if _DENIAL.search(chosen):
        return False
    named = [content_terms(found[1]) for found in _INSTEAD.finditer(new.text)]
    return any(terms and terms <= content_terms(chosen) for terms in named)


def _is_unsolved(line: Line) -> bool:
    return line.kind == "critical" and signal("error", line.text)


def weights(lines: Sequence[Line], goals: frozenset[Line]) -> list[float]:
    """What each line is worth: by its kind, its speaker, its age, and how rare its words are in this session."""
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
    worth += USERS_WORD * (_authority(line) == PERSON)
    worth += FACT * signal("fact", line.text) + DOUBT * (signal("hedge", line.text) or line.text.endswith("?"))
    ageless = line.kind in _RULINGS or worth < FACT + WEIGHTS["critical"]
    return worth if ageless else worth + RECENT * 0.5 ** (age / HALVED_AFTER)


def _rarity(terms: frozenset[str], held: Counter[str], lines: int) -> float:
    """0 to 1; nothing for a sentence that is about nothing."""
    if not terms:
        return 0.0
    spread = math.log(lines + 1)
    return sum(1 - math.log(held[term]) / spread for term in terms) / (len(terms) + 2)
