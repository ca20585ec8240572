"""Checks callers' arguments: a mistake raises `InvalidInput` instead of finding nothing.

This includes metadata under a key that Engram itself writes and reads.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Any

from engram.model.errors import InvalidInput
from engram.model.memory import STATUSES, aware
from engram.model.records import EVENT_TYPES

KINDS = ("memory", "event")
"""The kinds of documents a search may return."""
MAX_LIMIT = 1000
"""The maximum limit of a ranked answer."""
MAX_INTEGER = 2**63 - 1
"""The largest integer that a database can store."""
MAX_WORDINGS = 8
"""The maximum number of other wordings of one question."""
_OPENING, _CLOSING = "¿¡\"'“„«( ", "?!.,;:…\"'”“»)— -"
"""Signs around a question that do not affect its topic."""
MAX_DATA_DEPTH = 96
"""The maximum depth of a caller's own data; a memory's file may have 100 levels."""
ANY_STATUS = "any"
Words = str | Sequence[str] | None
Wordings = Sequence[str]
"""Other wordings of a question."""


def checked_limit(limit: Any, name: str = "limit", most: int = MAX_LIMIT) -> int:
    """Check a limit: a whole number of at least 1."""
    if type(limit) is not int or not 1 <= limit <= most:
        raise InvalidInput(f"{name} {limit!r} must be a whole number from 1 to {most}")
    return limit


def checked_length(limit: Any, name: str = "limit") -> int | None:
    """Check a length: a whole number of at least 1, or None for all."""
    if limit is not None and (type(limit) is not int or not 1 <= limit <= MAX_INTEGER):
        raise InvalidInput(f"{name} {limit!r:.40} must be a whole number from 1 to {MAX_INTEGER}; None means all")
    return limit


def checked_place(number: Any, name: str) -> int:
    """Check an offset: a whole number of at least 0."""
    if type(number) is not int or not 0 <= number <= MAX_INTEGER:
        raise InvalidInput(f"{name} {number!r:.40} must be a whole number from 0 to {MAX_INTEGER}")
    return number


def checked_fraction(number: Any, name: str) -> float:
    """Check a number from 0 to 1."""
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= 1:
        raise InvalidInput(f"{name} {number!r} must be a number from 0 to 1")
    return float(number)


def checked_window(since: Any, until: Any, zone: tzinfo | None = None) -> tuple[datetime | None, datetime | None]:
    """Both ends of a half-open window, aware; raises `InvalidInput` if it ends before it begins."""
    first, last = aware(since, zone), aware(until, zone)
    if first is not None and last is not None and first > last:
        raise InvalidInput(f"since {first.isoformat()} is after until {last.isoformat()}; swap them")
    return first, last


def half_character_error(error: UnicodeEncodeError) -> InvalidInput:
    """The error for a text with half a surrogate pair, which no file or database can store."""
    return InvalidInput(
        f"{error.object!r:.80} contains half of a character (U+{ord(error.object[error.start]):04X}); remove it"
    )


def read_words(given: Any, name: str) -> tuple[str, ...] | None:
    """A word or a list of words as a tuple; None stays None. Raises `InvalidInput` for an empty list, which would match
    nothing.
    """
    if given is None:
        return None
    listed = isinstance(given, Iterable) and not isinstance(given, str | Mapping)
    found = tuple(given) if listed else (given,)
    if not found or not all(isinstance(word, str) and word.strip() for word in found):
        raise InvalidInput(f"{name} {given!r} names nothing; give a word or a list of words, or leave it out")
    return found


def checked_wordings(given: Any) -> tuple[str, ...]:
    """Other wordings of a question, without duplicates and those without words."""
    listed = [given] if isinstance(given, str) else given if given is not None else ()
    if isinstance(listed, Mapping) or not isinstance(listed, Iterable):
        raise InvalidInput(f"wordings must be a list of texts, not {type(given).__name__}")
    found: dict[str, str] = {}
    for wording in listed:
        if not isinstance(wording, str):
            raise InvalidInput(f"wordings must be texts; one is {wording!r:.40}")
        plain = " ".join(wording.split())
        if key := wording_key(plain):
            found.setdefault(key, plain)
    if len(found) > MAX_WORDINGS:
        raise InvalidInput(f"{len(found)} wordings were given (maximum {MAX_WORDINGS}); keep those that differ most")
    return tuple(found.values())


def wording_key(text: str) -> str:
    """The key of a wording, which ignores case, white space and surrounding signs, so that equal questions are not
    searched twice.
    """
    return " ".join(text.casefold().split()).lstrip(_OPENING).rstrip(_CLOSING)


def _checked_words(given: Words, name: str, what: str, known: Sequence[str]) -> tuple[str, ...] | None:
    found = read_words(given, name)
    unknown = next((word for word in found or () if word not in known), None)
    if unknown is not None:
        raise InvalidInput(f"unknown {what} {unknown!r}; known: {', '.join(known)}")
    return found


def checked_kinds(kinds: Words) -> tuple[str, ...] | None:
    """Kinds of documents."""
    return _checked_words(kinds, "kinds", "kind", KINDS)


def checked_event_types(types: Words) -> tuple[str, ...] | None:
    """Types of events."""
    return _checked_words(types, "event_types", "event type", EVENT_TYPES)


def checked_statuses(status: Words) -> tuple[str, ...] | None:
    """Statuses of memories, or `any`."""
    return _checked_words(status, "status", "status", (*STATUSES, ANY_STATUS))


def checked_mapping(given: Any, name: str) -> dict[str, Any]:
    """A caller's own data to match, as JSON represents it."""
    if given is not None and not isinstance(given, Mapping):
        raise InvalidInput(f'{name} must be a mapping such as {{"ticket": 42}}, not {type(given).__name__}')
    try:
        text = json.dumps(dict(given or {}), ensure_ascii=False)
        found: dict[str, Any] = json.loads(text.encode())
    except UnicodeEncodeError as error:
        raise half_character_error(error) from None
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{name} must be data that JSON can represent: {error}") from None
    # In JSON text a NUL is always escaped, and a backslash of the caller's own is doubled.
    if r"\u0000" in text.replace(r"\\", ""):
        raise InvalidInput(f"{name} {given!r:.80} contains a NUL character, which not every store can store; remove it")
    return found


_NESTED = (dict, list, tuple, Mapping)


def refuse_deep(value: Any, what: str, most: int = MAX_DATA_DEPTH) -> None:
    """Raise `InvalidInput` for lists and mappings nested too deep to be read back."""
    level = [value]
    for _ in range(most + 1):
        level = [item for part in level if isinstance(part, _NESTED)
                 for item in (part.values() if isinstance(part, (dict, Mapping)) else part)]  # fmt: skip
        if not level:
            return
    raise InvalidInput(f"{what} is nested deeper than {most} levels, which could not be read back; make it flatter")


def refuse_keys(value: Any, what: str) -> None:
    """Raise `InvalidInput` for keys that are not text: as JSON, two of them could become one."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            if others := [key for key in part if not isinstance(key, str)]:
                raise InvalidInput(
                    f"{what} must have text for keys, not {type(others[0]).__name__} ({others[0]!r:.40})"
                )
            waiting += part.values()
        elif isinstance(part, list | tuple):
            waiting += part


FORGET_REQUESTED = "forget_requested"
"""On a memory that somebody without permission asked to forget: by whom and where, until a person decides."""
CORROBORATED_BY = "corroborated_by"
"""On a memory that an independent source repeated: that source."""
VERBATIM = "verbatim"
"""On an artifact with the exact words of a memory: the memory's id. Only a search for artifacts finds it."""
QUOTED_EVENT = "quoted_event"
"""On such an artifact: the event that it quotes."""
IN_BUFFER = "captured"
"""On a live turn: whether it is or was in its session's buffer."""

RESERVED_MEMORY_KEYS = (FORGET_REQUESTED, CORROBORATED_BY)
RESERVED_EVENT_KEYS = (VERBATIM, QUOTED_EVENT, IN_BUFFER)


def refuse_reserved(
    given: Mapping[str, Any], reserved: Collection[str], stored: Mapping[str, Any] | None = None
) -> None:
    """Raise `InvalidInput` if a caller's metadata changes the value of a reserved key."""
    stored = stored or {}
    for key in reserved:
        if key in given and (key not in stored or given[key] != stored[key]):
            raise InvalidInput(f"the metadata {key!r} is Engram's own; choose another key")


def with_reserved(given: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """A caller's metadata for a memory, with the stored reserved keys. Raises `InvalidInput` if the caller sets one."""
    refuse_reserved(given, RESERVED_MEMORY_KEYS, stored)
    return {**given, **{key: stored[key] for key in RESERVED_MEMORY_KEYS if key in stored}}


def without_reserved(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """A memory's metadata without the keys that only this store decides."""
    return {key: value for key, value in metadata.items() if key not in RESERVED_MEMORY_KEYS}
