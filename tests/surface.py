"""The classes a caller meets behind `Engram` and `AsyncEngram`."""

import inspect
from collections.abc import Callable
from typing import Any, ForwardRef, get_args, get_type_hints

from engram import AsyncEngram, Engram
from engram.aio.awaitable import Twin
from engram.model import memory as model_fields
from engram.model.lazy import cached_property
from engram.sessions.sessions import SessionHandle

VALUES = {"settings", "home", "directory", "policy", "model"}
"""Parts of `Engram` that are handed out as they are."""


def facets() -> dict[str, type]:
    """The facets of `Engram` by name."""
    return {
        name: get_type_hints(inspect.getattr_static(AsyncEngram, name).fget)["return"]
        for name, part in inspect.getmembers_static(Engram)
        if isinstance(part, cached_property) and not name.startswith("_") and name not in VALUES
    }


def target(twin: type) -> type:
    """The synchronous class behind a twin."""
    found = next(base.__args__[0] for base in twin.__orig_bases__ if base.__origin__ is Twin)  # type: ignore[attr-defined]
    assert isinstance(found, type)
    return found


def public_calls() -> dict[str, Callable[..., Any]]:
    """The public methods of `Engram`, of its facets, and of a running session."""
    classes = {"": Engram, "SessionHandle.": SessionHandle} | {
        f"{name}.": target(twin) for name, twin in facets().items()
    }
    return {
        f"{prefix}{name}": part
        for prefix, kind in classes.items()
        for name, part in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
    }


def annotations(call: Callable[..., Any]) -> dict[str, Any]:
    """The annotation of each parameter of a call, those of its `**fields` and `**filters` included, under Engram's own names."""
    found: dict[str, Any] = {}
    for name, parameter in inspect.signature(call).parameters.items():
        if parameter.kind is not parameter.VAR_KEYWORD:
            found[name] = parameter.annotation
            continue
        (kind,) = get_args(parameter.annotation)
        if isinstance(kind, ForwardRef):
            kind = getattr(model_fields, kind.__forward_arg__)
        for field, annotation in kind.__annotations__.items():
            found.setdefault(model_fields.FIELD_ALIASES.get(field, field), annotation)
    return found


def parameters(call: Callable[..., Any]) -> set[str]:
    """The names of a call's parameters, those of its `**fields` and `**filters` included."""
    return set(annotations(call))
