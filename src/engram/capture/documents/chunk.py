"""Splits a document into chunks: along its headings first, by length if a section is too long.

Chunks are in order and do not overlap; only blank characters lie between them. A chunk stays within one section of
level 1 or 2, with two exceptions: a heading with almost nothing below it joins the section that follows inside it, and
tiny neighbours below the same heading share a chunk. Deeper, short sections of one such section share a chunk too. The
heading of a shared chunk names the first and the last: `Terms > 3. Fees – 5. Taxes`.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile

import regex

from engram.capture.documents.headings import Heading, code_headings, diff_headings, markdown_headings, text_headings
from engram.embedding.word_pieces import count_tokens
from engram.model.errors import InvalidInput
from engram.model.lazy import dataclass, field

# Real clusters (flags, families, accents) are shorter; a longer run of marks is noise and may be cut anywhere.
LONGEST_CLUSTER = 64

# Characters processed at a time, so that a document without headings needs no more memory.
STRETCH = 32_768

COUNTED_CHARS, MAX_COUNTS = 40, 4_096
"""Characters of a span whose tokens are counted once, and how many such spans are remembered."""

_PARAGRAPHS = ("\n\n", "\r\n\r\n")
_SENTENCES = (". ", "! ", "? ", ".\n", "!\n", "?\n", ".\r\n", "。", "！", "？", "؟ ", "। ")
_PAUSES = ("; ", ", ", ": ", " – ", " — ", "；", "，", "、")
LEVELS: dict[str, tuple[tuple[str, ...], ...]] = {
    "markdown": (_PARAGRAPHS, _SENTENCES, ("\n",), _PAUSES),
    "text": (_PARAGRAPHS, _SENTENCES, ("\n",), _PAUSES),
    "code": (_PARAGRAPHS, ("\n",), ("; ", "{", "}", ", ")),
    "diff": (("\n",), ("; ", "{", "}", ", ")),
}
"""The boundaries at which each kind of document is cut, best first; words come last."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A span of the text and its number of tokens."""

    start: int
    end: int
    tokens: int


@dataclass(slots=True)
class Splitter:
    """Cuts one text into pieces of at most `max_tokens`.

    The token count of two texts joined at a space is the sum of both.
    """

    text: str
    kind: str
    max_tokens: int
    _counts: dict[str | tuple[int, int], int] = field(default_factory=dict)

    def count(self, start: int, end: int) -> int:
        """The number of tokens in a span.

        Short texts often occur again, and a long span is counted at every level of boundaries.
        """
        text = self.text[start:end]
        key = text if len(text) <= COUNTED_CHARS else (start, end)
        if key not in self._counts:
            if len(self._counts) >= MAX_COUNTS:
                self._counts.clear()
            self._counts[key] = count_tokens(text)
        return self._counts[key]

    def pieces(self, start: int, end: int) -> Iterator[Piece]:
        """The pieces of a span, in order; together they cover the whole span."""
        while start < end:
            stop = safe_cut(self.text, min(start + STRETCH, end), start)
            cuts = self._cut(start, stop)
            if stop < end and len(cuts) > 1:
                cuts.pop()  # the next stretch starts with it, because it may continue there
            yield from cuts
            start = cuts[-1].end

    def _cut(self, start: int, end: int) -> list[Piece]:
        pieces: list[Piece] = []
        for piece in self._recursive(start, end):
            whole = self._whole(piece, pieces)
            if whole.tokens <= self.max_tokens:
                pieces.append(whole)
            elif whole.start < whole.end:
                pieces.extend(self._by_characters(whole.start, whole.end))
        return pieces

    def _recursive(self, start: int, end: int, level: int = 0) -> Iterator[Piece]:
        """Cut at the best boundaries first: join neighbours while they fit, and cut what is still too long at the next level."""
        levels = _LEVELS[self.kind]
        for piece in self._join_spans(_spans(self.text, start, end, levels[level])):
            if piece.tokens <= self.max_tokens or level + 1 == len(levels):
                yield piece
            else:
                yield from self._recursive(piece.start, piece.end, level + 1)

    def _join_spans(self, spans: Iterable[tuple[int, int]]) -> Iterator[Piece]:
        """Neighbouring spans joined up to the limit."""
        piece: Piece | None = None
        for start, end in spans:
            tokens = self.count(start, end)
            if piece is not None and piece.tokens + tokens <= self.max_tokens:
                piece = Piece(piece.start, end, piece.tokens + tokens)
                continue
            if piece is not None:
                yield piece
            piece = Piece(start, end, tokens)
        if piece is not None:
            yield piece

    def _whole(self, piece: Piece, before: list[Piece]) -> Piece:
        """The piece with its edges between grapheme clusters, counted again if needed."""
        start = before[-1].end if before else piece.start
        end = safe_cut(self.text, piece.end, start)
        if (start, end) == (piece.start, piece.end):
            return piece
        return Piece(start, end, self.count(start, end))

    def _by_characters(self, start: int, end: int) -> Iterator[Piece]:
        """Cut between characters; a single character is kept even if it exceeds the limit."""
        size = self.max_tokens * 4
        while start < end:
            size = min(size * 2, end - start)
            piece = self._at_most(start, size)
            while piece.tokens > self.max_tokens and piece.end - start > 1:
                size = max(1, (piece.end - start) // 2)
                piece = self._at_most(start, size)
            yield piece
            start = piece.end

    def _at_most(self, start: int, size: int) -> Piece:
        end = safe_cut(self.text, start + size, start)
        return Piece(start, end, self.count(start, end))


_LEVELS = {
    kind: (*(re.compile("|".join(map(re.escape, places))) for places in levels), re.compile(r"\s+"))
    for kind, levels in LEVELS.items()
}


def _spans(text: str, start: int, end: int, places: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """The spans between boundaries; each ends with its boundary."""
    at = start
    for found in places.finditer(text, start, end):
        yield at, found.end()
        at = found.end()
    if at < end:
        yield at, end


def safe_cut(text: str, at: int, floor: int) -> int:
    """The nearest position at or before `at` between two grapheme clusters; `at` itself if there is none after `floor`."""
    if not floor < at < len(text) or (text[at] < "\u0300" and text[at - 1] not in "\r\u200d"):
        return at
    first = max(floor, at - LONGEST_CLUSTER)
    # A slice, because the pattern looks back over any number of flags before `pos`.
    clusters = regex.finditer(r"\X", text[first : at + 1])
    cut = next((first + cluster.start() for cluster in clusters if first + cluster.end() > at), at)
    return cut if cut > first else at


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
TINY_CHUNK_SHARE = 1 / 10
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


def chunks_of(text: str, *, kind: str, max_tokens: int = MAX_TOKENS) -> list[Chunk]:
    """The chunks of a text, each of at most `max_tokens` tokens; only a single character can exceed the limit.

    `kind` is "markdown", "text", "code" or "diff". Deterministic. Raises `InvalidInput` for an unknown kind.
    """
    if kind not in LEVELS:
        raise InvalidInput(f"Unknown kind of document {kind!r}; choose from {', '.join(LEVELS)}")
    splitter = Splitter(text, kind, max_tokens)
    spans = (span for group in _groups(splitter, sections_of(text, kind)) for span in _spans_of(splitter, group))
    return [Chunk(index, *span) for index, span in enumerate(spans)]


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


def _spans_of(splitter: Splitter, group: _Group) -> Iterator[tuple[int, int, str]]:
    """The chunks of a group: start, end, heading."""
    heading = _heading_of(group.body)
    for piece in _fit_pieces(splitter, group):
        start, end = _without_blank_edges(splitter.text, piece.start, piece.end)
        if start < end:
            yield start, end, heading


def _groups(splitter: Splitter, sections: Iterable[DocumentSection]) -> Iterator[_Group]:
    group: _Group | None = None
    for section in sections:
        tokens = _tokens(splitter, section)
        is_file = splitter.kind == "diff" and section.level == MAJOR_LEVEL
        tiny = tokens <= splitter.max_tokens * (TINY_FILE_HEADER if is_file else TINY_CHUNK_SHARE)
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
    return splitter.count(section.start, section.end)


def _leads(group: _Group, section: DocumentSection) -> bool:
    """Whether the whole group is tiny and above the section: a title, an article's bare heading."""
    return group.only_tiny and all(section.is_within(upper) for upper in group.sections)


def _joins(max_tokens: int, group: _Group, section: DocumentSection, tokens: float, tiny: bool) -> bool:
    first = group.body[0]
    if section.level > MAJOR_LEVEL and section.major == first.major:
        return group.tokens + tokens <= max_tokens * SUBSECTIONS_TOGETHER
    is_sibling = bool(first.above) and section.above[:-1] == first.above[:-1]
    return is_sibling and tiny and group.only_tiny and group.tokens + tokens <= max_tokens * TINY_TOGETHER


def _fit_pieces(splitter: Splitter, group: _Group) -> Iterable[Piece]:
    start, end = group.sections[0].start, group.sections[-1].end
    if group.tokens <= splitter.max_tokens:
        return [Piece(start, end, int(group.tokens))]
    return _without_tiny_pieces(splitter, splitter.pieces(start, end))


def _without_tiny_pieces(splitter: Splitter, pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Join a tiny piece to its neighbour if both fit into one chunk."""
    pending: Piece | None = None
    for piece in pieces:
        joined = pending and _join_two(splitter, pending, piece)
        if pending and not joined:
            yield pending
        pending = joined or piece
    if pending:
        yield pending


def _join_two(splitter: Splitter, one: Piece, other: Piece) -> Piece | None:
    tokens = one.tokens + other.tokens
    if min(one.tokens, other.tokens) > splitter.max_tokens * TINY_CHUNK_SHARE or tokens > splitter.max_tokens:
        return None
    if other.end - one.start > STRETCH:  # blanks have no tokens, so a chunk could get any length
        return None
    return Piece(one.start, other.end, tokens)


def _without_blank_edges(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without leading blank lines and trailing blanks; the first line keeps its indentation."""
    end = start + len(text[start:end].rstrip())
    blank = _BLANK_LINES.match(text, start, end)
    return (blank.end() if blank else start), end


def _heading_of(sections: list[DocumentSection]) -> str:
    """The heading path that all sections share, then the first and the last title if they differ."""
    shared = _common_prefix([section.above for section in sections])
    first, last = (section.above[len(shared) :] for section in (sections[0], sections[-1]))
    titles = [heading.title for heading in shared]
    if first and last:
        titles.append(" – ".join(filter(None, (first[0].title, last[0].title))))
    return " > ".join(filter(None, titles))


def _common_prefix(paths: list[tuple[Heading, ...]]) -> tuple[Heading, ...]:
    """The common prefix of heading paths."""
    levels = zip(*paths, strict=False)
    return tuple(same[0] for same in takewhile(lambda level: len(set(level)) == 1, levels))
