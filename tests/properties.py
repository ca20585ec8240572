"""How many examples a property is tried with."""

from typing import Any

from hypothesis import settings

ALL, QUICK = 50, 20
"""Where a test says nothing of its own: in `make test-all`, and in `make test`."""


def examples(number: int, **options: Any) -> settings:
    """So many examples in `make test-all`, and the same share of them as everywhere in `make test`."""
    return settings(deadline=None, max_examples=max(1, number * settings().max_examples // ALL), **options)
