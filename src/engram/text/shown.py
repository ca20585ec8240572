"""Text as it may be shown: what nobody can see is written out."""

import re

__all__ = ["HIDDEN", "one_line", "shown", "visible_json"]

_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_OTHER_SCRIPTS = "[^\x00-\x7f\u200b-\u200f]"
# The flags of England, Scotland and Wales are spelled in tag characters; joiners shape Persian and join emoji; one
# selector behind a character chooses how it looks. Anything else of their kind hides something.
_FLAG = "\U0001f3f4\U000e0067\U000e0062[\U000e0061-\U000e007a]{3}\U000e007f"
HIDDEN = re.compile(
    f"(?P<flag>{_FLAG})"
    "|[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff]"
    f"|(?<!{_OTHER_SCRIPTS})[\u200c\u200d]|[\u200c\u200d](?!{_OTHER_SCRIPTS})"
    f"|(?<=[{_SELECTORS}])[{_SELECTORS}]|[\U0001d173-\U0001d17a\U000e0000-\U000e00ff]"
)
"""A character that moves the cursor, turns the reading order, or cannot be seen. The group `flag` is to be left alone."""


def shown(text: str) -> str:
    """The text with hidden characters as escapes: a memory cannot move the cursor or hide itself. Line breaks stay."""
    return text if text.isprintable() and text.isascii() else HIDDEN.sub(_escaped, text)


def one_line(text: str) -> str:
    """The text on one line, hidden characters as escapes."""
    return shown(" ".join(text.split()))


def visible_json(dumped: str) -> str:
    """The same JSON with hidden characters as JSON's own escapes: people and agents read it as it is."""
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
