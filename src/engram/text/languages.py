"""The language of a text, if it is one of six that are translated word by word; decided by the words that hold sentences together.

English text is recognised by two tests of sets, so that it costs next to nothing.
"""

from functools import cache

from engram.model.lazy import lazy_pattern
from engram.text.word_tables import read_table

__all__ = ["ENGLISH", "LANGUAGES", "WORD", "language_of"]

LANGUAGES = ("de", "es", "fr", "it", "pt", "nl")
ENGLISH, SHARED = "en", "shared"
MAX_READ_CHARS = 1_000
"""Characters of a text that decide its language."""
MAX_KEYWORDS = 12
"""Words of a question without grammar whose language is looked up in the tables."""
WORD = r"(?<![\w/\\@.])[^\W\d_]+(?![\w/\\@]|\.\w)"
"""A word of a sentence; a part of an identifier, a path or an address is none."""
_WORDS = lazy_pattern(WORD)


def language_of(text: str) -> str:
    """The language of a text in one of `LANGUAGES`; "" if it is in English, or in none of them."""
    start, signs = text[:MAX_READ_CHARS], _signs()
    chunks = start.lower().split()
    if _all_foreign().isdisjoint(chunks) and not signs[ENGLISH].isdisjoint(chunks):
        return ""
    # A word in capitals is a name or an abbreviation, whatever it would mean: "CI", "IT".
    words = [word.lower() for word in _WORDS.findall(start) if len(word) == 1 or not word.isupper()]
    counts = {language: sum(word in signs[language] for word in words) for language in (ENGLISH, *LANGUAGES)}
    most = max(counts[language] for language in LANGUAGES)
    if counts[ENGLISH] and counts[ENGLISH] >= most:
        return ""
    if _foreign().isdisjoint(words):
        return _guess_by_vocabulary(words)
    return _pick_closest(words, [each for each in LANGUAGES if counts[each] == most])


def _pick_closest(words: list[str], languages: list[str]) -> str:
    """The language with most of the text's words; the first of several."""
    if len(languages) == 1:
        return languages[0]
    from engram.text.translation import dictionary

    return max(languages, key=lambda language: sum(dictionary(language).has(word) for word in words))


def _guess_by_vocabulary(words: list[str]) -> str:
    """The language that has at least half of a few words without grammar."""
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
    """The function words of other languages that are not function words of English."""
    signs = _signs()
    return frozenset().union(*(signs[language] for language in LANGUAGES)) - signs[ENGLISH]


@cache
def _foreign() -> frozenset[str]:
    """Those that English does not have as names or other words, either."""
    return frozenset(word for word in _all_foreign() - _signs()[SHARED] if len(word) > 1)
