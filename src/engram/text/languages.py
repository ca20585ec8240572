"""The language of a text, if it is one of six that are translated word by word; decided by the words that hold sentences together.

English text is recognised by two tests of sets, so that it costs next to nothing.
"""

from functools import cache

from engram.model.lazy import lazy_pattern
from engram.text.word_tables import read_table

__all__ = ["ENGLISH", "LANGUAGES", "WORD", "language_of"]

LANGUAGES = ("de", "es", "fr", "it", "pt", "nl")
ENGLISH = "en"
READ = 1_000
"""Characters of a text that decide its language."""
MAX_KEYWORDS = 8
"""Words of a question without grammar whose language is looked up in the tables."""
WORD = r"(?<![\w/\\@.])[^\W\d_]+(?![\w/\\@]|\.\w)"
"""A word of a sentence; a part of an identifier, a path or an address is none."""
_WORDS = lazy_pattern(WORD)


def language_of(text: str) -> str:
    """The language of a text in one of `LANGUAGES`; "" if it is in English, or in none of them."""
    start = text[:READ].lower()
    signs = _signs()
    if _foreign().isdisjoint(chunks := start.split()) and not signs[ENGLISH].isdisjoint(chunks):
        return ""
    words = _WORDS.findall(start)
    if _foreign().isdisjoint(words):
        return _by_vocabulary(words) if signs[ENGLISH].isdisjoint(words) else ""
    counts = {language: sum(word in known for word in words) for language, known in signs.items()}
    most = max(counts[language] for language in LANGUAGES)
    return _closest(words, [each for each in LANGUAGES if counts[each] == most]) if most > counts[ENGLISH] else ""


def _closest(words: list[str], languages: list[str]) -> str:
    """The language with most of the text's words; the first of several."""
    if len(languages) == 1:
        return languages[0]
    from engram.text.translation import dictionary

    return max(languages, key=lambda language: sum(dictionary(language).has(word) for word in words))


def _by_vocabulary(words: list[str]) -> str:
    """The language that has at least half of a few words without grammar."""
    if not words or len(words) > MAX_KEYWORDS:
        return ""
    from engram.text.translation import dictionary

    counts = {language: sum(dictionary(language).has(word) for word in words) for language in LANGUAGES}
    best = max(LANGUAGES, key=counts.__getitem__)
    return best if 2 * counts[best] >= len(words) else ""


@cache
def _signs() -> dict[str, frozenset[str]]:
    return {language: frozenset(words) for language, *words in read_table("translations/signs.txt")}


@cache
def _foreign() -> frozenset[str]:
    """The function words of other languages that are no English ones."""
    signs = _signs()
    words = frozenset().union(*(signs[language] for language in LANGUAGES)) - signs[ENGLISH]
    return frozenset(word for word in words if len(word) > 1)
