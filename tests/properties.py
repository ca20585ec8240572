"""With how many examples something is tried."""

from typing import Any

from hypothesis import settings

ALL, QUICK = 50, 20
"""Where a test says nothing of its own: in `make test-all`, and in `make test`."""


def share(number: int) -> int:
    """So many in `make test-all`, and in `make test` the part of them that every property is tried with."""
    return max(1, number * settings().max_examples // ALL)


def examples(number: int, **options: Any) -> settings:
    """A property's settings with so many examples in `make test-all`."""
    return settings(deadline=None, max_examples=share(number), **options)
