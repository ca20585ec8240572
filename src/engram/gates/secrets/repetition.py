"""Long repetitions: of a text that repeats one piece, only the beginning and the end of the repetition are scanned.

What is found in a period before the cut is found in every period that was cut out. If two periods differ, or if there are too many
secrets, everything that was cut out counts as one secret.
"""

from collections.abc import Iterable, Iterator

from engram.gates.secrets.forms import Secret
from engram.model.lazy import dataclass

__all__ = ["Shortened", "shorten_repetitions"]

_MAX_PERIOD = 512
_MAX_KEPT_CHARS, _MAX_KEPT_KEY_CHARS = 2_048, 10_240
"""Characters that stay before and behind a cut: together more than the longest value that a rule reads, without and with a block of a key."""
_KEY_BLOCKS = ("BEGIN ", "PRIVATE KEY", "PuTTY", "LS0tLS1CRUdJTi")
_STEP = 1_024
_MAX_COPIES = 500
"""Secrets that are repeated in what was cut out; of more, all of it is one secret."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A place in the shortened text where `size` characters were cut out, which repeat themselves every `period` characters."""

    place: int
    size: int
    period: int


@dataclass(frozen=True, slots=True)
class Shortened:
    """A text without the middle of its long repetitions."""

    text: str
    cuts: tuple[Cut, ...] = ()

    def restore(self, found: Iterable[Secret]) -> list[Secret]:
        """The secrets of the shortened text at their places in the whole text, and those that were cut out."""
        secrets = list(found)
        for cut in reversed(self.cuts):
            secrets = list(_restore_cut(secrets, cut))
        return secrets


def shorten_repetitions(text: str) -> Shortened:
    """The text without the middle of each long repetition; itself, if it has none."""
    if len(text) < 3 * _MAX_KEPT_CHARS:
        return Shortened(text)
    kept = _MAX_KEPT_KEY_CHARS if any(mark in text for mark in _KEY_BLOCKS) else _MAX_KEPT_CHARS
    pieces: list[str] = []
    cuts: list[Cut] = []
    position = size = 0
    for start, stop, period in _find_repetitions(text, 2 * kept):
        period *= -(-_MAX_PERIOD // period)
        removed = (stop - start - 2 * kept) // period * period
        if removed > 0:
            pieces.append(text[position : start + kept])
            size += len(pieces[-1])
            cuts.append(Cut(size, removed, period))
            position = start + kept + removed
    return Shortened("".join([*pieces, text[position:]]), tuple(cuts)) if cuts else Shortened(text)


def _find_repetitions(text: str, shortest: int) -> Iterator[tuple[int, int, int]]:
    """The start, the end and the period of each long repetition. Looking at every `_STEP` characters misses none that can be cut."""
    start = 0
    while start + shortest <= len(text):
        block = text[start : start + _MAX_PERIOD]
        again = text.find(block, start + 1, start + 2 * _MAX_PERIOD)
        stop = start
        if again >= 0:
            period = again - start
            stop = again
            while (
                stop < len(text)
                and text[stop : stop + _STEP] == text[stop - period : stop - period + _STEP][: len(text) - stop]
            ):
                stop = min(len(text), stop + _STEP)
            if stop - start > shortest:
                yield start, stop, period
        start = max(start + _STEP, stop)


def _restore_cut(secrets: list[Secret], cut: Cut) -> Iterator[Secret]:
    place, size, period = cut.place, cut.size, cut.period
    last = [(one.kind, one.start, one.end) for one in secrets if place - period <= one.start < place]
    before = [
        (one.kind, one.start + period, one.end + period)
        for one in secrets
        if place - 2 * period <= one.start < place - period
    ]
    covering = any(one.start < place < one.end and one.end - one.start > period for one in secrets)
    for one in secrets:
        start = one.start + size if one.start >= place else one.start
        is_behind = one.start >= place or (covering and one.end > place)
        yield Secret(one.kind, start, one.end + size if is_behind else one.end)
    if covering:
        return
    if last == before and len(last) * size <= _MAX_COPIES * period:
        for shift in range(period, size + 1, period):
            yield from (Secret(kind, start + shift, end + shift) for kind, start, end in last)
    else:
        yield Secret((last or before)[0][0], place, place + size)
