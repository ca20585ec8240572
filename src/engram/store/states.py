"""Small named states as JSON: what a later run of some work has to know, such as how far it has read. The same on every backend."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from engram.model.errors import InvalidInput

LONGEST_NAME = 1_000
StateValue = dict[str, Any]
StateChange = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Makes a new value of the current one, which it must not change; it may be called under a lock."""


def checked_name(name: str) -> str:
    """The name of a state. Raises `InvalidInput` for one that no backend can store."""
    if not 0 < len(name) <= LONGEST_NAME:
        raise InvalidInput(f"the name of a state has 1 to {LONGEST_NAME} characters, this one has {len(name)}")
    if any(char < " " or "\ud800" <= char <= "\udfff" for char in name):
        raise InvalidInput(f"the name of a state cannot contain control characters or broken ones: {name!r:.80}")
    return name


def to_text(value: Mapping[str, Any]) -> str:
    """A state's value as JSON. Raises `InvalidInput` for what JSON cannot represent."""
    try:
        return json.dumps(dict(value), allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"a state must consist of texts, numbers, lists and mappings: {error}") from None


def from_text(text: str | bytes) -> StateValue:
    """The value of a state. Raises `ValueError` unless it is a JSON object."""
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("not a JSON object")
    return found


def changed(before: StateValue, change: StateChange) -> StateValue:
    """The value after a change, as it will be read again."""
    return from_text(to_text(change(before)))
