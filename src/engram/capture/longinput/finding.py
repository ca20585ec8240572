"""Whether a document still says something, and where."""

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

from engram.capture.longinput.reading import Chunks, Reading
from engram.capture.longinput.sentences import sentences_in
from engram.model.memory import Evidence

_BLANKS = re.compile(r"\s+")


@dataclass
class Text:
    """A document in which quotes are looked for; only their blanks may differ."""

    reading: Reading
    chunks: Chunks

    def find(self, quote: str, *, whole: bool) -> tuple[int, int] | None:
        """Where the words stand; `whole` asks for a sentence that ends with them, not for one that goes on otherwise."""
        words = quote.split()
        # The plain look first: it is a hundred times faster than the pattern, and most of what is gone ends here.
        if not words or " ".join(words) not in self._flat:
            return None
        pattern = re.compile(r"\s+".join(map(re.escape, words)))
        for found in pattern.finditer(self.reading.text):
            if not whole or self._ends(*found.span()):
                return found.span()
        return None

    def place(self, start: int, end: int) -> Evidence | None:
        """The place of words in their chunk; None where they run over two or hold a secret."""
        number = self._chunk(start)
        if number < 0:
            return None
        chunk, event = self.chunks[number]
        return self.reading.evidence(chunk, event, start, end) if end <= chunk.end else None

    @cached_property
    def _flat(self) -> str:
        return _BLANKS.sub(" ", self.reading.text)

    def _ends(self, start: int, end: int) -> bool:
        number = self._chunk(start)
        if number < 0:
            return False
        chunk = self.chunks[number][0]
        if self.reading.kind in ("code", "diff"):
            return not self.reading.text[end : end + 1].isalnum()
        return any(last == end for _, last in sentences_in(self.reading.text, chunk.start, chunk.end))

    def _chunk(self, place: int) -> int:
        """The number of the last chunk that begins at a place or before it; -1 where none does."""
        return bisect_right(self.chunks, place, key=lambda pair: pair[0].start) - 1
