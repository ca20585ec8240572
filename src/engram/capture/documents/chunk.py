"""Splits a document into chunks: along its headings first, by length where a section is too long.

Chunks are in order and do not overlap; only blank characters lie between them. A chunk stays within one section of level 1 or 2,
with two exceptions: a heading with almost nothing below it joins the section that follows inside it, and tiny neighbours
below the same heading share a chunk. Deeper, short sections of one such section share a chunk too. The heading of a shared
chunk names the first and the last: `Terms > 3. Fees – 5. Taxes`.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile

from engram.capture.documents.headings import Heading, code_headings, diff_headings, markdown_headings
from engram.capture.documents.headings_text import text_headings
from engram.capture.documents.splitter import LEVELS, STRETCH, Piece, Splitter
from engram.embedding.tokenizer import count_tokens
from engram.model.errors import InvalidInput

__all__ = ["MAX_TOKENS", "Chunk", "DocumentSection", "chunks_of", "sections_of"]

# Sections of these levels divide the document and are kept apart.
MAJOR_LEVEL = 2

_READERS: dict[str, Callable[[str], Iterable[Heading]]] = {
    "markdown": markdown_headings,
    "text": text_headings,
    "code": code_headings,
    "diff": diff_headings,
}


@dataclass(frozen=True, slots=True)
class DocumentSection:
    """A heading and the text up to the next heading; the first section may have none.

    `above` is the heading and its ancestors, outermost first.
    """

    start: int
    end: int
    above: tuple[Heading, ...]

    @property
    def level(self) -> int:
        """The level of its own heading; 0 before the first heading."""
        return self.above[-1].level if self.above else 0

    @property
    def major(self) -> tuple[Heading, ...]:
        """The headings above it of a level that divides the document."""
        return tuple(heading for heading in self.above if heading.level <= MAJOR_LEVEL)

    def is_within(self, other: "DocumentSection") -> bool:
        """Whether this section is below the other's heading."""
        return self.above[: len(other.above)] == other.above


def sections_of(text: str, kind: str) -> Iterator[DocumentSection]:
    """The sections of a text in order; together they cover the whole text."""
    start, above = 0, ()  # type: tuple[int, tuple[Heading, ...]]
    for heading in _READERS[kind](text):
        if heading.start > start:
            yield DocumentSection(start, heading.start, above)
        above = (*(upper for upper in above if upper.level < heading.level), heading)
        start = heading.start
    if start < len(text):
        yield DocumentSection(start, len(text), above)


MAX_TOKENS = 700

# Shares of the largest chunk: a section below this is tiny, …
TINY = 1 / 10
# (the header of a file in a diff is long, but useless without its first hunk) …
TINY_FILE_HEADER = 1 / 4
# … tiny neighbours are joined up to this, …
TINY_TOGETHER = 1 / 4
# … and short subsections up to this: small enough that a citation still points at something.
SUBSECTIONS_TOGETHER = 1 / 2
# A section with more characters than this per allowed token is not counted as a whole, because it is likely to be cut.
CERTAIN_CHARACTERS = 3

_BLANK_LINES = re.compile(r"(?:[^\S\n]*\n)+")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a document, `text[start:end]`, and the headings above it (`Agreement > 3. Payment`)."""

    index: int
    start: int
    end: int
    heading: str


def chunks_of(
    text: str, *, kind: str, max_tokens: int = MAX_TOKENS, count: Callable[[str], int] | None = None
) -> list[Chunk]:
    """The chunks of a text, each of at most `max_tokens` tokens by `count` (default: the bundled tokenizer).

    `kind` is "markdown", "text", "code" or "diff". Deterministic. Only a single character can exceed the limit. Raises
    `InvalidInput` for an unknown kind or a limit below 1.
    """
    if kind not in LEVELS:
        raise InvalidInput(f"Unknown kind of document {kind!r}; choose from {', '.join(LEVELS)}")
    if max_tokens < 1:
        raise InvalidInput(f"max_tokens is {max_tokens}; it must be at least 1 (default {MAX_TOKENS})")
    splitter = Splitter(text, kind, max_tokens, count or count_tokens, additive=count is None)
    return [
        Chunk(index, start, end, heading)
        for index, (start, end, heading) in enumerate(_parts(splitter, sections_of(text, kind)))
    ]


@dataclass(slots=True)
class _Group:
    """Sections that share a chunk. The first `lead` of them are only headings of the others."""

    sections: list[DocumentSection]
    tokens: float
    only_tiny: bool
    lead: int = 0

    @property
    def body(self) -> list[DocumentSection]:
        return self.sections[self.lead :]


def _parts(splitter: Splitter, sections: Iterable[DocumentSection]) -> Iterator[tuple[int, int, str]]:
    for group in _groups(splitter, sections):
        heading = _heading_of(group.body)
        for piece in _fitting(splitter, group):
            start, end = _without_blank_edges(splitter.text, piece.start, piece.end)
            if start < end:
                yield start, end, heading


def _groups(splitter: Splitter, sections: Iterable[DocumentSection]) -> Iterator[_Group]:
    group: _Group | None = None
    for section in sections:
        tokens = _tokens(splitter, section)
        is_file = splitter.kind == "diff" and section.level == MAJOR_LEVEL
        tiny = tokens <= splitter.max_tokens * (TINY_FILE_HEADER if is_file else TINY)
        if group is not None and _leads(group, section):
            group.lead = len(group.sections)
        elif group is None or not _joins(splitter.max_tokens, group, section, tokens, tiny):
            if group is not None:
                yield group
            group = _Group([], 0, True)
        group.sections.append(section)
        group.tokens += tokens
        group.only_tiny = group.only_tiny and tiny
    if group is not None:
        yield group


def _tokens(splitter: Splitter, section: DocumentSection) -> float:
    """The tokens of a section; infinite if it is too long to share a chunk."""
    if section.end - section.start > splitter.max_tokens * CERTAIN_CHARACTERS:
        return float("inf")
    return splitter.count(splitter.text[section.start : section.end])


def _leads(group: _Group, section: DocumentSection) -> bool:
    """Whether the whole group is tiny and above the section: a title, an article's bare heading."""
    return group.only_tiny and all(section.is_within(upper) for upper in group.sections)


def _joins(max_tokens: int, group: _Group, section: DocumentSection, tokens: float, tiny: bool) -> bool:
    first = group.body[0]
    if section.level > MAJOR_LEVEL and section.major == first.major:
        return group.tokens + tokens <= max_tokens * SUBSECTIONS_TOGETHER
    is_sibling = bool(first.above) and section.above[:-1] == first.above[:-1]
    return is_sibling and tiny and group.only_tiny and group.tokens + tokens <= max_tokens * TINY_TOGETHER


def _fitting(splitter: Splitter, group: _Group) -> Iterable[Piece]:
    start, end = group.sections[0].start, group.sections[-1].end
    tokens = group.tokens
    if not splitter.additive and tokens <= splitter.max_tokens:
        tokens = splitter.count(splitter.text[start:end])
    if tokens <= splitter.max_tokens:
        return [Piece(start, end, int(tokens))]
    return _without_tiny_pieces(splitter, splitter.pieces(start, end))


def _without_tiny_pieces(splitter: Splitter, pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Join a tiny piece to its neighbour if both fit into one chunk."""
    pending: Piece | None = None
    for piece in pieces:
        joined = pending and _joined(splitter, pending, piece)
        if pending and not joined:
            yield pending
        pending = joined or piece
    if pending:
        yield pending


def _joined(splitter: Splitter, one: Piece, other: Piece) -> Piece | None:
    tokens = one.tokens + other.tokens
    if min(one.tokens, other.tokens) > splitter.max_tokens * TINY or tokens > splitter.max_tokens:
        return None
    if other.end - one.start > STRETCH:  # blanks have no tokens, so a chunk could get any length
        return None
    if not splitter.additive:
        tokens = splitter.count(splitter.text[one.start : other.end])
    return Piece(one.start, other.end, tokens) if tokens <= splitter.max_tokens else None


def _without_blank_edges(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without leading blank lines and trailing blanks; the first line keeps its indentation."""
    end = start + len(text[start:end].rstrip())
    blank = _BLANK_LINES.match(text, start, end)
    return (blank.end() if blank else start), end


def _heading_of(sections: list[DocumentSection]) -> str:
    """The heading path that all sections share, then the first and the last title where they differ."""
    shared = _shared([section.above for section in sections])
    first, last = (section.above[len(shared) :] for section in (sections[0], sections[-1]))
    titles = [heading.title for heading in shared]
    if first and last:
        titles.append(" – ".join(filter(None, (first[0].title, last[0].title))))
    return " > ".join(filter(None, titles))


def _shared(paths: list[tuple[Heading, ...]]) -> tuple[Heading, ...]:
    """The common prefix of heading paths."""
    levels = zip(*paths, strict=False)
    return tuple(same[0] for same in takewhile(lambda level: len(set(level)) == 1, levels))
