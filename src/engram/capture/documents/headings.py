"""Headings of Markdown, code (classes and functions), diffs (commits, files and hunks) and plain text.

Plain text has no markup, so a line is a heading by its appearance (legal numbering, capitals, an underline): it follows a blank line, is
short, and is numbered or in capitals. Lists and tables of contents look alike; unlike them, a heading has text below it.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise, zip_longest

from engram.model.lazy import dataclass

__all__ = ["Heading", "code_headings", "diff_headings", "markdown_headings", "text_headings"]

LONGEST_TITLE = 120
LONGEST_UNDERLINED = 200
LONGEST_LINE = 1_000
MAX_PARSED_LINES = 5_000

_FRONT_MATTER = re.compile(r"\ufeff?---[ \t]*\r?\n(?:(?!---|\.\.\.).*\n){0,200}(?:---|\.\.\.)[ \t]*\r?(?:\n|$)")
_MARKED_LINE = re.compile(
    r"^ {0,3}(?:(?P<fence>`{3,}|~{3,})|(?P<hashes>\#{1,6})(?:[ \t]++(?P<title>.*))?$|(?P<rule>=+|-+)[ \t\r]*+$)",
    re.MULTILINE,
)
_LINE_END = re.compile(r"\r\n?|\n")
# Lines that an underline below does not turn into a heading: lists, quotes, tables, headings, rules, fences.
_NOT_A_TITLE = re.compile(r"[ \t]*+(?:[-*+][ \t]|\d+[.)][ \t]|>|\||\#{1,6}[ \t]|```|~~~|<!--|[-=*_ \t]++$)| {4}|\t")
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


def normalize_title(text: str) -> str:
    """A title as one line with single spaces, truncated if it is long."""
    title = " ".join(text.split())
    return title if len(title) <= LONGEST_TITLE else title[: LONGEST_TITLE - 1].rstrip() + "…"


def markdown_headings(text: str) -> Iterator[Heading]:
    """The headings of a Markdown text in order (ATX and setext), without those in front matter.

    CommonMark decides, up to `MAX_PARSED_LINES`; its parser takes a while per line. A longer text is read line by line.
    """
    front = _FRONT_MATTER.match(text)
    floor = front.end() if front else 0
    return (_line_headings if text.count("\n", floor) > MAX_PARSED_LINES else _parsed_headings)(text, floor)


def _parsed_headings(text: str, floor: int) -> Iterator[Heading]:
    from markdown_it import MarkdownIt

    # Headings are blocks; inline markup need not be parsed.
    parser = MarkdownIt("commonmark")
    parser.core.ruler.disable(["inline", "text_join"], True)
    tokens = parser.parse(text[floor:])
    starts = [floor, *(found.end() for found in _LINE_END.finditer(text, floor))]
    for token, inline in pairwise(tokens):
        if token.type == "heading_open" and token.level == 0 and token.map:
            title = _title_of_line(inline.content)
            if title and (token.markup[0] == "#" or len(inline.content) <= LONGEST_UNDERLINED):
                yield Heading(starts[token.map[0]], int(token.tag[1:]), title)


def _line_headings(text: str, floor: int) -> Iterator[Heading]:
    """The headings by the look of their lines: those outside fences that begin with `#`, or are underlined."""
    fence = ""
    for found in _MARKED_LINE.finditer(text, floor):
        if found["fence"]:
            fence = "" if fence and found["fence"].startswith(fence) else fence or found["fence"]
        elif not fence and found["rule"]:
            underlined = _find_underlined(text, found.start(), found["rule"][0] == "=")
            if underlined is not None and underlined.start >= floor:
                yield underlined
        elif not fence and (title := _title_of_line(found["title"] or "")):
            yield Heading(found.start(), len(found["hashes"]), title)


def _find_underlined(text: str, line: int, is_double: bool) -> Heading | None:
    """The heading made by an underline that starts at `line`, if the line above is a title after a blank line."""
    above_end = line - 1
    above = text.rfind("\n", 0, max(above_end, 0)) + 1
    title = text[above : max(above_end, above)].rstrip("\r")
    if not title.strip() or len(title) > LONGEST_UNDERLINED or _NOT_A_TITLE.match(title):
        return None
    before = text[text.rfind("\n", 0, max(above - 1, 0)) + 1 : max(above - 1, 0)]
    if before.strip() and not before.lstrip().startswith(("#", "=", "-", "```", "~~~")):
        return None
    return Heading(above, 1 if is_double else 2, _title_of_line(title))


def _title_of_line(line: str) -> str:
    """The title in a heading's line, without closing hashes, emphasis, links and anchors."""
    line = line[:LONGEST_LINE].strip()
    open_end = line.rstrip("#")
    if not open_end or open_end[-1].isspace():
        line = open_end
    return normalize_title(_MARKUP.sub("", _LINK.sub(r"\1", line)))


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
        yield Heading(opens, 1 if indent == 0 else INNER_LEVEL + indent, normalize_title(head))
        floor = start + 1
        place = bisect_right(margins, start)
        after = margins[place] if place < len(margins) else len(text)
    if after < len(text):
        yield Heading(after, 1, "")


def _definitions(text: str) -> list[tuple[int, int, str]]:
    found = {match.start(): match for match in _TYPED.finditer(text)}
    found.update((match.start(), match) for match in _DEFINITION.finditer(text))
    return [(start, len(match["indent"].expandtabs(TAB_WIDTH)), match["head"]) for start, match in found.items()]


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
            yield Heading(found.start(), COMMIT, f"commit {found['commit'].split()[1][:12]}")
            named = ""
        elif found["hunk"]:
            yield Heading(found.start(), HUNK, normalize_title(found["hunk"]))
            at = _end_of_hunk(text, at, found["counts"])
        elif found["old"]:
            path = _path_of(found["old"], found["new"])
            if path != named:
                yield Heading(found.start(), FILE, normalize_title(path))
            named = ""
        else:
            named = _diff_path(found["git"] or found["index"])
            yield Heading(found.start(), FILE, normalize_title(named))


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


LONGEST_PLAIN_LINE = 120
MOST_WORDS = 12
MOST_RUN_IN_WORDS = 6

# Levels: the document's own title, its articles, and their sections.
TITLE, ARTICLE, SECTION = 0, 1, 2

_CANDIDATE = re.compile(
    r"^[ \t]*(?:"
    r"(?P<division>(?:ARTICLE|CHAPTER|PART|TITLE|BOOK|SCHEDULE|EXHIBIT|ANNEX|APPENDIX|"
    r"Article|Chapter|Part|Schedule|Exhibit|Annex|Appendix)[ \t]+(?:[IVXLC]+|\d+|[A-Z])(?:[-.]\d+)?)(?=[\s.:–—-]|$)"
    r"|(?P<section>(?:SECTION|Section|CLAUSE|Clause|§)[ \t]*(?P<number>\d+(?:\.\d+)*))(?=[\s.:–—-]|$)"
    r"|(?P<numbered>\d{1,3}(?:\.\d{1,3}){0,5})(?:[.)])?(?=[ \t]+\S)"
    r"|(?P<rule>={3,}|-{3,}|~{3,})[ \t\r]*$"
    r"|(?P<capitals>[^\Wa-z\d_][^a-z\n]*)$"
    r")",
    re.MULTILINE,
)
_PAGE = re.compile(r"(?<![ \t.…])([ \t.…]++)\d++[ \t\r]*+$")
"""A number at the end of a line, with what leads to it."""
_LEADER = re.compile(r"\.[ .]{3}|…|\t| {3}")
_RUN_IN = re.compile(r"(?P<title>[^.:\n]{2,60})[.:](?=[ \t]|$)")
_NEXT_SENTENCE = re.compile(r"[a-z)][.:] +[A-Z\"“]")
_SMALL = frozenset((
    "a", "an", "and", "as", "at", "by", "for", "from", "in", "into", "of", "on", "or", "per", "the", "to", "under",
    "with",
))  # fmt: skip
_WORD = re.compile(r"[^\W\d_][\w'’-]*")


@dataclass(frozen=True, slots=True)
class _Line:
    """A line that may be a heading, its span, and whether a blank line or a heading precedes it."""

    text: str
    start: int
    end: int
    is_separate: bool


def text_headings(text: str) -> Iterator[Heading]:
    """The headings of a plain text in order."""
    yield from _joined_titles(text, _without_lists(text, list(_candidates(text))))


def _candidates(text: str) -> Iterator[Heading]:
    behind = -2
    for found in _CANDIDATE.finditer(text):
        if found.start() < behind:
            continue
        end = text.find("\n", found.start())
        end = len(text) if end < 0 else end
        is_separate = found.start() == behind + 1 or _after_blank(text, found.start())
        line = _Line(text[found.start() : end].rstrip(), found.start(), end, is_separate)
        heading = _find_heading(text, line, found)
        if heading is not None:
            behind = end
            yield heading


def _find_heading(text: str, line: _Line, found: re.Match[str]) -> Heading | None:
    if found["rule"]:
        return _find_underlined(text, line.start, found["rule"][0] == "=")
    page = _PAGE.search(line.text[-LONGEST_PLAIN_LINE:])
    if (page and _LEADER.search(page[1])) or not line.is_separate:
        return None
    rest = text[found.end() : line.end].strip()
    if found["division"]:
        return _find_named_heading(line, found["division"], rest, ARTICLE)
    if found["section"]:
        return _find_named_heading(line, found["section"], rest, ARTICLE + len(found["number"].split(".")))
    if found["numbered"]:
        return _find_numbered(line, found["numbered"], rest)
    return _capitals(text, line)


def _find_named_heading(line: _Line, name: str, rest: str, level: int) -> Heading | None:
    """`ARTICLE IV – PAYMENT`, `Section 5. Fees. The Buyer shall …`; not `Section 5 of the Agreement provides`."""
    title = _title_of(rest.lstrip(".:–—- \t"))
    if rest and not title and rest[0] not in ".:–—-":
        return None
    return Heading(line.start, max(level, ARTICLE), normalize_title(f"{name} {title}"))


def _find_numbered(line: _Line, number: str, rest: str) -> Heading | None:
    """`3. Payment`, `3.2 Payment terms`, `3.2 The Buyer shall …`; a lone number needs a title to be more than a list."""
    rest = rest.lstrip(".) \t")
    depth = len(number.split("."))
    title = _title_of(rest, 1 if depth == 1 else 3)
    if not title and (depth == 1 or not rest.lstrip('"“‘(')[:1].isupper()):
        return None
    mark = "." if depth == 1 else ""
    return Heading(line.start, ARTICLE + depth, normalize_title(f"{number}{mark} {title}"))


def _title_of(rest: str, most_plain_words: int = 3) -> str:
    """The title in a line: all of it if it is short and ends like a title, else the words before its first full stop.

    Those must be capitalised, unless they are very few.
    """
    words = rest.split()
    ends_like_one = bool(words) and rest[-1] not in ".,;:!?" and not _NEXT_SENTENCE.search(rest)
    if ends_like_one and len(words) <= MOST_WORDS and rest[0].isupper() and len(rest) < LONGEST_PLAIN_LINE:
        return rest if _mostly_capitalised(words) or len(words) <= MOST_RUN_IN_WORDS else ""
    run_in = _RUN_IN.match(rest)
    if run_in is None or len(run_in["title"].split()) > MOST_RUN_IN_WORDS:
        return ""
    title = run_in["title"].strip()
    is_title = title[:1].isupper() and (_is_title_case(title) or len(title.split()) <= most_plain_words)
    return title if is_title else ""


def _mostly_capitalised(words: list[str]) -> bool:
    weighty = [word for word in words if word.lower() not in _SMALL]
    return sum(not word[0].islower() for word in weighty) * 2 > len(weighty)


def _is_title_case(title: str) -> bool:
    words = _WORD.findall(title)
    return bool(words) and all(word[0].isupper() or word in _SMALL for word in words)


def _capitals(text: str, line: _Line) -> Heading | None:
    """A title in capitals: a few words alone on their line, not a sum, a code or a shouted sentence."""
    shown = line.text.strip()
    words = _WORD.findall(shown[: LONGEST_PLAIN_LINE + 1])
    if len(shown) > LONGEST_PLAIN_LINE or not 0 < len(words) <= MOST_WORDS or shown[-1] in ".,;!?":
        return None
    if max(map(len, words)) < 3 or sum(map(len, words)) * 2 < len(shown.replace(" ", "")) or not words[0].isupper():
        return None
    below = text[line.end + 1 : line.end + LONGEST_PLAIN_LINE].split("\n", 1)[0]
    if below.upper() == below and _WORD.search(below):
        return None
    is_first = not text[: line.start].strip() if line.start < 4_000 else False
    return Heading(line.start, TITLE if is_first else ARTICLE, normalize_title(shown.rstrip(":")))


def _after_blank(text: str, start: int) -> bool:
    end = start - 1
    return end < 1 or not text[text.rfind("\n", 0, end) + 1 : end].strip()


def _without_lists(text: str, found: list[Heading]) -> list[Heading]:
    """Drop runs of numbered lines without text below them: a list or a table of contents."""
    kept: list[Heading] = []
    listed: Heading | None = None
    for heading, below in zip_longest(found, found[1:]):
        continues = listed is not None and _next_number(listed, heading)
        listed = None
        if _number(heading) and (continues or (below is not None and _next_number(heading, below))):
            if below is not None and _is_bare(text, heading, below) and _number(below):
                listed = heading
                continue
            if continues:
                continue
        kept.append(heading)
    return kept


def _is_bare(text: str, heading: Heading, below: Heading) -> bool:
    """Whether the heading fills its line and no text lies between it and the one below."""
    line, _, body = (
        text[heading.start : min(below.start, heading.start + 2 * LONGEST_PLAIN_LINE)].lstrip().partition("\n")
    )
    return not body.strip() and line.strip().endswith(heading.title.split(maxsplit=1)[-1])


def _number(heading: Heading) -> list[int]:
    head = heading.title.split(maxsplit=1)[0].rstrip(".") if heading.title else ""
    return [int(part) for part in head.split(".")] if head.replace(".", "").isdecimal() else []


def _next_number(one: Heading, other: Heading) -> bool:
    """Whether the other heading has the next number: 3 after 2, 3.2 after 3.1."""
    first, second = _number(one), _number(other)
    return bool(first) and len(first) == len(second) and first[:-1] == second[:-1] and first[-1] + 1 == second[-1]


def _joined_titles(text: str, found: list[Heading]) -> Iterator[Heading]:
    """Join `ARTICLE IV` and its title in capitals on the next line into one heading."""
    pending: Heading | None = None
    for heading in found:
        if pending is not None:
            if heading.level == pending.level and _is_untitled(pending) and _is_bare(text, pending, heading):
                heading = Heading(pending.start, pending.level, normalize_title(f"{pending.title} {heading.title}"))
                yield heading
                pending = None
                continue
            yield pending
        pending = heading
    if pending is not None:
        yield pending


def _is_untitled(heading: Heading) -> bool:
    found = _CANDIDATE.match(heading.title)
    return found is not None and found["division"] == heading.title
