"""Text folded for matching, and the way back: full-width letters as plain ones, invisible characters left out."""

import re
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass

__all__ = ["Folded", "folded"]

_IGNORED = (
    "\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\U000e0000-\U000e007f\U000e0100-\U000e01ef"
)
_INVISIBLE = re.compile(f"[{_IGNORED}]")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


@dataclass(frozen=True, slots=True)
class Folded:
    """A text as it is matched. `starts` are the places where what follows comes from the place in `origins`."""

    text: str
    starts: tuple[int, ...] = ()
    origins: tuple[int, ...] = ()

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where a stretch of the folded text stands in the original."""
        return (self._origin(start), self._origin(end - 1) + 1) if self.starts else (start, end)

    def _origin(self, place: int) -> int:
        run = bisect_right(self.starts, place) - 1
        origin = self.origins[run] + place - self.starts[run]
        # Several characters may stand for one of the original.
        return min(origin, self.origins[run + 1] - 1) if run + 1 < len(self.origins) else origin


def folded(text: str) -> Folded:
    """Fold a text; one that has nothing to fold, and nearly every text is such, is taken as it is."""
    if text.isascii() or (unicodedata.is_normalized("NFKC", text) and not _INVISIBLE.search(text)):
        return Folded(text)
    pieces, starts, origins, size, position = [], [0], [0], 0, 0
    for found in _NOT_ASCII.finditer(text):
        plain = "" if _INVISIBLE.match(found[0]) else unicodedata.normalize("NFKC", found[0])
        if plain == found[0]:
            continue
        pieces += [text[position : found.start()], plain]
        size += found.start() - position
        starts += [size, size + len(plain)]
        origins += [found.start(), found.end()]
        size, position = size + len(plain), found.end()
    pieces.append(text[position:])
    return Folded("".join(pieces), tuple(starts), tuple(origins))
