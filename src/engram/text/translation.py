"""Translates six languages into English word by word, so that a question finds memories in another language.

The result is for the index and the bundled embedder, not for readers. It keeps the word order, and words that the tables lack (names,
identifiers). training/build_translations.py writes the tables.
"""

from functools import cache, lru_cache

from engram.model.lazy import lazy_pattern
from engram.text.inflection import base_forms, compound_parts, fold
from engram.text.languages import WORD, language_of
from engram.text.word_tables import DATA

__all__ = ["Dictionary", "dictionary", "translate", "translation"]

MAX_CHARS = 20_000
"""Characters of a text to translate; the rest stays."""
MAX_CACHED_CHARS = 500
"""Characters of a text whose translation is cached because several searches answer one question."""
_WORD = lazy_pattern(WORD)
_BETWEEN = frozenset((" ", "'", "’", "-", "\u00a0"))
"""Separators between the words of a phrase."""
_SPELLED_UMLAUTS = (("ae", "a"), ("oe", "o"), ("ue", "u"))


_SPANISH_MARKS = str.maketrans("", "", "¿¡")


class Dictionary:
    """Maps words and phrases of one language to English; keys are spelled with and without accents."""

    def __init__(self, language: str, meanings: dict[str, str]) -> None:
        self._language = language
        self._meanings = meanings
        self._phrases: dict[str, int] = {}
        for key in meanings:
            if " " in key:
                first = key.partition(" ")[0]
                self._phrases[first] = max(self._phrases.get(first, 0), key.count(" ") + 1)
        self._found = lru_cache(maxsize=8_192)(self._look_up)

    def has(self, word: str) -> bool:
        """Whether a lower-case word or its base form is known and not an English word."""
        return _english_like().isdisjoint((word, word.removesuffix("s"))) and self.knows(word)

    def knows(self, word: str) -> bool:
        """Whether a lower-case word or its base form is in the tables."""
        return word in self._meanings or bool(self._base(fold(word)))

    def translate(self, text: str) -> str:
        """Replace the known words of a text with English."""
        spans = [found.span() for found in _WORD.finditer(text)]
        words = [text[start:end].lower() for start, end in spans]
        parts: list[str] = []
        at, done = 0, 0
        while at < len(words):
            size, english = self._phrase(text, spans, words, at)
            if not size:
                size, english = 1, self._word(text, spans[at], words[at])
            start, end = spans[at][0], spans[at + size - 1][1]
            if english:
                gap = text[done:start]
                parts += [" " if gap in _BETWEEN else gap, english]
                done = end
            at += size
        parts.append(text[done:])
        return "".join(parts).translate(_SPANISH_MARKS)

    def _phrase(self, text: str, spans: list[tuple[int, int]], words: list[str], at: int) -> tuple[int, str]:
        """The length of the longest known phrase that starts here, in words, and its English."""
        most = min(self._phrases.get(words[at], 0), len(words) - at)
        for size in range(most, 1, -1):
            joined = all(text[spans[one][1] : spans[one + 1][0]] in _BETWEEN for one in range(at, at + size - 1))
            if joined and (english := self._meanings.get(" ".join(words[at : at + size]))):
                return size, english
        return 0, ""

    def _word(self, text: str, span: tuple[int, int], word: str) -> str:
        """The English for a word; "" if it stays, such as a capitalised name within a sentence."""
        written = text[span[0] : span[1]]
        inside = self._language != "de" and written[0].isupper() and text[: span[0]].rstrip()[-1:].isalnum()
        if written.isupper() and len(written) > 1:
            return ""
        return self._meanings.get(word, "") if inside else self._found(word)

    def _look_up(self, word: str) -> str:
        if exact := self._meanings.get(word):
            return exact
        plain = fold(word)
        if found := self._base(plain):
            return found
        if self._language == "de":
            for spelled, umlaut in _SPELLED_UMLAUTS:
                if spelled in plain and (found := self._base(plain.replace(spelled, umlaut))):
                    return found
        parts = compound_parts(plain, self._language, self._meanings)
        return " ".join(self._base(part) or part for part in parts) if parts else ""

    def _base(self, plain: str) -> str:
        return next((self._meanings[base] for base in base_forms(plain, self._language) if base in self._meanings), "")


def translate(text: str) -> str:
    """Translate a text; English and unknown languages are returned unchanged."""
    return _translate_short(text) if len(text) <= MAX_CACHED_CHARS else _translate(text)


def _translate(text: str) -> str:
    language = language_of(text)
    if not language:
        return text
    return dictionary(language).translate(text[:MAX_CHARS]) + text[MAX_CHARS:]


_translate_short = lru_cache(maxsize=256)(_translate)


def translation(text: str) -> str:
    """The translation of a text; "" if there is nothing to translate."""
    english = translate(text)
    return english if english != text else ""


@cache
def dictionary(language: str) -> Dictionary:
    """The dictionary of one of `LANGUAGES`, read once."""
    lines = (DATA / "translations" / f"{language}.txt").read_text("utf-8").splitlines()
    return Dictionary(language, dict(line.split("\t") for line in lines))


@cache
def _english_like() -> frozenset[str]:
    """English words that are also in a table of another language."""
    return frozenset((DATA / "translations" / "english.txt").read_text("utf-8").split())
