"""Lexical data on single words: classes from the tables in `data/`, English stems, and kinds of verbs."""

import re
from functools import lru_cache
from pathlib import Path

__all__ = [
    "DATA",
    "PAST_AUXILIARIES",
    "SUBJECTS",
    "find_hedge",
    "hedge_pattern",
    "is_act",
    "is_participle",
    "is_past",
    "kind_of",
    "read_table",
    "revises",
    "stem",
    "word_class",
    "word_of",
]

DATA = Path(__file__).parent / "data"


def read_table(name: str) -> list[list[str]]:
    """The rows of a file in `data/`: words split on spaces, `#` starts a comment."""
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    rows = [line.partition("#")[0].split() for line in lines]
    return [row for row in rows if row]


@lru_cache(maxsize=8)
def _classes(table: str) -> dict[str, frozenset[str]]:
    classes: dict[str, set[str]] = {}
    for label, *rest in read_table(f"{table}.txt"):
        classes.setdefault(label, set()).update(rest)
    return {label: frozenset(members) for label, members in classes.items()}


def word_class(table: str, label: str) -> frozenset[str]:
    """The words of one class of a table, in which each row is a class and some of its words."""
    return _classes(table)[label]


@lru_cache(maxsize=16)
def _phrases(classes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(phrase.replace("_", " ") for name in classes for phrase in word_class("hedges", name)))


def find_hedge(prepared: str, *classes: str) -> str:
    """The first hedge of these classes in a text of words between single spaces; "" for none."""
    return next((phrase for phrase in _phrases(classes) if f" {phrase} " in prepared), "")


def hedge_pattern(*classes: str) -> str:
    """The hedges of these classes as alternatives of a regular expression, to be put between word boundaries."""
    return "|".join(_phrases(classes))


_VOWELS = "aeiouy"
_DOUBLES = ("bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt")
_LI_ENDINGS = "cdeghkmnrt"

# Porter2's own exceptions: stems of whole words, and words left alone after step 1a.
_EXCEPTIONS = {
    "skis": "ski",
    "skies": "sky",
    "idly": "idl",
    "gently": "gentl",
    "ugly": "ugli",
    "early": "earli",
    "only": "onli",
    "singly": "singl",
    **{word: word for word in ("sky", "news", "howe", "atlas", "cosmos", "bias", "andes")},
}
_AFTER_PLURAL = frozenset(
    ("inning", "outing", "canning", "herring", "earring", "proceed", "exceed", "succeed", "evening")
)

_STEP_2 = (
    ("ization", "ize"),
    ("ational", "ate"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("iveness", "ive"),
    ("tional", "tion"),
    ("biliti", "ble"),
    ("lessli", "less"),
    ("entli", "ent"),
    ("ation", "ate"),
    ("alism", "al"),
    ("aliti", "al"),
    ("ousli", "ous"),
    ("iviti", "ive"),
    ("fulli", "ful"),
    ("ogist", "og"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("abli", "able"),
    ("izer", "ize"),
    ("ator", "ate"),
    ("alli", "al"),
    ("bli", "ble"),
    ("ogi", "og"),
    ("li", ""),
)
_STEP_3 = (
    ("ational", "ate"),
    ("tional", "tion"),
    ("alize", "al"),
    ("icate", "ic"),
    ("iciti", "ic"),
    ("ative", ""),
    ("ical", "ic"),
    ("ness", ""),
    ("ful", ""),
)
_ENDINGS_2, _ENDINGS_3 = (tuple(suffix for suffix, _ in step) for step in (_STEP_2, _STEP_3))
_STEP_4: tuple[str, ...] = ("ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism")
_STEP_4 += ("ate", "iti", "ous", "ive", "ize", "ion", "al", "er", "ic")

_REGION = re.compile(r"[aeiouy][^aeiouy]")
_LONG_PREFIX = re.compile(r"gener|commun|arsen|univers|later|emerg|organ|inter")
_CONSONANT_Y = re.compile(r"(^|[aeiouy])y")
_HAS_VOWEL = re.compile(r"[aeiouy]")
_SHORT_SYLLABLE = re.compile(r"(?:^[aeiouy][^aeiouy]|[^aeiouy][aeiouy][^aeiouywxY])$")


@lru_cache(maxsize=1)
def stop_words() -> frozenset[str]:
    """English words that connect others."""
    return frozenset(word for row in read_table("stopwords.txt") for word in row)


@lru_cache(maxsize=1)
def infinitives() -> dict[str, str]:
    """The infinitive of each irregular form."""
    return {form: row[0] for row in read_table("irregular.txt") for form in row[1:]}


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """The stem under which `word` is indexed; deterministic.

    `stem` takes a word in the form of `tokens` (casefolded, no apostrophe). A word with anything but ASCII letters is
    its own stem, so other scripts are unchanged.
    """
    word = infinitives().get(word, word)
    if len(word) < 3 or not (word.isascii() and word.isalpha()):
        return word
    if word in _EXCEPTIONS:
        return _EXCEPTIONS[word]
    return _porter2(word)


def word_of(term: str) -> str:
    """The most common English word with this stem; the term itself if unknown."""
    return _words().get(term, term)


@lru_cache(maxsize=1)
def _words() -> dict[str, str]:
    lines = (DATA / "words.txt").read_text(encoding="utf-8").splitlines()
    return {term: word for term, _, word in (line.partition(" ") for line in lines if line[0] != "#")}


def _porter2(word: str) -> str:
    word = _CONSONANT_Y.sub(r"\1Y", word) if "y" in word else word
    r1, r2 = _regions(word)
    word = _plural(word)
    if word.lower() in _AFTER_PLURAL:
        return word.lower()
    word = _past_and_gerund(word, r1)
    if len(word) > 2 and word[-1] in "yY" and word[-2] not in _VOWELS:
        word = word[:-1] + "i"
    # Most words have none of the endings, and testing for all at once costs as much as testing for two.
    if word.endswith(_ENDINGS_2):
        word = _replace_suffix(word, _STEP_2, r1, r2)
    if word.endswith(_ENDINGS_3):
        word = _replace_suffix(word, _STEP_3, r1, r2)
    if word.endswith(_STEP_4):
        word = _drop_suffix(word, r2)
    return _final_letter(word, r1, r2).lower()


def _regions(word: str) -> tuple[int, int]:
    """The starts of R1 and R2: after the first (and second) non-vowel that follows a vowel."""
    prefix = _LONG_PREFIX.match(word)
    first = prefix if prefix else _REGION.search(word)
    if not first:
        return len(word), len(word)
    second = _REGION.search(word, first.end())
    return first.end(), second.end() if second else len(word)


def _plural(word: str) -> str:
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith(("ied", "ies")):
        return word[:-2] if len(word) > 4 else word[:-1]
    if word.endswith(("us", "ss")) or not word.endswith("s"):
        return word
    return word[:-1] if _HAS_VOWEL.search(word, 0, len(word) - 2) else word


def _past_and_gerund(word: str, r1: int) -> str:
    if word.endswith(("eed", "eedly")):
        cut = 3 if word.endswith("eed") else 5
        return word[:-cut] + "ee" if len(word) - cut >= r1 else word
    for suffix in ("ingly", "edly", "ing", "ed"):
        if word.endswith(suffix):
            base = word[: -len(suffix)]
            return _restore_ending(base, r1) if _HAS_VOWEL.search(base) else word
    return word


def _restore_ending(base: str, r1: int) -> str:
    """Restore the word after -ed or -ing was removed: hoped → hope, hopped → hop."""
    if base.endswith(("at", "bl", "iz")):
        return base + "e"
    if base.endswith(_DOUBLES) and not (len(base) == 3 and base[0] in "aeo"):
        return base[:-1]
    return base + "e" if len(base) <= r1 and _SHORT_SYLLABLE.search(base) else base


def _replace_suffix(word: str, table: tuple[tuple[str, str], ...], r1: int, r2: int) -> str:
    for suffix, replacement in table:
        if not word.endswith(suffix):
            continue
        start = len(word) - len(suffix)
        allowed = start >= r1 and not (
            (suffix == "ogi" and word[start - 1] != "l")
            or (suffix == "li" and word[start - 1] not in _LI_ENDINGS)
            or (suffix == "ative" and start < r2)
        )
        return word[:start] + replacement if allowed else word
    return word


def _drop_suffix(word: str, r2: int) -> str:
    for suffix in _STEP_4:
        if word.endswith(suffix):
            start = len(word) - len(suffix)
            allowed = start >= r2 and (suffix != "ion" or word[start - 1] in "st")
            return word[:start] if allowed else word
    return word


def _final_letter(word: str, r1: int, r2: int) -> str:
    last = len(word) - 1
    if word.endswith("e") and (last >= r2 or (last >= r1 and not _SHORT_SYLLABLE.search(word[:-1]))):
        return word[:-1]
    if word.endswith("ll") and last >= r2:
        return word[:-1]
    return word


PAST_AUXILIARIES = frozenset((
    "did", "didn't", "didnt", "was", "wasn't", "wasnt", "were", "weren't", "werent", "had", "hadn't", "hadnt",
    "what'd", "how'd", "who'd", "where'd", "why'd", "when'd",
))  # fmt: skip
SUBJECTS = frozenset((
    "i", "we", "you", "he", "she", "they", "it", "who", "that", "which", "what", "everyone", "someone", "anyone",
    "nobody",
))  # fmt: skip
"""Words that a finite verb follows directly."""


@lru_cache(maxsize=1)
def _kinds() -> dict[str, str]:
    return {stem(word): label for label in ("change", "say", "habit", "state") for word in word_class("verbs", label)}


@lru_cache(maxsize=8192)
def kind_of(word: str) -> str:
    """The kind of a verb in any form: "state", "habit", "say" or "change"; "" for any other word."""
    return _kinds().get(stem(word), "")


@lru_cache(maxsize=8)
def _stems(label: str) -> frozenset[str]:
    return frozenset(stem(word) for word in word_class("verbs", label))


def is_act(word: str) -> bool:
    """Whether the word is one of the most common action verbs; any verb without a kind is an action verb, listed or not."""
    return stem(word) in _stems("act")


def revises(word: str, *, loosely: bool = False) -> bool:
    """Whether the verb changes the value of a fact (move, rename); with `loosely`, also the form of a thing (edit, migrate)."""
    return stem(word) in _stems("revise") or (loosely and stem(word) in _stems("redo"))


def _ends_as_past(word: str) -> bool:
    return len(word) > 3 and word.endswith("ed") and word not in word_class("verbs", "not_past")


def is_past(word: str, same: bool = False) -> bool:
    """Whether the word is a past form; `same` also accepts forms equal to the infinitive ("set", "read")."""
    if word in word_class("verbs", "past_same"):
        return same
    return word in word_class("verbs", "past") or _ends_as_past(word)


def is_participle(word: str) -> bool:
    """Whether the word can follow "have" or "was": done, told, deployed."""
    return is_past(word, same=True) or word in word_class("verbs", "participle")
