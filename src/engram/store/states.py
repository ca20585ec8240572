"""Small named states as JSON, which a later run of some work needs, such as how far it has read.

The same on every backend.
"""

import json
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, Protocol

from engram.model.errors import InvalidInput

MAX_NAME_CHARACTERS = 1_000
StateValue = dict[str, Any]
StateChange = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Returns the new value for the current one, which it must not change; it may be called under a lock."""


def checked_name(name: str) -> str:
    """The name of a state. Raises `InvalidInput` for one that no backend can store."""
    if not 0 < len(name) <= MAX_NAME_CHARACTERS:
        raise InvalidInput(f"the name of a state has 1 to {MAX_NAME_CHARACTERS} characters, this one has {len(name)}")
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


def apply_change(before: StateValue, change: StateChange) -> StateValue:
    """The value after a change, as it will be read again."""
    return from_text(to_text(change(before)))


# -- states with a fixed meaning


PAUSE_STATE = "paused"
"""The state that records the owner's pause."""
SPENDING_PREFIX = "spent/"
"""The states that count the tokens of a language model, one for each day."""


class StateStore(Protocol):
    """Anything that has states, such as a store."""

    def state(self, name: str) -> Mapping[str, Any]:
        """A state's value; {} if there is none."""

    def change_state(self, name: str, change: StateChange) -> Mapping[str, Any]:
        """Replace a state by the result of `change` for its value."""


def is_paused(store: StateStore) -> bool:
    """Whether the owner has paused learning and injection."""
    return bool(store.state(PAUSE_STATE))


def set_pause(store: StateStore, paused: bool) -> None:
    """Pause or resume learning and injection."""
    store.change_state(PAUSE_STATE, lambda _: {"paused": True} if paused else {})


class StoreSpend:
    """The tokens spent on each day, shared by every process of a store (`engram.llm.spend.SpendBook`)."""

    def __init__(self, store: StateStore) -> None:
        self._store = store

    def tokens_spent(self, day: date) -> int:
        """Tokens used on a day."""
        return int(self._store.state(f"{SPENDING_PREFIX}{day.isoformat()}").get("tokens", 0))

    def spend_tokens(self, day: date, tokens: int) -> None:
        """Add tokens to a day; a negative number returns reserved tokens."""
        self._store.change_state(
            f"{SPENDING_PREFIX}{day.isoformat()}", lambda before: {"tokens": int(before.get("tokens", 0)) + tokens}
        )


def spending_day(name: str) -> date | None:
    """The day whose tokens a state counts; None for another state."""
    if not name.startswith(SPENDING_PREFIX):
        return None
    try:
        return date.fromisoformat(name.removeprefix(SPENDING_PREFIX))
    except ValueError:
        return None
