"""Where a text may be cut without breaking what a reader sees as one character."""

import unicodedata

__all__ = ["continues", "safe_cut"]

# Real clusters (flags, families, accents) are shorter; a longer run of marks is noise that may be cut anywhere.
LONGEST_CLUSTER = 64

_JOINER = "\u200d"
_LINE_ENDS = "\r\n\x0b\x0c\x85\u2028\u2029"


def safe_cut(text: str, at: int, floor: int = 0) -> int:
    """The nearest place at or before `at` between two whole characters; `at` itself if there is none after `floor`."""
    cut = at
    while floor < cut < len(text) and continues(text, cut):
        cut -= 1
        if at - cut >= LONGEST_CLUSTER:
            return at
    return cut if cut > floor else at


def continues(text: str, at: int) -> bool:
    """Whether the character at `at` belongs to the one before it: marks, joined emoji, flags, jamo, surrogates, CRLF."""
    before, here = text[at - 1], text[at]
    if before in _LINE_ENDS:
        return before == "\r" and here == "\n"
    if here < "\u0300":
        return before == _JOINER
    if before == _JOINER or here == _JOINER or _extends(here):
        return True
    if _is_flag(here) and _is_flag(before):
        return _flags_before(text, at) % 2 == 1
    if "\udc00" <= here <= "\udfff":
        return "\ud800" <= before <= "\udbff"
    return _is_jamo_tail(here) and ("\u1100" <= before <= "\u11ff" or "\uac00" <= before <= "\ud7a3")


def _extends(char: str) -> bool:
    """Marks, skin tones, the tags of regional flags."""
    return (
        unicodedata.category(char)[0] == "M"
        or "\U0001f3fb" <= char <= "\U0001f3ff"
        or "\U000e0020" <= char <= "\U000e007f"
    )


def _is_flag(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _is_jamo_tail(char: str) -> bool:
    return "\u1160" <= char <= "\u11ff"


def _flags_before(text: str, at: int) -> int:
    count = 0
    while count < min(at, LONGEST_CLUSTER) and _is_flag(text[at - 1 - count]):
        count += 1
    return count
