"""Invisible characters: one set for displaying, inspecting and matching texts; and readable handles for texts."""

import re

from engram.model.lazy import lazy_pattern

# Default_Ignorable_Code_Point of Unicode's DerivedCoreProperties.txt; the standard library does not have it.
_IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# Fillers and blanks that count as letters or symbols; hieroglyphs' format controls; joiners and annotation marks.
_BLANK = "\u115f\u1160\u2800\u3164\uffa0\ufffc\U00013430-\U00013442\U00016fe4\U0001107f\U0001d159"
_ANNOTATION = "\ufff9-\ufffb"
# Private use, no characters at all, and the planes nothing is assigned in.
_UNASSIGNED = (
    "\ue000-\uf8ff\ufdd0-\ufdef\ufffe\uffff\U0001fffe\U0001ffff\U0002fffe\U0002ffff\U0003fffe-\U000dffff"
    "\U000e1000-\U0010ffff"
)
BLANK = lazy_pattern(f"[{_BLANK}\u200b]")
"""A character that may be shown as a space or as nothing."""
INVISIBLE = lazy_pattern(f"[{_IGNORABLE}{_BLANK}{_ANNOTATION}{_UNASSIGNED}]")
"""A character that is never visible."""

# Legitimate uses: joiners and selectors in emoji, joiners in scripts with joined letters, Mongolian selectors, and the flags of
# England, Scotland and Wales, which are spelled in tag characters.
_EMOJI = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_INDIC = "\u0900-\u0dff"
_JOINING = (
    f"{_INDIC}\u0620-\u074f\u0750-\u077f\u07c0-\u085f\u0870-\u08ff\u0e00-\u109f\u1780-\u17b3\u17b6-\u17ff\u1820-\u18aa"
    "\u1a20-\u1b7f\ua980-\ua9df\uaa60-\uaa7f\uabc0-\uabff\ufb50-\ufdcf\ufdf0-\ufdff\ufe70-\ufefc\U00011000-\U0001107e"
    "\U00011080-\U000114ff\U0001e900-\U0001e95f"
)
_FLAG = "\U0001f3f4\U000e0067\U000e0062[\U000e0061-\U000e007a]{3}\U000e007f"
_CONTROL = "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
_NEEDED = "\u200c\u200d\ufe0e\ufe0f\u180b-\u180f"
HIDDEN = lazy_pattern(
    # One class test rules out nearly every character.
    f"(?=[{_CONTROL}{_IGNORABLE}{_BLANK}{_ANNOTATION}{_UNASSIGNED}\U0001f3f4])"
    f"(?:(?P<flag>{_FLAG})|[^{_NEEDED}\U0001f3f4]"
    "|(?<![\u1820-\u18aa])[\u180b-\u180f]"
    f"|(?<![{_EMOJI}])(?<![0-9#*](?=\ufe0f\u20e3))[\ufe0e\ufe0f]"
    f"|(?<![{_JOINING}])\u200c|\u200c(?![{_JOINING}])"
    f"|(?<![{_JOINING}{_EMOJI}\ufe0f\U000e007f])\u200d|(?<=[{_EMOJI}\ufe0f\U000e007f])\u200d(?![{_EMOJI}])"
    f"|(?<=[{_JOINING}])(?<![{_INDIC}])\u200d(?![{_JOINING}])|(?<=[{_INDIC}])\u200d(?=[{_IGNORABLE}{_BLANK}]))"
)
"""A character that moves the cursor, reverses the reading order, or is invisible without a legitimate use. Matches of the group
`flag` are legitimate."""


def shown(text: str) -> str:
    """The text with hidden characters escaped, so that it cannot move the cursor or hide; line breaks are kept."""
    return text if text.isprintable() and text.isascii() else HIDDEN.sub(_escaped, text)


def one_line(text: str) -> str:
    """The text on one line, with hidden characters escaped."""
    return shown(" ".join(text.split()))


def visible_json(dumped: str) -> str:
    """The same JSON with hidden characters escaped, because people and agents read it as text."""
    # JSON itself escapes every other control character.
    if dumped.isascii() and "\x7f" not in dumped:
        return dumped
    return HIDDEN.sub(_json_escaped, dumped)


def _json_escaped(found: re.Match[str]) -> str:
    import json

    return found[0] if found["flag"] else json.dumps(found[0])[1:-1]


def _escaped(found: re.Match[str]) -> str:
    if found["flag"]:
        return found[0]
    code = ord(found[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_WORD = re.compile(r"[^\W_]+")


def slug(text: str, words: int = 6, length: int = 48) -> str:
    """A readable handle from the first words of a text."""
    found = _WORD.findall(text[:400].lower())
    chosen = found[:words]
    while len(handle := "-".join(chosen)) > length:
        chosen.pop()
    return handle or "-".join(found)[:length]
