"""Cuts a section that is too long: between paragraphs, then sentences, lines, pauses and words.

Short neighbours are joined. A text without such boundaries is cut between characters, never inside a grapheme cluster.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

__all__ = ["LEVELS", "STRETCH", "Piece", "Splitter"]

# Real clusters (flags, families, accents) are shorter; a longer run of marks is noise and may be cut anywhere.
LONGEST_CLUSTER = 64

_JOINER = "\u200d"
_LINE_ENDS = "\r\n\x0b\x0c\x85\u2028\u2029"

# Characters processed at a time, so that a document without headings needs no more memory.
STRETCH = 32_768

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

    `additive` means that the token count of two texts joined at a space is the sum of both; otherwise each piece is counted
    again.
    """

    text: str
    kind: str
    max_tokens: int
    count: Callable[[str], int]
    additive: bool

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
        for piece in self._joined(_spans(self.text, start, end, levels[level])):
            if piece.tokens <= self.max_tokens or level + 1 == len(levels):
                yield piece
            else:
                yield from self._recursive(piece.start, piece.end, level + 1)

    def _joined(self, spans: Iterable[tuple[int, int]]) -> Iterator[Piece]:
        """Neighbouring spans joined up to the limit."""
        piece: Piece | None = None
        for start, end in spans:
            tokens = self.count(self.text[start:end])
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
        if self.additive and (start, end) == (piece.start, piece.end):
            return piece
        return Piece(start, end, self.count(self.text[start:end]))

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
        return Piece(start, end, self.count(self.text[start:end]))


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


def safe_cut(text: str, at: int, floor: int = 0) -> int:
    """The nearest position at or before `at` between two grapheme clusters; `at` itself if there is none after `floor`."""
    cut = at
    while floor < cut < len(text) and continues(text, cut):
        cut -= 1
        if at - cut >= LONGEST_CLUSTER:
            return at
    return cut if cut > floor else at


def continues(text: str, at: int) -> bool:
    """Whether the character at `at` continues the cluster before it: marks, joined emoji, flags, jamo, surrogates, CRLF."""
    before, here = text[at - 1], text[at]
    if before in _LINE_ENDS:
        return before == "\r" and here == "\n"
    if here < "\u0300":
        return before == _JOINER
    if before == _JOINER or here == _JOINER or _extends(here):
        return True
    if _is_flag(here) and _is_flag(before):
        return _flags_before(text, at) % 2 == 1
    if "\udc00" <= here <= "\udfff":
        return "\ud800" <= before <= "\udbff"
    return _is_jamo_tail(here) and ("\u1100" <= before <= "\u11ff" or "\uac00" <= before <= "\ud7a3")


def _extends(char: str) -> bool:
    """Whether a character extends the one before it: marks, skin tones, tags of regional flags."""
    return (
        unicodedata.category(char)[0] == "M"
        or "\U0001f3fb" <= char <= "\U0001f3ff"
        or "\U000e0020" <= char <= "\U000e007f"
    )


def _is_flag(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _is_jamo_tail(char: str) -> bool:
    return "\u1160" <= char <= "\u11ff"


def _flags_before(text: str, at: int) -> int:
    count = 0
    while count < min(at, LONGEST_CLUSTER) and _is_flag(text[at - 1 - count]):
        count += 1
    return count
