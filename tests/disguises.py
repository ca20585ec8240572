"""Texts that look like others: characters that nobody sees, letters that look Latin, marks, other forms of letters, entities."""

from codecs import encode
from collections.abc import Callable
from functools import cache, partial
from sys import maxunicode
from unicodedata import name

import regex
from hypothesis import strategies as st

from engram.text.words import read_table

MARKS = "\u0332\u0336\u0338\u035c\u20d2\u1dc4\ufe20"
ACCENTS = "\u0301\u0308\u0327"


@cache
def ignorables() -> str:
    """Every character with Unicode's property Default_Ignorable_Code_Point: soft hyphens, joiners, selectors, tags, directions."""
    has_property = regex.compile(r"\p{Default_Ignorable_Code_Point}").match
    return "".join(char for char in map(chr, range(maxunicode + 1)) if has_property(char))


@cache
def lookalikes(accents: bool) -> dict[str, str]:
    """The letters that look like each ASCII letter; without `accents`, those of other scripts alone."""
    return {
        letter: "".join(char for char in alike if char.isalpha() and (accents or "LATIN" not in name(char)))
        for letter, alike in read_table("confusables.txt")
    }


@st.composite
def disguised(draw: st.DrawFn, text: str, accents: bool = True) -> str:
    """A text that a reader takes for the same, with one to six of its letters disguised; without `accents`, not by those that names have."""
    characters = list(text)
    letters = [place for place, char in enumerate(text) if char.isascii() and char.isalpha()]
    for place in draw(st.lists(st.sampled_from(letters), min_size=1, max_size=6, unique=True)):
        characters[place] = draw(_disguise(text[place], accents))
    return "".join(characters)


@st.composite
def _disguise(draw: st.DrawFn, letter: str, accents: bool) -> str:
    ways = [
        st.sampled_from(ignorables()).map(lambda char: letter + char),
        st.sampled_from(ignorables()).map(lambda char: char + letter),
        st.sampled_from(MARKS + ACCENTS * accents).map(lambda mark: letter + mark),
        st.sampled_from((f"&#{ord(letter)};", f"&#x{ord(letter):x};", f"{letter}&shy;", f"{letter}&zwnj;")),
        st.just(chr(ord(letter) - 0x20 + 0xFF00)),
        st.just(chr(ord(letter) - ord("A") + 0x1D400) if letter.isupper() else chr(ord(letter) - ord("a") + 0x1D41A)),
    ]
    if alike := lookalikes(accents).get(letter):
        ways += [st.sampled_from(alike)] * 2
    return draw(st.one_of(ways))


OTHER_MARKS = "\u064b\u05b0\u0951\u0e48\U0001d165"
SEPARATORS = ("/", "_", "·", " 🔥 ", " + ", "  ", "\n", " | ", "...")


def boxed(letter: str, first: int) -> str:
    """A letter in the form whose A is this character."""
    return chr(first + ord(letter.upper()) - ord("A"))


def separate(mark: str, text: str) -> str:
    """A text with a mark in place of its spaces."""
    return text.replace(" ", mark)


WHOLE_TEXT: dict[str, Callable[[str], str]] = {
    "other marks": lambda text: "".join(char + OTHER_MARKS[ord(char) % 5] if char.isalpha() else char for char in text),
    "negative squares": lambda text: "".join(boxed(char, 0x1F170) if char.isalpha() else char for char in text),
    "negative circles": lambda text: "".join(boxed(char, 0x1F150) if char.isalpha() else char for char in text),
    "regional indicators": lambda text: "".join(boxed(char, 0x1F1E6) if char.isalpha() else char for char in text),
    "brackets": lambda text: "".join(boxed(char, 0x249C) if char.isalpha() else char for char in text),
    "percent escapes": lambda text: text.replace("a", "%61").replace("e", "%65").replace("i", "%69"),
    "backslash escapes": lambda text: text.replace("a", "\\x61").replace("e", "\\u0065"),
    "spaced letters": lambda text: "  ".join(" ".join(word) for word in text.split()),
    "letters with one space": lambda text: " ".join(text.replace(" ", "")),
    "camel case": lambda text: "".join(word[:1].upper() + word[1:] for word in text.split()),
    "no spaces": lambda text: text.replace(" ", ""),
    "hyphens": lambda text: " ".join(f"{word[:2]}-{word[2:]}" if len(word) > 3 else word for word in text.split()),
    "spaces inside words": lambda text: " ".join(
        f"{word[:3]} {word[3:]}" if len(word) > 5 else word for word in text.split()
    ),
    "bold inside words": lambda text: " ".join(
        f"{word[0]}**{word[1:]}**" if len(word) > 3 else word for word in text.split()
    ),
    "tags inside words": lambda text: " ".join(f"{word[:2]}<b></b>{word[2:]}" for word in text.split()),
    "links": lambda text: " ".join(f"[{word}](https://x.example)" for word in text.split()),
    "turned around": lambda text: text[::-1],
    "words turned around": lambda text: " ".join(word[::-1] for word in text.split()),
    "rotated": lambda text: encode(text, "rot13"),
    "octal": lambda text: "".join(f"\\{ord(char):03o}" for char in text),
    "hexadecimal": lambda text: text.encode().hex(" "),
    **{f"separated by {mark!r}": partial(separate, mark) for mark in SEPARATORS},
}
"""Ways to write a whole text that a reader takes for the same, and that folding of single characters does not undo."""
