"""Where secrets stand in a text."""

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Secret", "apart"]


@dataclass(frozen=True, slots=True)
class Secret:
    """Where a secret stands in a text, and what kind it is. The secret itself is not kept."""

    kind: str
    start: int
    end: int


def apart(found: Iterable[Secret]) -> list[Secret]:
    """Sorted, with overlapping spans joined; the first and widest gives the kind."""
    joined: list[Secret] = []
    for secret in sorted(found, key=lambda item: (item.start, -item.end)):
        if joined and secret.start < joined[-1].end:
            last = joined[-1]
            joined[-1] = Secret(last.kind, last.start, max(last.end, secret.end))
        else:
            joined.append(secret)
    return joined
