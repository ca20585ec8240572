"""Finds statements that repeat a rejected or retired memory in disguise.

A disguise is different spacing or symbols, misspelt words, extra numbers, or a double negation. No model is used, and
matches wait for review.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from functools import lru_cache
from itertools import accumulate

from engram.gates.certainty import has_words_of
from engram.gates.comparison import negates_opposite
from engram.model.lazy import lazy_pattern
from engram.models.paraphrases import count_negatives
from engram.models.readings import is_word, letter_distance, letters_of, other_readings, respell, spell_out
from engram.text.statements import normalize_statement
from engram.text.words import stem

__all__ = ["is_disguised_repeat"]

MIN_DISGUISED_LETTERS = 12
"""Statements with fewer letters than this occur inside many others, so all their letters must match."""
MAX_LETTERS, MAX_OLD_LETTERS = 3_000, 400
"""Maximum letters of the new and of the old statement that are compared."""
LETTERS_PER_MISTAKE = 12
"""One letter in this many may differ."""
_GRAM = 3
_LEAST_SHARED = 0.25
"""Minimum share of the old statement's three-letter runs that the new one must contain to be compared."""
_WORD = lazy_pattern(r"[^\W\d_]+")
_CLAUSE = lazy_pattern(r"(?<![,;:.!?\n()–—])[,;:.!?\n()–—]++(?:\s|$)")
_SENTENCE_END = lazy_pattern(r"[;.!?\n]\s")
_AFTERTHOUGHT = lazy_pattern(
    r"\W{0,3}(?:is|are|was|were|would|must|should|can|has|had)(?:n't| not| never| been)? ?\w*", re.IGNORECASE
)


def is_disguised_repeat(new: str, old: str, *, may_change_numbers: bool) -> bool:
    """Whether a statement repeats the other in the same words, in disguise.

    With `may_change_numbers`, the two may also differ in numbers only; otherwise the new one may only add numbers.
    """
    texts = (new, *other_readings(new))
    if not may_change_numbers and Counter(normalize_statement(old).numbers) - Counter(normalize_statement(new).numbers):
        return False
    words = tuple(dict.fromkeys(_WORD.findall(old.lower()[:MAX_OLD_LETTERS])))
    texts = tuple(text for text in texts if _shared_grams(_letters(text), _letters(old)) >= _LEAST_SHARED)
    respelled = dict.fromkeys(respell(text[:MAX_LETTERS], words) for text in texts)
    return any(_repeats_words(text, old) or _repeats_letters(text, old) for text in respelled)


# -- words


def _repeats_words(new: str, old: str) -> bool:
    """Whether a text, or a clause of it, has the words of the other, possibly misspelt, or negates its opposite."""
    return any(_has_words(clause, old) for clause in dict.fromkeys((new, *_CLAUSE.split(new))))


def _has_words(new: str, old: str) -> bool:
    one, other = normalize_statement(new), normalize_statement(old)
    if not other.content:
        return False
    is_turned = (one.negations - other.negations) % 2
    return (
        (one.content == other.content and not is_turned and one.past == other.past and _same_order(new, old))
        or has_words_of(new, old, numbers=False)
        or negates_opposite(one, other)
    )


def _same_order(new: str, old: str) -> bool:
    one, other = normalize_statement(new), normalize_statement(old)
    mine, theirs = ([word for word in each.sequence if word in each.content] for each in (one, other))
    return mine == theirs


# -- letters


def _repeats_letters(new: str, old: str) -> bool:
    """Whether a text has nearly all letters of the other in a row, and nothing in its sentence reverses the meaning."""
    theirs = _letters(old)[:MAX_OLD_LETTERS]
    spelled = spell_out(new[: 2 * MAX_LETTERS])
    words = list(_WORD.finditer(spelled))
    mine = _letters(spelled)
    if len(theirs) < MIN_DISGUISED_LETTERS:
        return mine == theirs
    distance, end = letter_distance(theirs, mine)
    if distance > len(theirs) // LETTERS_PER_MISTAKE:
        return False
    sizes = list(accumulate(len(word[0].casefold()) for word in words))
    first, last = bisect_right(sizes, max(0, end - len(theirs))), bisect_left(sizes, end)
    if distance and _has_other_word([word[0].lower() for word in words[first : last + 1]], old):
        return False
    return not _is_turned(spelled, words[first].start(), words[last].end(), old if distance else "")


@lru_cache(maxsize=1024)
def _letters(text: str) -> str:
    return letters_of(text)[:MAX_LETTERS]


def _shared_grams(mine: str, theirs: str) -> float:
    wanted = {theirs[at : at + _GRAM] for at in range(min(len(theirs), MAX_OLD_LETTERS) - _GRAM + 1)}
    return sum(gram in mine for gram in wanted) / len(wanted) if wanted else 1.0


def _has_other_word(words: list[str], old: str) -> bool:
    """Whether any of these words is missing from the old statement, so that the difference is not a misspelling."""
    theirs = {stem(word) for word in _WORD.findall(old.lower())}
    return any(len(word) > 2 and is_word(word) and stem(word) not in theirs for word in words)


def _is_turned(text: str, start: int, end: int, old: str) -> bool:
    """Whether the sentence around a repetition denies it: before it, in a predicate after it, or (given `old`) inside it."""
    begins = max((found.end() for found in _SENTENCE_END.finditer(text, 0, start)), default=0)
    behind = _AFTERTHOUGHT.match(text, end)
    said = text[begins : end if old else start] + (behind[0] if behind else "")
    is_negated = (normalize_statement(said).negations - normalize_statement(old).negations) % 2
    return bool(is_negated or (count_negatives(said) - count_negatives(old)) % 2)
