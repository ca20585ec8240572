"""Detects which of six translated languages a text is in, by its function words.

English costs next to nothing: two set operations recognise it.
"""

from functools import cache

from engram.model.lazy import lazy_pattern
from engram.text.word_tables import read_table

__all__ = ["ENGLISH", "LANGUAGES", "WORD", "language_of"]

LANGUAGES = ("de", "es", "fr", "it", "pt", "nl")
ENGLISH, SHARED = "en", "shared"
MAX_READ_CHARS = 1_000
"""Characters of a text read to detect its language."""
MAX_KEYWORDS = 12
"""Words of a question without function words to look up in the tables."""
WORD = r"(?<![\w/\\@.])[^\W\d_]+(?![\w/\\@]|\.\w)"
"""A word of a sentence, not a part of an identifier, path or address."""
_WORDS = lazy_pattern(WORD)


def language_of(text: str) -> str:
    """The language of a text, one of `LANGUAGES`; "" for English and all others."""
    start, signs = text[:MAX_READ_CHARS], _signs()
    chunks = start.lower().split()
    if _all_foreign().isdisjoint(chunks) and not signs[ENGLISH].isdisjoint(chunks):
        return ""
    # A word in capitals is a name or an abbreviation: "CI", "IT".
    words = [word.lower() for word in _WORDS.findall(start) if len(word) == 1 or not word.isupper()]
    counts = {language: sum(word in signs[language] for word in words) for language in (ENGLISH, *LANGUAGES)}
    most = max(counts[language] for language in LANGUAGES)
    if counts[ENGLISH] and counts[ENGLISH] >= most:
        return ""
    if _foreign().isdisjoint(words):
        return _guess_by_vocabulary(words)
    return _pick_closest(words, [each for each in LANGUAGES if counts[each] == most])


def _pick_closest(words: list[str], languages: list[str]) -> str:
    """The language that knows most of the words; the first one in a tie."""
    if len(languages) == 1:
        return languages[0]
    from engram.text.translation import dictionary

    return max(languages, key=lambda language: sum(dictionary(language).has(word) for word in words))


def _guess_by_vocabulary(words: list[str]) -> str:
    """The language that knows at least half of a few words; "" if none does."""
    if not words or len(words) > MAX_KEYWORDS:
        return ""
    from engram.text.translation import dictionary

    counts = {language: sum(dictionary(language).has(word) for word in words) for language in LANGUAGES}
    best = max(LANGUAGES, key=counts.__getitem__)
    content = [word for word in words if len(word) > 1 and word not in _signs()[best]]
    return best if counts[best] and 2 * counts[best] >= len(content) else ""


@cache
def _signs() -> dict[str, frozenset[str]]:
    return {language: frozenset(words) for language, *words in read_table("translations/signs.txt")}


@cache
def _all_foreign() -> frozenset[str]:
    """Function words of other languages that English does not share."""
    signs = _signs()
    return frozenset().union(*(signs[language] for language in LANGUAGES)) - signs[ENGLISH]


@cache
def _foreign() -> frozenset[str]:
    """Those that are not English names or other English words either."""
    return frozenset(word for word in _all_foreign() - _signs()[SHARED] if len(word) > 1)
