"""Splitting a document into chunks: along its headings first, by length where a section is too long.

Chunks come in order and do not overlap; between two of them, before the first and behind the last lie blank characters
only. A chunk stays within one section of level 1 or 2, with two exceptions: a heading with next to nothing below it goes
with the section that follows inside it, and tiny neighbours below the same heading share a chunk. Deeper sections of one
such section share a chunk while they are short. The heading of a shared chunk names the first and the last: `Terms > 3. Fees –
5. Taxes`.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile

from engram.capture.documents.headings import Heading
from engram.capture.documents.sections import MAJOR_LEVEL, DocumentSection, sections_of
from engram.capture.documents.splitter import LEVELS, STRETCH, Piece, Splitter
from engram.embedding.tokenizer import count_tokens
from engram.model.errors import InvalidInput

__all__ = ["MAX_TOKENS", "Chunk", "chunks_of"]

MAX_TOKENS = 700

# Shares of the largest chunk: below this a section is tiny, …
TINY = 1 / 10
# (the header of a file in a diff is long, and says nothing without its first hunk) …
TINY_FILE_HEADER = 1 / 4
# … tiny neighbours grow together up to this, …
TINY_TOGETHER = 1 / 4
# … and short subsections up to this: small enough that a citation still points at something.
SUBSECTIONS_TOGETHER = 1 / 2
# A section longer than this many characters per token is not counted as a whole: it may need cutting, and is counted then.
CERTAIN_CHARACTERS = 3

_BLANK_LINES = re.compile(r"(?:[^\S\n]*\n)+")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a document: `text[start:end]`, and the headings above it (`Agreement > 3. Payment`)."""

    index: int
    start: int
    end: int
    heading: str


def chunks_of(
    text: str, *, kind: str, max_tokens: int = MAX_TOKENS, count: Callable[[str], int] | None = None
) -> list[Chunk]:
    """The chunks of a text, none over `max_tokens` as `count` counts (the bundled tokenizer unless given).

    `kind` is "markdown", "text", "code" or "diff". The same text gives the same chunks. A chunk is over the limit only if
    it is a single character that counts for more.
    """
    if kind not in LEVELS:
        raise InvalidInput(f"Unknown kind of document {kind!r}; choose from {', '.join(LEVELS)}")
    if max_tokens < 1:
        raise InvalidInput(f"max_tokens is {max_tokens}, and a chunk needs at least 1; {MAX_TOKENS} is usual")
    cutting = Splitter(text, kind, max_tokens, count or count_tokens, additive=count is None)
    return [
        Chunk(index, start, end, heading)
        for index, (start, end, heading) in enumerate(_parts(cutting, sections_of(text, kind)))
    ]


@dataclass(slots=True)
class _Group:
    """Sections that share a chunk. `lead` counts those at the front that are only headings of what follows."""

    sections: list[DocumentSection]
    tokens: float
    only_tiny: bool
    lead: int = 0

    @property
    def body(self) -> list[DocumentSection]:
        return self.sections[self.lead :]


def _parts(cutting: Splitter, sections: Iterable[DocumentSection]) -> Iterator[tuple[int, int, str]]:
    for group in _groups(cutting, sections):
        heading = _heading_of(group.body)
        for piece in _fitting(cutting, group):
            start, end = _without_blank_edges(cutting.text, piece.start, piece.end)
            if start < end:
                yield start, end, heading


def _groups(cutting: Splitter, sections: Iterable[DocumentSection]) -> Iterator[_Group]:
    group: _Group | None = None
    for section in sections:
        tokens = _tokens(cutting, section)
        is_file = cutting.kind == "diff" and section.level == MAJOR_LEVEL
        tiny = tokens <= cutting.max_tokens * (TINY_FILE_HEADER if is_file else TINY)
        if group is not None and _leads(group, section):
            group.lead = len(group.sections)
        elif group is None or not _joins(cutting.max_tokens, group, section, tokens, tiny):
            if group is not None:
                yield group
            group = _Group([], 0, True)
        group.sections.append(section)
        group.tokens += tokens
        group.only_tiny = group.only_tiny and tiny
    if group is not None:
        yield group


def _tokens(cutting: Splitter, section: DocumentSection) -> float:
    """How many tokens a section has; infinite where it is long enough to stand alone."""
    if section.end - section.start > cutting.max_tokens * CERTAIN_CHARACTERS:
        return float("inf")
    return cutting.count(cutting.text[section.start : section.end])


def _leads(group: _Group, section: DocumentSection) -> bool:
    """Whether all of the group are tiny and stand above the section: a title, an article's bare heading."""
    return group.only_tiny and all(section.is_within(upper) for upper in group.sections)


def _joins(max_tokens: int, group: _Group, section: DocumentSection, tokens: float, tiny: bool) -> bool:
    first = group.body[0]
    if section.level > MAJOR_LEVEL and section.major == first.major:
        return group.tokens + tokens <= max_tokens * SUBSECTIONS_TOGETHER
    is_sibling = bool(first.above) and section.above[:-1] == first.above[:-1]
    return is_sibling and tiny and group.only_tiny and group.tokens + tokens <= max_tokens * TINY_TOGETHER


def _fitting(cutting: Splitter, group: _Group) -> Iterable[Piece]:
    start, end = group.sections[0].start, group.sections[-1].end
    tokens = group.tokens
    if not cutting.additive and tokens <= cutting.max_tokens:
        tokens = cutting.count(cutting.text[start:end])
    if tokens <= cutting.max_tokens:
        return [Piece(start, end, int(tokens))]
    return _without_crumbs(cutting, cutting.pieces(start, end))


def _without_crumbs(cutting: Splitter, pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Joins a tiny piece to its neighbour where both fit."""
    held: Piece | None = None
    for piece in pieces:
        joined = held and _joined(cutting, held, piece)
        if held and not joined:
            yield held
        held = joined or piece
    if held:
        yield held


def _joined(cutting: Splitter, one: Piece, other: Piece) -> Piece | None:
    tokens = one.tokens + other.tokens
    if min(one.tokens, other.tokens) > cutting.max_tokens * TINY or tokens > cutting.max_tokens:
        return None
    if other.end - one.start > STRETCH:  # blanks have no tokens, and could make a chunk of any length
        return None
    if not cutting.additive:
        tokens = cutting.count(cutting.text[one.start : other.end])
    return Piece(one.start, other.end, tokens) if tokens <= cutting.max_tokens else None


def _without_blank_edges(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without blank lines before and blanks behind; the first line keeps its indentation."""
    end = start + len(text[start:end].rstrip())
    blank = _BLANK_LINES.match(text, start, end)
    return (blank.end() if blank else start), end


def _heading_of(sections: list[DocumentSection]) -> str:
    """The path all share, and where they part the first and the last."""
    shared = _shared([section.above for section in sections])
    first, last = (section.above[len(shared) :] for section in (sections[0], sections[-1]))
    titles = [heading.title for heading in shared]
    if first and last:
        titles.append(" – ".join(filter(None, (first[0].title, last[0].title))))
    return " > ".join(filter(None, titles))


def _shared(paths: list[tuple[Heading, ...]]) -> tuple[Heading, ...]:
    """The headings with which all the paths begin."""
    levels = zip(*paths, strict=False)
    return tuple(same[0] for same in takewhile(lambda level: len(set(level)) == 1, levels))
