"""Turns a caller's fields into a memory: resolves aliases, checks values, sets defaults by how it was learned."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from engram.gates.proposal import TEXT_FIELDS, WORD_FIELDS
from engram.model.arguments import RESERVED_MEMORY_KEYS, refuse_deep, refuse_keys, refuse_reserved
from engram.model.errors import InvalidInput
from engram.model.lazy import fields
from engram.model.memory import (
    FIELD_ALIASES,
    FORMS,
    SIGNALS,
    STATUSES,
    TIME_FIELDS,
    VERIFICATIONS,
    Anchor,
    Association,
    Evidence,
    Feedback,
    Memory,
    aware,
    render_form,
)
from engram.model.types import check_complete, form_name, memory_type, with_form
from engram.rules import numbers as n
from engram.rules.labels import MAX_CUES, cues_problem, normalize_cues
from engram.rules.scopes import parse_scope
from engram.text.display import remove_invisible

_UNIT = ("confidence", "importance")
_TEXTS = (
    "statement", "situation", "context", "rationale", "trigger_context", "lineage", "superseded_by", "conflict_key",
    "critical_slot", "source", "policy_class", "box", "trace", "session", "task",
)  # fmt: skip
_LIKE_AN_ID = re.compile(r"(?:ENG|ABS|META|EVT|CHK|SRC)-\w+-")
_NOT_YOURS = frozenset({"id", "version", "activation", "extra", "learned_by"})
_READ = frozenset((*TEXT_FIELDS, *WORD_FIELDS, "form"))
_FIELDS = frozenset(field.name for field in fields(Memory)) - _NOT_YOURS


def draft(given: Mapping[str, Any], *, learned_by: str, source: str, now: datetime) -> Memory:
    """The memory that a caller's fields describe. Raises `InvalidInput` for a field that cannot be used."""
    values = clamp_import_time(checked_fields(with_complete_form(given)), now)
    refuse_reserved(values.get("metadata", {}), RESERVED_MEMORY_KEYS)
    statement = values.pop("statement", "") or render_form(values.get("form", {}))
    if not isinstance(statement, str):
        raise InvalidInput(f"a statement must be text, not {type(statement).__name__}")
    values.setdefault("created", now)
    if learned_by in ("remember", "harvest", "import"):
        values.setdefault("decay_days", n.HORIZON_DAYS)
    return Memory(**{"id": "", "source": source, "learned_by": learned_by, **values, "statement": statement})


def with_complete_form(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a new memory, with the parts of a form as its form. Raises `InvalidInput` naming missing parts."""
    rest, parts = with_form(given)
    if not parts:
        return rest
    check_complete(parts, str(rest.get("situation") or ""))
    return {"type": form_name(parts), **rest, "form": parts}


def clamp_import_time(values: dict[str, Any], now: datetime) -> dict[str, Any]:
    """The fields, with a future import time set to now, so that the memory can become stale."""
    imported = values.get("imported_at")
    return {**values, "imported_at": now} if imported is not None and imported > now else values


def checked_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields under their canonical names, with checked values. Raises `InvalidInput`."""
    values: dict[str, Any] = {}
    for name, value in given.items():
        field = FIELD_ALIASES.get(name, name)
        if field not in _FIELDS:
            raise InvalidInput(f"unknown field {name!r}; choose from {', '.join(sorted(_FIELDS))}")
        if value is None and field not in ("valid_until", "valid_from", "decay_days", "occurred_at"):
            continue
        checked = _check_field(field, value)
        if field in values and values[field] != checked:
            raise InvalidInput(f"{name!r} and {field!r} are the same field with different values; give one of them")
        values[field] = checked
    if values.get("valid_from") and values.get("valid_until") and values["valid_from"] >= values["valid_until"]:
        raise InvalidInput("valid_until must come after valid_from")
    return values


def _check_field(field: str, value: Any) -> Any:
    check = _CHECKS.get(field)
    if check is None:
        return value
    try:
        checked = check(value)
        return _without_invisible(checked) if field in _READ else checked
    except InvalidInput as error:
        raise error if field in str(error) else InvalidInput(f"{field}: {error}") from None


def _without_invisible(value: Any) -> Any:
    """A text, words or a form without invisible characters."""
    if isinstance(value, str):
        return remove_invisible(value)
    if isinstance(value, Mapping):
        return {part: remove_invisible(text) for part, text in value.items()}
    return tuple(filter(None, map(remove_invisible, value)))


def _unit(value: Any) -> float:
    number = _number(value)
    if not 0 <= number <= 1:
        raise InvalidInput(f"{value!r} must be between 0 and 1")
    return number


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidInput(f"{value!r} is not a number")
    return float(value)


def _weight(value: Any) -> float:
    number = _number(value)
    if not 1 <= number <= 10:
        raise InvalidInput(f"emotional_weight {value!r} must be between 1 and 10")
    return number


def _type(value: Any) -> str:
    return memory_type(str(value)).name


def _words(value: Any) -> tuple[str, ...]:
    if not isinstance(value, (str, Iterable)) or isinstance(value, (bytes, Mapping)):
        raise InvalidInput(f"{value!r} is not a list of words")
    items = value.split(",") if isinstance(value, str) else list(value)
    return tuple(dict.fromkeys(str(item).strip() for item in items if str(item).strip()))


def _cues(value: Any) -> tuple[str, ...]:
    """Cues without invisible characters; a single text is one cue.

    Raises `InvalidInput` naming the limit they exceed.
    """
    items = [value] if isinstance(value, str) else value
    if isinstance(items, (bytes, Mapping)) or not isinstance(items, Iterable):
        raise InvalidInput(f"cues takes up to {MAX_CUES} short phrases, not {value!r:.60}")
    cues = list(items)
    if not all(isinstance(cue, str) for cue in cues):
        raise InvalidInput(f"cues takes up to {MAX_CUES} short phrases, each of them text")
    checked = normalize_cues(map(remove_invisible, cues))
    if problem := cues_problem(checked):
        raise InvalidInput(problem)
    return checked


def _one_of(allowed: tuple[str, ...], what: str) -> Any:
    def check(value: Any) -> str:
        if value not in allowed:
            raise InvalidInput(f"unknown {what} {value!r}; choose from {', '.join(allowed)}")
        return str(value)

    return check


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{value!r} is not text")
    return value


def _items(kind: type[Any], what: str) -> Any:
    def check(value: Any) -> tuple[Any, ...]:
        if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
            raise InvalidInput(f"{what} must be a list, not {value!r:.60}")
        try:
            return tuple(item if isinstance(item, kind) else kind(**item) for item in value)
        except TypeError:
            known = ", ".join(field.name for field in fields(kind) if field.name != "extra")
            raise InvalidInput(f"each of the {what} must be a mapping with the keys {known}") from None

    return check


def _form(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(part, str) for pair in value.items() for part in pair):
        raise InvalidInput("a form must map parts to text")
    if value and not any(set(value) <= set(form) for form in FORMS):
        raise InvalidInput(f"a form takes the parts {' or '.join(', '.join(form) for form in FORMS)}")
    return dict(value)


def _feedback(value: Any) -> Feedback:
    if isinstance(value, Mapping):
        if not set(value) <= set(SIGNALS):
            raise InvalidInput(f"feedback takes the counts {', '.join(SIGNALS)}")
        value = Feedback(**value)
    if not isinstance(value, Feedback) or any(_whole(0)(getattr(value, signal)) < 0 for signal in SIGNALS):
        raise InvalidInput("feedback must be a mapping of counts")
    return value


def _whole(least: int) -> Any:
    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InvalidInput(f"{value!r} must be a whole number, at least {least}")
        return value

    return check


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(f"{value!r} must be True or False")
    return value


def _days(value: Any) -> float | None:
    if value is not None and _number(value) <= 0:
        raise InvalidInput(f"decay_days {value!r} must be more than 0; leave it out for never")
    return None if value is None else float(value)


def _name(value: Any) -> str:
    name = _text(value).strip()
    if _LIKE_AN_ID.match(name):
        raise InvalidInput(f"the name {name!r} looks like an id; choose another")
    return name


def _domain(value: Any) -> str:
    return "/".join(part.strip() for part in _text(value).split("/") if part.strip())


def _metadata(value: Any) -> dict[str, Any]:
    import json

    if not isinstance(value, Mapping):
        raise InvalidInput("metadata must be a mapping")
    refuse_deep(value, "metadata")
    refuse_keys(value, "metadata")
    try:
        loaded: dict[str, Any] = json.loads(json.dumps(value, ensure_ascii=False, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"metadata must be JSON data: {error}") from None
    return loaded


_CHECKS: dict[str, Any] = {
    **dict.fromkeys(TIME_FIELDS, aware),
    **dict.fromkeys(_UNIT, _unit),
    **dict.fromkeys(_TEXTS, _text),
    **dict.fromkeys(("derivation_count", "revision"), _whole(1)),
    "name": _name,
    "domain": _domain,
    "form": _form,
    "memory_kind": _one_of(("", "episode", "note"), "memory_kind"),
    "emotional_weight": _weight,
    "type": _type,
    "scope": parse_scope,
    "tags": _words,
    "cues": _cues,
    "aliases": _words,
    "entities": _words,
    "supersedes": _words,
    "status": _one_of(STATUSES, "status"),
    "verification": _one_of(VERIFICATIONS, "verification"),
    "metadata": _metadata,
    "anchors": _items(Anchor, "anchors"),
    "associations": _items(Association, "associations"),
    "evidence": _items(Evidence, "evidence"),
    "pinned": _flag,
    "consolidated": _flag,
    "feedback": _feedback,
    "decay_days": _days,
}
