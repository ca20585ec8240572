"""What the pair model alone never decides: that a statement repeats another, or surely outdates it.

A wrong duplicate loses a statement and a wrong update puts one out of force, so both need more than a high probability. What fails
here is still stored, named as a paraphrase, or waits for review.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from engram.gates.succession import may_succeed
from engram.gates.tables import phrases
from engram.model.memory import Memory
from engram.rules.eligibility import outlasts
from engram.text.numbers import Number
from engram.text.plans import is_only_planned
from engram.text.polarity import NormalizedStatement, normalize_statement
from engram.text.time.words import value_of

__all__ = ["adds_nothing", "has_words_of", "may_outdate", "names_another", "only_values_differ", "same_symbols"]

MIN_CONTENT_WORDS = 3
"""A statement of fewer words is a part of many that say something else."""
MAX_WORDS_BETWEEN = 3
"""The most other words between those of a statement that another one holds."""
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_SYMBOL = re.compile(r"(?:[^\w\s.,;:!?'\"’‘“”`()–—…•。、，；：！？؟،।-]|(?<!\w)-(?=[\w-])|(?<=-)-)+")
"""Every mark but the common ones, as it is written: `==` is not `=`, and `--force` not `-force`."""
_CODE = re.compile(r"[\d_/\\@$:]|\w\.\w")
"""What the words of a language do not have inside, but numbers, times, paths, hosts, addresses and versions do."""
_TODAY = re.compile(
    r"\b(?:today|tonight|tomorrow|yesterday|right now|just now|for now|at the moment|for the moment|for the time being"
    r"|this (?:morning|afternoon|evening|week|weekend|month))\b"
)


def names_another(one: NormalizedStatement, other: NormalizedStatement) -> bool:
    """Whether two statements are about different things of a kind, by their numbers: "Room 12 …" and "Room 14 …"."""
    mine, theirs = _identifying_numbers(one), _identifying_numbers(other)
    return bool(mine and theirs) and mine != theirs


def _identifying_numbers(reading: NormalizedStatement) -> frozenset[Number]:
    """The numbers that say which thing is meant; where no verb was recognised, the one of several that follows the first word."""
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
    """Whether a statement has all content words of the other close together and in their order, with the same numbers (unless
    these do not count) and as many negations, odd or even.
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
    """Whether some words occur in this order."""
    rest = iter(said)
    return all(word in rest for word in words)


def same_symbols(new: str, old: str) -> bool:
    """Whether two statements have the same symbols in the same order: `a|b` is not `a||b`."""
    return _SYMBOL.findall(new) == _SYMBOL.findall(old)


def may_outdate(new: Memory, old: Memory) -> bool:
    """Whether a newer memory may supersede another by the model's word: it lasts as long, in English, about the same thing, tells of a
    change, and the loss of the older one could do no harm.
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
    """Whether a statement has no word that the older one lacks but numbers, days, months, addresses and other codes: a bare value
    suggests no change, since things that have such values often have several ("standup on tuesday", "on thursday").
    """
    one, other = normalize_statement(new), normalize_statement(old)
    added = set(one.raw) - set(other.raw)
    return (bool(added) or one.numbers != other.numbers) and all(map(_is_value, added))


def _is_value(word: str) -> bool:
    """Whether a word is a value by its form, or a name of the calendar."""
    return bool(_CODE.search(word)) or any(value_of(kind, word) is not None for kind in ("weekday", "month"))


def _is_another_subject(one: NormalizedStatement, other: NormalizedStatement) -> bool:
    """Whether each statement is about something that the other does not name: "server alpha …" and "server beta …".

    If the two have no word of the subject in common, a name that both mention is enough to tie them: "Ms Aubry took over from Mr Leclerc"
    is about the same as "The contact is Mr Leclerc".
    """
    if not (one.subject - other.content and other.subject - one.content):
        return False
    named = (one.names | other.names) & one.content & other.content
    return bool(one.subject & other.subject) or not named


def _ends_somebody_elses(one: NormalizedStatement, other: NormalizedStatement) -> bool:
    """Whether a statement only says that something is over, and the other may say it of somebody else: "The user no longer takes warfarin" says
    nothing of "The user's mother takes warfarin". Where no subject was recognised, whatever the other adds may be one.
    """
    if one.negations % 2 == other.negations % 2 or not one.content <= other.content:
        return False
    return bool((other.subject if one.subject and other.subject else other.content) - one.content)


@lru_cache(maxsize=1024)
def _is_english(text: str) -> bool:
    """Whether a statement is surely in English: in its letters, and with one of its commonest words."""
    words = [word.lower() for word in _WORD.findall(text)]
    foreign = sum(not word.replace("’", "'").isascii() for word in words)
    return foreign <= len(words) // 4 and not phrases("quality.txt", "english").words.isdisjoint(words)
