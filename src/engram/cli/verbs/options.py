"""Arguments and options that several verbs share, each declared and worded once."""

from typing import Any

from engram.model.errors import InvalidInput
from engram.model.memory import STATUSES
from engram.rules.scopes import EVERYWHERE

KINDS = ("memory", "event")
"""What a search can find."""


def memory_fields(given: dict[str, Any]) -> dict[str, Any]:
    """The non-empty fields of a new memory. An explicit empty list of cues is kept."""
    return {name: value for name, value in memory_changes(given).items() if value not in ("", None, False)}


FILTERS = ("scope", "types", "tags", "domain", "since", "until", "as_of", "known_at", "status", "metadata")
"""The filters of the command line, by the library's names."""


def filters_of(asked: dict[str, Any], *, everywhere: bool) -> dict[str, Any]:
    """Take the non-empty filters out of the given values."""
    found = {name: value for name in FILTERS if (value := asked.pop(name, None))}
    if everywhere and "scope" in found:
        raise InvalidInput("give --everywhere or --scope, not both")
    return {**found, **({"scope": [EVERYWHERE]} if everywhere else {})}


def everywhere_hint(filters: dict[str, Any]) -> str:
    """The end of a hint: how to search every scope, if the caller chose none."""
    return "" if "scope" in filters else "; --everywhere looks in every scope"


def memory_changes(given: dict[str, Any]) -> dict[str, Any]:
    """The fields of a changed memory. An empty text clears a field, and no cues removes all of them."""
    return {**given, **({"cues": []} if given.get("cues") == [""] else {})}


def check_claim(claimed: str | None) -> None:
    """Raise `InvalidInput` for a source that is neither human nor agent."""
    if claimed not in (None, "human", "agent"):
        raise InvalidInput(f"--source takes human or agent, not {claimed!r}")


class Options:
    """Values that several verbs share, by name; missing ones have the default of the class."""

    def __init__(self, **given: Any) -> None:
        self.__dict__.update(given)


class EventOptions(Options):
    """The contents of a ledger event: session observe and task event."""

    role: str = ""
    content: str = ""
    event_type: str = "message"
    key: str = ""
    at: str | None = None
    batch: bool = False


def filters(**given: Any) -> dict[str, Any]:
    """The filters that were given, as the client takes them. Raises `InvalidInput` for an unknown status or kind."""
    meta = pairs(given.pop("meta", None))
    status = given.pop("status", None)
    _check_known("status", status, (*STATUSES, "any"))
    _check_known("kind", given.get("kinds"), KINDS)
    chosen = {name: value for name, value in given.items() if value}
    if status:
        chosen["status"] = "any" if "any" in status else status
    if meta:
        chosen["metadata"] = meta
    return chosen


def _check_known(what: str, given: list[str] | None, known: tuple[str, ...]) -> None:
    for value in given or ():
        if value not in known:
            raise InvalidInput(f"Unknown {what} {value!r}; choose {', '.join(known)}")


def check_least(option: str, value: int | None, least: int) -> None:
    """Refuse a number that is too small."""
    if value is not None and value < least:
        raise InvalidInput(f"{option} takes a number of at least {least}, not {value}")


def pairs(items: list[str] | None) -> dict[str, Any]:
    """`key=value` texts as a mapping; a value that is JSON is read as such."""
    from engram.readers.data import NotJson, parse_json

    found: dict[str, Any] = {}
    for item in items or ():
        key, equals, value = item.partition("=")
        if not equals or not key.strip():
            raise InvalidInput(f"{item!r} does not have the form key=value")
        try:
            found[key.strip()] = parse_json(value, characters="any")
        except NotJson:
            found[key.strip()] = value
    return found
