"""Translates six languages into English word by word, so that a question finds memories in another language; it detects the language and finds the base forms of words.

The result is for the index and the bundled embedder, not for readers. It keeps the word order, and words that the tables lack (names,
identifiers). training/build_translations.py writes the tables.
"""

import unicodedata
from collections.abc import Container, Iterator
from functools import cache, lru_cache

from engram.model.lazy import lazy_pattern
from engram.text.words import DATA, read_table

__all__ = [
    "ENGLISH",
    "LANGUAGES",
    "WORD",
    "Dictionary",
    "base_forms",
    "compound_parts",
    "dictionary",
    "fold",
    "language_of",
    "translate",
    "translation",
]

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
    """The language of a text, one of `LANGUAGES`; "" for English and all others.

    English costs next to nothing: two set operations recognise it.
    """
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

    return max(languages, key=lambda language: sum(dictionary(language).has(word) for word in words))


def _guess_by_vocabulary(words: list[str]) -> str:
    """The language that knows at least half of a few words; "" if none does."""
    if not words or len(words) > MAX_KEYWORDS:
        return ""

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


MIN_STEM = 2
"""Letters left of a word after its ending is removed."""
MIN_PART = 3
"""Letters of the shortest part of a compound."""
MAX_COMPOUND_CHARS = 40
_VOWELS = frozenset("aeiou")


def fold(word: str) -> str:
    """Remove the accents of a lower-case word: "für" becomes "fur", "weiß" "weiss"."""
    if word.isascii():
        return word
    plain = unicodedata.normalize("NFD", word.replace("ß", "ss").replace("œ", "oe").replace("æ", "ae"))
    return "".join(char for char in plain if not unicodedata.combining(char))


def base_forms(word: str, language: str) -> Iterator[str]:
    """Possible base forms of a folded word: the word itself, then the others, the most likely first.

    `base_forms` proposes forms and the caller looks them up: "facturas" may come from "factura" or "facturar".
    `data/endings.txt` has the endings; `data/compounds.txt` has the infixes of German and Dutch verbs and the links of
    compounds.
    """
    yield word
    for stem in _remove_infix(word, language):
        if stem != word:
            yield stem
        for ending, bases in _endings(language):
            cut = len(stem) - len(ending)
            if cut >= MIN_STEM and stem.endswith(ending):
                root = stem[:cut]
                for base in bases:
                    yield from (root + base for root in _respell(root, language, base))
        if _affixes(language, "infix") and not stem.endswith("en"):
            yield from (root + "en" for root in _respell(stem, language, "en"))


def compound_parts(word: str, language: str, known: Container[str]) -> tuple[str, str] | None:
    """The two parts of a German or Dutch compound, with the longest known last part; None if there is none."""
    if not _affixes(language, "link") or not 2 * MIN_PART <= len(word) <= MAX_COMPOUND_CHARS:
        return None
    for cut in range(MIN_PART, len(word) - MIN_PART + 1):
        if not any(base in known for base in base_forms(word[cut:], language)):
            continue
        for link in _affixes(language, "link"):
            first = word[: cut - len(link)] if link else word[:cut]
            if word[:cut].endswith(link) and len(first) >= MIN_PART and _is_known(first, language, known):
                return first, word[cut:]
    return None


def _is_known(part: str, language: str, known: Container[str]) -> bool:
    return any(base in known for base in (part, f"{part}e", f"{part}en", *_respell(part, language, "en")))


def _remove_infix(word: str, language: str) -> Iterator[str]:
    yield word
    for prefix in _affixes(language, "prefix"):
        for infix in _affixes(language, "infix"):
            if word.startswith(prefix + infix) and len(word) - len(prefix) >= len(infix) + 3:
                yield prefix + word[len(prefix) + len(infix) :]


def _respell(root: str, language: str, base: str) -> Iterator[str]:
    """Spellings of a root in the base form: Dutch "maak" becomes "mak" ("maken"), "katt" becomes "kat"; Spanish "cuest" becomes "cost" ("costar")."""
    yield root
    if language == "es" and base in ("ar", "er", "ir"):
        for changed, plain in (("ue", "o"), ("ie", "e"), ("i", "e")):
            at = root.rfind(changed)
            if at > 0:
                yield root[:at] + plain + root[at + len(changed) :]
    if language != "nl" or len(root) < 2:
        return
    last, before = root[-1], root[-2]
    if base.startswith("e"):
        if len(root) > 2 and last not in _VOWELS and before in _VOWELS and root[-3] == before:
            single = root[:-2] + last
            yield single
            yield single[:-1] + {"f": "v", "s": "z"}.get(last, last)
        elif last not in _VOWELS and before in _VOWELS:
            yield root + last
        if last in "fs":
            yield root[:-1] + {"f": "v", "s": "z"}[last]
    elif last == before and last not in _VOWELS:
        yield root[:-1]
    elif last not in _VOWELS and before in _VOWELS:
        voiceless = {"v": "f", "z": "s"}.get(last, last)
        yield root[:-1] + before + voiceless
        yield root[:-1] + voiceless


@cache
def _endings(language: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple(
        (ending, tuple("" if base == "-" else base for base in bases))
        for own, ending, *bases in read_table("endings.txt")
        if own == language
    )


@cache
def _affixes(language: str, kind: str) -> tuple[str, ...]:
    rows = (affixes for own, label, *affixes in read_table("compounds.txt") if (own, label) == (language, kind))
    return tuple("" if affix == "-" else affix for affixes in rows for affix in affixes)


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
