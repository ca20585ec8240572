"""Texts that look like others: characters that nobody sees, letters that look Latin, marks, other forms of letters, entities."""

from functools import cache
from sys import maxunicode
from unicodedata import name

import regex
from hypothesis import strategies as st

from engram.text.word_tables import read_table

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
