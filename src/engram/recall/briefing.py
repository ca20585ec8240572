"""A briefing before a task: the task as two or three questions, phrased as tasks, answered together without repetitions."""

import re
from functools import lru_cache
from pathlib import Path

from engram.model.lazy import dataclass
from engram.recall.context import RecalledContext
from engram.text.sentences import split_sentences
from engram.text.tokens import query_terms

MOST_QUERIES = 3
LONGEST_QUERY = 24
"""Words of one question."""
_JOINT = re.compile(r"[;\n]+|,?\s+(?:and|then|und|et)\s+(?=[a-z]+\b)|,\s+(?=[a-z]+\b)", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+(?:[-'’./_][^\W_]+)*")


@dataclass(frozen=True, slots=True)
class Briefing:
    """What to know before a task."""

    task: str
    queries: tuple[str, ...]
    """The questions it was split into."""
    context: RecalledContext
    text: str
    """Ready to print or to put into a prompt, within the budget."""


def queries_of(task: str) -> tuple[str, ...]:
    """The questions to ask before a task: the task itself, then its activities, or its activity and its domain."""
    clauses = [clause for sentence in split_sentences(task) for clause in _clauses(sentence)]
    whole = _bounded(" ".join(map(_as_task, clauses[:2])) if len(clauses) > 1 else _as_task(task))
    parts = [_as_task(clause) for clause in clauses] if len(clauses) > 1 else _activity_and_domain(whole)
    found: list[str] = []
    terms: list[set[str]] = []
    for query in (whole, *map(_bounded, parts)):
        own = set(query_terms(query))
        if own and own not in terms:
            found.append(query)
            terms.append(own)
    return tuple(found[:MOST_QUERIES])


def _clauses(sentence: str) -> list[str]:
    """The parts of a sentence that each ask for something to be done: cut where a verb follows."""
    parts: list[str] = []
    start = 0
    for joint in _JOINT.finditer(sentence):
        following = _WORD.match(sentence, joint.end())
        if "\n" in joint[0] or ";" in joint[0] or (following and following[0].lower() in _words("activities")):
            parts.append(sentence[start : joint.start()])
            start = joint.end()
    parts.append(sentence[start:])
    return [part.strip() for part in parts if query_terms(part)]


def _as_task(text: str) -> str:
    """A request as the task it is about: without politeness and fear, beginning with what is done."""
    plain = " ".join(text.split()).strip(" .!?:,;-*#")
    changed = True
    while changed:
        changed = False
        for phrase in _phrases("opening"):
            if plain.lower().startswith(f"{phrase} "):
                plain, changed = plain[len(phrase) :].strip(" ,:"), True
    first, _, rest = plain.partition(" ")
    return f"{_gerund(first.lower())} {rest}".strip() if first.lower() in _words("activities") else plain


def _activity_and_domain(task: str) -> list[str]:
    """The two halves of a task: what is done, and what it is done to or in."""
    words = task.split()
    place = next((at for at, word in enumerate(words) if at > 1 and word.lower() in _words("prepositions")), 0)
    if not place:
        return []
    return [" ".join(words[:place]), f"working on {' '.join(words[place + 1 :])}" if words[place + 1 :] else ""]


def _gerund(verb: str) -> str:
    if verb.endswith("ie"):
        return f"{verb[:-2]}ying"
    if verb.endswith("e") and not verb.endswith(("ee", "oe", "ye")):
        return f"{verb[:-1]}ing"
    if verb in _words("doubling"):
        return f"{verb}{verb[-1]}ing"
    return f"{verb}ing"


def _bounded(text: str) -> str:
    return " ".join(text.split()[:LONGEST_QUERY])


@lru_cache(maxsize=1)
def _tables() -> dict[str, tuple[str, ...]]:
    tables: dict[str, tuple[str, ...]] = {}
    for line in Path(__file__).with_name("tasks.txt").read_text("utf-8").splitlines():
        name, _, listed = line.partition(":")
        if listed and not line.startswith("#"):
            tables[name] = (*tables.get(name, ()), *(one.strip() for one in listed.split(",") if one.strip()))
    return tables


@lru_cache(maxsize=8)
def _words(name: str) -> frozenset[str]:
    return frozenset(_tables()[name])


def _phrases(name: str) -> tuple[str, ...]:
    """The phrases of a table, longest first."""
    return tuple(sorted(_tables()[name], key=len, reverse=True))
