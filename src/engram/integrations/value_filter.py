"""LangGraph's filters over values: equal parts, and `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`."""

import operator
from collections.abc import Callable, Mapping
from typing import Any

_ORDERED: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
OPERATORS = ("$eq", "$ne", *_ORDERED)


def check_filter(wanted: Any) -> None:
    """Raise `ValueError` for an operator that there is not, before anything is searched."""
    if isinstance(wanted, Mapping):
        if _has_operators(wanted):
            unknown = [name for name in wanted if name not in OPERATORS]
            if unknown:
                raise ValueError(f"Unsupported operator: {unknown[0]}; the operators are {', '.join(OPERATORS)}")
        else:
            for part in wanted.values():
                check_filter(part)
    elif isinstance(wanted, list | tuple):
        for part in wanted:
            check_filter(part)


def matches_value(found: Any, wanted: Any) -> bool:
    """Whether a value has what a filter asks for; a mapping matches where each of its parts does."""
    if isinstance(wanted, Mapping):
        if _has_operators(wanted):
            return all(_matches_operator(found, name, value) for name, value in wanted.items())
        return isinstance(found, Mapping) and all(matches_value(found.get(key), part) for key, part in wanted.items())
    if isinstance(wanted, list | tuple):
        return isinstance(found, list | tuple) and len(found) == len(wanted) and all(map(matches_value, found, wanted))
    return bool(found == wanted)


def _has_operators(wanted: Mapping[str, Any]) -> bool:
    return any(str(name).startswith("$") for name in wanted)


def _matches_operator(found: Any, name: str, value: Any) -> bool:
    if name == "$eq":
        return bool(found == value)
    if name == "$ne":
        return bool(found != value)
    pair = _numbers(found, value) or ((found, value) if isinstance(found, str) and isinstance(value, str) else None)
    return pair is not None and _ORDERED[name](*pair)


def _numbers(found: Any, value: Any) -> tuple[float, float] | None:
    """Both as numbers, where they are; what has no order is on neither side."""
    try:
        return float(found), float(value)
    except (TypeError, ValueError):
        return None
