"""Word-based checks that confirm whether a statement repeats or outdates another.

The pair model alone never decides, because a wrong duplicate loses a statement and a wrong update replaces one that is
still true. A statement that fails these checks is still stored, either marked as a paraphrase or waiting for review.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from engram.gates.tables import phrases, plain
from engram.model.lazy import dataclass
from engram.model.memory import Memory
from engram.models.pair_features import align
from engram.models.pair_words import FUNCTION, ME, NAME, NUMBER, TIME, WE, Statement, Token, read_statement
from engram.rules.lifecycle import outlasts
from engram.text.statements import NormalizedStatement, Number, is_only_planned, normalize_statement
from engram.text.time.words import value_of
from engram.text.words import is_act, is_past, kind_of, revises, word_class

__all__ = [
    "adds_nothing",
    "has_words_of",
    "may_outdate",
    "may_succeed",
    "names_another",
    "names_another_subject",
    "only_values_differ",
    "same_symbols",
]

_COPULAS = frozenset(("is", "are", "was", "were", "be", "been", "s"))
_FRESH = frozenset(("new", "current", "latest", "now", "longer"))
"""Words before the verb that express time."""
_VALUES = (NAME, NUMBER, TIME)


@dataclass(frozen=True, slots=True)
class SubjectAndVerb:
    """A statement split at its verb."""

    subject: frozenset[str]
    verb: Token


def may_succeed(new: str, old: str) -> bool:
    """Whether a newer statement expresses a change, is about the same subject as the older one, and adds more than a bare value.

    The pair model knows many wordings but little about the world, and a wrong update replaces a true memory. So nothing
    is replaced automatically if the two may be about different things, if the newer one has no word of change, if it
    only adds or considers a value, or if they differ only in a bare value.
    """
    one, other = read_statement(new), read_statement(old)
    mine, theirs = _clause(one), _clause(other)
    if mine is None or theirs is None or _is_open(new) or _is_bare(one, other):
        return False
    if not mine.subject or not theirs.subject or not _tells_change(new, one):
        return False
    return mine.subject == theirs.subject if _same_verb(mine.verb, theirs.verb) else not _unnamed_words(theirs, one)


def names_another_subject(new: str, old: str) -> bool:
    """Whether two statements say the same about different things, neither of which names the other's.

    For example "The build server has …" and "The production server has …".
    """
    one, other = read_statement(new), read_statement(old)
    mine, theirs = _clause(one), _clause(other)
    if mine is None or theirs is None or not _same_verb(mine.verb, theirs.verb):
        return False
    return bool(_unnamed_words(mine, other) and _unnamed_words(theirs, one))


def _unnamed_words(clause: SubjectAndVerb, other: Statement) -> frozenset[str]:
    """The words of the subject that are missing from the other statement."""
    return clause.subject - {token.stem for token in other.tokens} - {ME, WE}


def _clause(statement: Statement) -> SubjectAndVerb | None:
    """The statement split at its first verb; None if no verb is recognised."""
    tokens = statement.tokens
    copulas = {at for at, token in enumerate(tokens) if token.key in _COPULAS}
    place = next((at for at, token in enumerate(tokens) if _is_verb(token) and at + 1 not in copulas), None)
    if place is None:
        return None
    subject = {token.stem for token in tokens[:place] if token.stem in (ME, WE) or token.kind != FUNCTION}
    return SubjectAndVerb(frozenset(subject - _FRESH), tokens[place])


def _is_verb(token: Token) -> bool:
    verbs = word_class("wordclasses", "verb")
    forms = (token.key, token.stem, token.key.removesuffix("s"), token.key.removesuffix("es"))
    return any(form in verbs for form in forms) or _changes(token) or is_act(token.key) or is_past(token.key)


def _changes(token: Token) -> bool:
    return kind_of(token.key) == "change" or revises(token.key)


def _same_verb(one: Token, other: Token) -> bool:
    return one.stem == other.stem or (one.key in _COPULAS and other.key in _COPULAS)


def _tells_change(text: str, statement: Statement) -> bool:
    """Whether a statement contains a word of change."""
    return any(map(_changes, statement.tokens)) or _has(text, "changes")


def _is_open(text: str) -> bool:
    """Whether a statement adds a further value, or one that is not settled yet."""
    return _has(text, "additions") or _has(text, "doubts")


def _has(text: str, section: str) -> bool:
    prepared = plain(text)
    return bool(phrases("changes.txt", section).find(prepared, frozenset(prepared.split())))


def _is_bare(new: Statement, old: Statement) -> bool:
    """Whether the newer statement adds only names, numbers and times: "The bus stops at Oak Street"."""
    pair = align(old, new)
    added = [token for token, hit in zip(new.words, pair.matched_new, strict=True) if not hit]
    known = {token.key for token in old.tokens}
    said = [token for token in new.tokens if token.kind == FUNCTION and token.key not in (*known, ",", ME, WE)]
    return bool(added) and not said and all(token.kind in _VALUES for token in added)


MIN_CONTENT_WORDS = 3
"""Statements with fewer words than this occur inside many unrelated ones."""
MAX_WORDS_BETWEEN = 3
"""Maximum number of other words between the words of a contained statement."""
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_SYMBOL = re.compile(r"(?:[^\w\s.,;:!?'\"’‘“”`()–—…•。、，；：！？؟،।-]|(?<!\w)-(?=[\w-])|(?<=-)-)+")
"""Every symbol except common punctuation, as written: `==` differs from `=`, and `--force` from `-force`."""
_CODE = re.compile(r"[\d_/\\@$:]|\w\.\w")
"""Characters that do not occur inside ordinary words, only in numbers, times, paths, hosts, addresses and versions."""
_TODAY = re.compile(
    r"\b(?:today|tonight|tomorrow|yesterday|right now|just now|for now|at the moment|for the moment|for the time being"
    r"|this (?:morning|afternoon|evening|week|weekend|month))\b"
)


def names_another(one: NormalizedStatement, other: NormalizedStatement) -> bool:
    """Whether two statements are about different things of one kind, told apart by number: "Room 12 …" and "Room 14 …"."""
    mine, theirs = _identifying_numbers(one), _identifying_numbers(other)
    return bool(mine and theirs) and mine != theirs


def _identifying_numbers(reading: NormalizedStatement) -> frozenset[Number]:
    """The numbers that identify the subject.

    If no verb was recognised and there are several, the one after the first word.
    """
    if reading.has_verb or len(reading.numbers) < 2 or reading.sequence[1] != str(reading.numbers[0]):
        return frozenset(reading.identifying)
    return frozenset(reading.numbers[:1])


def adds_nothing(new: str, old: str) -> bool:
    """Whether a statement in English has no word, number, name, symbol or negation that the other lacks."""
    one, other = normalize_statement(new), normalize_statement(old)
    return (
        _is_english(new)
        and _is_english(old)
        and same_symbols(new, old)
        and (not one.subject or not other.subject or bool(one.subject & other.subject))
        and one.content <= other.content
        and not Counter(one.numbers) - Counter(other.numbers)
        and (one.negations - other.negations) % 2 == 0
        and one.past == other.past
    )


def has_words_of(new: str, old: str, *, numbers: bool = True) -> bool:
    """Whether a statement has all content words of the other, close together and in order.

    The numbers (unless they are ignored) and the parity of negations must also be the same.
    """
    one, other = normalize_statement(new), normalize_statement(old)
    if len(other.content) + len(other.numbers) < MIN_CONTENT_WORDS or not other.content <= one.content:
        return False
    if (numbers and Counter(one.numbers) != Counter(other.numbers)) or (one.negations - other.negations) % 2:
        return False
    length = len(other.sequence) + MAX_WORDS_BETWEEN + (0 if numbers else len(one.numbers))
    ordered = [word for word in other.sequence if word in other.content]
    starts = (place for place, word in enumerate(one.sequence) if word == ordered[0])
    return any(_follow(ordered, one.sequence[start : start + length]) for start in starts)


def _follow(words: Sequence[str], said: Sequence[str]) -> bool:
    """Whether these words occur in this order."""
    rest = iter(said)
    return all(word in rest for word in words)


def same_symbols(new: str, old: str) -> bool:
    """Whether two statements have the same symbols in the same order: `a|b` is not `a||b`."""
    return _SYMBOL.findall(new) == _SYMBOL.findall(old)


def may_outdate(new: Memory, old: Memory) -> bool:
    """Whether the model's verdict is enough for a newer memory to supersede another.

    The newer memory must be in English, last as long, be about the same thing and express a change, and losing the
    older one must do no harm.
    """
    if outlasts(old, new) or is_only_planned(new.statement, old.statement):
        return False
    if _TODAY.search(new.statement.lower()) or not (_is_english(new.statement) and _is_english(old.statement)):
        return False
    one, other = normalize_statement(new.statement), normalize_statement(old.statement)
    if names_another(one, other) or _is_another_subject(one, other) or _ends_somebody_elses(one, other):
        return False
    if old.critical_slot or only_values_differ(new.statement, old.statement):
        return False
    return may_succeed(new.statement, old.statement)


def only_values_differ(new: str, old: str) -> bool:
    """Whether a statement adds nothing to the older one but values: numbers, days, months, addresses and other codes.

    A bare value does not imply a change, because things often have several ("standup on tuesday", "on thursday").
    """
    one, other = normalize_statement(new), normalize_statement(old)
    added = set(one.raw) - set(other.raw)
    return (bool(added) or one.numbers != other.numbers) and all(map(_is_value, added))


def _is_value(word: str) -> bool:
    """Whether a word has the form of a value, or names a day or month."""
    return bool(_CODE.search(word)) or any(value_of(kind, word) is not None for kind in ("weekday", "month"))


def _is_another_subject(one: NormalizedStatement, other: NormalizedStatement) -> bool:
    """Whether each statement is about something that the other does not mention: "server alpha …" and "server beta …".

    If the subjects share no word, one name that both statements mention is enough to relate them: "Ms Aubry took over
    from Mr Leclerc" is about the same thing as "The contact is Mr Leclerc".
    """
    if not (one.subject - other.content and other.subject - one.content):
        return False
    named = (one.names | other.names) & one.content & other.content
    return bool(one.subject & other.subject) or not named


def _ends_somebody_elses(one: NormalizedStatement, other: NormalizedStatement) -> bool:
    """Whether a statement only reports an end, and the other may be about somebody else.

    "The user no longer takes warfarin" does not end "The user's mother takes warfarin". If no subject is recognised,
    anything that the other statement adds may be one.
    """
    if one.negations % 2 == other.negations % 2 or not one.content <= other.content:
        return False
    return bool((other.subject if one.subject and other.subject else other.content) - one.content)


@lru_cache(maxsize=1024)
def _is_english(text: str) -> bool:
    """Whether a statement is certainly in English, judged by its letters and at least one very common word."""
    words = [word.lower() for word in _WORD.findall(text)]
    foreign = sum(not word.replace("’", "'").isascii() for word in words)
    return foreign <= len(words) // 4 and not phrases("quality.txt", "english").words.isdisjoint(words)
