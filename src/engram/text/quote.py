"""Stored text on its way into a prompt. Whatever was said, imported, written into a file or thrown as an error passes here.

Nothing that passes can begin a line of its own (a heading, a list item, a `[ENG-…]` reference), open or close a tag, end its
quotation, or hide: what nobody can see is written out.
"""

import re

from engram.text.display import one_line, shown

__all__ = ["inert", "notice", "quoted", "quoted_lines", "unmarked", "word"]

_CLOSING = str.maketrans({"“": "‘", "”": "’", "„": "‚", "‟": "‛"})
_NAME = r"[^\W\d][\w.-]*+(?::[\w.-]++)*+"
_LONG_NAME = r"[^\W\d][\w.-]++(?::[\w.-]++)*+"
_CLOSE = r"\s*+(?:/\s*+)?[>＞﹥]"
# The argument of a generic type, as in `List<int>` or `Map<K, V>`, where it stands behind a word.
_TYPE = (
    r"(?:[A-Z]|[A-Z][a-z0-9]\w*|(?:u?int|float|[iuf])\d{0,3}|[iu]size|double|long|short|char|byte|bytes|bool|boolean|str|string"
    r"|number|object|any|void|unknown|never)[>＞﹥]"
)
# Tags of prompts anywhere; any name unless a word stands before it; behind a word, whatever goes on as a tag does; with a
# space behind the angle, what is closed or has an attribute. `a < b`, `x<y` and `List<int>` stay.
_MARKUP = re.compile(
    r"[<＜﹤](?:(?=[/|!?]"
    r"|(?i:antml|assistant|context|data|function|human|important|instructions?|memor|prompt|system|tool|user))"
    r"|(?<!\w[<＜﹤])(?=[^\W\d])"
    rf"|(?<=\w[<＜﹤])(?!{_TYPE})(?=(?:{_LONG_NAME})[\s/]|(?:{_NAME})(?:{_CLOSE}|\s++[\w:-]++\s*+=(?!=)))"
    rf"|(?=\s++(?:[/|!?]\s*+[^\W\d]|(?:{_LONG_NAME}){_CLOSE}|(?:{_NAME})\s++[\w:-]++\s*+=\s*+[\"'“”‘’])))"
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
