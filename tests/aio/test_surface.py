"""Both memories have the same calls: names, parameters, defaults, and types written out."""

import ast
import inspect
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

import engram.aio
from engram.aio import AsyncEngram, AsyncSession
from engram.aio.mirror import BASES, VALUES, drawn, facets
from engram.client import Engram
from engram.sessions.sessions import SessionHandle

CALLS = [name for name, _ in inspect.getmembers(Engram, inspect.isfunction) if not name.startswith("_")]
FACETS = [
    name
    for kind in Engram.__mro__
    for name, part in vars(kind).items()
    if isinstance(part, cached_property) and not name.startswith("_")
]
DRAWN = drawn()
FACET_CALLS = [
    pytest.param(kind, name, id=f"{facet}.{name}")
    for facet, kind in facets().items()
    for name in vars(kind)
    if not name.startswith("_") and (inspect.isfunction(vars(kind)[name]) or isinstance(vars(kind)[name], property))
]


def taken(call: Any) -> list[tuple[str, Any, Any]]:
    """Parameters by name, kind and default."""
    return [(p.name, p.kind, p.default) for p in inspect.signature(call).parameters.values()]


def twin(kind: type) -> type:
    """The asynchronous facet of a synchronous one."""
    from engram.aio import facets as written

    found = getattr(written, f"Async{kind.__name__}")
    assert isinstance(found, type)
    return found


@pytest.mark.parametrize("name", CALLS)
def test_every_call_is_there_with_the_same_parameters(name: str) -> None:
    assert taken(getattr(AsyncEngram, name)) == taken(getattr(Engram, name))
    assert inspect.getdoc(getattr(AsyncEngram, name))


@pytest.mark.parametrize(("kind", "name"), FACET_CALLS)
def test_every_call_of_a_facet_is_there_with_the_same_parameters(kind: type, name: str) -> None:
    ours, theirs = inspect.getattr_static(twin(kind), name), vars(kind)[name]
    assert isinstance(ours, property) == isinstance(theirs, property)
    if not isinstance(theirs, property):
        assert taken(ours) == taken(theirs)


def test_there_are_calls_and_facets_to_compare() -> None:
    assert len(CALLS) > 40
    assert len(FACET_CALLS) > 35


@pytest.mark.parametrize("name", [*FACETS, "settings", "home", "directory"])
def test_every_facet_and_value_has_its_name(name: str) -> None:
    assert isinstance(inspect.getattr_static(AsyncEngram, name), property)


def test_opening_takes_the_same_and_the_number_of_threads() -> None:
    assert taken(AsyncEngram.open)[:-1] == taken(Engram.open)
    assert taken(AsyncEngram.open)[-1][0] == "threads"


def test_a_session_has_every_call_of_its_twin() -> None:
    for name, call in inspect.getmembers(SessionHandle, inspect.isfunction):
        if not name.startswith("_"):
            assert taken(getattr(AsyncSession, name)) == taken(call), name
    for value in ("id", "session", "injection"):
        assert isinstance(inspect.getattr_static(AsyncSession, value), property)


@pytest.mark.parametrize("name", sorted(DRAWN))
def test_what_is_written_out_is_in_step_with_the_synchronous_classes(name: str) -> None:
    written = Path(engram.aio.__file__).with_name(name).read_text("utf-8")
    assert ast.dump(ast.parse(written)) == ast.dump(ast.parse(DRAWN[name])), "run `python -m engram.aio.mirror`"


def test_what_is_made_by_hand_still_exists() -> None:
    assert set(FACETS) >= VALUES
    assert {kind.__name__ for kind in facets().values()} >= set(BASES)
