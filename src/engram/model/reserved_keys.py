"""The keys of metadata that Engram writes and its rules read: a caller neither sets, changes nor removes them."""

from collections.abc import Collection, Mapping
from typing import Any

from engram.model.errors import InvalidInput

FORGET_REQUESTED = "forget_requested"
"""Of a memory that somebody asked to forget who may not: by whom and where, until a person decides."""
CORROBORATED_BY = "corroborated_by"
"""Of a memory that an independent source repeated: that source."""
VERBATIM = "verbatim"
"""Of an artifact that has the exact words of a memory: its id. Only a search for artifacts finds it."""
QUOTED_EVENT = "quoted_event"
"""Of such an artifact: the event that it quotes."""
IN_BUFFER = "captured"
"""Of a live turn: it waits in its session's buffer, or did."""

RESERVED_MEMORY_KEYS = (FORGET_REQUESTED, CORROBORATED_BY)
RESERVED_EVENT_KEYS = (VERBATIM, QUOTED_EVENT, IN_BUFFER)


def refuse_reserved(
    given: Mapping[str, Any], reserved: Collection[str], stored: Mapping[str, Any] | None = None
) -> None:
    """Raise `InvalidInput` where a caller's metadata gives a reserved key another value than the stored one."""
    stored = stored or {}
    for key in reserved:
        if key in given and (key not in stored or given[key] != stored[key]):
            raise InvalidInput(f"the metadata {key!r} is Engram's own; choose another key")


def with_reserved(given: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """A memory's metadata as a caller changes it: the reserved keys stay as stored. Raises `InvalidInput` where one is set."""
    refuse_reserved(given, RESERVED_MEMORY_KEYS, stored)
    return {**given, **{key: stored[key] for key in RESERVED_MEMORY_KEYS if key in stored}}


def without_reserved(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """A memory's metadata without what only this store decides."""
    return {key: value for key, value in metadata.items() if key not in RESERVED_MEMORY_KEYS}
