"""Both memories have the same calls: names, parameters, types and docstrings."""

import inspect
from typing import Any

from engram import AsyncEngram, AsyncSession, Engram
from engram.client.arguments import OpenOptions
from engram.sessions.sessions import SessionHandle
from tests.surface import VALUES, facets, target

BY_HAND = {"open", "close"}
"""Calls of `Engram` that its twin writes itself."""


def calls(kind: type) -> set[str]:
    """The public methods and properties of a class, less its fields."""
    return {
        name
        for name, part in inspect.getmembers_static(kind)
        if not name.startswith("_") and (inspect.isfunction(part) or isinstance(part, property | classmethod))
    }


def test_every_call_of_the_memory_its_facets_and_its_session_has_a_twin() -> None:
    missing = {}
    for twin in (AsyncEngram, AsyncSession, *facets().values()):
        missing[twin.__name__] = calls(target(twin)) - calls(twin)
    assert not any(missing.values()), missing
    assert target(AsyncSession) is SessionHandle


def test_a_twin_forwards_to_the_call_of_its_own_name() -> None:
    for twin in (AsyncEngram, AsyncSession, *facets().values()):
        for name, part in inspect.getmembers_static(twin):
            wrapped = getattr(part, "__wrapped__", None) if inspect.isfunction(part) else None
            if wrapped is not None:
                assert inspect.getattr_static(target(twin), name) is wrapped, f"{twin.__name__}.{name}"
                assert inspect.getdoc(part), f"{twin.__name__}.{name}"


def test_no_property_returns_an_awaitable() -> None:
    for twin in (AsyncEngram, AsyncSession, *facets().values()):
        for name, part in inspect.getmembers_static(twin):
            if isinstance(part, property):
                assert part.fget is not None
                assert "Awaitable" not in str(inspect.signature(part.fget).return_annotation), name


def test_every_value_has_its_name() -> None:
    assert all(isinstance(inspect.getattr_static(AsyncEngram, name), property) for name in VALUES)


def test_opening_takes_the_options_of_the_synchronous_memory() -> None:
    def options(call: Any) -> set[str]:
        return set(inspect.signature(call).parameters) - {"home", "threads", "options"}

    assert set(OpenOptions.__annotations__) == options(Engram.open)
    assert options(AsyncEngram.open) == set()
