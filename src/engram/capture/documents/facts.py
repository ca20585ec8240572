"""Finds the facts of a chunk by rules: sentences that oblige, define, measure or date, verbatim and with their span.

Precision before recall: a sentence without such a mark is not a fact, and code yields only what its authors wrote for readers
(the first sentence of a docstring, a comment that warns or obliges).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from engram.capture.documents.chunk import Chunk
from engram.capture.documents.read import kind_of
from engram.text.sentences import document_sentences

__all__ = ["LONGEST", "MAX_FACTS", "Anchored", "by_weight", "facts_in"]

MAX_FACTS = 6
# A sentence whose marks add up to this weight is a fact.
ENOUGH = 2
FEWEST_WORDS, LONGEST = 4, 1_000

_MONTH = r"(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*"
_PERIOD = r"(?:business |working |calendar )?(?:days?|weeks?|months?|years?|hours?|minutes?|quarters?)"
_NUMERALS = "one two three four five six seven eight nine ten twelve fifteen twenty thirty sixty ninety"
_COUNT = rf"(?:\d[\d.,]*|{_NUMERALS.replace(' ', '|')})"
_LIMIT = r"(?:within|no later than|at least|not less than|up to|for a period of|every|after)"
_DIGIT = "0"
_PERIODS = "day days week weeks month months year years hour hours minute minutes quarter quarters"
# The marks of a fact: a weight, trigger words of which one must occur ("0" is any digit), and a pattern for the sentence in
# lower case.
_MARKS: tuple[tuple[int, str, str], ...] = (
    # obligations, bans and rights
    (3, "shall must", r"\b(?:shall|must)\b"),
    (3, "agree agrees undertake undertakes", r"\b(?:undertakes?|agrees?) (?:not )?to\b"),
    (3, "required obliged warrants warrant", r"\b(?:is|are) (?:required|obliged) to\b|\bwarrants? that\b"),
    (2, "not cannot never always only", r"\b(?:(?:may|will) not|cannot|never|always|may only)\b"),
    (2, "entitled liable responsible prohibited", r"\b(?:is|are) (?:entitled to|liable|responsible for|prohibited)\b"),
    (1, "will should governed requires require", r"\b(?:will|should|is governed by|requires?)\b"),
    # definitions
    (3, "means mean meaning refers defined", r"[\"”’*]\)?\s+(?:means|shall mean|refers to|has the meaning)\b|\bis defined as\b|"
        r"\bmeans (?:the|any|an?|each|all)\b"),
    # deadlines
    (2, _PERIODS, rf"\b{_LIMIT}\s+(?:\w+\s+)?\(?{_COUNT}\)?[\s-]+(?:\(\d+\)\s*)?{_PERIOD}\b"),
    (2, "later deadline effective expires expire due commences commencing",
        r"\b(?:no later than|deadline|effective (?:date|as of)|expires? on|due (?:on|by|date)|commenc(?:es|ing) on)\b"),
    # amounts, dates, measures
    (2, _DIGIT, r"(?:[$€£¥]|\b(?:usd|eur|gbp|chf|jpy)\b)\s?\d|\d\s?(?:[$€£¥]|(?:usd|eur|gbp|chf|dollars|euros|pounds)\b)"),
    (2, _DIGIT, rf"\b\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}\s+\d{{4}}\b|\b{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+\d{{4}}\b|"
        r"\b\d{4}-\d{2}-\d{2}\b"),
    (2, _DIGIT, r"\d\s?(?:%|percent\b|per cent\b|‰)"),
    (2, _PERIODS, rf"\b{_COUNT}[\s-]+{_PERIOD}\b"),
    (2, _DIGIT, r"\b\d[\d.,]*\s?(?:ms|[kmgt]i?b|[kcm]?m|kg|g|mg|l|ml|[kmg]?hz|[kmg]?w|kwh|°c|°f|rpm|requests|users|tokens|seats|units)\b"),
)  # fmt: skip
_COMPILED = tuple((weight, frozenset(words.split()), re.compile(pattern)) for weight, words, pattern in _MARKS)
_PLAIN_WORD = re.compile(r"[a-z]+")
_HAS_DIGIT = re.compile(r"\d")
# Two capitalised words in a row inside the sentence: a name adds weight.
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][\w&.-]+ (?:of |and )?[A-Z][\w&.-]+")
_PATH = re.compile(r" > | – ")
_NUMBERING = re.compile(r"\A(?:[A-Za-z]+ )?[\dIVXLC.]+ ")
_TABLE_OR_HEADING = re.compile(r"\s*(?:\||\#{1,6}\s)|.*\|.*\|")
_FENCED = re.compile(r"^ {0,3}(```|~~~).*?(?:^ {0,3}\1[`~]*[ \t\r]*$|\Z)", re.MULTILINE | re.DOTALL)

_DOCSTRING = re.compile(
    r'(?:^|:[ \t\r]*\n)[+ \t]*[rRuU]?"""[ \t]*\n?[+ \t]*(?P<first>[^\s"][^"\n]{10,300}?[.!])(?=\s|""")'
)
_COMMENT_MARK = re.compile(r"(?<!\#)\#++|(?<![:/])//++!?|(?<!/)/\*++|(?<!-)--|(?<!;);;++|^\+?[ \t]*+\*")
_WARNING = re.compile(
    r"(?:TODO|FIXME|NOTE|WARNING|IMPORTANT|HACK|XXX|SAFETY|INVARIANT)\b"
    r"|.{0,120}?\b(?:must|never|always|shall|do not|don't|required|at most|at least)\b",
    re.IGNORECASE,
)
# Comment marks tried per line: a `#` in a string may come before the comment.
_MOST_MARKS = 3


@dataclass(frozen=True, slots=True)
class Anchored:
    """A statement and its span: `text[start:end]` with its whitespace collapsed is the statement."""

    statement: str
    start: int
    end: int


def facts_in(text: str, chunk: Chunk, max_facts: int = MAX_FACTS, *, kind: str = "") -> list[Anchored]:
    """The weightiest facts of a chunk, at most `max_facts`, in the order of the text.

    `kind` is the document's kind; by default it is guessed from the chunk.
    """
    best = by_weight(text, chunk, kind=kind)[: max(max_facts, 0)]
    return sorted(best, key=lambda fact: fact.start)


def by_weight(text: str, chunk: Chunk, *, kind: str = "") -> list[Anchored]:
    """Every fact of a chunk, the weightiest first."""
    kind = kind or kind_of(text[chunk.start : chunk.end])
    found = _facts_in_code(text, chunk, kind) if kind in ("code", "diff") else _facts_in_prose(text, chunk)
    return [fact for _, fact in sorted(found, key=lambda weighed: (-weighed[0], weighed[1].start))]


def _facts_in_prose(text: str, chunk: Chunk) -> Iterator[tuple[int, Anchored]]:
    seen: set[str] = set()
    titles = {_NUMBERING.sub("", title) for title in _PATH.split(chunk.heading)}
    for start, end in _prose(text, chunk):
        for found, last in document_sentences(text, start, end):
            first = _after_title(text, found, last, titles)
            statement = " ".join(text[first:last].split())
            weight = _weight(statement)
            if weight >= ENOUGH and statement not in seen:
                seen.add(statement)
                yield weight, Anchored(statement, first, last)


def _after_title(text: str, start: int, end: int, titles: set[str]) -> int:
    """The start of the sentence after the section's own title, which plain text does not set apart."""
    line = text[start:end].split("\n", 1)[0]
    if len(line) == end - start or line.strip() not in titles:
        return start
    rest = text[start + len(line) : end]
    return end - len(rest.lstrip())


def _prose(text: str, chunk: Chunk) -> Iterator[tuple[int, int]]:
    """The spans of the chunk outside fenced code."""
    at = chunk.start
    for fence in _FENCED.finditer(text, chunk.start, chunk.end):
        yield at, fence.start()
        at = fence.end()
    yield at, chunk.end


def _weight(statement: str) -> int:
    if len(statement) > LONGEST or len(statement.split()) < FEWEST_WORDS or statement.endswith("?"):
        return 0
    if _TABLE_OR_HEADING.match(statement) or statement.upper() == statement or statement.endswith(":"):
        return 0
    lowered = statement.lower()
    words = set(_PLAIN_WORD.findall(lowered))
    if _HAS_DIGIT.search(lowered):
        words.add(_DIGIT)
    weight = sum(
        weight for weight, triggers, pattern in _COMPILED if not words.isdisjoint(triggers) and pattern.search(lowered)
    )
    return weight + 1 if weight and _NAME.search(statement) else weight


def _facts_in_code(text: str, chunk: Chunk, kind: str) -> Iterator[tuple[int, Anchored]]:
    """What code says to its readers; in a diff, only added lines."""
    docstrings = (found.span("first") for found in _DOCSTRING.finditer(text, chunk.start, chunk.end))
    for weight, spans in ((2, docstrings), (1, _comments(text, chunk))):
        for start, end in spans:
            line = text.rfind("\n", 0, start) + 1
            statement = " ".join(text[start:end].split())
            if len(statement.split()) >= FEWEST_WORDS and (kind == "code" or text.startswith("+", line)):
                yield weight, Anchored(statement, start, end)


def _comments(text: str, chunk: Chunk) -> Iterator[tuple[int, int]]:
    """The spans of comments that warn or oblige. Linear: each line is matched a fixed number of times."""
    at = chunk.start
    for line in text[chunk.start : chunk.end].split("\n"):
        if len(line) <= LONGEST and (found := _comment(line)):
            yield at + found[0], at + found[1]
        at += len(line) + 1


def _comment(line: str) -> tuple[int, int] | None:
    for mark in islice(_COMMENT_MARK.finditer(line), _MOST_MARKS):
        start = len(line) - len(line[mark.end() :].lstrip(" \t"))
        if _WARNING.match(line, start):
            return start, len(line.rstrip(" \t\r").removesuffix("*/").rstrip(" \t"))
    return None
