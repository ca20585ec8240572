"""A briefing before a task: two or three questions about its parts, answered together without repetition."""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from engram.model.lazy import dataclass
from engram.recall.context import RecalledContext
from engram.text.tokens import query_terms, split_sentences
from engram.text.words import read_table

MOST_QUERIES = 3
MAX_QUERY_WORDS = 24
"""The maximum number of words in one question."""
_AND = r"(?:and then|and|then|und|et)\s++(?=[a-z]++\b)"
_JOINT = re.compile(rf"[;\n][;\s]*+(?:{_AND})?|(?:,|(?<!\s))\s++{_AND}|,\s++(?=[a-z]++\b)", re.IGNORECASE)
_BASE_FORM = re.compile(r"[a-z][a-z-]*(?<!ing)(?<![^s]s)")
MAX_TASK_CHARS = 10_000
"""The maximum number of characters of a task that are read."""
_MAX_VERB_CHARS = 100
"""The characters after a joint that are checked for a verb."""
_SHORT_VOWEL = re.compile(r"[^aeiou]*[aeiou][^aeiouwxy]")
"""A verb of one syllable that doubles its last letter before -ing."""


@dataclass(frozen=True, slots=True)
class Briefing:
    """What to know before a task."""

    task: str
    queries: tuple[str, ...]
    """The questions the task was split into."""
    context: RecalledContext
    text: str
    """The briefing as text for a terminal or a prompt, within the budget."""


def queries_of(task: str) -> tuple[str, ...]:
    """The questions to ask before a task: one for each part of it, or for an undivided task the whole, its activity and
    its domain.

    No part is left out: if there are more than `MOST_QUERIES`, neighbouring parts share a question.
    """
    task = task[:MAX_TASK_CHARS]
    clauses = [clause for sentence in split_sentences(task) for clause in _clauses(sentence)]
    if len(clauses) > 1:
        queries = [_join_clauses(group) for group in _group_clauses([_as_task(clause) for clause in clauses])]
    else:
        whole = _join_clauses([_as_task(task)])
        queries = [whole, *_activity_and_domain(whole)]
    found: dict[frozenset[str], str] = {}
    for query in queries:
        if terms := frozenset(query_terms(query)):
            found.setdefault(terms, query)
    return tuple(found.values())


def _group_clauses(clauses: list[str]) -> list[list[str]]:
    """Group consecutive clauses into at most `MOST_QUERIES` groups of about the same size."""
    groups = min(len(clauses), MOST_QUERIES)
    ends = [len(clauses) * number // groups for number in range(groups + 1)]
    return [clauses[start:end] for start, end in pairwise(ends)]


def _join_clauses(clauses: Sequence[str]) -> str:
    """Join the clauses into one question; each keeps its first words."""
    room = max(1, MAX_QUERY_WORDS // len(clauses))
    return " ".join(" ".join(clause.split()[:room]) for clause in clauses)


def _clauses(sentence: str) -> list[str]:
    """The parts of a sentence that each ask for an action, split before each verb."""
    parts: list[str] = []
    start = 0
    for joint in _JOINT.finditer(sentence):
        behind = sentence[joint.end() : joint.end() + _MAX_VERB_CHARS]
        if "\n" in joint[0] or ";" in joint[0] or _begins_activity(behind):
            parts.append(sentence[start : joint.start()])
            start = joint.end()
    parts.append(sentence[start:])
    return [part.strip() for part in parts if query_terms(part)]


def _begins_activity(text: str) -> bool:
    """Whether a text begins with a verb in the imperative: a known one, or a word before an article."""
    words = [word.lower() for word in text.split(maxsplit=2)[:2]]
    if not words or words[0] in _words("activities"):
        return bool(words)
    before_article = len(words) > 1 and words[1] in _words("articles")
    return before_article and _BASE_FORM.fullmatch(words[0]) is not None and words[0] not in _function_words()


def _as_task(text: str) -> str:
    """A request phrased as a task: without politeness or worry, beginning with the action."""
    plain = " ".join(text.split()).strip(" .!?:,;-*#")
    openings = _phrases("opening")
    while opening := _opening(plain, openings):
        plain = plain[len(opening) :].strip(" ,:")
    first, _, rest = plain.partition(" ")
    return f"{_gerund(first.lower())} {rest}".strip() if _begins_activity(plain) else plain


def _opening(text: str, openings: Sequence[str]) -> str:
    """The polite or worried phrase that a text begins with; "" if there is none."""
    lowered = text[: len(openings[0]) + 1].lower()
    return next((one for one in openings if lowered.startswith(f"{one} ")), "")


def _activity_and_domain(task: str) -> list[str]:
    """The two halves of a task: the action, and its object or place."""
    words = task.split()
    place = next((at for at, word in enumerate(words) if at > 1 and word.lower() in _words("prepositions")), 0)
    if place:
        return [" ".join(words[:place]), _domain(words[place + 1 :])]
    return [_domain(words[1:])] if words and words[0].endswith("ing") else []


def _domain(words: Sequence[str]) -> str:
    """The object of the work, phrased as a task; "" if there is none."""
    is_task = not words or (len(words) > 1 and words[0].endswith("ing"))
    return " ".join(words if is_task else ("working on", *words))


def _gerund(verb: str) -> str:
    if verb.endswith("ie"):
        return f"{verb[:-2]}ying"
    if verb.endswith("e") and not verb.endswith(("ee", "oe", "ye")):
        return f"{verb[:-1]}ing"
    if _SHORT_VOWEL.fullmatch(verb) or verb in _words("doubling"):
        return f"{verb}{verb[-1]}ing"
    return f"{verb}ing"


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


@lru_cache(maxsize=1)
def _function_words() -> frozenset[str]:
    return frozenset(
        word for name in ("stopwords.txt", "questionwords.txt") for row in read_table(name) for word in row
    )


def _phrases(name: str) -> tuple[str, ...]:
    """The phrases of a table, longest first."""
    return tuple(sorted(_tables()[name], key=len, reverse=True))
