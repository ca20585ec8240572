"""Turning what a caller says into a memory: accepted names, checked values, what the way it came in implies."""

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any

from engram.model.errors import InvalidInput
from engram.model.memory import STATUSES, VERIFICATIONS, Anchor, Association, Evidence, Feedback, Memory, render_form
from engram.model.times import aware
from engram.model.types import memory_type
from engram.rules import numbers as n
from engram.rules.scopes import parse_scope

ALIASES = {"content": "statement", "fact": "statement", "main_content": "context", "memory_type": "type"}
_TIMES = ("created", "updated", "occurred_at", "valid_from", "valid_until", "last_verified")
_UNIT = ("confidence", "importance")
_NOT_YOURS = frozenset({"id", "version", "activation", "extra", "learned_by"})
_FIELDS = frozenset(field.name for field in fields(Memory)) - _NOT_YOURS


def draft(given: Mapping[str, Any], *, learned_by: str, source: str, now: datetime) -> Memory:
    """The memory a caller's fields describe; `InvalidInput` names what cannot be used."""
    values = checked_fields(given)
    statement = values.pop("statement", "") or render_form(values.get("form", {}))
    if not isinstance(statement, str):
        raise InvalidInput(f"a statement is text, not {type(statement).__name__}")
    values.setdefault("created", now)
    if learned_by in ("remember", "harvest", "import"):
        values.setdefault("decay_days", n.HORIZON_DAYS)
    return Memory(**{"id": "", "source": source, "learned_by": learned_by, **values, "statement": statement})


def checked_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """Fields under their one name, with values of the right kind."""
    values: dict[str, Any] = {}
    for name, value in given.items():
        field = ALIASES.get(name, name)
        if field not in _FIELDS:
            raise InvalidInput(f"unknown field {name!r}; a memory has: {', '.join(sorted(_FIELDS))}")
        if value is None and field not in ("valid_until", "valid_from", "decay_days", "occurred_at"):
            continue
        values[field] = _checked(field, value)
    if values.get("valid_from") and values.get("valid_until") and values["valid_from"] >= values["valid_until"]:
        raise InvalidInput("valid_until must come after valid_from")
    return values


def _checked(field: str, value: Any) -> Any:
    check = _CHECKS.get(field)
    return check(value) if check else value


def _unit(value: Any) -> float:
    number = _number(value)
    if not 0 <= number <= 1:
        raise InvalidInput(f"{value!r} must lie between 0 and 1")
    return number


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidInput(f"{value!r} is not a number")
    return float(value)


def _weight(value: Any) -> float:
    number = _number(value)
    if not 1 <= number <= 10:
        raise InvalidInput(f"emotional_weight {value!r} must lie between 1 and 10")
    return number


def _type(value: Any) -> str:
    return memory_type(str(value)).name


def _words(value: Any) -> tuple[str, ...]:
    items = value.split(",") if isinstance(value, str) else list(value)
    return tuple(dict.fromkeys(str(item).strip() for item in items if str(item).strip()))


def _one_of(allowed: tuple[str, ...], what: str) -> Any:
    def check(value: Any) -> str:
        if value not in allowed:
            raise InvalidInput(f"{value!r} is no {what}; one of {', '.join(allowed)}")
        return str(value)

    return check


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{value!r} is not text")
    return value


def _items(kind: type[Any]) -> Any:
    def check(value: Any) -> tuple[Any, ...]:
        return tuple(item if isinstance(item, kind) else kind(**item) for item in value)

    return check


def _metadata(value: Any) -> dict[str, Any]:
    import json

    if not isinstance(value, Mapping):
        raise InvalidInput("metadata is a mapping of your own keys and values")
    try:
        loaded: dict[str, Any] = json.loads(json.dumps(value, ensure_ascii=False))
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"metadata must be JSON data: {error}") from None
    return loaded


_CHECKS: dict[str, Any] = {
    **dict.fromkeys(_TIMES, aware),
    **dict.fromkeys(_UNIT, _unit),
    **dict.fromkeys(("statement", "situation", "context", "rationale", "domain", "name", "trigger_context"), _text),
    "emotional_weight": _weight,
    "type": _type,
    "scope": parse_scope,
    "tags": _words,
    "aliases": _words,
    "entities": _words,
    "supersedes": _words,
    "status": _one_of(STATUSES, "status"),
    "verification": _one_of(VERIFICATIONS, "verification"),
    "metadata": _metadata,
    "anchors": _items(Anchor),
    "associations": _items(Association),
    "evidence": _items(Evidence),
    "pinned": bool,
    "feedback": lambda v: v if isinstance(v, Feedback) else Feedback(**v),
    "decay_days": lambda v: None if v is None else _number(v),
}
