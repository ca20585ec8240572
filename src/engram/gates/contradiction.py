"""Contradiction: two memories that cannot both be true.

Either they give one subject and predicate two objects, or they differ only in a number, a negation, an opposite or rival
word, or the order of two parts.
"""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache

from engram.gates.comparison import relation
from engram.gates.duplicates import same_situation, token_overlap
from engram.gates.proposal import Neighbour, Proposal
from engram.gates.tables import rows
from engram.model.lazy import dataclass
from engram.model.memory import Memory
from engram.model.types import type_or_default
from engram.text.polarity import NOT, NormalizedStatement, canonical, is_function_word, read, rival

__all__ = ["Conflict", "contradiction"]

# Neighbours with less token overlap than this are about something else.
_MIN_SHARED = 0.1
# Statements about the same thing reach this cosine; few others do.
_MIN_COSINE = 0.5
# Documents are not claims.
_LONGEST_CLAIM = 2_000


@dataclass(frozen=True, slots=True)
class Conflict:
    """The memory that is contradicted, and why."""

    other: Memory
    why: str


def contradiction(proposal: Proposal, neighbours: Sequence[Neighbour]) -> Conflict | None:
    """The first neighbour that the proposal contradicts, if any."""
    memory = proposal.memory
    if not _is_claim(memory):
        return None
    terms = frozenset(proposal.tokens)
    for neighbour in neighbours:
        other = neighbour.memory
        if not _comparable(memory, other) or not (_near_enough(neighbour, terms) or memory.form):
            continue
        if why := _conflict(memory, other):
            return Conflict(other, why)
    return None


def _is_claim(memory: Memory) -> bool:
    """Whether a memory asserts one thing: questions, episodes and documents do not."""
    if memory.statement.rstrip().endswith(("?", "？", "؟")):
        return False
    return len(memory.statement) <= _LONGEST_CLAIM and type_or_default(memory.type).nature != "episode"


def _comparable(memory: Memory, other: Memory) -> bool:
    return (
        memory.scope == other.scope
        and other.id not in memory.supersedes
        and _is_claim(other)
        and same_situation(memory, other)
        and _overlap_in_time(memory, other)
    )


def _overlap_in_time(one: Memory, other: Memory) -> bool:
    """Whether the validity of two memories overlaps: "until May" does not contradict "since June"."""
    return not (_ended(one.valid_until, other.valid_from) or _ended(other.valid_until, one.valid_from))


def _ended(until: datetime | None, since: datetime | None) -> bool:
    return until is not None and since is not None and until <= since


def _near_enough(neighbour: Neighbour, terms: frozenset[str]) -> bool:
    if not math.isnan(neighbour.cosine) and neighbour.cosine >= _MIN_COSINE:
        return True
    return token_overlap(terms, neighbour.memory) >= _MIN_SHARED


def _conflict(memory: Memory, other: Memory) -> str:
    mine, theirs = claim_of(memory), claim_of(other)
    if mine and theirs and (why := competing(mine, theirs)):
        return why
    comparison = relation(memory.statement, other.statement)
    return comparison.why if comparison.relation == "opposite" else ""


# -- claims: subject, predicate and object, from a memory's form or by parsing a plain sentence

_LONGEST_SUBJECT = 6
_LONGEST_PREDICATE = 4
_OBJECT_ENDS = frozenset(
    (",", "because", "since", "so", "but", "which", "that", "who", "although", "though", "instead")
)
_QUALIFIERS = frozenset((
    "for", "in", "on", "at", "when", "while", "during", "if", "unless", "as", "with", "under", "until", "from", "by",
    "within", "per", "inside", "near",
))  # fmt: skip
_LISTS = frozenset(("and", "or", "&"))
# With these any noun becomes an attribute: "the default X", "my favourite X".
_SINGULAR = frozenset(map(canonical, ("default", "favourite", "favorite", "preferred", "primary", "main")))
_DETERMINERS = frozenset(("the", "our", "my", "your", "his", "her", "their", "its", "this", "a", "an"))


@dataclass(frozen=True, slots=True)
class Claim:
    """Subject, predicate, object and circumstances of a plain sentence, as stems."""

    subject: frozenset[str]
    kind: str
    """`given` (from the memory's form), `one`, `choice` or `is`: how strictly two objects exclude each other."""
    predicate: str
    object: tuple[str, ...]
    circumstances: frozenset[str] = frozenset()
    is_list: bool = False
    named: bool = False
    """The object is a name or a number, not a description."""
    attribute: bool = False
    """The subject has one value at a time, such as a port or a favourite colour."""
    about_name: bool = False
    """The subject is a name, about which many things can be true."""


def claim_of(memory: Memory) -> Claim | None:
    """The claim a memory makes; None if its statement is not a plain sentence."""
    return _given(memory.form) if memory.form.get("object") else _parsed(memory.statement)


def competing(one: Claim, other: Claim) -> str:
    """Why two claims about the same subject cannot both be true; "" if they can."""
    if one.subject != other.subject or one.predicate != other.predicate or one.object == other.object:
        return ""
    first, second = set(one.object), set(other.object)
    if not first or not second or first <= second or second <= first:
        return ""
    if one.circumstances != other.circumstances or one.is_list or other.is_list:
        return ""
    return "the same subject and predicate with a different object" if _excludes(one, other) else ""


def _excludes(one: Claim, other: Claim) -> bool:
    if "given" in (one.kind, other.kind) or one.kind == "one":
        return True
    if any(rival(word, twin) for word in one.object for twin in other.object):
        return True
    if one.kind == "choice":
        return bool(one.circumstances) and bool(one.subject)
    return one.attribute or (one.named and other.named and not one.about_name)


@lru_cache(maxsize=1)
def _attributes() -> frozenset[str]:
    return frozenset(canonical(word) for row in rows("attributes.txt") for word in row)


@lru_cache(maxsize=1)
def _predicates() -> dict[tuple[str, ...], tuple[str, str]]:
    """Predicate words → (kind, name)."""
    return {tuple(surface.split("_")): (row[0], row[1]) for row in rows("predicates.txt") for surface in row[2:]}


def _given(form: Mapping[str, str]) -> Claim:
    subject, predicate, value = (read(form.get(part, "")) for part in ("subject", "predicate", "object"))
    name = _predicates().get(tuple(predicate.raw), ("", " ".join(predicate.raw)))[1]
    return Claim(_words(subject.raw), "given", name, tuple(canonical(word) for word in value.raw if word != ","))


@lru_cache(maxsize=4096)
def _parsed(statement: str) -> Claim | None:
    reading = read(statement)
    raw = reading.raw
    if reading.past or NOT in raw or len(raw) < 3 or raw[-1] == "?":
        return None
    for start in range(min(len(raw) - 1, 2 * _LONGEST_SUBJECT)):
        if raw[start] == ",":
            return None
        for length in range(min(_LONGEST_PREDICATE, len(raw) - start - 1), 0, -1):
            if found := _predicates().get(raw[start : start + length]):
                return _assembled(reading, start, start + length, *found)
    return None


def _assembled(reading: NormalizedStatement, start: int, end: int, kind: str, predicate: str) -> Claim | None:
    subject = _words(reading.raw[:start])
    if len(subject) > _LONGEST_SUBJECT or (not subject and kind != "choice"):
        return None
    if any(word in _QUALIFIERS for word in reading.raw[:start]):
        return None
    if kind == "is" and reading.raw[end] in _QUALIFIERS:
        return None
    value, circumstances, is_list = _object(reading.raw[end:])
    numbers = {str(number) for number in reading.numbers}
    named = bool(value) and all(word in reading.names or word in numbers for word in value)
    about_name = bool(subject & reading.names) or reading.raw[0] not in _DETERMINERS
    attribute = _is_attribute(reading.raw[:start])
    return Claim(subject, kind, predicate, value, circumstances, is_list, named, attribute, about_name)


def _is_attribute(raw: tuple[str, ...]) -> bool:
    head = raw[: raw.index("of")] if "of" in raw else raw
    words = [canonical(word) for word in head]
    return bool(words) and (words[-1] in _attributes() or not _SINGULAR.isdisjoint(words))


def _object(raw: tuple[str, ...]) -> tuple[tuple[str, ...], frozenset[str], bool]:
    """The value, the circumstances after it, and whether it is a list."""
    end = next((place for place, word in enumerate(raw) if word in _OBJECT_ENDS), len(raw))
    clause = raw[:end]
    cut = next((place for place, word in enumerate(clause) if place and word in _QUALIFIERS), end)
    value = tuple(canonical(word) for word in clause[:cut] if not is_function_word(word))
    return value, _words(clause[cut:]) | _words(raw[end:]), bool(_LISTS.intersection(clause[:cut]))


def _words(raw: tuple[str, ...]) -> frozenset[str]:
    return frozenset(canonical(word) for word in raw if word != "," and not is_function_word(word))
