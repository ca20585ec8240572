"""Headings of plain text: legal numbering, titles in capitals, underlined titles.

Plain text has no markup, so a line is a heading by its appearance: it follows a blank line, is short, and is numbered or in
capitals. Lists and tables of contents look alike; unlike them, a heading has text below it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from engram.capture.documents.headings import Heading, titled, underlined

__all__ = ["text_headings"]

LONGEST_LINE = 120
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
_CONTENTS = re.compile(r"(?:\.[ .]{3,}|…|\t|[ \t]{3,})[ \t.]*\d+[ \t\r]*$")
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
        heading = _heading(text, line, found)
        if heading is not None:
            behind = end
            yield heading


def _heading(text: str, line: _Line, found: re.Match[str]) -> Heading | None:
    if found["rule"]:
        return underlined(text, line.start, found["rule"][0] == "=")
    if _CONTENTS.search(line.text[-LONGEST_LINE:]) or not line.is_separate:
        return None
    rest = text[found.end() : line.end].strip()
    if found["division"]:
        return _named(line, found["division"], rest, ARTICLE)
    if found["section"]:
        return _named(line, found["section"], rest, ARTICLE + len(found["number"].split(".")))
    if found["numbered"]:
        return _numbered(line, found["numbered"], rest)
    return _capitals(text, line)


def _named(line: _Line, name: str, rest: str, level: int) -> Heading | None:
    """`ARTICLE IV – PAYMENT`, `Section 5. Fees. The Buyer shall …`; not `Section 5 of the Agreement provides`."""
    title = _title_of(rest.lstrip(".:–—- \t"))
    if rest and not title and rest[0] not in ".:–—-":
        return None
    return Heading(line.start, max(level, ARTICLE), titled(f"{name} {title}"))


def _numbered(line: _Line, number: str, rest: str) -> Heading | None:
    """`3. Payment`, `3.2 Payment terms`, `3.2 The Buyer shall …`; a lone number needs a title to be more than a list."""
    rest = rest.lstrip(".) \t")
    depth = len(number.split("."))
    title = _title_of(rest, 1 if depth == 1 else 3)
    if not title and (depth == 1 or not rest.lstrip('"“‘(')[:1].isupper()):
        return None
    mark = "." if depth == 1 else ""
    return Heading(line.start, ARTICLE + depth, titled(f"{number}{mark} {title}"))


def _title_of(rest: str, most_plain_words: int = 3) -> str:
    """The title in a line: all of it if it is short and ends like a title, else the words before its first full stop.

    Those must be capitalised, unless they are very few.
    """
    words = rest.split()
    ends_like_one = bool(words) and rest[-1] not in ".,;:!?" and not _NEXT_SENTENCE.search(rest)
    if ends_like_one and len(words) <= MOST_WORDS and rest[0].isupper() and len(rest) < LONGEST_LINE:
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
    words = _WORD.findall(shown[: LONGEST_LINE + 1])
    if len(shown) > LONGEST_LINE or not 0 < len(words) <= MOST_WORDS or shown[-1] in ".,;!?":
        return None
    if max(map(len, words)) < 3 or sum(map(len, words)) * 2 < len(shown.replace(" ", "")) or not words[0].isupper():
        return None
    below = text[line.end + 1 : line.end + LONGEST_LINE].split("\n", 1)[0]
    if below.upper() == below and _WORD.search(below):
        return None
    is_first = not text[: line.start].strip() if line.start < 4_000 else False
    return Heading(line.start, TITLE if is_first else ARTICLE, titled(shown.rstrip(":")))


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
    line, _, body = text[heading.start : min(below.start, heading.start + 2 * LONGEST_LINE)].lstrip().partition("\n")
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
                heading = Heading(pending.start, pending.level, titled(f"{pending.title} {heading.title}"))
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
