"""Cutting a section that is too long: chonkie's recursive splitting, with our own count of tokens.

chonkie cuts between paragraphs, then sentences, lines and words, and joins what is short; importing it takes more than a
second, so a document whose sections all fit never does. What has no such place to cut is cut between characters.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from engram.capture.longinput.graphemes import safe_cut
from engram.model.errors import InvalidInput

if TYPE_CHECKING:
    from chonkie import RecursiveChunker
    from chonkie.tokenizer import TokenizerProtocol

__all__ = ["Piece", "Splitter"]

# A section is handed over in stretches of this many characters, so that a document without headings costs no more memory.
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
"""Where each kind of document is cut, the best places first; last come words."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the text and how many tokens it has."""

    start: int
    end: int
    tokens: int


@dataclass(slots=True)
class Splitter:
    """Cuts one text into pieces of at most `max_tokens`.

    `additive` says that the tokens of two texts that meet at a space are the sum of both; without it each piece is
    counted once more.
    """

    text: str
    kind: str
    max_tokens: int
    count: Callable[[str], int]
    additive: bool
    _chunker: "RecursiveChunker | None" = field(default=None, init=False)

    def pieces(self, start: int, end: int) -> Iterator[Piece]:
        """The pieces of a span, in order; together they are the whole span."""
        while start < end:
            stop = safe_cut(self.text, min(start + STRETCH, end), start)
            cuts = self._cut(start, stop)
            if stop < end and len(cuts) > 1:
                cuts.pop()  # the next stretch begins with it: it may go on there
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

    def _recursive(self, start: int, end: int) -> Iterator[Piece]:
        for found in self._chonkie().chunk(_encodable(self.text[start:end])):
            yield Piece(start + found.start_index, start + found.end_index, found.token_count)

    def _whole(self, piece: Piece, before: list[Piece]) -> Piece:
        """The piece with its edges between whole characters, counted anew where that is needed."""
        start = before[-1].end if before else piece.start
        end = safe_cut(self.text, piece.end, start)
        if self.additive and (start, end) == (piece.start, piece.end):
            return piece
        return Piece(start, end, self.count(self.text[start:end]))

    def _by_characters(self, start: int, end: int) -> Iterator[Piece]:
        """Cuts where nothing else is left; a single character is kept even if it counts for more than allowed."""
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

    def _chonkie(self) -> "RecursiveChunker":
        if self._chunker is None:
            self._chunker = _recursive_chunker(self.kind, self.max_tokens, self.count)
        return self._chunker


def _recursive_chunker(kind: str, max_tokens: int, count: Callable[[str], int]) -> "RecursiveChunker":
    try:
        from chonkie import RecursiveChunker, RecursiveLevel, RecursiveRules
    except ImportError as error:
        raise InvalidInput(
            f"The document has a section of more than {max_tokens} tokens, and cutting it needs the package chonkie: "
            'pip install "engram[chunking]"'
        ) from error
    levels = [RecursiveLevel(delimiters=list(delimiters)) for delimiters in LEVELS[kind]]
    rules = RecursiveRules([*levels, RecursiveLevel(whitespace=True)])
    # It takes a plain counter as well, though its annotation names the full protocol only.
    counter = cast("TokenizerProtocol", count)
    return RecursiveChunker(tokenizer=counter, chunk_size=max_tokens, rules=rules, min_characters_per_chunk=1)


def _encodable(text: str) -> str:
    """The text at its own length with nothing in it that UTF-8 cannot write: half surrogate pairs are stood in for."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)
    return text
