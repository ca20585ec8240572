"""Base forms of inflected words of six languages.

`base_forms` proposes forms and the caller looks them up: "facturas" may come from "factura" or "facturar". `data/endings.txt` has the
endings; `data/compounds.txt` has the infixes of German and Dutch verbs and the links of compounds.
"""

import unicodedata
from collections.abc import Container, Iterator
from functools import cache

from engram.text.word_tables import read_table

__all__ = ["base_forms", "compound_parts", "fold"]

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
    """Possible base forms of a folded word: the word itself, then the others, likelier ones first."""
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
