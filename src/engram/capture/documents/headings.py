"""Headings of documents: what one is, and those of Markdown."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["Heading", "markdown_headings", "titled", "underlined"]

LONGEST_TITLE = 120
LONGEST_UNDERLINED = 200
LONGEST_LINE = 1_000

_FRONT_MATTER = re.compile(r"\ufeff?---[ \t]*\r?\n(?:(?!---|\.\.\.).*\n){0,200}(?:---|\.\.\.)[ \t]*\r?(?:\n|$)")
_LINE_END = re.compile(r"\r\n?|\n")
# What an underline below cannot turn into a heading: lists, quotes, tables, headings, rules, fences.
_NOT_A_TITLE = re.compile(r"[ \t]*(?:[-*+][ \t]|\d+[.)][ \t]|>|\||\#{1,6}[ \t]|```|~~~|<!--|[-=*_ \t]+$)| {4}|\t")
_LINK = re.compile(r"!?\[([^\[\]\n]*)\]\([^()\n]*\)")
_MARKUP = re.compile(r"\*\*|__|`|\{#[^{}\n]*\}")


@dataclass(frozen=True, slots=True)
class Heading:
    """Where a section begins, how deep it lies (1 is outermost) and what it is called.

    Without a title it only ends what comes before: code at the margin after a function.
    """

    start: int
    level: int
    title: str


def titled(text: str) -> str:
    """A title as one line with single spaces, cut where it gets long."""
    title = " ".join(text.split())
    return title if len(title) <= LONGEST_TITLE else title[: LONGEST_TITLE - 1].rstrip() + "…"


def markdown_headings(text: str) -> Iterator[Heading]:
    """The headings of a Markdown text in order: ATX and setext, as CommonMark reads them, none of them in front matter."""
    from markdown_it import MarkdownIt

    front = _FRONT_MATTER.match(text)
    floor = front.end() if front else 0
    # Blocks alone make headings; what is inside their lines need not be parsed.
    parser = MarkdownIt("commonmark")
    parser.core.ruler.disable(["inline", "text_join"], True)
    tokens = parser.parse(text[floor:])
    starts = [floor, *(found.end() for found in _LINE_END.finditer(text, floor))]
    for token, inline in pairwise(tokens):
        if token.type == "heading_open" and token.level == 0 and token.map:
            title = _unmarked(inline.content)
            if title and (token.markup[0] == "#" or len(inline.content) <= LONGEST_UNDERLINED):
                yield Heading(starts[token.map[0]], int(token.tag[1:]), title)


def underlined(text: str, line: int, is_double: bool, floor: int = 0) -> Heading | None:
    """The heading made by an underline that starts at `line`, if the line above it is a title with nothing directly above."""
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
