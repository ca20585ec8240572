"""Text as it may be shown: what nobody can see is written out."""

import re

from engram.text.invisible import HIDDEN

__all__ = ["one_line", "shown", "visible_json"]


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
