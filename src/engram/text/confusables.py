"""Text folded for matching, and the way back.

Full-width letters become plain ones, letters that only look like Latin ones become those, invisible characters go.
"""

import re
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass

from engram.text.display import BLANK, INVISIBLE

__all__ = ["Folded", "folded", "readings"]

_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
# Cyrillic, then Greek letters, and the Latin ones that they look like (Unicode's confusables.txt has many more).
_ALIKE = str.maketrans(
    "аеорсухіјѕһԁԝԛгкАВЕКМНОРСТХІЈЅԌαορνκιτυχγεηωΑΒΕΖΗΙΚΜΝΟΡΤΥΧɡ",
    "aeopcyxijshdwqrkABEKMHOPCTXIJSGaopvkituxyenwABEZHIKMNOPTYXg",
)
_LOOKS = "".join(map(chr, _ALIKE))
_LOOK = re.compile(f"[{_LOOKS}]")
# A word of such letters only, with a Latin one among them or one that hardly any word has: honest Cyrillic stays as it is.
_DISGUISED = re.compile(rf"(?<![^\W\d_])(?=[{_LOOKS}]*[a-zA-Zѕԁԝԛ])[a-zA-Z]*+[{_LOOKS}][a-zA-Z{_LOOKS}]*+(?![^\W\d_])")


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


def readings(text: str) -> list[Folded]:
    """The text folded; where something in it may stand for a space as well as for nothing, both ways."""
    first = folded(text)
    if text.isascii() or not BLANK.search(text):
        return [first]
    return [first, folded(BLANK.sub(" ", text))]


def folded(text: str) -> Folded:
    """Fold a text; one that has nothing to fold, and nearly every text is such, is taken as it is."""
    if text.isascii():
        return Folded(text)
    if unicodedata.is_normalized("NFKC", text) and not INVISIBLE.search(text):
        return Folded(_undisguised(text))
    pieces, starts, origins, size, position = [], [0], [0], 0, 0
    for found in _NOT_ASCII.finditer(text):
        plain = "" if INVISIBLE.match(found[0]) else unicodedata.normalize("NFKC", found[0])
        if plain == found[0]:
            continue
        pieces += [text[position : found.start()], plain]
        size += found.start() - position
        starts += [size, size + len(plain)]
        origins += [found.start(), found.end()]
        size, position = size + len(plain), found.end()
    pieces.append(text[position:])
    return Folded(_undisguised("".join(pieces)), tuple(starts), tuple(origins))


def _undisguised(text: str) -> str:
    """Latin letters for those that look like them, place by place."""
    return _DISGUISED.sub(lambda word: word[0].translate(_ALIKE), text) if _LOOK.search(text) else text
