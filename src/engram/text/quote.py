"""Stored text on its way into a prompt. Whatever was said, imported, written into a file or thrown as an error passes here.

Nothing that passes can begin a line of its own (a heading, a list item, a `[ENG-…]` reference), open or close a tag, end its
quotation, or hide: what nobody can see is written out.
"""

import re

from engram.text.shown import one_line, shown

__all__ = ["inert", "notice", "quoted", "quoted_lines", "unmarked", "word"]

_CLOSING = str.maketrans({"“": "‘", "”": "’", "„": "‚", "‟": "‛"})
# Tags of prompts anywhere; any other one unless it stands behind a word, as the angle of `List<int>` does.
_MARKUP = re.compile(
    r"[<＜﹤](?=[/|!?]|(?:antml|assistant|context|data|function|human|important|instructions?|memor|prompt|system|tool|user))"
    r"|(?<!\w)[<＜﹤](?=[a-z_])",
    re.IGNORECASE,
)
_WORD = re.compile(r"[\w.:@+/-]{1,100}")
MARK = "> "
"""What stands before every line of a text that keeps its lines."""


def quoted(text: str) -> str:
    """The text on one line in “quotation marks” that nothing inside can close, and without working markup."""
    return f"“{notice(text).translate(_CLOSING)}”"


def word(text: str) -> str:
    """An id, role, name, scope or type: as it is where it is plainly one word, else quoted. Files written by hand hold any."""
    return text if _WORD.fullmatch(text) and shown(text) == text else quoted(text)


def notice(text: str) -> str:
    """A sentence of Engram's own that may name stored text (a warning, an error): on one line, without working markup."""
    return inert(one_line(text))


def inert(text: str) -> str:
    """The text without working markup and with nothing hidden; its line breaks stay, for a value of JSON."""
    return unmarked(shown(text))


def unmarked(text: str) -> str:
    """The text without working markup, for a value of JSON whose hidden characters are written as JSON's escapes."""
    return _MARKUP.sub("‹", text)


def quoted_lines(text: str) -> str:
    """The text with its lines, each of them marked as quoted."""
    return "\n".join(f"{MARK}{inert(line)}".rstrip() for line in text.splitlines())
