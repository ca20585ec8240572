"""Truncates a text: at a word boundary if one is near, never inside a grapheme cluster."""

import unicodedata
from collections.abc import Callable

__all__ = ["ELLIPSIS", "cut", "longest_fitting"]

ELLIPSIS = "…"
"""Marks the place where text was cut."""
_JOINERS = "\u200c\u200d\ufe0e\ufe0f"
# Characters of the first attempt; each next one doubles it.
_FIRST_LOOK = 64


def cut(text: str, size: int) -> str:
    """At most `size` characters, back to the last word boundary, and an ellipsis; the text itself if it is no longer.

    Where a word reaches back over half of them (an address, a script without spaces) it is cut inside.
    """
    if len(text) <= size:
        return text
    end = size
    if not text[end].isspace():
        space = max(text.rfind(" ", 0, end), text.rfind("\n", 0, end))
        end = space if 2 * space >= size else _whole_character(text, end)
    return text[:end].rstrip() + ELLIPSIS


def longest_fitting(text: str, fits: Callable[[str], bool], least: int) -> str:
    """The longest cut of a text that fits, but never fewer than `least` characters.

    Looks are taken at doubling lengths first, so that a long text costs no more than what is kept of it.
    """
    low, high = least, max(least, _FIRST_LOOK)
    while high < len(text) and fits(cut(text, high)):
        low, high = high, 2 * high
    if high >= len(text):
        if fits(text):
            return text
        high = len(text)
    while high - low > 1:
        middle = (low + high) // 2
        if fits(cut(text, middle)):
            low = middle
        else:
            high = middle
    return cut(text, low)


def _whole_character(text: str, end: int) -> int:
    """The position before a letter whose accents or joined parts would be cut off."""
    while end > 0 and (_is_attached(text[end]) or text[end - 1] in _JOINERS):
        end -= 1
    return end


def _is_attached(char: str) -> bool:
    return char in _JOINERS or bool(unicodedata.combining(char))
