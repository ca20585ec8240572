"""Headings of Markdown, code (classes and functions) and diffs (commits, files and hunks)."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["Heading", "code_headings", "diff_headings", "markdown_headings", "titled", "underlined"]

LONGEST_TITLE = 120
LONGEST_UNDERLINED = 200
LONGEST_LINE = 1_000

_FRONT_MATTER = re.compile(r"\ufeff?---[ \t]*\r?\n(?:(?!---|\.\.\.).*\n){0,200}(?:---|\.\.\.)[ \t]*\r?(?:\n|$)")
_LINE_END = re.compile(r"\r\n?|\n")
# Lines that an underline below does not turn into a heading: lists, quotes, tables, headings, rules, fences.
_NOT_A_TITLE = re.compile(r"[ \t]*(?:[-*+][ \t]|\d+[.)][ \t]|>|\||\#{1,6}[ \t]|```|~~~|<!--|[-=*_ \t]+$)| {4}|\t")
_LINK = re.compile(r"!?\[([^\[\]\n]*)\]\([^()\n]*\)")
_MARKUP = re.compile(r"\*\*|__|`|\{#[^{}\n]*\}")


@dataclass(frozen=True, slots=True)
class Heading:
    """The start of a section, its level (1 is outermost) and its title.

    A heading without a title only ends the section before it: unindented code after a function.
    """

    start: int
    level: int
    title: str


def titled(text: str) -> str:
    """A title as one line with single spaces, truncated if it is long."""
    title = " ".join(text.split())
    return title if len(title) <= LONGEST_TITLE else title[: LONGEST_TITLE - 1].rstrip() + "…"


def markdown_headings(text: str) -> Iterator[Heading]:
    """The headings of a Markdown text in order (ATX and setext, by CommonMark), without those in front matter."""
    from markdown_it import MarkdownIt

    front = _FRONT_MATTER.match(text)
    floor = front.end() if front else 0
    # Headings are blocks; inline markup need not be parsed.
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
    """The heading made by an underline that starts at `line`, if the line above is a title after a blank line."""
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
    """The title in a heading's line, without closing hashes, emphasis, links and anchors."""
    line = line[:LONGEST_LINE].strip()
    open_end = line.rstrip("#")
    if not open_end or open_end[-1].isspace():
        line = open_end
    return titled(_MARKUP.sub("", _LINK.sub(r"\1", line)))


# Nested definitions are minor sections; small ones share a chunk with their class.
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
# An indented or closing line, followed by an unindented one that is neither a bracket nor the rest of a statement.
_AT_MARGIN = re.compile(
    r"^(?:[ \t]+\S.*|[})\]].*)\n(?:[ \t\r]*\n)*(?!(?:else|elif|except|finally|catch|end)\b)[A-Za-z_$]", re.MULTILINE
)
# Lines that belong to the definition below them: decorators, attributes, comments.
_LEADING = re.compile(r"[ \t]*(?:@|\#|//|/\*|\*|--|;;|\[[A-Z]\w*[\](])")


def code_headings(text: str) -> Iterator[Heading]:
    """Classes and functions in order, each including the decorators and comments above it.

    Unindented code after a definition is not part of it: an untitled heading ends the definition.
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
    """The start of the decorators and comments directly above."""
    while start > max(floor, 1):
        above = text.rfind("\n", floor, start - 1) + 1
        if above < floor or not _LEADING.match(text, above, start):
            return start
        start = above
    return start


# -- diffs

COMMIT, FILE, HUNK = 1, 2, 3

_DIFF_LINE = re.compile(
    r"^(?:"
    r"(?P<commit>commit [0-9a-f]{7,40}\b.*|From [0-9a-f]{40} .*)"
    r"|(?P<git>diff --(?:git|cc|combined) .*)"
    r"|(?P<index>Index: .*)"
    r"|(?P<old>--- \S.*)\n(?P<new>\+\+\+ \S.*)"
    r"|(?P<hunk>@@+ -(?P<counts>[\d, +-]+) @@+.*)"
    r")$",
    re.MULTILINE,
)
_GIT_PATHS = re.compile(r'diff --git "?a/(?P<old>.*?)"? "?b/(?P<new>.*?)"?\r?$')
_HUNK_RANGE = re.compile(r"\d+(?:,(\d+))?")


def diff_headings(text: str) -> Iterator[Heading]:
    """Commits, files and hunks in order. The lines of a hunk are counted, so that none of them is mistaken for a header."""
    at, named = 0, ""
    while found := _DIFF_LINE.search(text, at):
        at = found.end()
        if found["commit"]:
            yield Heading(found.start(), COMMIT, _commit(found["commit"]))
            named = ""
        elif found["hunk"]:
            yield Heading(found.start(), HUNK, titled(found["hunk"]))
            at = _end_of_hunk(text, at, found["counts"])
        elif found["old"]:
            path = _path_of(found["old"], found["new"])
            if path != named:
                yield Heading(found.start(), FILE, titled(path))
            named = ""
        else:
            named = _diff_path(found["git"] or found["index"])
            yield Heading(found.start(), FILE, titled(named))


def _commit(line: str) -> str:
    return f"commit {line.split()[1][:12]}"


def _diff_path(line: str) -> str:
    paths = _GIT_PATHS.match(line)
    return paths["new"] if paths else line.split(maxsplit=2 if line.startswith("diff") else 1)[-1].strip()


def _path_of(old: str, new: str) -> str:
    path = _bare_path(new)
    return _bare_path(old) if path == "/dev/null" else path


def _bare_path(line: str) -> str:
    path = line[4:].split("\t")[0].strip().strip('"')
    return path[2:] if path.startswith(("a/", "b/")) else path


def _end_of_hunk(text: str, at: int, counts: str) -> int:
    """The end of the lines that the hunk's header announces, or of the last line that can belong to a hunk."""
    old, new = (int(count or 1) for count in _HUNK_RANGE.findall(counts)[:2]) if counts.count("+") == 1 else (0, 0)
    while (old > 0 or new > 0) and at < len(text):
        line = at + 1
        mark = text[line : line + 1]
        if mark not in ("+", "-", " ", "\\", "\n", "\r"):
            return at
        old -= mark not in ("+", "\\")
        new -= mark not in ("-", "\\")
        at = text.find("\n", line)
        if at < 0:
            return len(text)
    return at
