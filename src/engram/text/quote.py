"""Quotes stored text for prompts. Everything that was said, imported, written into a file or raised as an error passes here.

Quoted text cannot start a line of its own (a heading, a list item, a `[ENG-…]` reference), open or close a tag, end its
quotation, or hide: invisible characters are escaped.
"""

import re

from engram.model.lazy import lazy_pattern
from engram.text.display import one_line, shown

__all__ = ["inert", "notice", "quoted", "quoted_lines", "unmarked", "word"]

_OPENING = frozenset("<＜﹤")
_CLOSING = str.maketrans({"“": "‘", "”": "’", "„": "‚", "‟": "‛"})
_NAME = r"[^\W\d][\w.-]*+(?::[\w.-]++)*+"
_LONG_NAME = r"[^\W\d][\w.-]++(?::[\w.-]++)*+"
_CLOSE = r"\s*+(?:/\s*+)?[>＞﹥]"
# The argument of a generic type after a word, as in `List<int>` or `Map<K, V>`.
_TYPE = (
    r"(?:[A-Z]|[A-Z][a-z0-9]\w*|(?:u?int|float|[iuf])\d{0,3}|[iu]size|double|long|short|char|byte|bytes|bool|boolean|str|string"
    r"|number|object|any|void|unknown|never)[>＞﹥]"
)
# Tags of prompts anywhere; any tag name not directly after a word; after a word, only what continues like a tag; with a space
# after the angle bracket, only what is closed or has an attribute. `a < b`, `x<y` and `List<int>` are left alone.
_MARKUP = lazy_pattern(
    r"[<＜﹤](?:(?=[/|!?]"
    r"|(?i:antml|assistant|context|data|function|human|important|instructions?|memor|prompt|system|tool|user))"
    r"|(?<!\w[<＜﹤])(?=[^\W\d])"
    rf"|(?<=\w[<＜﹤])(?!{_TYPE})(?=(?:{_LONG_NAME})[\s/]|(?:{_NAME})(?:{_CLOSE}|\s++[\w:-]++\s*+=(?!=)))"
    rf"|(?=\s++(?:[/|!?]\s*+[^\W\d]|(?:{_LONG_NAME}){_CLOSE}|(?:{_NAME})\s++[\w:-]++\s*+=\s*+[\"'“”‘’])))"
)
_WORD = re.compile(r"[\w.:@+/-]{1,100}")
MARK = "> "
"""The prefix of every line of a text that keeps its lines."""


def quoted(text: str) -> str:
    """The text on one line in “quotation marks” that nothing inside can close, with its markup disabled."""
    return f"“{notice(text).translate(_CLOSING)}”"


def word(text: str) -> str:
    """An id, role, name, scope or type: unchanged if it is plainly one word, else quoted; files written by hand may have any."""
    return text if _WORD.fullmatch(text) and shown(text) == text else quoted(text)


def notice(text: str) -> str:
    """A message by Engram that may include stored text (a warning, an error): on one line, with its markup disabled."""
    return inert(one_line(text))


def inert(text: str) -> str:
    """The text with its markup disabled and hidden characters escaped, for a JSON value; line breaks are kept."""
    return unmarked(shown(text))


def unmarked(text: str) -> str:
    """The text with its markup disabled, for a JSON value whose hidden characters are escaped by JSON."""
    return text if _OPENING.isdisjoint(text) else _MARKUP.sub("‹", text)


def quoted_lines(text: str) -> str:
    """The text with its lines kept, each marked as quoted."""
    return "\n".join(f"{MARK}{inert(line)}".rstrip() for line in text.splitlines())
