"""Folds text for matching, with a mapping back to the original positions.

Full-width letters become plain ones, letters that look like Latin ones become those, invisible characters are removed.
"""

import re
import unicodedata
from bisect import bisect_right

from engram.model.lazy import dataclass
from engram.text.display import BLANK, INVISIBLE

__all__ = ["Folded", "folded", "readings"]

_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
# Cyrillic and Greek letters, and the Latin letters they look like (Unicode's confusables.txt has many more).
_ALIKE = str.maketrans(
    "аеорсухіјѕһԁԝԛгкАВЕКМНОРСТХІЈЅԌαορνκιτυχγεηωΑΒΕΖΗΙΚΜΝΟΡΤΥΧɡ",
    "aeopcyxijshdwqrkABEKMHOPCTXIJSGaopvkituxyenwABEZHIKMNOPTYXg",
)
_LOOKS = "".join(map(chr, _ALIKE))
_LOOK = re.compile(f"[{_LOOKS}]")
# A word of such letters only, with a Latin letter or a rare one among them: real Cyrillic is left alone.
_DISGUISED = re.compile(rf"(?<![^\W\d_])(?=[{_LOOKS}]*[a-zA-Zѕԁԝԛ])[a-zA-Z]*+[{_LOOKS}][a-zA-Z{_LOOKS}]*+(?![^\W\d_])")


@dataclass(frozen=True, slots=True)
class Folded:
    """A folded text. From each position in `starts` on, the text comes from the position in `origins`."""

    text: str
    starts: tuple[int, ...] = ()
    origins: tuple[int, ...] = ()

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The original span of a span of the folded text."""
        return (self._origin(start), self._origin(end - 1) + 1) if self.starts else (start, end)

    def _origin(self, place: int) -> int:
        run = bisect_right(self.starts, place) - 1
        origin = self.origins[run] + place - self.starts[run]
        # Several characters may come from one original character.
        return min(origin, self.origins[run + 1] - 1) if run + 1 < len(self.origins) else origin


def readings(text: str) -> list[Folded]:
    """The folded text; in both ways if a character in it may be a space or nothing."""
    first = folded(text)
    if text.isascii() or not BLANK.search(text):
        return [first]
    return [first, folded(BLANK.sub(" ", text))]


def folded(text: str) -> Folded:
    """Fold a text. Most texts need no folding and are returned as they are."""
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
    """The text with look-alike letters replaced by Latin ones, at the same positions."""
    return _DISGUISED.sub(lambda word: word[0].translate(_ALIKE), text) if _LOOK.search(text) else text
