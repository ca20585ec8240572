"""How much a pattern can cost: an upper bound on the steps of Python's matcher over a text, without running it.

The matcher tries one way after the other, and cannot be stopped. A repeat has as many ways as places it may end at, unless what
follows it cannot begin with what it repeats; the ways of parts in a row multiply; and a part with two ways that is itself
repeated without limit has no bound at all. Text is taken to be white-space-normalised, and letters to match in any case.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, reduce
from importlib import import_module
from math import inf, log2
from operator import or_
from typing import Any, NamedTuple

__all__ = ["effort"]

_ASCII = 128
_DIGITS, _LETTERS, _OTHERS = (1 << place for place in range(_ASCII, _ASCII + 3))
"""Everything beyond ASCII, in three classes."""
_BEYOND = _DIGITS | _LETTERS | _OTHERS
_EVERY = (1 << _ASCII) - 1 | _BEYOND
_CHEAP = 16
"""Steps up to which a look ahead is as good as a look at one character."""
_MOST_BITS = 60
_MOST_DEPTH = 60
"""Groups and repeats within each other; to judge more takes longer than anybody needs."""


class _Part(NamedTuple):
    """What a part of a pattern costs, from one place in the text."""

    steps: float
    ways: float
    """The places at which what follows it is tried."""


class _Text(NamedTuple):
    """A text of so many characters, and what looks into it were found to cost, by the id of their part."""

    chars: int
    judged: dict[int, float]


class _Begin(NamedTuple):
    """How what fits a part begins."""

    first: int
    """The characters at its first place."""
    empty: bool
    """Whether it may take no character."""


def effort(pattern: str, chars: int) -> float:
    """The most steps it takes to look for a pattern anywhere in a text of so many characters; infinite where none is known."""
    parser: Any = import_module("re._parser")
    tree = parser.parse(pattern, re.IGNORECASE)
    if _depth(tree) > _MOST_DEPTH:
        return inf
    text = _Text(chars, {})
    return sum(_starts(branch, chars) * _sequence(branch, 0, text).steps for branch in _branches(list(tree)))


def _branches(items: list[Any]) -> list[list[Any]]:
    if len(items) == 1 and str(items[0][0]) == "BRANCH":
        return [list(branch) for branch in items[0][1][1]]
    return [items]


def _depth(items: Iterable[Any]) -> int:
    return 1 + max((_depth(inner) for item in items for inner in _inside(item)), default=0)


def _inside(item: Any) -> list[Any]:
    """The rows of parts that a part is made of."""
    operation, given = str(item[0]), item[1]
    if operation.endswith("_REPEAT"):
        return [given[2]]
    if operation == "GROUPREF_EXISTS":
        return [given[1], given[2] or []]
    within = {"SUBPATTERN": 3, **dict.fromkeys(_LOOKS, 1)}
    if operation in within:
        return [given[within[operation]]]
    return [given] if operation == "ATOMIC_GROUP" else list(given[1]) if operation == "BRANCH" else []


def _starts(items: Sequence[Any], chars: int) -> float:
    """At how many places a pattern can get beyond the letters it begins with."""
    if items and str(items[0][0]) == "AT" and str(items[0][1]) in ("AT_BEGINNING", "AT_BEGINNING_STRING"):
        return 1
    word = ""
    for item in items:
        if str(item[0]) != "LITERAL":
            break
        word += chr(item[1]).lower()
    period = next((size for size in range(1, len(word)) if word[size:] == word[: len(word) - size]), len(word))
    return chars / max(1, period)


def _sequence(items: Iterable[Any], follow: int, text: _Text) -> _Part:
    """Parts in a row, seen from the last to the first, each knowing what may come after it."""
    steps, ways, after = 1.0, 1.0, follow
    for item in reversed(list(items)):
        part, begin = _part(item, after, text), _begin(item)
        steps = part.ways * steps + part.steps
        ways *= part.ways
        after = begin.first | (after if begin.empty else 0)
        if _looks([item], text) > _CHEAP:
            after = _EVERY
    return _Part(steps, ways)


def _part(item: Any, follow: int, text: _Text) -> _Part:
    operation = str(item[0])
    if operation in _SINGLE or operation == "AT":
        return _Part(1, 1)
    reading = _READINGS.get(operation)
    # What this version of Python knows and this module does not is not vouched for.
    return reading(item[1], follow, text) if reading else _Part(inf, inf)


def _group(given: Any, follow: int, text: _Text) -> _Part:
    return _sequence(given[3], follow, text)


def _atomic(given: Any, follow: int, text: _Text) -> _Part:
    return _Part(_alone(given, text), 1)


def _look(given: Any, follow: int, text: _Text) -> _Part:
    return _Part(_alone(given[1], text), 1)


def _alone(items: Any, text: _Text) -> float:
    """The steps of parts that are left as they were found, whatever follows."""
    if id(items) not in text.judged:
        text.judged[id(items)] = _sequence(items, 0, text).steps
    return text.judged[id(items)]


def _reference(given: Any, follow: int, text: _Text) -> _Part:
    return _Part(text.chars, 1)


def _condition(given: Any, follow: int, text: _Text) -> _Part:
    return _choice((None, [given[1], given[2] or []]), follow, text)


def _choice(given: Any, follow: int, text: _Text) -> _Part:
    """Of alternatives only those count together that can begin alike."""
    parts = [_sequence(branch, follow, text) for branch in given[1]]
    heads = [_head(branch) for branch in given[1]]
    alike = [[other for other in range(len(heads)) if _may_agree(head, heads[other])] for head in heads]
    steps = max(sum(parts[other].steps for other in others) for others in alike)
    ways = max(sum(parts[other].ways for other in others) for others in alike)
    return _Part(steps + len(parts), ways)


def _repeat(given: Any, follow: int, text: _Text) -> _Part:
    least, most, body = int(given[0]), min(int(given[1]), text.chars), given[2]
    begin = _begin_all(body)
    ends = 1 if not begin.first & follow else max(1, most - least + 1)
    if len(body) == 1 and str(body[0][0]) in _SINGLE:
        return _Part(1 + most, ends)
    inner = _sequence(body, begin.first | follow if most > 1 else follow, text)
    each = inner.ways + (begin.empty and most > 1)
    if each == 1:
        # Each round takes characters that no other does: together they cost no more than the text is long, looks apart.
        return _Part(text.chars + inner.steps + most * _looks(body, text), ends)
    tried = each * (each**most - 1) / (each - 1) if most * log2(each) < _MOST_BITS else inf
    return _Part(tried * inner.steps, tried + 1)


def _looks(items: Iterable[Any], text: _Text) -> float:
    """The steps of one round that take no character: looks ahead, and tries that are thrown away."""
    steps = 0.0
    for item in items:
        operation, given = str(item[0]), item[1]
        if operation in (*_LOOKS, "ATOMIC_GROUP", "POSSESSIVE_REPEAT", "GROUPREF", "GROUPREF_EXISTS"):
            if id(item) not in text.judged:
                text.judged[id(item)] = _part(item, _EVERY, text).steps
            steps += text.judged[id(item)]
        elif operation == "SUBPATTERN":
            steps += _looks(given[3], text)
        elif operation == "BRANCH":
            steps += sum(_looks(branch, text) for branch in given[1])
        elif operation.endswith("_REPEAT"):
            steps += min(int(given[1]), text.chars) * _looks(given[2], text)
    return steps


def _possessive(given: Any, follow: int, text: _Text) -> _Part:
    return _Part(_repeat(given, follow, text).steps, 1)


_SINGLE = ("LITERAL", "NOT_LITERAL", "IN", "ANY")
_LOOKS = ("ASSERT", "ASSERT_NOT")
_ENDS = ("AT_END", "AT_END_STRING")
_READINGS: dict[str, Callable[[Any, int, _Text], _Part]] = {
    "SUBPATTERN": _group,
    "ATOMIC_GROUP": _atomic,
    "ASSERT": _look,
    "ASSERT_NOT": _look,
    "GROUPREF": _reference,
    "GROUPREF_EXISTS": _condition,
    "BRANCH": _choice,
    "MAX_REPEAT": _repeat,
    "MIN_REPEAT": _repeat,
    "POSSESSIVE_REPEAT": _possessive,
}


def _begin_all(items: Iterable[Any]) -> _Begin:
    first = 0
    for item in items:
        begin = _begin(item)
        first |= begin.first
        if not begin.empty:
            return _Begin(first, False)
    return _Begin(first, True)


def _begin(item: Any) -> _Begin:
    operation, given = str(item[0]), item[1]
    if operation in _SINGLE:
        return _Begin(_characters(operation, given), False)
    if operation == "AT":
        # Nothing comes after the end: a repeat before it ends there or nowhere.
        return _Begin(0, str(given) not in _ENDS)
    if operation in _LOOKS:
        return _Begin(0, True)
    if operation in ("SUBPATTERN", "ATOMIC_GROUP"):
        return _begin_all(given[3] if operation == "SUBPATTERN" else given)
    if operation.endswith("_REPEAT"):
        begin = _begin_all(given[2])
        return _Begin(begin.first, begin.empty or int(given[0]) == 0)
    if operation == "BRANCH":
        begins = [_begin_all(branch) for branch in given[1]]
        return _Begin(reduce(or_, (begin.first for begin in begins)), any(begin.empty for begin in begins))
    return _Begin(_EVERY, True)


def _head(items: Iterable[Any]) -> list[int]:
    """The characters at each of the first places, as far as every text that fits has them there."""
    head: list[int] = []
    for item in items:
        begin = _begin(item)
        if str(item[0]) in _SINGLE:
            head.append(begin.first)
        elif str(item[0]) != "AT":
            return head if begin.empty else [*head, begin.first]
    return head


def _may_agree(one: Sequence[int], other: Sequence[int]) -> bool:
    return all(first & second for first, second in zip(one, other, strict=False))


def _characters(operation: str, given: Any) -> int:
    if operation == "LITERAL":
        return _letter(given)
    if operation == "NOT_LITERAL":
        return _EVERY & ~_letter(given) | _BEYOND
    if operation == "ANY":
        return _EVERY
    negated, found = False, 0
    for kind, value in given:
        if str(kind) == "NEGATE":
            negated = True
        else:
            found |= _member(str(kind), value)
    return _EVERY & ~found | _BEYOND if negated else found


def _member(kind: str, value: Any) -> int:
    if kind == "LITERAL":
        return _letter(value)
    if kind == "RANGE":
        found = 0
        for code in range(value[0], min(value[1], _ASCII - 1) + 1):
            found |= _letter(code)
        return found | (_BEYOND if value[1] >= _ASCII else 0)
    return _category(str(value))


@lru_cache(maxsize=256)
def _letter(code: int) -> int:
    """A character in any case; a few of ASCII's letters have a twin beyond it, as K has the kelvin sign."""
    if code >= _ASCII:
        return _BEYOND
    letter = chr(code)
    cases = 0
    for twin in {letter, letter.lower(), letter.upper()}:
        cases |= 1 << ord(twin)
    return cases | (_LETTERS if letter.lower() in "iks" else 0)


@lru_cache(maxsize=16)
def _category(name: str) -> int:
    kind = name.removeprefix("CATEGORY_").removeprefix("UNI_")
    wanted = kind.removeprefix("NOT_")
    fits, beyond = {
        "DIGIT": (str.isdigit, _DIGITS),
        "SPACE": (str.isspace, 0),
        "WORD": (lambda sign: sign.isalnum() or sign == "_", _DIGITS | _LETTERS),
    }.get(wanted, (None, 0))
    if fits is None:
        return _EVERY
    found = beyond
    for code in range(_ASCII):
        found |= fits(chr(code)) << code
    return _EVERY & ~found | _OTHERS | (_LETTERS if wanted == "DIGIT" else 0) if kind != wanted else found
