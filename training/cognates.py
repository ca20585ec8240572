"""Words that differ from English only in spelling: "information" is "información" and "informazione".

training/translations/cognates.txt has the endings; this module has the spelling changes before them.
"""

import re
from collections.abc import Iterator, Sequence

__all__ = ["spell_cognates"]

MIN_ROOT = 3
_DOUBLES = (r"([bcdfgklmnpt])\1", r"\1")
_GREEK = (("ph", "f"), ("th", "t"), ("rh", "r"))
_LETTERS: dict[str, Sequence[tuple[str, str]]] = {
    "de": (("c(?![heiy])", "k"), ("c(?=[eiy])", "z")),
    "es": (*_GREEK, ("y", "i"), ("ss", "s"), _DOUBLES, ("^s(?=[cpt])", "es"), ("qu(?=[ao])", "cu")),
    "fr": (),
    "it": (*_GREEK, ("y", "i"), ("ct", "tt"), ("pt", "tt"), ("x", "s"), ("^h", ""), ("j", "g")),
    "pt": (*_GREEK, ("y", "i"), ("ct", "t"), _DOUBLES, ("^s(?=[cpt])", "es")),
    "nl": (*_GREEK, ("c(?![heiy])", "k"), ("ss", "s")),
}


def spell_cognates(word: str, language: str, endings: Sequence[tuple[str, Sequence[str]]]) -> Iterator[str]:
    """Possible spellings of an English word in a language; none if no ending matches."""
    for ending, spelled in endings:
        root = word[: -len(ending)]
        if word.endswith(ending) and len(root) >= MIN_ROOT:
            changed = root
            for pattern, letters in _LETTERS[language]:
                changed = re.sub(pattern, letters, changed)
            yield from (each + other for each in dict.fromkeys((changed, root)) for other in spelled)
            return
