"""Values that the scan for secrets skips: those the owner allowed, and the middle of long repetitions."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from hashlib import sha256

from engram.gates.secrets.forms import Secret
from engram.model.errors import StoreCorrupt
from engram.model.lazy import dataclass
from engram.store.protocol import Store

__all__ = ["NOTHING_ALLOWED", "AllowedValues", "Shortened", "allow_values", "allowed_digests", "shorten_repetitions"]

ALLOWED_VALUES_STATE = "allowed-values"

_EXACT = "sha256:"
_LONGEST = 512
"""Maximum characters of a value that patterns are compared with, to bound the work; a longer value is never allowed."""


@dataclass(frozen=True, slots=True)
class AllowedValues:
    """Patterns with `*`, `?` and `[…]` that cover a whole value, and digests of single values.

    They are loaded when a secret is found, because a person may allow a value while a server runs.
    """

    load: Callable[[], tuple[str, ...]] = tuple

    def without_allowed(self, text: str, found: Sequence[Secret]) -> list[Secret]:
        """The secrets in a text that no pattern covers."""
        patterns = self.load() if found else ()
        return [secret for secret in found if not _covers(patterns, text, secret)]


def _covers(patterns: tuple[str, ...], text: str, secret: Secret) -> bool:
    values = {text[secret.start : secret.end], _whole_word(text, secret)} if patterns else ()
    return any(
        _digest(value) in patterns or any(fnmatchcase(value, pattern) for pattern in patterns)
        for value in values
        if len(value) <= _LONGEST
    )


NOTHING_ALLOWED = AllowedValues()


def allowed_digests(store: Store) -> tuple[str, ...]:
    """The digests of the values that a person allowed in a store; empty if the state cannot be read."""
    try:
        return tuple(store.state(ALLOWED_VALUES_STATE))
    except StoreCorrupt:
        return ()


def allow_values(store: Store, values: Iterable[str], now: datetime) -> None:
    """Record that a person allows these values. Only digests are stored, because a value may be purged later."""
    digests = {_digest(value): now.isoformat() for value in values}
    store.change_state(ALLOWED_VALUES_STATE, lambda known: {**known, **digests})


def _digest(value: str) -> str:
    return _EXACT + sha256(" ".join(value.split()).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _whole_word(text: str, secret: Secret) -> str:
    """The secret with the characters joined to it, because a scanner may match only a part of a word."""
    start, end = secret.start, secret.end
    while start > 0 and secret.start - start < _LONGEST and not text[start - 1].isspace():
        start -= 1
    while end < len(text) and end - secret.end < _LONGEST and not text[end].isspace():
        end += 1
    return text[start:end].strip(".,;:!?()[]{}\"'`“”„«»")


_MAX_PERIOD = 512
_MAX_KEPT_CHARS, _MAX_KEPT_KEY_CHARS = 2_048, 10_240
"""Characters kept before and after a cut: together more than the longest value that a rule reads, without and with a
block of a key."""
_KEY_BLOCKS = ("BEGIN ", "PRIVATE KEY", "PuTTY", "LS0tLS1CRUdJTi")
_STEP = 1_024
_MAX_COPIES = 500
"""Maximum secrets repeated in the cut part; with more, the whole part counts as one secret."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A position in the shortened text where `size` characters were cut, which repeat every `period` characters."""

    place: int
    size: int
    period: int


@dataclass(frozen=True, slots=True)
class Shortened:
    """A text without the middle of its long repetitions."""

    text: str
    cuts: tuple[Cut, ...] = ()

    def restore(self, found: Iterable[Secret]) -> list[Secret]:
        """The secrets of the shortened text at their positions in the whole text, and those in the cut parts."""
        secrets = list(found)
        for cut in reversed(self.cuts):
            secrets = list(_restore_cut(secrets, cut))
        return secrets


def shorten_repetitions(text: str) -> Shortened:
    """The text without the middle of each long repetition; the text itself if it has none.

    A secret found in a period before the cut also occurs in every period that was cut. If two periods differ, or if
    there are too many secrets, the whole cut part counts as one secret.
    """
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
    """The start, end and period of each long repetition.

    Checking every `_STEP` characters finds all that can be cut.
    """
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
