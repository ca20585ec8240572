"""Values that the owner says are not secrets: the patterns of the setting `secrets.allow`, and single values that a person allowed."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from hashlib import sha256

from engram.gates.secrets.forms import Secret
from engram.model.errors import StoreCorrupt
from engram.model.lazy import dataclass
from engram.store.protocol import Store

__all__ = ["NOTHING_ALLOWED", "AllowedValues", "allow_values", "allowed_digests"]

ALLOWED_VALUES_STATE = "allowed-values"

_EXACT = "sha256:"
_LONGEST = 512
"""Characters of a value that patterns are compared with; a longer one is never allowed. It bounds the work."""


@dataclass(frozen=True, slots=True)
class AllowedValues:
    """Patterns with `*`, `?` and `[…]` that cover a whole value, and digests of single values.

    They are loaded when a secret is found: a person may allow a value while a server runs.
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
    """The digests of the values that a person allowed in a store; none if the state cannot be read."""
    try:
        return tuple(store.state(ALLOWED_VALUES_STATE))
    except StoreCorrupt:
        return ()


def allow_values(store: Store, values: Iterable[str], now: datetime) -> None:
    """Remember that a person says these values are not secrets. Only digests are stored: a value may be purged later."""
    digests = {_digest(value): now.isoformat() for value in values}
    store.change_state(ALLOWED_VALUES_STATE, lambda known: {**known, **digests})


def _digest(value: str) -> str:
    return _EXACT + sha256(" ".join(value.split()).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _whole_word(text: str, secret: Secret) -> str:
    """The secret with what is joined to it: a scanner may take only a part of a word."""
    start, end = secret.start, secret.end
    while start > 0 and secret.start - start < _LONGEST and not text[start - 1].isspace():
        start -= 1
    while end < len(text) and end - secret.end < _LONGEST and not text[end].isspace():
        end += 1
    return text[start:end].strip(".,;:!?()[]{}\"'`“”„«»")
