"""Headings of source code: what it defines, read from keywords and indentation, whatever the language."""

import re
from bisect import bisect_right
from collections.abc import Iterator

from engram.capture.longinput.headings import Heading, titled

__all__ = ["code_headings"]

# Definitions inside others are minor sections: small ones share a chunk with their class.
INNER_LEVEL = 3
TAB_WIDTH = 4

_MODIFIERS = (
    r"(?:(?:export|default|public|private|protected|internal|static|final|abstract|sealed|open|override|virtual|inline|"
    r"async|unsafe|extern|declare|data|partial|readonly|pub(?:\([\w:]+\))?|const(?=[ \t]+fn)|local(?=[ \t]+function))[ \t]+){0,6}"
)
_KEYWORDS = (
    r"def|class|function\*?|func|fn|fun|interface|struct|enum|union|trait|impl(?:<[^>\n]*>)?|module|namespace|object|"
    r"protocol|extension|record|contract|defmodule|defp?|defmacro|sub|proc|procedure|macro_rules!|"
    r"type(?=\s+\w+\s*(?:=|struct|interface))|CREATE\s+(?:OR\s+REPLACE\s+)?(?:TABLE|VIEW|FUNCTION|PROCEDURE|TRIGGER)"
)
_DEFINITION = re.compile(
    r"^(?P<indent>[ \t]*)(?P<head>"
    rf"{_MODIFIERS}(?:{_KEYWORDS})[ \t]+(?:\([^)\n]{{0,80}}\)[ \t]*)?[\w$.\"@~]+(?:::\w+)*[?!]?"
    r"(?=[ \t]*(?:[({:<=\[;]|\r?$|(?:extends|implements|where|for|with|struct|interface|AS|is|do|as)\b))"
    r"|(?:export\s+)?(?:const|let|var)[ \t]+[\w$]{1,80}(?=[ \t]*(?::[^=\n]{1,200})?=[ \t]*(?:async[ \t]*)?(?:function\b|\([^)\n]{0,400}\)[^=\n]{0,100}=>|\w{1,80}[ \t]*=>))"
    r")",
    re.MULTILINE,
)
# Functions without a keyword: a type, a name and arguments at the margin, opened on this line or the next (C, C++),
# or with a modifier inside a class (Java, C#).
_TYPED = re.compile(
    r"^(?P<indent>(?:[ \t]+(?=(?:public|private|protected|internal|static|override)\b))?)"
    r"(?!(?:if|for|while|switch|return|else|case|do|using|typedef|goto|throw|new|delete|import|from|assert|raise)\b)"
    r"(?P<head>[A-Za-z_][\w:<>,*&\[\]]{0,80}(?:[ \t]{1,9}(?:[*&]{1,3}[ \t]?)?[\w:<>,~\[\]]{1,80}[*&]{0,3}){1,6})"
    r"[ \t]{0,9}\([^;{}\n]{0,400}\)[^;{}=()\n]{0,100}(?:\{|\n\{)",
    re.MULTILINE,
)
# An indented or closing line, and behind it one at the margin that is neither a bracket nor the rest of a statement.
_AT_MARGIN = re.compile(
    r"^(?:[ \t]+\S.*|[})\]].*)\n(?:[ \t\r]*\n)*(?!(?:else|elif|except|finally|catch|end)\b)[A-Za-z_$]", re.MULTILINE
)
# Lines that belong to the definition below them: decorators, attributes, comments.
_LEADING = re.compile(r"[ \t]*(?:@|\#|//|/\*|\*|--|;;|\[[A-Z]\w*[\](])")


def code_headings(text: str) -> Iterator[Heading]:
    """Classes and functions in order, each from its decorators and comments on.

    What stands at the margin behind a definition is no part of it: an untitled heading ends it.
    """
    margins = [found.end() - 1 for found in _AT_MARGIN.finditer(text)]
    floor, after = 0, len(text)
    for start, indent, head in sorted(_definitions(text)):
        opens = _with_leading(text, start, floor)
        if after < opens:
            yield Heading(after, 1, "")
        yield Heading(opens, 1 if indent == 0 else INNER_LEVEL + indent, titled(head))
        floor = start + 1
        place = bisect_right(margins, start)
        after = margins[place] if place < len(margins) else len(text)
    if after < len(text):
        yield Heading(after, 1, "")


def _definitions(text: str) -> list[tuple[int, int, str]]:
    found = {match.start(): match for match in _TYPED.finditer(text)}
    found.update((match.start(), match) for match in _DEFINITION.finditer(text))
    return [(start, _width(match["indent"]), match["head"]) for start, match in found.items()]


def _width(indent: str) -> int:
    return len(indent.expandtabs(TAB_WIDTH))


def _with_leading(text: str, start: int, floor: int) -> int:
    """The start of the decorators and comments that stand directly above."""
    while start > max(floor, 1):
        above = text.rfind("\n", floor, start - 1) + 1
        if above < floor or not _LEADING.match(text, above, start):
            return start
        start = above
    return start
