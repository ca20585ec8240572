"""Headings of Markdown: ATX and setext, none inside fenced code, comments or front matter."""

import re
from collections.abc import Iterator

from engram.capture.longinput.headings import Heading, titled

__all__ = ["markdown_headings", "underlined"]

_FRONT_MATTER = re.compile(r"\ufeff?---[ \t]*\r?\n(?:(?!---|\.\.\.).*\n){0,200}(?:---|\.\.\.)[ \t]*\r?(?:\n|$)")
_MARKED = re.compile(
    r"^ {0,3}(?:"
    r"(?P<fence>`{3,}|~{3,})(?P<info>.*)"
    r"|(?P<hashes>\#{1,6})(?=[ \t\r]|$)(?P<title>.*)"
    r"|(?P<line>=+|-{2,})[ \t\r]*"
    r"|(?P<comment><!--)(?P<rest>.*)"
    r")$",
    re.MULTILINE,
)
# What an underline below cannot turn into a heading: lists, quotes, tables, headings, rules, fences.
_NOT_A_TITLE = re.compile(r"[ \t]*(?:[-*+][ \t]|\d+[.)][ \t]|>|\||\#{1,6}[ \t]|```|~~~|<!--|[-=*_ \t]+$)| {4}|\t")
LONGEST_UNDERLINED = 200
LONGEST_LINE = 1_000

_LINK = re.compile(r"!?\[([^\[\]\n]*)\]\([^()\n]*\)")
_MARKUP = re.compile(r"\*\*|__|`|\{#[^{}\n]*\}")


def markdown_headings(text: str) -> Iterator[Heading]:
    """The headings of a Markdown text in order."""
    front = _FRONT_MATTER.match(text)
    at = front.end() if front else 0
    while found := _MARKED.search(text, at):
        at = found.end()
        if fence := found["fence"]:
            at = _fence_end(text, at, fence, found["info"])
        elif found["comment"]:
            at = _comment_end(text, found.start("rest"))
        elif found["hashes"]:
            if title := _unmarked(found["title"]):
                yield Heading(found.start(), len(found["hashes"]), title)
        elif heading := underlined(text, found.start(), "=" in found["line"], front.end() if front else 0):
            yield heading


def underlined(text: str, line: int, is_double: bool, floor: int = 0) -> Heading | None:
    """The heading made by an underline that starts at `line`, if the line above is a title standing alone."""
    above_end = line - 1
    above = max(text.rfind("\n", 0, max(above_end, 0)) + 1, floor)
    title = text[above : max(above_end, above)].rstrip("\r")
    if not title.strip() or len(title) > LONGEST_UNDERLINED or _NOT_A_TITLE.match(title):
        return None
    before = text[text.rfind("\n", 0, max(above - 1, 0)) + 1 : max(above - 1, 0)]
    if above > floor and before.strip() and not before.lstrip().startswith(("#", "=", "-", "```", "~~~")):
        return None
    return Heading(above, 1 if is_double else 2, _unmarked(title))


def _unmarked(line: str) -> str:
    """The title a heading's line shows: no closing hashes, emphasis, links or anchors."""
    line = line[:LONGEST_LINE].strip()
    open_end = line.rstrip("#")
    if not open_end or open_end[-1].isspace():
        line = open_end
    return titled(_MARKUP.sub("", _LINK.sub(r"\1", line)))


def _fence_end(text: str, at: int, fence: str, info: str) -> int:
    """Behind the fence that closes this one; an unclosed fence reaches to the end."""
    if fence[0] == "`" and "`" in info:
        return at
    closing = re.compile(rf"^ {{0,3}}{re.escape(fence[0])}{{{len(fence)},}}[ \t\r]*$", re.MULTILINE)
    closed = closing.search(text, at)
    return closed.end() if closed else len(text)


def _comment_end(text: str, at: int) -> int:
    end = text.find("-->", at)
    return len(text) if end < 0 else end
