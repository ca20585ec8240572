"""The statements of a SQL script, one by one, cut where Postgres itself would cut them."""

import re
from collections.abc import Iterator

_LETTER = r"[A-Za-z_\x80-\U0010ffff]"
_WORD = rf"{_LETTER}(?:{_LETTER}|[0-9$])*"
_TAG = rf"(?:{_LETTER}(?:{_LETTER}|[0-9])*)?"
_ESCAPED = r"'(?:[^'\\]|\\.|'')*'"
_NEXT_LINE = r"(?:[ \t\f\v]|--[^\r\n]*)*[\r\n](?:\s|--[^\r\n]*[\r\n])*"
_TOKEN = re.compile(
    rf"""
    (?P<space>\s+|--[^\r\n]*)
    | (?P<comment>/\*)
    | (?P<text>
        [eE]{_ESCAPED}(?:{_NEXT_LINE}{_ESCAPED})*    # a text may go on in the next line, escapes included
        | '(?:[^']|'')*'
        | "(?:[^"]|"")*"
        | \$(?P<tag>{_TAG})\$.*?\$(?P=tag)\$
      )
    | (?P<open>[eE]?'|"|\${_TAG}\$)
    | (?P<word>{_WORD})
    | (?P<mark>\$?[0-9]+|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_ROUTINE = re.compile(r"CREATE\s+(?:OR\s+REPLACE\s+)?(?:FUNCTION|PROCEDURE)\b", re.IGNORECASE)


def statements_of(script: str) -> list[str]:
    """Each statement without its semicolon and without comments around it; raises ValueError where a quote is left open.

    Quotes are read with `standard_conforming_strings` on, as it is by default. The body of a routine written as
    `BEGIN ATOMIC … END` and the actions of a rule in parentheses belong to their statement.
    """
    found, start, end, inner = [], -1, -1, _Nesting()
    for kind, token, place in _tokens(script):
        if token == ";" and inner.is_outermost:
            if start >= 0:
                found.append(script[start:end])
            start, inner = -1, _Nesting()
            continue
        if start < 0:
            start = place
        end = place + len(token)
        inner.read(kind, token, script[start:end])
    if start >= 0:
        found.append(script[start:end])
    return found


def _tokens(script: str) -> Iterator[tuple[str, str, int]]:
    """Kind, text and place of everything but space and comments."""
    place = 0
    while place < len(script):
        matched = _TOKEN.match(script, place)
        assert matched is not None, "the last alternative takes any character"
        kind, token = str(matched.lastgroup), matched.group()
        if matched["open"]:
            raise ValueError(f"{token} at character {place} is never closed")
        if kind == "comment":
            place = _after_comment(script, place)
            continue
        if kind != "space":
            yield kind, token, place
        place = matched.end()


def _after_comment(script: str, begin: int) -> int:
    """Where a comment ends; comments nest."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(script, begin):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    raise ValueError(f"the comment at character {begin} is never closed")


class _Nesting:
    """How deep in parentheses and in a routine's body a statement is."""

    def __init__(self) -> None:
        self._parentheses, self._blocks, self._before = 0, 0, ""

    @property
    def is_outermost(self) -> bool:
        return self._parentheses <= 0 and self._blocks == 0

    def read(self, kind: str, token: str, so_far: str) -> None:
        """Take in the next token of a statement."""
        if kind == "mark":
            self._parentheses += {"(": 1, ")": -1}.get(token, 0)
        word = token.upper() if kind == "word" else ""
        if self._blocks:
            self._blocks += {"CASE": 1, "END": -1}.get(word, 0)
        elif word == "ATOMIC" and self._before == "BEGIN" and _ROUTINE.match(so_far):
            self._blocks = 1
        self._before = word
