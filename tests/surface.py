"""The classes a caller meets behind `Engram` and `AsyncEngram`."""

import inspect
from typing import get_type_hints

from engram import AsyncEngram, Engram
from engram.aio.awaitable import Twin
from engram.model.lazy import cached_property

VALUES = {"settings", "home", "directory", "policy", "model"}
"""Parts of `Engram` that are handed out as they are."""


def facets() -> dict[str, type]:
    """The facets of `Engram` by name."""
    return {
        name: get_type_hints(inspect.getattr_static(AsyncEngram, name).fget)["return"]
        for name, part in inspect.getmembers_static(Engram)
        if isinstance(part, cached_property) and not name.startswith("_") and name not in VALUES
    }


def target(twin: type) -> type:
    """The synchronous class behind a twin."""
    found = next(base.__args__[0] for base in twin.__orig_bases__ if base.__origin__ is Twin)  # type: ignore[attr-defined]
    assert isinstance(found, type)
    return found
