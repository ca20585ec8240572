"""What one format could not say, kept beside what it could: the fields to set and to unset after reading."""

from collections.abc import Mapping
from typing import Any, Final

from engram.dialects.record import from_mapping
from engram.model.errors import InvalidInput
from engram.model.memory import Memory

ABSENT: Final = object()


def remainder(seen: Mapping[str, Any], full: Mapping[str, Any]) -> dict[str, Any]:
    """What must be set and unset to make `full` of what reads back as `seen`; empty if nothing must."""
    changed = {key: value for key, value in full.items() if seen.get(key, ABSENT) != value}
    surplus = [key for key in seen if key not in full]
    return {**({"set": changed} if changed else {}), **({"unset": surplus} if surplus else {})}


def changes_in(kept: Any) -> dict[str, Any]:
    """A remainder as changes by key; ABSENT takes the key away. Anything else than a remainder changes nothing."""
    if not isinstance(kept, Mapping):
        return {}
    changed, surplus = kept.get("set"), kept.get("unset")
    changes = dict(changed) if isinstance(changed, Mapping) else {}
    if isinstance(surplus, list):
        changes.update({key: ABSENT for key in surplus if isinstance(key, str)})
    return changes


def with_changes(base: Mapping[str, Any], changes: Mapping[str, Any]) -> Memory | None:
    """The memory after the changes, or None if they make no memory."""
    data = {key: value for key, value in {**base, **changes}.items() if value is not ABSENT}
    try:
        return from_mapping(data)
    except InvalidInput:
        return None
