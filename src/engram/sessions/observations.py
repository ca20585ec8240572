"""Validates events from callers before they are stored. Redacting secrets is the store's job."""

import json
from collections.abc import Callable, Mapping
from datetime import datetime, tzinfo
from typing import Any

from engram.model.arguments import RESERVED_EVENT_KEYS, refuse_deep, refuse_keys, refuse_reserved
from engram.model.errors import InvalidInput
from engram.model.memory import aware
from engram.model.records import EVENT_TYPES
from engram.store.intake import NewEvent

_FIELDS = frozenset({"role", "content", "at", "key", "event_type", "payload", "metadata", "task"})
MAX_CONTENT = 8 * 1024 * 1024


def new_event(item: Mapping[str, Any], now: datetime, of_task: str = "", zone: tzinfo | None = None) -> NewEvent:
    """Build an event from a caller's fields; raises `InvalidInput` naming the field that cannot be used."""
    unknown = set(item) - _FIELDS
    if unknown:
        raise InvalidInput(f"unknown field {sorted(unknown)[0]!r} of an event; known: {', '.join(sorted(_FIELDS))}")
    role, content = item.get("role", ""), item.get("content", "")
    if not isinstance(role, str) or not role.strip() or not isinstance(content, str):
        raise InvalidInput("an event needs a role and content, both text")
    if not content.strip() and not item.get("payload"):
        raise InvalidInput(f"an event of {role.strip()} needs content or a payload")
    if len(content) > MAX_CONTENT:
        raise InvalidInput(
            f"an event of {len(content)} characters; at most {MAX_CONTENT}. `engram ingest` takes documents"
        )
    event_type = item.get("event_type") or "message"
    if event_type not in EVENT_TYPES:
        raise InvalidInput(f"Unknown event type {event_type!r}; choose {', '.join(EVENT_TYPES)}")
    metadata = json_data("the event's metadata", item.get("metadata"))
    refuse_reserved(metadata, RESERVED_EVENT_KEYS)
    return NewEvent(
        role=checked_text(role.strip(), "the event's role"),
        content=make_storable(content),
        at=aware(item.get("at"), zone) or now,
        event_type=event_type,
        task=of_task or checked_text(str(item.get("task", "") or ""), "the event's task"),
        key=checked_text(str(item.get("key", "") or ""), "the event's key"),
        payload=json_data("the event's payload", item.get("payload"), captured=True),
        metadata=metadata,
    )


def json_data(what: str, given: Any, *, captured: bool = False) -> dict[str, Any]:
    """A caller's own data; raises `InvalidInput` unless it is an object that JSON and every store can represent.

    In `captured` data, such as the output of a tool, characters that no store can represent are replaced instead.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidInput(f'{what} must be an object such as {{"name": "pytest"}}, not {type(given).__name__}')
    refuse_deep(given, what)
    refuse_keys(given, what)
    try:
        data: dict[str, Any] = _map_texts(dict(given), what, _captured_text if captured else checked_text)
        json.dumps(data, allow_nan=False)
    except InvalidInput:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"{what} cannot be stored as JSON ({error}); give text, numbers, lists and objects"
        ) from None
    return data


def _map_texts(value: Any, what: str, text_of: Callable[[str, str], str]) -> Any:
    if isinstance(value, str):
        return text_of(value, what)
    if isinstance(value, Mapping):
        return {
            text_of(str(name), f"a key of {what}"): _map_texts(item, f"{what}.{name}", text_of)
            for name, item in value.items()
        }
    if isinstance(value, list | tuple | set | frozenset):
        return [_map_texts(item, f"{what}[{place}]", text_of) for place, item in enumerate(value)]
    return value


def checked_text(text: str, what: str) -> str:
    """The text, unchanged. Raises `InvalidInput` if no store can represent it."""
    if make_storable(text) != text:
        raise InvalidInput(f"{what} contains a NUL or half a surrogate pair, which cannot be stored; remove it")
    return text


def _captured_text(text: str, what: str) -> str:
    return make_storable(text)


def make_storable(text: str) -> str:
    """Replace the characters that some store cannot represent: half a surrogate pair by `?`, NUL by U+FFFD."""
    plain = text if text.isascii() else text.encode("utf-8", "replace").decode()
    return plain.replace("\0", "\N{REPLACEMENT CHARACTER}")
