"""Removes the characters that nobody sees from a text that is stored.

Those that a script or an emoji needs stay: joiners in Persian and Indic words and in emoji, variation selectors behind emoji and
ideographs, spaces of no width in scripts without spaces, direction marks in texts that are written from right to left.
"""

import re

from engram.model.lazy import lazy_pattern
from engram.text.display import DOUBTFUL, HIDDEN, INVISIBLE, UNASSIGNED

__all__ = ["remove_invisible"]

_DIRECTION_MARKS = "\u200e\u200f\u061c"
_RIGHT_TO_LEFT = lazy_pattern("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001eeff]")
_NEEDED = lazy_pattern(
    # Ideographs have variants; Khmer, old Korean and scripts without spaces have signs of their own.
    "(?<=[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])[\ufe00-\ufe0f\U000e0100-\U000e01ef]"
    "|(?<=[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff])\u200b(?=[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff])"
    "|(?<=[\u1780-\u17b3])[\u17b4\u17b5]"
    "|[\u115f\u1160](?=[\u1160-\u11ff\ud7b0-\ud7ff])|(?<=[\u1100-\u115f\ua960-\ua97f])\u1160"
)
_BLANK_WORDS = lazy_pattern("(?:[^\\W\\d_]|[\u200b\u3164\uffa0\u115f\u1160\u2800]){25,}")
_BLANKS = lazy_pattern("[\u200b\u3164\uffa0\u115f\u1160\u2800]+")
_SHOWN_BLANK = "\u2800"


def remove_invisible(text: str) -> str:
    """The text without invisible characters that no script and no emoji in it needs; a blank that separates words becomes a space."""
    if text.isascii() or DOUBTFUL.search(text) is None:
        return text
    text = _BLANK_WORDS.sub(_with_spaces, text)
    is_right_to_left = _RIGHT_TO_LEFT.search(text) is not None

    def keep_visible(found: re.Match[str]) -> str:
        char = found[0]
        if found["flag"] or not INVISIBLE.match(char) or UNASSIGNED.match(char):
            return char
        if char == _SHOWN_BLANK:
            return " "
        is_needed = _NEEDED.match(text, found.start()) or (is_right_to_left and char in _DIRECTION_MARKS)
        return char if is_needed else ""

    return HIDDEN.sub(keep_visible, text)


def _with_spaces(found: re.Match[str]) -> str:
    """A run of letters longer than any word, with spaces for the blanks that divide it."""
    parts = _BLANKS.split(found[0])
    return " ".join(parts) if len(parts) > 2 else found[0]
