"""Answer types: which kinds of value a question asks for (money, a time, a person), and which kinds a passage states.

"What is Halcyon's fax number?" shares its name with every statement about Halcyon, but only one with a number can answer it. The types are evidence
for the trees of `relevance`, which learn what a missing value says.
"""

from collections.abc import Collection
from functools import cache, lru_cache
from typing import NamedTuple

from engram.model.lazy import lazy_pattern
from engram.text.tokens import query_terms, tokens
from engram.text.word_tables import word_class

__all__ = ["TYPES", "find_asked_types", "find_head_terms", "measure_stated_types"]

TYPES = ("money", "count", "measure", "time", "place", "person", "reason", "contact", "name", "colour")
_STATED = ("money", "measure", "time", "place", "person", "reason", "contact", "colour")
PARTIAL_TYPE_MATCH = 0.5
"""What a value counts that may be of the type asked for: a number without its unit."""
MAX_CACHED_PASSAGES = 2_048
"""Passages of which a process keeps what they state, some 3 MB."""
_CONTACT_DIGITS = 5
"""Digits of a number from which it is more likely a telephone number, a code or an account than an amount."""
_WORD = lazy_pattern(r"[^\W_]+")
_HEAD = lazy_pattern(
    r"\w['’]s\s+(\w+(?:\s+\w+)?)"
    r"|\b(?:what|which)\s+((?!is\b|are\b|was\b|were\b|do\b|does\b|did\b|has\b|can\b|should\b)\w+)"
    r"|\b(?:the|of) (\w+) of\b|^(\w+(?: \w+)?) (?:of|for|at|on) ",
)
"""What is asked for: the noun after an owner ("Ada's age"), after "what" or "which", or before "of"."""


@lru_cache(maxsize=256)
def find_asked_types(question: str) -> tuple[bool, ...]:
    """Whether a question asks for a value of each type."""
    text = f" {' '.join(_WORD.findall(question.lower()))} "
    return tuple(any(phrase in text for phrase in _asking(name)) for name in TYPES)


@lru_cache(maxsize=256)
def find_head_terms(question: str) -> frozenset[str]:
    """The index terms of what a question asks for, without its owner."""
    found = [part for match in _HEAD.finditer(question.lower()) for part in match.groups() if part]
    return frozenset(term for part in found for term in query_terms(part))


class _Stated(NamedTuple):
    """What a passage states, whatever the question is."""

    kinds: int
    """The types of its words, a bit for each, without those of its numbers."""
    numbers: dict[str, int]
    """The types of each of its numbers."""
    names: frozenset[str]


def measure_stated_types(statement: Collection[str], about: Collection[str], asked: frozenset[str]) -> list[float]:
    """How far a passage states a value of each type that the question does not contain, from 0 to 1; then how many names and numbers it adds.

    `statement` and `about` are the index terms of the passage and of its entities, `asked` those of the question.
    """
    stated = _read_stated(frozenset(statement), frozenset(about))
    kinds, numbers, names = stated.kinds, 0, len(stated.names - asked)
    for term, kind in stated.numbers.items():
        if term not in asked:
            kinds |= kind
            numbers += 1
    number = float(numbers > 0)
    has = {name: float(kinds >> place & 1) for place, name in enumerate(_STATED)}
    return [
        number * max(has["money"], PARTIAL_TYPE_MATCH),
        number,
        max(number * PARTIAL_TYPE_MATCH, has["measure"] * (number or PARTIAL_TYPE_MATCH)),
        has["time"],
        has["place"],
        1.0 if names else has["person"] * PARTIAL_TYPE_MATCH,
        has["reason"],
        max(has["contact"], number * PARTIAL_TYPE_MATCH),
        float(names > 0),
        has["colour"],
        float(names),
        float(numbers),
    ]


@lru_cache(maxsize=MAX_CACHED_PASSAGES)
def _read_stated(statement: frozenset[str], about: frozenset[str]) -> _Stated:
    """What a passage states; every wording of a question asks for it again."""
    kinds, numbers = 0, dict[str, int]()
    for term in statement:
        kind = _kinds(term)
        if kind & _NUMBER:
            numbers[term] = kind
        else:
            kinds |= kind
    return _Stated(kinds, numbers, frozenset(term for term in about & statement if not _kinds(term) & _NUMBER))


@cache
def _asking(name: str) -> tuple[str, ...]:
    return tuple(f" {phrase.replace('_', ' ')} " for phrase in sorted(word_class("answertypes", f"{name}_asked")))


_NUMBER = 1 << len(_STATED)


@lru_cache(maxsize=20_000)
def _kinds(term: str) -> int:
    """The types that an index term states, a bit for each, and whether it is a number."""
    found = _type_bits().get(term, 0)
    digits = sum(map(str.isdigit, term))
    if digits:
        found |= _NUMBER
        if digits >= _CONTACT_DIGITS:
            found |= 1 << _STATED.index("contact")
    return found


@cache
def _type_bits() -> dict[str, int]:
    kinds: dict[str, int] = {}
    for place, name in enumerate(_STATED):
        for word in word_class("answertypes", f"{name}_stated"):
            for term in tokens(word):
                kinds[term] = kinds.get(term, 0) | 1 << place
    for word in _number_words():
        kinds[word] = kinds.get(word, 0) | _NUMBER
    return kinds


@cache
def _number_words() -> frozenset[str]:
    words = (
        "two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty fifty hundred thousand"
    )
    return frozenset(tokens(f"one {words} half quarter third twice once dozen double both couple several"))
